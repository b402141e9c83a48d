/* SPDX-License-Identifier: MIT */
/* test_digits.c - the built-in digits: the same bytes everywhere, and hard enough for simple methods to fail. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

enum { TRAIN = 10000, WIDTH = 16 /* classes, padded for the host's vectors */ };
/* FNV-1a of the first 200 test images and labels: a change of the generator is a change of every published accuracy. */
#define TEST_DIGEST UINT64_C(0x6219408ec0f7c594)

struct sets {
    uint8_t *train, *train_labels, *test, *test_labels;
};

static int setup(void **state)
{
    static struct sets s;
    s.train = malloc((size_t)TRAIN * DIGITS_PIXELS);
    s.train_labels = malloc(TRAIN);
    s.test = malloc((size_t)DIGITS_TEST_COUNT * DIGITS_PIXELS);
    s.test_labels = malloc(DIGITS_TEST_COUNT);
    if (!s.train || !s.train_labels || !s.test || !s.test_labels)
        return -1;
    digits_fill(digits_train_seed(1), 0, TRAIN, s.train, s.train_labels);
    digits_fill(DIGITS_TEST_SEED, 0, DIGITS_TEST_COUNT, s.test, s.test_labels);
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct sets *s = *state;
    free(s->train);
    free(s->train_labels);
    free(s->test);
    free(s->test_labels);
    return 0;
}

static uint64_t fnv(uint64_t h, const uint8_t *p, size_t n)
{
    while (n-- > 0)
        h = (h ^ *p++) * UINT64_C(0x100000001b3);
    return h;
}

static void test_same_bytes_everywhere(void **state)
{
    const struct sets *s = *state;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    h = fnv(h, s->test, (size_t)200 * DIGITS_PIXELS);
    h = fnv(h, s->test_labels, 200);
    assert_int_equal(h, TEST_DIGEST);
}

static void test_image_depends_on_seed_and_index_only(void **state)
{
    const struct sets *s = *state;
    uint8_t image[DIGITS_PIXELS], other[DIGITS_PIXELS];

    assert_int_equal(digits_draw(DIGITS_TEST_SEED, 4711, image), s->test_labels[4711]);
    assert_memory_equal(image, s->test + (size_t)4711 * DIGITS_PIXELS, DIGITS_PIXELS);
    digits_draw(DIGITS_TEST_SEED, 4712, other);
    assert_memory_not_equal(image, other, DIGITS_PIXELS);
    digits_draw(digits_train_seed(1), 4711, other);
    assert_memory_not_equal(image, other, DIGITS_PIXELS);
    assert_int_not_equal(digits_train_seed(1), digits_train_seed(2));
}

static void test_classes_are_even(void **state)
{
    const struct sets *s = *state;
    uint32_t count[DIGITS_CLASSES] = { 0 };
    for (uint32_t i = 0; i < DIGITS_TEST_COUNT; i++)
        count[s->test_labels[i]]++;
    for (uint32_t d = 0; d < DIGITS_CLASSES; d++)
        assert_in_range(count[d], DIGITS_TEST_COUNT / 10 * 8 / 10, DIGITS_TEST_COUNT / 10 * 12 / 10);
}

static void test_nearest_centroid_stays_below_85(void **state)
{
    const struct sets *s = *state;
    static float mean[DIGITS_CLASSES][DIGITS_PIXELS];
    uint32_t count[DIGITS_CLASSES] = { 0 }, hits = 0;

    memset(mean, 0, sizeof(mean));
    for (uint32_t i = 0; i < TRAIN; i++) {
        count[s->train_labels[i]]++;
        for (uint32_t k = 0; k < DIGITS_PIXELS; k++)
            mean[s->train_labels[i]][k] += s->train[(size_t)i * DIGITS_PIXELS + k];
    }
    for (uint32_t d = 0; d < DIGITS_CLASSES; d++) {
        for (uint32_t k = 0; k < DIGITS_PIXELS; k++)
            mean[d][k] /= (float)count[d];
    }
    for (uint32_t i = 0; i < DIGITS_TEST_COUNT; i++) {
        float best = INFINITY;
        uint32_t which = 0;
        for (uint32_t d = 0; d < DIGITS_CLASSES; d++) {
            float sum = 0.0f;
            for (uint32_t k = 0; k < DIGITS_PIXELS; k++) {
                float e = mean[d][k] - (float)s->test[(size_t)i * DIGITS_PIXELS + k];
                sum += e * e;
            }
            if (sum < best) {
                best = sum;
                which = d;
            }
        }
        hits += which == s->test_labels[i];
    }
    print_message("nearest centroid: %.2f %%\n", hits * 100.0 / DIGITS_TEST_COUNT);
    assert_true(hits > DIGITS_TEST_COUNT / 2);           /* they are digits ... */
    assert_true(hits < DIGITS_TEST_COUNT * 85 / 100);    /* ... but no templates */
}

/* ---- Multinomial logistic regression, SGD with momentum, trained until it stands still. ---- */

struct linear {
    float w[DIGITS_PIXELS][WIDTH], v[DIGITS_PIXELS][WIDTH], g[DIGITS_PIXELS][WIDTH];
    float b[WIDTH];
};

static void linear_logits(const struct linear *m, const uint8_t *image, float z[WIDTH])
{
    memcpy(z, m->b, sizeof(m->b));
    for (uint32_t k = 0; k < DIGITS_PIXELS; k++) {
        float x = (float)image[k] / 255.0f;
        for (uint32_t n = 0; n < WIDTH; n++)
            z[n] += x * m->w[k][n];
    }
}

static uint32_t top_of(const float z[WIDTH])
{
    uint32_t best = 0;
    for (uint32_t n = 1; n < DIGITS_CLASSES; n++)
        best = z[n] > z[best] ? n : best;
    return best;
}

static void linear_sample(struct linear *m, const uint8_t *image, uint8_t label, float rate)
{
    float z[WIDTH], total = 0.0f;

    linear_logits(m, image, z);
    float top = z[top_of(z)];
    for (uint32_t n = 0; n < DIGITS_CLASSES; n++)
        total += z[n] = expf(z[n] - top);
    for (uint32_t n = 0; n < WIDTH; n++)
        z[n] = n < DIGITS_CLASSES ? z[n] / total - (n == label ? 1.0f : 0.0f) : 0.0f;
    for (uint32_t n = 0; n < WIDTH; n++)
        m->b[n] -= rate * z[n];
    for (uint32_t k = 0; k < DIGITS_PIXELS; k++) {
        float x = (float)image[k] / 255.0f;
        for (uint32_t n = 0; n < WIDTH; n++)
            m->g[k][n] += x * z[n];
    }
}

static uint32_t linear_hits(const struct linear *m, const struct sets *s)
{
    uint32_t hits = 0;
    float z[WIDTH];
    for (uint32_t i = 0; i < DIGITS_TEST_COUNT; i++) {
        linear_logits(m, s->test + (size_t)i * DIGITS_PIXELS, z);
        hits += top_of(z) == s->test_labels[i];
    }
    return hits;
}

static void test_logistic_regression_stays_below_93(void **state)
{
    enum { EPOCHS = 6, BATCH = 50 };
    const struct sets *s = *state;
    struct linear *m = calloc(1, sizeof(*m));
    uint32_t best = 0, last = 0;

    assert_non_null(m);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        float rate = 0.06f / (1.0f + 0.5f * (float)e);
        for (uint32_t i = 0; i < TRAIN; i++) {
            linear_sample(m, s->train + (size_t)i * DIGITS_PIXELS, s->train_labels[i], rate / BATCH);
            if (i % BATCH != BATCH - 1)
                continue;
            for (uint32_t k = 0; k < DIGITS_PIXELS; k++) {
                for (uint32_t n = 0; n < WIDTH; n++) {
                    m->v[k][n] = 0.9f * m->v[k][n] + m->g[k][n] / BATCH;
                    m->w[k][n] -= rate * m->v[k][n];
                    m->g[k][n] = 0.0f;
                }
            }
        }
        last = linear_hits(m, s);
        best = last > best ? last : best;
    }
    print_message("logistic regression: %.2f %% at its best epoch\n", best * 100.0 / DIGITS_TEST_COUNT);
    assert_true(best > DIGITS_TEST_COUNT * 80 / 100);   /* it was trained properly ... */
    assert_true(best < DIGITS_TEST_COUNT * 93 / 100);   /* ... and is not enough */
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes_everywhere),
        cmocka_unit_test(test_image_depends_on_seed_and_index_only),
        cmocka_unit_test(test_classes_are_even),
        cmocka_unit_test(test_nearest_centroid_stays_below_85),
        cmocka_unit_test(test_logistic_regression_stays_below_93),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

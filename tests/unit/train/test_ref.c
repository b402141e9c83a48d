/* SPDX-License-Identifier: MIT */
/* test_ref.c - the host reference against finite differences, and what --verify takes for a deviation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "ref.h"

enum { ROWS = 3, PIXELS = 8, HIDDEN = 5, HIDDEN_PAD = 32, CLASSES = 4, CLASSES_PAD = 32 };

struct fixture {
    float x[ROWS * PIXELS], w1[PIXELS * HIDDEN_PAD], b1[HIDDEN_PAD], w2[HIDDEN_PAD * CLASSES_PAD], b2[CLASSES_PAD];
    uint32_t y[ROWS];
    struct ref_net net;
};

static float draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static int setup(void **state)
{
    static struct fixture f;
    uint32_t dice = 7;

    memset(&f, 0, sizeof(f));
    for (int i = 0; i < ROWS * PIXELS; i++)
        f.x[i] = draw(&dice);
    for (int k = 0; k < PIXELS; k++) {
        for (int h = 0; h < HIDDEN; h++)
            f.w1[k * HIDDEN_PAD + h] = draw(&dice);
    }
    for (int h = 0; h < HIDDEN; h++) {
        f.b1[h] = draw(&dice) * 0.3f;
        for (int n = 0; n < CLASSES; n++)
            f.w2[h * CLASSES_PAD + n] = draw(&dice);
    }
    for (int r = 0; r < ROWS; r++)
        f.y[r] = (uint32_t)r;
    f.net = (struct ref_net){ .rows = ROWS, .pixels = PIXELS, .hidden = HIDDEN, .hidden_pad = HIDDEN_PAD, .classes = CLASSES,
                              .classes_pad = CLASSES_PAD, .x = f.x, .y = f.y, .w1 = f.w1, .b1 = f.b1, .w2 = f.w2, .b2 = f.b2 };
    *state = &f;
    return 0;
}

static double loss_at(const struct ref_net *net)
{
    struct ref_grads g;
    assert_true(ref_gradients_create(net, &g));
    double loss = g.loss;
    ref_gradients_destroy(&g);
    return loss;
}

/* Every parameter in turn: (loss(p + h) - loss(p - h)) / 2h. */
static void check_tensor(const struct ref_net *net, float *p, const double *grad, uint32_t count)
{
    const float h = 1.0f / 512.0f;
    for (uint32_t i = 0; i < count; i++) {
        float old = p[i];
        p[i] = old + h;
        double up = loss_at(net);
        p[i] = old - h;
        double down = loss_at(net);
        p[i] = old;
        assert_true(fabs((up - down) / (2.0 * (double)h) - grad[i]) < 1e-3);
    }
}

static void test_gradients_match_finite_differences(void **state)
{
    struct fixture *f = *state;
    struct ref_grads g;
    double padding = 0.0;

    assert_true(ref_gradients_create(&f->net, &g));
    check_tensor(&f->net, f->b2, g.b2, CLASSES);
    check_tensor(&f->net, f->b1, g.b1, HIDDEN);
    for (int h = 0; h < HIDDEN; h++)
        check_tensor(&f->net, f->w2 + h * CLASSES_PAD, g.w2 + h * CLASSES_PAD, CLASSES);
    for (int k = 0; k < PIXELS; k++)
        check_tensor(&f->net, f->w1 + k * HIDDEN_PAD, g.w1 + k * HIDDEN_PAD, HIDDEN);
    for (int k = 0; k < PIXELS; k++) {
        for (int h = HIDDEN; h < HIDDEN_PAD; h++)
            padding += fabs(g.w1[k * HIDDEN_PAD + h]);
    }
    assert_true(padding == 0.0);
    ref_gradients_destroy(&g);
}

static void test_deviation_sees_what_is_wrong(void **state)
{
    (void)state;
    const double reference[4] = { 0.5, -2.0, 0.0, 1.0 };
    float same[4] = { 0.5f, -2.0f, 0.0f, 1.0f }, off[4] = { 0.5f, -2.0f, 0.01f, 1.0f }, nan_in[4] = { 0.5f, -2.0f, NAN, 1.0f };
    float swapped[4] = { -2.0f, 0.5f, 0.0f, 1.0f };

    assert_true(ref_deviation(same, reference, 4) == 0.0);
    assert_true(ref_deviation(off, reference, 4) > REF_TOLERANCE);
    assert_true(ref_deviation(swapped, reference, 4) > 1.0);
    assert_true(isinf(ref_deviation(nan_in, reference, 4)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_gradients_match_finite_differences, setup),
        cmocka_unit_test(test_deviation_sees_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

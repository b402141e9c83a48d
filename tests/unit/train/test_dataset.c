/* SPDX-License-Identifier: MIT */
/* test_dataset.c - IDX files, good and bad, plain and gzip: each mistake is named in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "dataset.h"

struct files {
    char dir[64];
    uint8_t images[16 + 4 * DATASET_PIXELS], labels[8 + 4];
};

static void put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static void path_of(const struct files *f, char *out, size_t out_B, const char *name)
{
    snprintf(out, out_B, "%s/%s", f->dir, name);
}

static void write_file(const struct files *f, const char *name, const void *data, size_t n, bool gz)
{
    char path[128];
    path_of(f, path, sizeof(path), name);
    if (gz) {
        gzFile z = gzopen(path, "wb");
        assert_non_null(z);
        assert_int_equal(gzwrite(z, data, (unsigned)n), (int)n);
        assert_int_equal(gzclose(z), Z_OK);
        return;
    }
    FILE *p = fopen(path, "wb");
    assert_non_null(p);
    assert_int_equal(fwrite(data, 1, n, p), n);
    assert_int_equal(fclose(p), 0);
}

static int setup(void **state)
{
    struct files *f = calloc(1, sizeof(*f));
    strcpy(f->dir, "/tmp/petrel-idx-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    put32(f->images, 0x803);
    put32(f->images + 4, 4);
    put32(f->images + 8, 28);
    put32(f->images + 12, 28);
    for (uint32_t i = 0; i < 4 * DATASET_PIXELS; i++)
        f->images[16 + i] = (uint8_t)(i * 7);
    put32(f->labels, 0x801);
    put32(f->labels + 4, 4);
    memcpy(f->labels + 8, (uint8_t[]){ 3, 1, 4, 9 }, 4);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "train-images-idx3-ubyte.gz",
                                         "train-labels-idx1-ubyte.gz" };
    struct files *f = *state;
    char path[128];
    for (unsigned i = 0; i < 4; i++) {
        path_of(f, path, sizeof(path), names[i]);
        unlink(path);
    }
    int rc = rmdir(f->dir);
    free(f);
    return rc;
}

static void write_both(const struct files *f, bool gz)
{
    write_file(f, gz ? "train-images-idx3-ubyte.gz" : "train-images-idx3-ubyte", f->images, sizeof(f->images), gz);
    write_file(f, gz ? "train-labels-idx1-ubyte.gz" : "train-labels-idx1-ubyte", f->labels, sizeof(f->labels), gz);
}

static void expect_good(const struct files *f, uint32_t limit, uint32_t count)
{
    struct dataset set;
    char why[256] = "";
    assert_true(dataset_load_idx(f->dir, DATASET_TRAIN, limit, &set, why, sizeof(why)));
    assert_int_equal(set.count, count);
    assert_memory_equal(set.pixels, f->images + 16, count * DATASET_PIXELS);
    assert_memory_equal(set.labels, f->labels + 8, count);
    dataset_free(&set);
}

/* Fails, leaves the set alone, says one line that has the file's name and `words`. */
static void expect_bad(const struct files *f, const char *name, const char *words)
{
    struct dataset set = { .count = 77 };
    char why[256] = "";
    assert_false(dataset_load_idx(f->dir, DATASET_TRAIN, 0, &set, why, sizeof(why)));
    assert_int_equal(set.count, 77);
    assert_non_null(strstr(why, name));
    if (!strstr(why, words))
        print_error("%s\n", why);
    assert_non_null(strstr(why, words));
    assert_null(strchr(why, '\n'));
}

static void test_plain(void **state)
{
    write_both(*state, false);
    expect_good(*state, 0, 4);
    expect_good(*state, 3, 3);
    expect_good(*state, 9, 4);
}

static void test_gzip(void **state)
{
    write_both(*state, true);
    expect_good(*state, 0, 4);
}

static void test_missing(void **state)
{
    struct files *f = *state;
    expect_bad(f, "train-images-idx3-ubyte", "no such file");
    write_file(f, "train-images-idx3-ubyte", f->images, sizeof(f->images), false);
    expect_bad(f, "train-labels-idx1-ubyte", "no such file");
}

/* Neither waited for nor read. */
static void test_not_regular(void **state)
{
    struct files *f = *state;
    char path[128];

    path_of(f, path, sizeof(path), "train-images-idx3-ubyte");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_bad(f, "train-images-idx3-ubyte", "cannot be read: it is a device, pipe or socket, not a regular file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_bad(f, "train-images-idx3-ubyte", "cannot be read: it is a directory");
    assert_int_equal(rmdir(path), 0);
}

static void test_truncated_anywhere(void **state)
{
    struct files *f = *state;
    static const size_t cuts[] = { 0, 3, 8, 15, 16, 17, 16 + 2 * DATASET_PIXELS, 15 + 4 * DATASET_PIXELS };
    write_both(f, false);
    for (unsigned i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        write_file(f, "train-images-idx3-ubyte", f->images, cuts[i], false);
        expect_bad(f, "train-images-idx3-ubyte", "truncated");
    }
    write_file(f, "train-images-idx3-ubyte", f->images, 8, false);
    expect_bad(f, "train-images-idx3-ubyte", "16 bytes of header expected, 8 found");
    write_both(f, false);
    write_file(f, "train-labels-idx1-ubyte", f->labels, 3, false);
    expect_bad(f, "train-labels-idx1-ubyte", "8 bytes of header expected, 3 found");
    write_file(f, "train-labels-idx1-ubyte", f->labels, sizeof(f->labels) - 1, false);
    expect_bad(f, "train-labels-idx1-ubyte", "truncated");
}

static void test_truncated_gzip(void **state)
{
    struct files *f = *state;
    uint8_t raw[8192];
    char path[128];

    write_both(f, true);
    path_of(f, path, sizeof(path), "train-images-idx3-ubyte.gz");
    FILE *p = fopen(path, "rb");
    size_t n = fread(raw, 1, sizeof(raw), p);
    fclose(p);
    write_file(f, "train-images-idx3-ubyte.gz", raw, n / 2, false);
    expect_bad(f, "train-images-idx3-ubyte.gz", "truncated");
    for (unsigned cut = 1; cut <= 8; cut++) { /* all images are there, their check sum or count is not whole */
        write_file(f, "train-images-idx3-ubyte.gz", raw, n - cut, false);
        expect_bad(f, "train-images-idx3-ubyte.gz", "truncated");
    }
    raw[n] = 'x';
    write_file(f, "train-images-idx3-ubyte.gz", raw, n + 1, false);
    expect_bad(f, "train-images-idx3-ubyte.gz", "goes on after the end of its gzip stream");
    memcpy(raw + n, raw, n); /* twice the same file, as cat would join them */
    write_file(f, "train-images-idx3-ubyte.gz", raw, 2 * n, false);
    expect_bad(f, "train-images-idx3-ubyte.gz", "goes on after the 4 items");
    raw[n - 6] ^= 1; /* the checksum */
    write_file(f, "train-images-idx3-ubyte.gz", raw, n, false);
    expect_bad(f, "train-images-idx3-ubyte.gz", "damaged");
}

/* A stream in two parts is one, and the name does not say what a file is. */
static void test_gzip_forms(void **state)
{
    struct files *f = *state;
    uint8_t raw[16384], labels[64];
    char path[128];
    size_t n[2];

    write_both(f, true);
    path_of(f, path, sizeof(path), "train-images-idx3-ubyte.gz");
    for (unsigned i = 0; i < 2; i++) {
        write_file(f, "train-images-idx3-ubyte.gz", f->images + i * 100, i ? sizeof(f->images) - 100 : 100, true);
        FILE *p = fopen(path, "rb");
        n[i] = fread(raw + (i ? n[0] : 0), 1, sizeof(raw) / 2, p);
        fclose(p);
    }
    write_file(f, "train-images-idx3-ubyte.gz", raw, n[0] + n[1], false);
    expect_good(f, 0, 4);
    path_of(f, path, sizeof(path), "train-labels-idx1-ubyte.gz");
    FILE *p = fopen(path, "rb");
    size_t k = fread(labels, 1, sizeof(labels), p);
    fclose(p);
    write_file(f, "train-labels-idx1-ubyte", labels, k, false); /* found before the one with .gz */
    expect_good(f, 0, 4);
    write_file(f, "train-images-idx3-ubyte.gz", f->images, sizeof(f->images), false);
    expect_good(f, 0, 4);
}

static uint32_t looks;
static bool stop_at_third(void)
{
    return ++looks == 3;
}

static void test_draw_stops(void **state)
{
    struct dataset set = { .count = 77 };

    (void)state;
    looks = 0;
    assert_false(dataset_draw(1, 20000, stop_at_third, &set));
    assert_int_equal(looks, 3);
    assert_int_equal(set.count, 77);
    assert_true(dataset_draw(1, 300, NULL, &set));
    struct dataset again;
    assert_true(dataset_draw(1, 299, NULL, &again));
    assert_memory_equal(set.pixels, again.pixels, 299 * DATASET_PIXELS);
    dataset_free(&set);
    dataset_free(&again);
}

static void test_wrong_contents(void **state)
{
    struct files *f = *state;

    put32(f->images, 0x801);
    write_both(f, false);
    expect_bad(f, "train-images-idx3-ubyte", "magic 0x00000801, expected 0x00000803");
    put32(f->images, 0x803);
    put32(f->images + 8, 32);
    write_both(f, false);
    expect_bad(f, "train-images-idx3-ubyte", "32 x 28");
    put32(f->images + 8, 28);
    put32(f->images + 4, 0xfffffff0u);
    write_both(f, false);
    expect_bad(f, "train-images-idx3-ubyte", "claims 4294967280");
    put32(f->images + 4, 3);
    write_both(f, false);
    expect_bad(f, "train-labels-idx1-ubyte", "4 labels for 3 images");
    put32(f->labels + 4, 3);
    write_both(f, false);
    expect_bad(f, "train-images-idx3-ubyte", "goes on after the 3");
    put32(f->images + 4, 4);
    put32(f->labels + 4, 4);
    f->labels[10] = 10;
    write_both(f, false);
    expect_bad(f, "train-labels-idx1-ubyte", "label 2 is 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gzip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_regular, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncated_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncated_gzip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gzip_forms, setup, teardown), cmocka_unit_test(test_draw_stops),
        cmocka_unit_test_setup_teardown(test_wrong_contents, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* dataset.c - reads IDX files, plain or gzip, and fills sets from the generator. */
#include "dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "digits.h"

_Static_assert(DIGITS_PIXELS == DATASET_PIXELS && DIGITS_CLASSES == DATASET_CLASSES, "one shape for all sources");

#define MAGIC_IMAGES 0x00000803u
#define MAGIC_LABELS 0x00000801u
#define MAX_IMAGES 1000000u /* beyond this a header is taken for garbage */

struct idx {
    gzFile file;
    char path[512];
    uint32_t count;
    char *why;
    uint32_t why_B;
};

#define IDX_FAIL(x_, fmt_, ...) (snprintf((x_)->why, (x_)->why_B, "%s: " fmt_, (x_)->path, ##__VA_ARGS__), false)

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool idx_read(struct idx *x, void *buf, uint32_t n, const char *what)
{
    int got = gzread(x->file, buf, n);
    if (got == (int)n)
        return true;
    int code;
    const char *text = gzerror(x->file, &code);
    if (got < 0 && code == Z_DATA_ERROR)
        return IDX_FAIL(x, "is damaged: its gzip stream does not hold together");
    if (got < 0 && code != Z_BUF_ERROR)
        return IDX_FAIL(x, "cannot be read (%s)", code == Z_ERRNO ? strerror(errno) : text);
    return IDX_FAIL(x, "is truncated: %u bytes of %s expected, %d found", n, what, got < 0 ? 0 : got);
}

static bool idx_open(struct idx *x, const char *dir, const char *name, uint32_t magic)
{
    static const char *const ends[] = { "", ".gz" };
    uint8_t head[8];

    for (unsigned i = 0; i < 2; i++) {
        snprintf(x->path, sizeof(x->path), "%s/%s%s", dir, name, ends[i]);
        if (access(x->path, F_OK) == 0)
            break;
        if (i == 1) {
            snprintf(x->path, sizeof(x->path), "%s/%s", dir, name);
            return IDX_FAIL(x, "no such file, plain or .gz");
        }
    }
    x->file = gzopen(x->path, "rb");
    if (!x->file)
        return IDX_FAIL(x, "%s", strerror(errno));
    if (!idx_read(x, head, sizeof(head), "header"))
        return false;
    if (be32(head) != magic)
        return IDX_FAIL(x, "is no IDX file of this kind: magic 0x%08x, expected 0x%08x", be32(head), magic);
    x->count = be32(head + 4);
    if (x->count == 0 || x->count > MAX_IMAGES)
        return IDX_FAIL(x, "claims %u items; 1 to %u are believed", x->count, MAX_IMAGES);
    return true;
}

/* After the last item the file must end: a longer one was cut or joined by accident. */
static bool idx_at_end(struct idx *x)
{
    uint8_t extra;
    if (gzread(x->file, &extra, 1) > 0)
        return IDX_FAIL(x, "goes on after the %u items that its header claims", x->count);
    int code;
    gzerror(x->file, &code);
    if (code != Z_OK && code != Z_STREAM_END)
        return IDX_FAIL(x, "is damaged: its gzip stream does not hold together");
    return true;
}

static bool load(struct idx *images, struct idx *labels, const char *dir, const char *stem, uint32_t limit, struct dataset *set)
{
    char name[64];
    uint8_t dims[8];

    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", stem);
    if (!idx_open(images, dir, name, MAGIC_IMAGES) || !idx_read(images, dims, sizeof(dims), "header"))
        return false;
    if (be32(dims) != DIGITS_SIDE || be32(dims + 4) != DIGITS_SIDE)
        return IDX_FAIL(images, "holds images of %u x %u pixels; 28 x 28 are needed", be32(dims), be32(dims + 4));
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", stem);
    if (!idx_open(labels, dir, name, MAGIC_LABELS))
        return false;
    if (labels->count != images->count)
        return IDX_FAIL(labels, "has %u labels for %u images", labels->count, images->count);

    set->count = limit && limit < images->count ? limit : images->count;
    set->pixels = malloc((size_t)images->count * DATASET_PIXELS);
    set->labels = malloc(images->count);
    if (!set->pixels || !set->labels)
        return IDX_FAIL(images, "needs more memory than the host has");
    if (!idx_read(images, set->pixels, images->count * DATASET_PIXELS, "pixels") || !idx_at_end(images))
        return false;
    if (!idx_read(labels, set->labels, labels->count, "labels") || !idx_at_end(labels))
        return false;
    for (uint32_t i = 0; i < labels->count; i++) {
        if (set->labels[i] >= DATASET_CLASSES)
            return IDX_FAIL(labels, "label %u is %u; 0 to 9 are digits", i, set->labels[i]);
    }
    return true;
}

bool dataset_load_idx(const char *dir, enum dataset_part part, uint32_t limit, struct dataset *set_out, char *why, uint32_t why_B)
{
    struct idx images = { .why = why, .why_B = why_B }, labels = images;
    struct dataset set = { 0 };
    bool ok = load(&images, &labels, dir, part == DATASET_TRAIN ? "train" : "t10k", limit, &set);

    if (images.file)
        gzclose(images.file);
    if (labels.file)
        gzclose(labels.file);
    if (ok)
        *set_out = set;
    else
        dataset_free(&set);
    return ok;
}

bool dataset_draw(uint64_t seed, uint32_t count, struct dataset *set_out)
{
    struct dataset set = { .count = count, .pixels = malloc((size_t)count * DATASET_PIXELS), .labels = malloc(count) };

    if (!set.pixels || !set.labels) {
        dataset_free(&set);
        return false;
    }
    digits_fill(seed, 0, count, set.pixels, set.labels);
    *set_out = set;
    return true;
}

void dataset_free(struct dataset *set)
{
    free(set->pixels);
    free(set->labels);
    *set = (struct dataset){ 0 };
}

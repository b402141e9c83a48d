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
#include "input.h"

_Static_assert(DIGITS_PIXELS == DATASET_PIXELS && DIGITS_CLASSES == DATASET_CLASSES, "one shape for all sources");

#define MAGIC_IMAGES 0x00000803u
#define MAGIC_LABELS 0x00000801u
#define DRAW_AT_ONCE 256u  /* some ms: a signal is not to wait longer */
#define MAX_IMAGES 1000000u /* beyond this a header is taken for garbage */

enum { INPUT_B = 65536 };

struct idx {
    FILE *file;
    bool gzip;                  /* by its first bytes, whatever the name says */
    bool ended;                 /* gzip: the end of the stream was met, its check sum and size were right */
    bool inflates;              /* z is set up */
    z_stream z;                 /* next_in: what was read and not yet used, plain files too */
    uint8_t input[INPUT_B];
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

/* More input, if there is any. False: the file cannot be read. */
static bool refill(struct idx *x)
{
    if (x->z.avail_in)
        return true;
    x->z.next_in = x->input;
    x->z.avail_in = (uInt)fread(x->input, 1, sizeof(x->input), x->file);
    return x->z.avail_in || !ferror(x->file) || IDX_FAIL(x, "cannot be read (%s)", strerror(errno));
}

/* What a writer appended to a gzip file later is part of it, as gzip has it; anything else behind the end is not. */
static bool next_member(struct idx *x)
{
    if (!refill(x))
        return false;
    if (!x->z.avail_in)
        x->ended = true;
    else if (x->z.next_in[0] != 0x1f || inflateReset(&x->z) != Z_OK)
        return IDX_FAIL(x, "goes on after the end of its gzip stream");
    return true;
}

/* Up to n bytes, less at the end alone. False: the file is bad; it has been said. */
static bool inflate_some(struct idx *x, uint8_t *buf, uint32_t n, uint32_t *got_out)
{
    x->z.next_out = buf;
    x->z.avail_out = n;
    while (x->z.avail_out && !x->ended) {
        if (!refill(x))
            return false;
        if (!x->z.avail_in)
            return IDX_FAIL(x, "is truncated: its gzip stream has no end");
        int rc = inflate(&x->z, Z_NO_FLUSH);
        if (rc == Z_MEM_ERROR)
            return IDX_FAIL(x, "needs more memory than the host has");
        if (rc != Z_OK && rc != Z_STREAM_END)
            return IDX_FAIL(x, "is damaged: its gzip stream does not hold together");
        if (rc == Z_STREAM_END && !next_member(x))
            return false;
    }
    *got_out = n - x->z.avail_out;
    return true;
}

static bool copy_some(struct idx *x, uint8_t *buf, uint32_t n, uint32_t *got_out)
{
    uint32_t got = 0;

    while (got < n && refill(x) && x->z.avail_in) {
        uint32_t k = n - got < x->z.avail_in ? n - got : x->z.avail_in;
        memcpy(buf + got, x->z.next_in, k);
        x->z.next_in += k;
        x->z.avail_in -= k;
        got += k;
    }
    *got_out = got;
    return !ferror(x->file);
}

static bool idx_read(struct idx *x, void *buf, uint32_t n, const char *what)
{
    uint32_t got = 0;

    if (!(x->gzip ? inflate_some(x, buf, n, &got) : copy_some(x, buf, n, &got)))
        return false;
    return got == n || IDX_FAIL(x, "is truncated: %u bytes of %s expected, %u found", n, what, got);
}

/* Looks at the first bytes, which stay to be read. */
static bool idx_begin(struct idx *x)
{
    const char *why;

    x->file = input_open(x->path, &why);
    if (!x->file)
        return IDX_FAIL(x, "cannot be read: %s", why);
    setvbuf(x->file, NULL, _IONBF, 0); /* refill reads large pieces */
    if (!refill(x))
        return false;
    x->gzip = x->z.avail_in >= 2 && x->input[0] == 0x1f && x->input[1] == 0x8b;
    if (!x->gzip)
        return true;
    x->inflates = inflateInit2(&x->z, 16 + MAX_WBITS) == Z_OK;
    return x->inflates || IDX_FAIL(x, "needs more memory than the host has");
}

static void idx_end(struct idx *x)
{
    if (x->inflates)
        inflateEnd(&x->z);
    if (x->file)
        fclose(x->file);
}

/* Opens the file and reads its header, magic and count first, of so many bytes. */
static bool idx_open(struct idx *x, const char *dir, const char *name, uint32_t magic, uint8_t *head, uint32_t head_B)
{
    static const char *const ends[] = { "", ".gz" };

    for (unsigned i = 0; i < 2; i++) {
        snprintf(x->path, sizeof(x->path), "%s/%s%s", dir, name, ends[i]);
        if (access(x->path, F_OK) == 0)
            break;
        if (i == 1) {
            snprintf(x->path, sizeof(x->path), "%s/%s", dir, name);
            return IDX_FAIL(x, "no such file, plain or .gz");
        }
    }
    if (!idx_begin(x) || !idx_read(x, head, head_B, "header"))
        return false;
    if (be32(head) != magic)
        return IDX_FAIL(x, "is no IDX file of this kind: magic 0x%08x, expected 0x%08x", be32(head), magic);
    x->count = be32(head + 4);
    if (x->count == 0 || x->count > MAX_IMAGES)
        return IDX_FAIL(x, "claims %u items; 1 to %u are believed", x->count, MAX_IMAGES);
    return true;
}

/* After the last item the file must end, and a gzip stream have its check sum: a longer or shorter one was cut or joined by accident. */
static bool idx_at_end(struct idx *x)
{
    uint8_t extra;
    uint32_t got = 0;

    if (!(x->gzip ? inflate_some(x, &extra, 1, &got) : copy_some(x, &extra, 1, &got)))
        return false;
    return got == 0 || IDX_FAIL(x, "goes on after the %u items that its header claims", x->count);
}

static bool load(struct idx *images, struct idx *labels, const char *dir, const char *stem, uint32_t limit, struct dataset *set)
{
    char name[64];
    uint8_t head[16]; /* magic, count; of images also height and width */
    const uint8_t *dims = head + 8;

    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", stem);
    if (!idx_open(images, dir, name, MAGIC_IMAGES, head, 16))
        return false;
    if (be32(dims) != DIGITS_SIDE || be32(dims + 4) != DIGITS_SIDE)
        return IDX_FAIL(images, "holds images of %u x %u pixels; 28 x 28 are needed", be32(dims), be32(dims + 4));
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", stem);
    if (!idx_open(labels, dir, name, MAGIC_LABELS, head, 8))
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
    struct idx *x = calloc(2, sizeof(*x)); /* images, labels */
    struct dataset set = { 0 };

    if (!x) {
        snprintf(why, why_B, "%s: needs more memory than the host has", dir);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        x[i].why = why;
        x[i].why_B = why_B;
    }
    bool ok = load(&x[0], &x[1], dir, part == DATASET_TRAIN ? "train" : "t10k", limit, &set);
    idx_end(&x[0]);
    idx_end(&x[1]);
    free(x);
    if (ok)
        *set_out = set;
    else
        dataset_free(&set);
    return ok;
}

bool dataset_draw(uint64_t seed, uint32_t count, bool (*asked_to_stop)(void), struct dataset *set_out)
{
    struct dataset set = { .count = count, .pixels = malloc((size_t)count * DATASET_PIXELS), .labels = malloc(count) };
    bool ok = set.pixels && set.labels;

    for (uint32_t first = 0; ok && first < count; first += DRAW_AT_ONCE) {
        uint32_t n = count - first < DRAW_AT_ONCE ? count - first : DRAW_AT_ONCE;
        digits_fill(seed, first, n, set.pixels + (size_t)first * DATASET_PIXELS, set.labels + first);
        ok = !asked_to_stop || !asked_to_stop();
    }
    if (ok)
        *set_out = set;
    else
        dataset_free(&set);
    return ok;
}

void dataset_free(struct dataset *set)
{
    free(set->pixels);
    free(set->labels);
    *set = (struct dataset){ 0 };
}

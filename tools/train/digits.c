/* SPDX-License-Identifier: MIT */
/* digits.c - draws digits: a hand's strokes per style, bent, tilted, drawn with a pen of some width on speckled paper. */
#include "digits.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define MAX_POINTS 12u
#define MAX_STROKES 3u
#define CURVE_STEPS 6u

/* A stroke is a path through points of a 100 by 100 box, y down; curves pass through their points (Catmull-Rom). */
struct stroke {
    bool curve;
    uint8_t count;
    int8_t xy[MAX_POINTS][2];
};
/* One way of writing a digit. */
struct style {
    uint8_t digit;
    uint8_t stroke_count;
    struct stroke strokes[MAX_STROKES];
};

#define CURVE(n_, ...) { .curve = true, .count = (n_), .xy = { __VA_ARGS__ } }
#define LINES(n_, ...) { .curve = false, .count = (n_), .xy = { __VA_ARGS__ } }
#define P(x_, y_) { x_, y_ }

static const struct style styles[] = {
    { 0, 1, { CURVE(9, P(52, 5), P(27, 15), P(15, 48), P(26, 84), P(50, 95), P(75, 83), P(85, 48), P(73, 15), P(52, 5)) } },
    { 0, 1, { CURVE(9, P(60, 8), P(38, 14), P(25, 50), P(32, 86), P(48, 94), P(66, 80), P(74, 45), P(64, 14), P(42, 5)) } },
    { 0, 1, { CURVE(10, P(38, 12), P(20, 32), P(18, 66), P(36, 92), P(62, 92), P(82, 68), P(82, 36), P(64, 12), P(44, 8), P(26, 20)) } },
    { 0, 2, { CURVE(9, P(50, 6), P(26, 18), P(18, 50), P(26, 82), P(50, 94), P(74, 82), P(82, 50), P(74, 18), P(50, 6)), LINES(2, P(70, 22), P(30, 80)) } },
    { 1, 1, { LINES(2, P(50, 4), P(50, 96)) } },
    { 1, 1, { LINES(3, P(28, 28), P(54, 5), P(54, 96)) } },
    { 1, 2, { LINES(3, P(30, 26), P(52, 5), P(52, 94)), LINES(2, P(24, 94), P(80, 94)) } },
    { 1, 1, { LINES(2, P(68, 6), P(34, 95)) } },
    { 2, 1, { CURVE(8, P(20, 28), P(34, 8), P(62, 7), P(76, 28), P(62, 54), P(20, 92), P(48, 92), P(84, 91)) } },
    { 2, 1, { CURVE(10, P(18, 26), P(40, 6), P(70, 16), P(68, 42), P(40, 72), P(18, 88), P(22, 74), P(40, 78), P(60, 92), P(84, 84)) } },
    { 2, 2, { CURVE(6, P(22, 22), P(48, 6), P(74, 20), P(70, 46), P(44, 74), P(18, 94)), LINES(2, P(18, 94), P(82, 94)) } },
    { 3, 1, { CURVE(9, P(22, 16), P(48, 5), P(72, 18), P(66, 38), P(42, 46), P(74, 56), P(80, 76), P(54, 94), P(20, 84)) } },
    { 3, 2, { LINES(3, P(20, 8), P(76, 8), P(44, 42)), CURVE(5, P(44, 42), P(74, 52), P(78, 78), P(52, 94), P(20, 86)) } },
    { 3, 2, { CURVE(5, P(20, 20), P(44, 6), P(68, 16), P(66, 36), P(40, 48)), CURVE(5, P(40, 48), P(78, 58), P(76, 84), P(46, 95), P(16, 78)) } },
    { 4, 2, { LINES(3, P(30, 6), P(18, 56), P(84, 56)), LINES(2, P(66, 30), P(62, 96)) } },
    { 4, 1, { LINES(4, P(64, 96), P(64, 5), P(14, 64), P(86, 64)) } },
    { 4, 2, { CURVE(5, P(22, 8), P(18, 36), P(30, 52), P(58, 50), P(76, 40)), LINES(2, P(76, 6), P(70, 96)) } },
    { 5, 2, { LINES(3, P(78, 8), P(30, 8), P(26, 44)), CURVE(6, P(26, 44), P(56, 38), P(78, 58), P(72, 84), P(46, 95), P(18, 86)) } },
    { 5, 1, { CURVE(8, P(80, 10), P(44, 8), P(28, 26), P(44, 44), P(70, 56), P(74, 80), P(48, 95), P(20, 88)) } },
    { 5, 3, { LINES(2, P(32, 10), P(28, 46)), CURVE(5, P(28, 46), P(60, 42), P(76, 66), P(60, 92), P(22, 90)), LINES(2, P(32, 10), P(82, 6)) } },
    { 6, 1, { CURVE(9, P(66, 6), P(40, 24), P(22, 56), P(26, 84), P(50, 95), P(74, 82), P(70, 60), P(46, 54), P(26, 70)) } },
    { 6, 1, { CURVE(10, P(48, 4), P(32, 32), P(24, 66), P(34, 90), P(56, 94), P(76, 78), P(70, 60), P(52, 56), P(34, 66), P(28, 78)) } },
    { 6, 1, { CURVE(9, P(78, 12), P(52, 8), P(28, 34), P(20, 68), P(40, 94), P(70, 88), P(76, 64), P(52, 50), P(24, 62)) } },
    { 7, 1, { LINES(3, P(16, 10), P(82, 10), P(42, 96)) } },
    { 7, 2, { LINES(3, P(18, 10), P(80, 10), P(44, 96)), LINES(2, P(32, 52), P(76, 50)) } },
    { 7, 1, { CURVE(7, P(16, 26), P(22, 8), P(50, 14), P(82, 8), P(64, 40), P(52, 68), P(48, 96)) } },
    { 8, 1, { CURVE(11, P(66, 16), P(46, 5), P(28, 20), P(40, 42), P(68, 60), P(74, 82), P(50, 95), P(26, 82), P(34, 58), P(62, 38), P(70, 18)) } },
    { 8, 2, { CURVE(7, P(50, 5), P(30, 16), P(32, 38), P(50, 47), P(69, 38), P(70, 16), P(50, 5)), CURVE(7, P(50, 47), P(24, 60), P(26, 86), P(50, 95), P(75, 86), P(76, 60), P(50, 47)) } },
    { 8, 1, { CURVE(11, P(76, 10), P(44, 8), P(30, 26), P(50, 46), P(66, 66), P(56, 92), P(32, 90), P(28, 70), P(48, 50), P(72, 28), P(80, 12)) } },
    { 9, 1, { CURVE(10, P(74, 26), P(54, 6), P(28, 16), P(26, 40), P(48, 52), P(72, 38), P(75, 20), P(74, 44), P(70, 70), P(64, 96)) } },
    { 9, 2, { CURVE(7, P(70, 12), P(42, 5), P(24, 26), P(34, 48), P(58, 46), P(71, 28), P(70, 12)), LINES(2, P(73, 8), P(70, 96)) } },
    { 9, 1, { CURVE(11, P(72, 22), P(48, 6), P(26, 22), P(32, 46), P(56, 48), P(74, 26), P(78, 42), P(74, 72), P(56, 93), P(36, 92), P(22, 80)) } },
};
#define STYLE_COUNT (sizeof(styles) / sizeof(styles[0]))

/* ---- Chance: splitmix64 over a key of (seed, index). ---- */

struct dice {
    uint64_t state;
};

static uint64_t dice_next(struct dice *d)
{
    uint64_t z = (d->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In [0, 1), 24 bits: exact in a float. */
static float dice_unit(struct dice *d)
{
    return (float)(dice_next(d) >> 40) * 0x1p-24f;
}

static float dice_range(struct dice *d, float low, float high)
{
    return low + (high - low) * dice_unit(d);
}

/* Bell-shaped, mean 0, deviation 1, within 3.5: the sum of four 16-bit uniforms out of one draw. */
static float dice_bell(struct dice *d)
{
    uint64_t r = dice_next(d);
    int32_t sum = (int32_t)(r & 0xffff) + (int32_t)(r >> 16 & 0xffff) + (int32_t)(r >> 32 & 0xffff) + (int32_t)(r >> 48);
    return (float)(sum - 131070) * (1.7320508f / 65536.0f);
}

uint64_t digits_train_seed(uint64_t user_seed)
{
    struct dice d = { user_seed ^ UINT64_C(0x5eed0f7a1a1a1a1a) };
    uint64_t seed = dice_next(&d);
    return seed == DIGITS_TEST_SEED ? seed + 1 : seed;
}

/* ---- Drawing ---- */

/* How much this hand varies; see tests/unit/train for what these figures are held to. */
#define WOBBLE 3.6f        /* of control points, hundredths of the box */
#define TURN 0.13f         /* radians */
#define SHEAR 0.19f
#define SHIFT 1.05f        /* pixels */
#define BOX_PX 19.0f       /* height of a digit of mean size */
#define NOISE 0.06f

struct canvas {
    float dist2[DIGITS_PIXELS];   /* squared distance to the nearest ink line, pixels */
};
struct point {
    float x, y;
};
/* From the box to pixels. */
struct pose {
    float xx, xy, yx, yy, dx, dy;
};

/* The reach of a pen in pixels: beyond it paper stays white. */
#define REACH 4.0f

static int clamp_px(float v)
{
    if (v < 0.0f)
        return 0;
    return v > (float)(DIGITS_SIDE - 1) ? (int)DIGITS_SIDE - 1 : (int)v;
}

static void canvas_segment(struct canvas *c, struct point a, struct point b)
{
    float ux = b.x - a.x, uy = b.y - a.y, len2 = ux * ux + uy * uy;
    int x0 = clamp_px((a.x < b.x ? a.x : b.x) - REACH), x1 = clamp_px((a.x < b.x ? b.x : a.x) + REACH);
    int y0 = clamp_px((a.y < b.y ? a.y : b.y) - REACH), y1 = clamp_px((a.y < b.y ? b.y : a.y) + REACH);
    float inv = len2 > 0.0f ? 1.0f / len2 : 0.0f;

    for (int y = y0; y <= y1; y++) {
        for (int x = x0; x <= x1; x++) {
            float px = (float)x - a.x, py = (float)y - a.y;
            float t = (px * ux + py * uy) * inv;
            t = t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
            float ex = px - t * ux, ey = py - t * uy, d2 = ex * ex + ey * ey;
            float *cell = &c->dist2[y * (int)DIGITS_SIDE + x];
            if (d2 < *cell)
                *cell = d2;
        }
    }
}

static float spline(float a, float b, float c, float d, float t)
{
    float t2 = t * t, t3 = t2 * t;
    return 0.5f * (2.0f * b + (c - a) * t + (2.0f * a - 5.0f * b + 4.0f * c - d) * t2 + (3.0f * b - a - 3.0f * c + d) * t3);
}

static void canvas_stroke(struct canvas *c, const struct stroke *s, const struct point *p)
{
    uint32_t last = s->count - 1u;
    for (uint32_t i = 0; i < last; i++) {
        if (!s->curve) {
            canvas_segment(c, p[i], p[i + 1]);
            continue;
        }
        struct point before = p[i ? i - 1 : 0], after = p[i + 2 <= last ? i + 2 : last], from = p[i];
        for (uint32_t k = 1; k <= CURVE_STEPS; k++) {
            float t = (float)k / (float)CURVE_STEPS;
            struct point to = { spline(before.x, p[i].x, p[i + 1].x, after.x, t), spline(before.y, p[i].y, p[i + 1].y, after.y, t) };
            canvas_segment(c, from, to);
            from = to;
        }
    }
}

static struct pose pose_draw(struct dice *d)
{
    float turn = TURN * dice_bell(d), shear = SHEAR * dice_bell(d);
    float wide = dice_range(d, 0.68f, 1.12f), high = dice_range(d, 0.82f, 1.14f);
    /* Sine and cosine to third and fourth order: angles stay under 0.7. */
    float t2 = turn * turn, sine = turn * (1.0f - t2 / 6.0f), cosine = 1.0f - t2 / 2.0f + t2 * t2 / 24.0f;
    float sx = wide * BOX_PX / 100.0f, sy = high * BOX_PX / 100.0f;
    struct pose p = {
        .xx = cosine * sx, .xy = (-cosine * shear - sine) * sy, .yx = sine * sx, .yy = (cosine - sine * shear) * sy,
        .dx = 13.5f + SHIFT * dice_bell(d), .dy = 13.5f + SHIFT * dice_bell(d),
    };
    return p;
}

uint8_t digits_draw(uint64_t seed, uint64_t index, uint8_t pixels[DIGITS_PIXELS])
{
    struct dice d = { seed ^ index * UINT64_C(0xd1342543de82ef95) };
    struct canvas c;
    d.state = dice_next(&d);
    uint8_t digit = (uint8_t)(dice_next(&d) % DIGITS_CLASSES);

    /* A style of that digit, each as likely as the other. */
    uint32_t first = 0, count = 0;
    for (uint32_t i = 0; i < STYLE_COUNT; i++) {
        if (styles[i].digit == digit && count++ == 0)
            first = i;
    }
    const struct style *style = &styles[first + (uint32_t)(dice_next(&d) % count)];

    struct pose pose = pose_draw(&d);
    float pen = dice_range(&d, 0.65f, 1.75f), edge = dice_range(&d, 0.9f, 1.5f), ink = dice_range(&d, 0.72f, 1.0f);
    for (uint32_t i = 0; i < DIGITS_PIXELS; i++)
        c.dist2[i] = REACH * REACH;
    for (uint32_t s = 0; s < style->stroke_count; s++) {
        const struct stroke *stroke = &style->strokes[s];
        struct point p[MAX_POINTS];
        for (uint32_t i = 0; i < stroke->count; i++) {
            float bx = (float)stroke->xy[i][0] - 50.0f + WOBBLE * dice_bell(&d), by = (float)stroke->xy[i][1] - 50.0f + WOBBLE * dice_bell(&d);
            p[i] = (struct point){ pose.xx * bx + pose.xy * by + pose.dx, pose.yx * bx + pose.yy * by + pose.dy };
        }
        canvas_stroke(&c, stroke, p);
    }
    for (uint32_t i = 0; i < DIGITS_PIXELS; i++) {
        float v = (pen + edge * 0.5f - sqrtf(c.dist2[i])) / edge;
        v = ink * (v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v) + NOISE * dice_bell(&d);
        v = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
        pixels[i] = (uint8_t)(v * 255.0f + 0.5f);
    }
    return digit;
}

void digits_fill(uint64_t seed, uint64_t first, uint32_t count, uint8_t *pixels, uint8_t *labels)
{
    for (uint32_t i = 0; i < count; i++)
        labels[i] = digits_draw(seed, first + i, pixels + (size_t)i * DIGITS_PIXELS);
}

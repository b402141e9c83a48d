/* SPDX-License-Identifier: MIT */
/* mlp.c - kernels of a multilayer perceptron: gather, forward, softmax, gradients, optimiser. All arithmetic of training is here. */
#include <device/petrel_device.h>

#include "mlp_args.h"

/*
 * Matrix products are register-blocked for warps of 32 lanes: a lane owns MLP_TILE_ROWS rows by COLS columns of the result, its
 * columns 32 apart, so that the warp's loads of the column operand are contiguous and those of the row operand uniform. With 8 by 3
 * that is 11 loads for 24 multiply-adds. Sums run over k in rising order in each lane: results do not depend on scheduling.
 */
#define ROWS MLP_TILE_ROWS
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* One rounding, one instruction, and free to move, unlike petrel_fmaf; petrel-cc builds without errno of math functions. */
ALWAYS_INLINE float fma32(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

/* Result tile of this warp: group x picks the columns, group y the rows; one warp a workgroup. */
ALWAYS_INLINE uint32_t tile_column(uint32_t cols)
{
    return petrel_group_id(0) * cols * MLP_WARP + petrel_local_id(0);
}

ALWAYS_INLINE uint32_t tile_row(void)
{
    return petrel_group_id(1) * ROWS;
}

PETREL_KERNEL_BLOCK(mlp_gather, struct mlp_gather_args, MLP_WARP, 0)
{
    uint32_t row = petrel_group_id(0), lane = petrel_local_id(0), pixels = args->pixels;
    float *x = args->x + (size_t)row * pixels;

    if (row >= args->count) {
        for (uint32_t k = lane; k < pixels; k += MLP_WARP)
            x[k] = 0.0f;
        if (lane == 0)
            args->y[row] = 0;
        return;
    }
    uint32_t which = args->order[args->first + row];
    const uint8_t *image = args->images + (size_t)which * pixels;
    for (uint32_t k = lane; k < pixels; k += MLP_WARP)
        x[k] = (float)image[k] * (1.0f / 255.0f);
    if (lane == 0)
        args->y[row] = args->labels[which];
}

/* ---- Forward ---- */

/* max(0, v) without a branch; NaN stays NaN, so that a run that diverges is seen. keep: -1 passes all, 0 only what is not negative. */
ALWAYS_INLINE float relu_unless(float v, int32_t keep)
{
    union { float f; int32_t i; } bits = { v };
    bits.i &= ~(bits.i >> 31) | keep;
    return bits.f;
}

ALWAYS_INLINE void forward(const struct mlp_forward_args *args, const uint32_t cols)
{
    const uint32_t k_count = args->k, n_count = args->n, n = tile_column(cols), m = tile_row();
    const float *in = args->in + (size_t)m * k_count, *w = args->w + n;
    float sum[ROWS][3];

#pragma clang loop unroll(full)
    for (uint32_t c = 0; c < cols; c++) {
        float bias = args->bias[n + c * MLP_WARP];
#pragma clang loop unroll(full)
        for (uint32_t r = 0; r < ROWS; r++)
            sum[r][c] = bias;
    }
    const float *row[ROWS];
#pragma clang loop unroll(full)
    for (uint32_t r = 0; r < ROWS; r++)
        row[r] = in + (size_t)r * k_count;
    for (uint32_t k = 0; k < k_count; k += 4) {
#pragma clang loop unroll(full)
        for (uint32_t u = 0; u < 4; u++) {
            float b[3];
#pragma clang loop unroll(full)
            for (uint32_t c = 0; c < cols; c++)
                b[c] = w[c * MLP_WARP];
#pragma clang loop unroll(full)
            for (uint32_t r = 0; r < ROWS; r++) {
                float a = row[r][u];
#pragma clang loop unroll(full)
                for (uint32_t c = 0; c < cols; c++)
                    sum[r][c] = fma32(a, b[c], sum[r][c]);
            }
            w += n_count;
        }
#pragma clang loop unroll(full)
        for (uint32_t r = 0; r < ROWS; r++)
            row[r] += 4;
    }
    float *out = args->out + (size_t)m * n_count + n;
    int32_t keep_negative = args->relu ? 0 : -1;
#pragma clang loop unroll(full)
    for (uint32_t r = 0; r < ROWS; r++) {
#pragma clang loop unroll(full)
        for (uint32_t c = 0; c < cols; c++)
            out[c * MLP_WARP] = relu_unless(sum[r][c], keep_negative);
        out += n_count;
    }
}

PETREL_KERNEL_BLOCK(mlp_forward1, struct mlp_forward_args, MLP_WARP, 0) { forward(args, 1); }
PETREL_KERNEL_BLOCK(mlp_forward2, struct mlp_forward_args, MLP_WARP, 0) { forward(args, 2); }
PETREL_KERNEL_BLOCK(mlp_forward3, struct mlp_forward_args, MLP_WARP, 0) { forward(args, 3); }

/* ---- Loss ---- */

/* e^x for x <= 0: 2^i times a polynomial in the fraction; relative error below 3e-7. */
ALWAYS_INLINE float exp_neg(float x)
{
    if (x < -87.0f)
        return 0.0f;
    float t = x * 1.44269504f;
    int32_t i = (int32_t)(t - 0.5f);
    float f = fma32(x, 1.44269504f, -(float)i) * 0.693147181f;
    float p = 1.0f / 5040.0f;
    p = p * f + 1.0f / 720.0f;
    p = p * f + 1.0f / 120.0f;
    p = p * f + 1.0f / 24.0f;
    p = p * f + 1.0f / 6.0f;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    union { uint32_t u; float f; } scale = { (uint32_t)(i + 127) << 23 };
    return p * scale.f;
}

/* ln x for normal x >= 1: exponent, and the series of 2 artanh((m - 1) / (m + 1)). */
ALWAYS_INLINE float log_pos(float x)
{
    union { float f; uint32_t u; } v = { x };
    int32_t e = (int32_t)(v.u >> 23) - 127;
    v.u = (v.u & 0x7fffffu) | 0x3f800000u;
    if (v.f > 1.41421356f) {
        v.f *= 0.5f;
        e++;
    }
    float s = (v.f - 1.0f) / (v.f + 1.0f), s2 = s * s;
    float p = 1.0f / 9.0f;
    p = p * s2 + 1.0f / 7.0f;
    p = p * s2 + 1.0f / 5.0f;
    p = p * s2 + 1.0f / 3.0f;
    p = p * s2 + 1.0f;
    return (float)e * 0.693147181f + 2.0f * s * p;
}

/* A zero that the compiler cannot see through: a loop that stores it stays a loop and does not become a call of memset. */
ALWAYS_INLINE float opaque_zero(void)
{
    float zero = 0.0f;
    __asm__("" : "+f"(zero));
    return zero;
}

PETREL_KERNEL(mlp_softmax, struct mlp_softmax_args)
{
    uint32_t row = petrel_global_id(0), classes = args->classes;
    if (row >= args->rows)
        return;
    const float *z = args->logits + (size_t)row * args->stride;
    float *grad = args->grad + (size_t)row * args->stride;

    if (row >= args->count) {
        float zero = opaque_zero();
        for (uint32_t n = 0; n < args->stride; n++)
            grad[n] = zero;
        args->loss[row] = 0.0f;
        args->hit[row] = 0;
        return;
    }
    float top = z[0];
    uint32_t best = 0;
    for (uint32_t n = 1; n < classes; n++) {
        if (z[n] > top) {
            top = z[n];
            best = n;
        }
    }
    float total = 0.0f;
    for (uint32_t n = 0; n < classes; n++) {
        float e = exp_neg(z[n] - top);
        grad[n] = e;
        total += e;
    }
    uint32_t y = args->y[row];
    float mean = 1.0f / (float)args->count, scale = mean / total;
    for (uint32_t n = 0; n < classes; n++)
        grad[n] = grad[n] * scale - (n == y ? mean : 0.0f);
    float zero = opaque_zero();
    for (uint32_t n = classes; n < args->stride; n++)
        grad[n] = zero;
    args->loss[row] = log_pos(total) + top - z[y];
    args->hit[row] = best == y;
}

PETREL_KERNEL_BLOCK(mlp_score, struct mlp_score_args, MLP_WARP, 0)
{
    uint32_t lane = petrel_local_id(0), hits = 0;
    float loss = 0.0f;

    for (uint32_t r = lane; r < args->rows; r += MLP_WARP) {
        loss += args->loss[r];
        hits += args->hit[r];
    }
    loss = petrel_reduce_add_f32(loss);
    hits = (uint32_t)petrel_reduce_add_i64(hits);
    if (lane == 0) {
        args->stats[args->slot].loss = loss;
        args->stats[args->slot].hits = hits;
    }
}

/* ---- Gradients ---- */

ALWAYS_INLINE void grad_weights(const struct mlp_grad_weights_args *args, const uint32_t cols)
{
    const uint32_t k_count = args->k, n_count = args->n, n = tile_column(cols), k = tile_row();
    const float *in = args->in + k, *delta = args->delta + n;
    float sum[ROWS][3];

#pragma clang loop unroll(full)
    for (uint32_t r = 0; r < ROWS; r++) {
#pragma clang loop unroll(full)
        for (uint32_t c = 0; c < cols; c++)
            sum[r][c] = 0.0f;
    }
    for (uint32_t left = args->rows; left > 0; left--) {
        float b[3];
#pragma clang loop unroll(full)
        for (uint32_t c = 0; c < cols; c++)
            b[c] = delta[c * MLP_WARP];
#pragma clang loop unroll(full)
        for (uint32_t r = 0; r < ROWS; r++) {
            float a = in[r];
#pragma clang loop unroll(full)
            for (uint32_t c = 0; c < cols; c++)
                sum[r][c] = fma32(a, b[c], sum[r][c]);
        }
        in += k_count;
        delta += n_count;
    }
    float *grad = args->grad + (size_t)k * n_count + n;
#pragma clang loop unroll(full)
    for (uint32_t r = 0; r < ROWS; r++) {
#pragma clang loop unroll(full)
        for (uint32_t c = 0; c < cols; c++)
            grad[c * MLP_WARP] = sum[r][c];
        grad += n_count;
    }
}

PETREL_KERNEL_BLOCK(mlp_grad_weights1, struct mlp_grad_weights_args, MLP_WARP, 0) { grad_weights(args, 1); }
PETREL_KERNEL_BLOCK(mlp_grad_weights2, struct mlp_grad_weights_args, MLP_WARP, 0) { grad_weights(args, 2); }
PETREL_KERNEL_BLOCK(mlp_grad_weights3, struct mlp_grad_weights_args, MLP_WARP, 0) { grad_weights(args, 3); }

PETREL_KERNEL(mlp_grad_bias, struct mlp_grad_bias_args)
{
    uint32_t n = petrel_global_id(0), stride = args->n;
    if (n >= stride)
        return;
    const float *delta = args->delta + n;
    float sum = 0.0f;
    for (uint32_t left = args->rows; left > 0; left--) {
        sum += *delta;
        delta += stride;
    }
    args->grad[n] = sum;
}

/* One warp a workgroup: group x picks 32 columns of the input, group y the row. */
PETREL_KERNEL_BLOCK(mlp_grad_input, struct mlp_grad_input_args, MLP_WARP, 0)
{
    uint32_t k = petrel_global_id(0), row = petrel_group_id(1);
    const float *delta = args->delta + (size_t)row * args->stride, *w = args->w + (size_t)k * args->stride;
    size_t at = (size_t)row * args->k + k;
    float sum = 0.0f;

    for (uint32_t n = 0; n < args->classes; n++)
        sum = fma32(delta[n], w[n], sum);
    args->delta_in[at] = args->act[at] > 0.0f ? sum : 0.0f;
}

/* ---- Optimiser ---- */

PETREL_KERNEL_BLOCK(mlp_sgd, struct mlp_sgd_args, MLP_WARP, 0)
{
    uint32_t at = petrel_group_id(0) * MLP_WARP * MLP_SGD_PER_LANE + petrel_local_id(0);
    const float rate = args->rate, momentum = args->momentum;

    for (uint32_t i = 0; i < MLP_SGD_PER_LANE && at < args->count; i++, at += MLP_WARP) {
        float v = fma32(momentum, args->velocity[at], args->grad[at]);
        args->velocity[at] = v;
        args->w[at] = fma32(-rate, v, args->w[at]);
    }
}

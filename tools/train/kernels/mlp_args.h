/* SPDX-License-Identifier: MIT */
/* mlp_args.h - argument structs of the kernels in mlp.c, seen alike by the kernels and by the workload that launches them. */
#ifndef MLP_ARGS_H
#define MLP_ARGS_H

#include <stdint.h>

/* A pointer to device memory: typed for the kernel, a number of the same size for the host. */
#ifdef __riscv
#define MLP_PTR(type_, name_) type_ *name_
#else
#define MLP_PTR(type_, name_) uint64_t name_
#endif

/* Widths of layers are padded to whole warps, so that a warp's 32 lanes work on 32 neighbouring columns; padding stays zero. */
#define MLP_WARP 32u
#define MLP_PAD(n_) (((n_) + MLP_WARP - 1u) / MLP_WARP * MLP_WARP)
#define MLP_TILE_ROWS 8u /* rows of a result that one lane computes; batches and fan-ins are multiples of it */

/* mlp_gather: one warp a row. x[r][k] = images[order[first + r]][k] / 255, labels alike; rows from count on become zero. */
struct mlp_gather_args {
    MLP_PTR(const uint8_t, images);
    MLP_PTR(const uint8_t, labels);
    MLP_PTR(const uint32_t, order);
    MLP_PTR(float, x);
    MLP_PTR(uint32_t, y);
    uint32_t first, count, pixels, pad;
};

/* mlp_forward*: out[rows][n] = in[rows][k] * w[k][n] + bias[n], then max(0, .) if relu. */
struct mlp_forward_args {
    MLP_PTR(const float, in);
    MLP_PTR(const float, w);
    MLP_PTR(const float, bias);
    MLP_PTR(float, out);
    uint32_t k, n, relu, pad;
};

/* mlp_softmax: one lane a row of logits[rows][stride]: probabilities, cross-entropy, hit, and d loss / d logits (mean over count). */
struct mlp_softmax_args {
    MLP_PTR(const float, logits);
    MLP_PTR(const uint32_t, y);
    MLP_PTR(float, grad);
    MLP_PTR(float, loss);
    MLP_PTR(uint32_t, hit);
    uint32_t rows, count, classes, stride;
};

/* mlp_score: one warp. stats[slot] = { sum of loss, sum of hits }, in a fixed order. */
struct mlp_stats {
    float loss;
    uint32_t hits;
};
struct mlp_score_args {
    MLP_PTR(const float, loss);
    MLP_PTR(const uint32_t, hit);
    MLP_PTR(struct mlp_stats, stats);
    uint32_t rows, slot;
};

/* mlp_grad_weights*: grad[k][n] = sum over rows of in[row][k] * delta[row][n]. */
struct mlp_grad_weights_args {
    MLP_PTR(const float, in);
    MLP_PTR(const float, delta);
    MLP_PTR(float, grad);
    uint32_t rows, k, n, pad;
};

/* mlp_grad_bias: one lane a column. grad[n] = sum over rows of delta[row][n]. */
struct mlp_grad_bias_args {
    MLP_PTR(const float, delta);
    MLP_PTR(float, grad);
    uint32_t rows, n;
};

/* mlp_grad_input: delta_in[row][k] = (act[row][k] > 0) * sum over n of delta[row][n] * w[k][n]; n counts to classes. */
struct mlp_grad_input_args {
    MLP_PTR(const float, delta);
    MLP_PTR(const float, w);
    MLP_PTR(const float, act);
    MLP_PTR(float, delta_in);
    uint32_t k, stride, classes, pad;
};

/* mlp_sgd: velocity = momentum * velocity + grad; w -= rate * velocity. 16 elements a lane, 32 apart. */
#define MLP_SGD_PER_LANE 16u
struct mlp_sgd_args {
    MLP_PTR(float, w);
    MLP_PTR(float, velocity);
    MLP_PTR(const float, grad);
    uint32_t count;
    float rate, momentum;
    uint32_t pad;
};

#endif

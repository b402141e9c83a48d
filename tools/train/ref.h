/* SPDX-License-Identifier: MIT */
/* ref.h - host reference of the multilayer perceptron: what the device's loss and gradients are held against. */
#ifndef TRAIN_REF_H
#define TRAIN_REF_H

#include <stdbool.h>
#include <stdint.h>

/** Arrays are row-major with the device's padded widths; padding columns of the parameters are zero. */
struct ref_net {
    uint32_t rows, pixels, hidden, hidden_pad, classes, classes_pad;
    const float *x;        /**< rows * pixels */
    const uint32_t *y;     /**< rows */
    const float *w1, *b1;  /**< pixels * hidden_pad, hidden_pad */
    const float *w2, *b2;  /**< hidden_pad * classes_pad, classes_pad */
};
struct ref_grads {
    double loss;                  /**< mean cross-entropy */
    double *w1, *b1, *w2, *b2;    /**< as the parameters */
};

/**
 * Forward and backward pass. Sums that decide a ReLU are made in the device's way (one fused multiply-add after the other, rising k), so
 * that both agree on which units are on; all the rest is in double.
 */
bool ref_gradients_create(const struct ref_net *net, struct ref_grads *grads_out);
void ref_gradients_destroy(struct ref_grads *grads);

/** Largest |device - reference| of a tensor, relative to the largest |reference| in it. NaN anywhere: infinity. */
double ref_deviation(const float *device, const double *reference, uint32_t count);

/**
 * What may be: float sums of up to 1024 terms, each rounded to 2^-24 of a value that is at most the tensor's largest times the batch,
 * stay near 1e-6; a wrong index or a missing term shows as 1e-2 and more.
 */
#define REF_TOLERANCE 1e-4

#endif

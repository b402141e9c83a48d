/* SPDX-License-Identifier: MIT */
/* ref.c - the perceptron on the host, plainly written: speed does not matter, being evidently right does. */
#include "ref.h"

#include <math.h>
#include <stdlib.h>

static float relu(float v)
{
    return v < 0.0f ? 0.0f : v;
}

/* Hidden activations and logits of one row. */
static void forward(const struct ref_net *net, const float *x, float *act, float *logits)
{
    for (uint32_t h = 0; h < net->hidden_pad; h++) {
        float sum = net->b1[h];
        for (uint32_t k = 0; k < net->pixels; k++)
            sum = fmaf(x[k], net->w1[(size_t)k * net->hidden_pad + h], sum);
        act[h] = relu(sum);
    }
    for (uint32_t n = 0; n < net->classes; n++) {
        float sum = net->b2[n];
        for (uint32_t h = 0; h < net->hidden_pad; h++)
            sum = fmaf(act[h], net->w2[(size_t)h * net->classes_pad + n], sum);
        logits[n] = sum;
    }
}

/* d loss / d logits of one row into delta; value: its cross-entropy. */
static double softmax(const struct ref_net *net, const float *logits, uint32_t y, double *delta)
{
    double top = logits[0], total = 0.0;
    for (uint32_t n = 1; n < net->classes; n++)
        top = logits[n] > top ? (double)logits[n] : top;
    for (uint32_t n = 0; n < net->classes; n++)
        total += delta[n] = exp((double)logits[n] - top);
    for (uint32_t n = 0; n < net->classes; n++)
        delta[n] = (delta[n] / total - (n == y ? 1.0 : 0.0)) / net->rows;
    return log(total) + top - (double)logits[y];
}

static void backward(const struct ref_net *net, const float *x, const float *act, const double *delta, struct ref_grads *g)
{
    for (uint32_t n = 0; n < net->classes; n++)
        g->b2[n] += delta[n];
    for (uint32_t h = 0; h < net->hidden_pad; h++) {
        double back = 0.0;
        for (uint32_t n = 0; n < net->classes; n++) {
            size_t at = (size_t)h * net->classes_pad + n;
            g->w2[at] += (double)act[h] * delta[n];
            back += (double)net->w2[at] * delta[n];
        }
        if (act[h] <= 0.0f)
            continue;
        g->b1[h] += back;
        for (uint32_t k = 0; k < net->pixels; k++)
            g->w1[(size_t)k * net->hidden_pad + h] += (double)x[k] * back;
    }
}

bool ref_gradients_create(const struct ref_net *net, struct ref_grads *grads_out)
{
    struct ref_grads g = {
        .w1 = calloc((size_t)net->pixels * net->hidden_pad, sizeof(double)), .b1 = calloc(net->hidden_pad, sizeof(double)),
        .w2 = calloc((size_t)net->hidden_pad * net->classes_pad, sizeof(double)), .b2 = calloc(net->classes_pad, sizeof(double)),
    };
    float *act = calloc(net->hidden_pad, sizeof(float)), *logits = calloc(net->classes, sizeof(float));
    double *delta = calloc(net->classes, sizeof(double));
    bool ok = g.w1 && g.b1 && g.w2 && g.b2 && act && logits && delta;

    for (uint32_t r = 0; ok && r < net->rows; r++) {
        const float *x = net->x + (size_t)r * net->pixels;
        forward(net, x, act, logits);
        g.loss += softmax(net, logits, net->y[r], delta) / net->rows;
        backward(net, x, act, delta, &g);
    }
    free(act);
    free(logits);
    free(delta);
    if (ok)
        *grads_out = g;
    else
        ref_gradients_destroy(&g);
    return ok;
}

void ref_gradients_destroy(struct ref_grads *grads)
{
    free(grads->w1);
    free(grads->b1);
    free(grads->w2);
    free(grads->b2);
    *grads = (struct ref_grads){ 0 };
}

double ref_deviation(const float *device, const double *reference, uint32_t count)
{
    double largest = 0.0, worst = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double d = fabs((double)device[i] - reference[i]);
        if (!isfinite(d))
            return INFINITY;
        worst = d > worst ? d : worst;
        largest = fabs(reference[i]) > largest ? fabs(reference[i]) : largest;
    }
    return largest > 0.0 ? worst / largest : worst;
}

/* SPDX-License-Identifier: MIT */
/* mlp.c - the workload "mlp": one hidden layer, ReLU, softmax, SGD with momentum; all arithmetic runs as kernels of kernels/mlp.c. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "kernels/mlp_args.h"
#include "ref.h"
#include "train.h"
#include "umd-tool.h"

#define MOMENTUM 0.9f
#define WARMUP_STEPS 100u      /* the rate rises over these, or a tenth of a short run, then falls to zero in a line */
#define STEPS_IN_FLIGHT 2u     /* steps queued behind the one that is waited for */
#define MAX_BUFFERS 32u
#define TELLS_AN_EPOCH 20u     /* times that the loss is read back in an epoch */

#define KERNELS(K)                                                                                       \
    K(gather) K(forward1) K(forward2) K(forward3) K(softmax) K(score) K(grad_weights1) K(grad_weights2)     \
    K(grad_weights3) K(grad_bias) K(grad_input) K(sgd)
enum kernel {
#define K_ENUM(name_) K_##name_,
    KERNELS(K_ENUM)
#undef K_ENUM
    KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define K_NAME(name_) "mlp_" #name_,
    KERNELS(K_NAME)
#undef K_NAME
};

/* A layer's parameters on the device. */
struct layer {
    uint32_t in, out, out_pad;
    umdDevicePtr w, b, grad_w, grad_b, vel_w, vel_b;
};

struct mlp {
    struct train_run *run;
    uint32_t batch, steps_per_epoch;
    umdModule module;
    umdKernel kernels[KERNEL_COUNT];
    umdStream stream;
    umdEvent events[STEPS_IN_FLIGHT];
    bool recorded[STEPS_IN_FLIGHT];
    struct layer hidden, output;
    umdDevicePtr train_pixels, train_labels, test_pixels, test_labels, order, test_order;
    umdDevicePtr x, y, act, logits, delta_out, delta_hidden, loss, hit, stats;
    umdDevicePtr buffers[MAX_BUFFERS];
    uint32_t buffer_count;
    uint32_t *order_host;
    uint64_t dice;
    uint32_t step;              /* steps submitted */
};

/* Makes the call, once more where its advice says so; returns false after noting the failure. */
#define TRY(m_, call_, ...)                                                                              \
    do {                                                                                                  \
        umdStatus try_ = (call_), first_ = try_;                                                          \
        if (umdFailed(try_) && try_again((m_), try_)) {                                                   \
            try_ = (call_);                                                                               \
            if (!umdFailed(try_))                                                                         \
                trouble_retried(&(m_)->run->trouble, first_, __VA_ARGS__);                                \
        }                                                                                                 \
        if (umdFailed(try_))                                                                              \
            return !trouble_note(&(m_)->run->trouble, try_, __VA_ARGS__);                                 \
    } while (0)

static void ignore(umdStatus st)
{
    (void)st;
}

/* A full queue is no failure: once earlier work is done there is room. */
static bool try_again(struct mlp *m, umdStatus st)
{
    bool again = trouble_retry(&m->run->trouble, st);

    if (again && st == UMD_ERR_SUBMIT_RING_FULL)
        ignore(umdStreamSynchronize(m->stream, UMD_TIMEOUT_INFINITE)); /* what it met the next try meets, too */
    return again;
}

static uint64_t dice_next(struct mlp *m)
{
    uint64_t z = (m->dice += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---- Memory ---- */

static bool alloc(struct mlp *m, uint64_t size_B, const char *what, umdDevicePtr *ptr_out)
{
    assert(m->buffer_count < MAX_BUFFERS);
    TRY(m, umdMemAlloc(m->run->context, size_B, 0, 0, ptr_out), "allocating %" PRIu64 " bytes of device memory for %s", size_B, what);
    m->buffers[m->buffer_count++] = *ptr_out;
    return true;
}

static bool upload(struct mlp *m, umdDevicePtr dst, const void *src, uint64_t size_B, const char *what)
{
    TRY(m, umdMemcpyHtoD(m->stream, dst, src, size_B), "copying %s to the device", what);
    return true;
}

static bool alloc_layer(struct mlp *m, struct layer *l, const char *what)
{
    uint64_t w_B = (uint64_t)l->in * l->out_pad * sizeof(float), b_B = l->out_pad * sizeof(float);
    return alloc(m, w_B, what, &l->w) && alloc(m, b_B, what, &l->b) && alloc(m, w_B, what, &l->grad_w) &&
           alloc(m, b_B, what, &l->grad_b) && alloc(m, w_B, what, &l->vel_w) && alloc(m, b_B, what, &l->vel_b);
}

/* Uniform weights of He's width from the seed; padding columns, biases and velocities stay at the zero of fresh memory. */
static bool init_layer(struct mlp *m, const struct layer *l, uint32_t real_in)
{
    float *w = calloc((size_t)l->in * l->out_pad, sizeof(float));
    float width = sqrtf(6.0f / (float)real_in);

    if (!w) {
        trouble_own(&m->run->trouble, "out of host memory");
        return false;
    }
    for (uint32_t k = 0; k < real_in; k++) {
        for (uint32_t n = 0; n < l->out; n++)
            w[(size_t)k * l->out_pad + n] = ((float)(dice_next(m) >> 40) * 0x1p-23f - 1.0f) * width;
    }
    bool ok = upload(m, l->w, w, (uint64_t)l->in * l->out_pad * sizeof(float), "initial weights");
    free(w);
    return ok;
}

static bool set_up_data(struct mlp *m)
{
    const struct dataset *train = &m->run->train, *test = &m->run->test;
    uint64_t f = sizeof(float), rows = m->batch;

    if (!(alloc(m, (uint64_t)train->count * DATASET_PIXELS, "training images", &m->train_pixels) &&
          alloc(m, train->count, "training labels", &m->train_labels) &&
          alloc(m, (uint64_t)test->count * DATASET_PIXELS, "test images", &m->test_pixels) &&
          alloc(m, test->count, "test labels", &m->test_labels) && alloc(m, train->count * 4ull, "the order of images", &m->order) &&
          alloc(m, test->count * 4ull, "the order of test images", &m->test_order) &&
          alloc(m, rows * DATASET_PIXELS * f, "a batch", &m->x) && alloc(m, rows * 4, "a batch's labels", &m->y) &&
          alloc(m, rows * m->hidden.out_pad * f, "activations", &m->act) &&
          alloc(m, rows * m->hidden.out_pad * f, "hidden gradients", &m->delta_hidden) &&
          alloc(m, rows * m->output.out_pad * f, "logits", &m->logits) &&
          alloc(m, rows * m->output.out_pad * f, "logit gradients", &m->delta_out)))
        return false;
    /* The small ones share one allocation: losses, hits, and a score per step or per batch of the test set. */
    uint32_t slots = m->run->result.steps_planned > test->count ? m->run->result.steps_planned : test->count;
    if (!alloc(m, rows * 8 + slots * sizeof(struct mlp_stats), "losses", &m->loss))
        return false;
    m->hit = m->loss + rows * 4;
    m->stats = m->hit + rows * 4;
    return upload(m, m->train_pixels, train->pixels, (uint64_t)train->count * DATASET_PIXELS, "training images") &&
           upload(m, m->train_labels, train->labels, train->count, "training labels") &&
           upload(m, m->test_pixels, test->pixels, (uint64_t)test->count * DATASET_PIXELS, "test images") &&
           upload(m, m->test_labels, test->labels, test->count, "test labels") &&
           upload(m, m->test_order, m->order_host, test->count * 4ull, "the order of test images");
}

static bool load_kernels(struct mlp *m)
{
    char path[1024];

    if (!tool_kernel_path("mlp.elf", path, sizeof(path))) {
        trouble_own(&m->run->trouble, "the kernels are missing: no mlp.elf in %s", path);
        return false;
    }
    TRY(m, umdModuleLoadFile(m->run->context, path, &m->module), "loading the kernels");
    for (uint32_t i = 0; i < KERNEL_COUNT; i++)
        TRY(m, umdModuleGetKernel(m->module, kernel_names[i], &m->kernels[i]), "looking up kernel %s", kernel_names[i]);
    TRY(m, umdStreamCreate(m->run->context, UMD_STREAM_COMPUTE, 0, &m->stream), "creating the stream");
    for (uint32_t i = 0; i < STEPS_IN_FLIGHT; i++)
        TRY(m, umdEventCreate(m->run->context, &m->events[i]), "creating events");
    return true;
}

static bool set_up(struct mlp *m)
{
    const struct train_options *opt = &m->run->opt;
    uint32_t most = m->run->train.count > m->run->test.count ? m->run->train.count : m->run->test.count;

    m->hidden = (struct layer){ .in = DATASET_PIXELS, .out = (uint32_t)opt->hidden, .out_pad = MLP_PAD((uint32_t)opt->hidden) };
    m->output = (struct layer){ .in = m->hidden.out_pad, .out = DATASET_CLASSES, .out_pad = MLP_PAD(DATASET_CLASSES) };
    m->dice = opt->seed ^ UINT64_C(0x3b1a5e5);
    m->order_host = malloc(most * sizeof(uint32_t));
    if (!m->order_host) {
        trouble_own(&m->run->trouble, "out of host memory");
        return false;
    }
    for (uint32_t i = 0; i < most; i++)
        m->order_host[i] = i;
    return load_kernels(m) && alloc_layer(m, &m->hidden, "the hidden layer") && alloc_layer(m, &m->output, "the output layer") &&
           set_up_data(m) && init_layer(m, &m->hidden, DATASET_PIXELS) && init_layer(m, &m->output, m->hidden.out);
}

/* What failed in a run that is over is told already: clean-up goes on whatever it meets. */
static void tear_down(struct mlp *m)
{
    for (uint32_t i = m->buffer_count; i-- > 0;)
        ignore(umdMemFree(m->run->context, m->buffers[i]));
    for (uint32_t i = 0; i < STEPS_IN_FLIGHT; i++) {
        if (m->events[i].id)
            ignore(umdEventDestroy(m->events[i]));
    }
    if (m->stream.id)
        ignore(umdStreamDestroy(m->stream));
    if (m->module.id)
        ignore(umdModuleUnload(m->module));
    free(m->order_host);
}

/* ---- Launches ---- */

static bool launch(struct mlp *m, enum kernel k, uint32_t gx, uint32_t gy, const void *args, uint32_t args_B)
{
    umdLaunchDesc desc = {
        .size_B = sizeof(desc), .grid = { gx, gy, 1 }, .block = { MLP_WARP, 1, 1 }, .args = args, .args_B = args_B,
    };
    TRY(m, umdLaunchKernel(m->stream, m->kernels[k], &desc), "launching %s at step %u", kernel_names[k], m->step);
    return true;
}
#define LAUNCH(m_, k_, gx_, gy_, args_) launch((m_), (k_), (gx_), (gy_), &(args_), sizeof(args_))

/* Widest tile of 1 to 3 warps that divides n columns, as an offset from the narrowest kernel. */
static uint32_t tile_columns(uint32_t n)
{
    uint32_t warps = n / MLP_WARP;
    return warps % 3 == 0 ? 3 : warps % 2 == 0 ? 2 : 1;
}

static bool layer_forward(struct mlp *m, const struct layer *l, umdDevicePtr in, umdDevicePtr out, bool relu)
{
    uint32_t cols = tile_columns(l->out_pad);
    struct mlp_forward_args a = { .in = in, .w = l->w, .bias = l->b, .out = out, .k = l->in, .n = l->out_pad, .relu = relu };
    return LAUNCH(m, K_forward1 + (cols - 1), l->out_pad / MLP_WARP / cols, m->batch / MLP_TILE_ROWS, a);
}

static bool layer_gradients(struct mlp *m, const struct layer *l, umdDevicePtr in, umdDevicePtr delta)
{
    uint32_t cols = tile_columns(l->out_pad);
    struct mlp_grad_weights_args w = { .in = in, .delta = delta, .grad = l->grad_w, .rows = m->batch, .k = l->in, .n = l->out_pad };
    struct mlp_grad_bias_args b = { .delta = delta, .grad = l->grad_b, .rows = m->batch, .n = l->out_pad };
    return LAUNCH(m, K_grad_weights1 + (cols - 1), l->out_pad / MLP_WARP / cols, l->in / MLP_TILE_ROWS, w) &&
           LAUNCH(m, K_grad_bias, l->out_pad / MLP_WARP, 1, b);
}

static bool layer_update(struct mlp *m, const struct layer *l, float rate)
{
    uint32_t per_group = MLP_WARP * MLP_SGD_PER_LANE, w_count = l->in * l->out_pad;
    struct mlp_sgd_args w = { .w = l->w, .velocity = l->vel_w, .grad = l->grad_w, .count = w_count, .rate = rate, .momentum = MOMENTUM };
    struct mlp_sgd_args b = { .w = l->b, .velocity = l->vel_b, .grad = l->grad_b, .count = l->out_pad, .rate = rate, .momentum = MOMENTUM };
    return LAUNCH(m, K_sgd, (w_count + per_group - 1) / per_group, 1, w) &&
           LAUNCH(m, K_sgd, (l->out_pad + per_group - 1) / per_group, 1, b);
}

/* Batch of `count` images from `first` on in the order, through the net up to loss, hits and d loss / d logits. */
static bool run_forward(struct mlp *m, bool training, uint32_t first, uint32_t count, uint32_t slot)
{
    struct mlp_gather_args gather = {
        .images = training ? m->train_pixels : m->test_pixels, .labels = training ? m->train_labels : m->test_labels,
        .order = training ? m->order : m->test_order, .x = m->x, .y = m->y, .first = first, .count = count, .pixels = DATASET_PIXELS,
    };
    struct mlp_softmax_args softmax = {
        .logits = m->logits, .y = m->y, .grad = m->delta_out, .loss = m->loss, .hit = m->hit,
        .rows = m->batch, .count = count, .classes = DATASET_CLASSES, .stride = m->output.out_pad,
    };
    struct mlp_score_args score = { .loss = m->loss, .hit = m->hit, .stats = m->stats, .rows = m->batch, .slot = slot };

    return LAUNCH(m, K_gather, m->batch, 1, gather) && layer_forward(m, &m->hidden, m->x, m->act, true) &&
           layer_forward(m, &m->output, m->act, m->logits, false) &&
           LAUNCH(m, K_softmax, (m->batch + MLP_WARP - 1) / MLP_WARP, 1, softmax) && LAUNCH(m, K_score, 1, 1, score);
}

static bool run_backward(struct mlp *m)
{
    struct mlp_grad_input_args in = {
        .delta = m->delta_out, .w = m->output.w, .act = m->act, .delta_in = m->delta_hidden,
        .k = m->hidden.out_pad, .stride = m->output.out_pad, .classes = DATASET_CLASSES,
    };
    return layer_gradients(m, &m->output, m->act, m->delta_out) && LAUNCH(m, K_grad_input, m->hidden.out_pad / MLP_WARP, m->batch, in) &&
           layer_gradients(m, &m->hidden, m->x, m->delta_hidden);
}

/* ---- Comparing with the host ---- */

static bool download(struct mlp *m, void *dst, umdDevicePtr src, uint64_t size_B, const char *what)
{
    TRY(m, umdMemcpyDtoH(m->stream, dst, src, size_B), "reading %s back at step %u", what, m->step);
    return true;
}

struct host_layer {
    float *w, *b, *grad_w, *grad_b;
};

static bool fetch_layer(struct mlp *m, const struct layer *l, struct host_layer *h)
{
    size_t w_B = (size_t)l->in * l->out_pad * sizeof(float), b_B = l->out_pad * sizeof(float);

    h->w = malloc(w_B);
    h->grad_w = malloc(w_B);
    h->b = malloc(b_B);
    h->grad_b = malloc(b_B);
    if (!h->w || !h->grad_w || !h->b || !h->grad_b) {
        trouble_own(&m->run->trouble, "out of host memory");
        return false;
    }
    return download(m, h->w, l->w, w_B, "weights") && download(m, h->b, l->b, b_B, "biases") &&
           download(m, h->grad_w, l->grad_w, w_B, "weight gradients") && download(m, h->grad_b, l->grad_b, b_B, "bias gradients");
}

static void free_layer(struct host_layer *h)
{
    free(h->w);
    free(h->b);
    free(h->grad_w);
    free(h->grad_b);
}

/* True: deviations are within the tolerance. */
static bool compare_layer(struct mlp *m, const char *which, const struct layer *l, const struct host_layer *h, const double *w, const double *b)
{
    struct train_result *r = &m->run->result;
    double dw = ref_deviation(h->grad_w, w, l->in * l->out_pad), db = ref_deviation(h->grad_b, b, l->out_pad);
    double worst = dw > db ? dw : db;

    r->verify_worst = worst > r->verify_worst ? worst : r->verify_worst;
    if (worst <= REF_TOLERANCE)
        return true;
    trouble_own(&m->run->trouble, "step %u: the device's %s gradients of the %s layer deviate from the host reference by %.2g; %.0g is allowed",
                m->step, dw > db ? "weight" : "bias", which, worst, REF_TOLERANCE);
    return false;
}

/* The batch as the host sees it: from its own copy of the images, not from what the device gathered. */
static void host_batch(const struct mlp *m, uint32_t first, float *x, uint32_t *y)
{
    for (uint32_t r = 0; r < m->batch; r++) {
        uint32_t which = m->order_host[first + r];
        for (uint32_t k = 0; k < DATASET_PIXELS; k++)
            x[(size_t)r * DATASET_PIXELS + k] = (float)m->run->train.pixels[(size_t)which * DATASET_PIXELS + k] * (1.0f / 255.0f);
        y[r] = m->run->train.labels[which];
    }
}

/* Between gradients and update: what the device has must be what the host gets from the same parameters and images. */
static bool verify(struct mlp *m, uint32_t first)
{
    struct host_layer hidden = { 0 }, output = { 0 };
    struct ref_grads grads = { 0 };
    struct mlp_stats stats;
    float *x = malloc((size_t)m->batch * DATASET_PIXELS * sizeof(float));
    uint32_t *y = malloc(m->batch * sizeof(uint32_t));
    bool ok = x && y;

    if (!ok)
        trouble_own(&m->run->trouble, "out of host memory");
    ok = ok && fetch_layer(m, &m->hidden, &hidden) && fetch_layer(m, &m->output, &output) &&
         download(m, &stats, m->stats + (uint64_t)m->step * sizeof(stats), sizeof(stats), "the loss");
    if (ok) {
        host_batch(m, first, x, y);
        struct ref_net net = {
            .rows = m->batch, .pixels = DATASET_PIXELS, .hidden = m->hidden.out, .hidden_pad = m->hidden.out_pad,
            .classes = DATASET_CLASSES, .classes_pad = m->output.out_pad, .x = x, .y = y,
            .w1 = hidden.w, .b1 = hidden.b, .w2 = output.w, .b2 = output.b,
        };
        ok = ref_gradients_create(&net, &grads);
        if (!ok)
            trouble_own(&m->run->trouble, "out of host memory");
    }
    if (ok) {
        float loss = stats.loss / (float)m->batch;
        double off = ref_deviation(&loss, &grads.loss, 1);
        ok = compare_layer(m, "output", &m->output, &output, grads.w2, grads.b2) &&
             compare_layer(m, "hidden", &m->hidden, &hidden, grads.w1, grads.b1);
        if (ok && off > REF_TOLERANCE) {
            trouble_own(&m->run->trouble, "step %u: the device's loss is %.7f, the host reference's %.7f", m->step, (double)loss, grads.loss);
            ok = false;
        }
        m->run->result.verified++;
    }
    ref_gradients_destroy(&grads);
    free_layer(&hidden);
    free_layer(&output);
    free(x);
    free(y);
    return ok;
}

static bool verify_wanted(const struct mlp *m)
{
    uint32_t s = m->step, planned = m->run->result.steps_planned;
    return m->run->opt.verify && (s < 3 || s == planned / 2 || s + 1 == planned);
}

/* ---- Training ---- */

static float rate_at(const struct mlp *m, uint32_t step)
{
    uint32_t planned = m->run->result.steps_planned, warmup = planned / 10 < WARMUP_STEPS ? planned / 10 : WARMUP_STEPS;
    float rate = (float)m->run->opt.rate * (1.0f - (float)step / (float)planned);
    return step < warmup ? rate * (float)(step + 1) / (float)warmup : rate;
}

/* Loss of a step that was submitted; waits for it. */
static bool read_loss(struct mlp *m, uint32_t step, float *loss_out)
{
    struct mlp_stats stats;
    if (!download(m, &stats, m->stats + (uint64_t)step * sizeof(stats), sizeof(stats), "the loss"))
        return false;
    *loss_out = stats.loss / (float)m->batch;
    return true;
}

/* The host stays STEPS_IN_FLIGHT steps ahead: enough to keep the device busy, too little to fill its queue. */
static bool pace(struct mlp *m)
{
    uint32_t i = m->step % STEPS_IN_FLIGHT;
    if (m->recorded[i])
        TRY(m, umdEventSynchronize(m->events[i], UMD_TIMEOUT_INFINITE), "waiting for step %u", m->step - STEPS_IN_FLIGHT);
    return true;
}

static bool train_step(struct mlp *m, uint32_t first)
{
    float rate = rate_at(m, m->step);

    if (!pace(m) || !run_forward(m, true, first, m->batch, m->step) || !run_backward(m))
        return false;
    if (verify_wanted(m) && !verify(m, first))
        return false;
    if (!layer_update(m, &m->output, rate) || !layer_update(m, &m->hidden, rate))
        return false;
    uint32_t i = m->step % STEPS_IN_FLIGHT;
    TRY(m, umdEventRecord(m->events[i], m->stream), "marking the end of step %u", m->step);
    m->recorded[i] = true;
    m->step++;
    m->run->result.steps = m->step;
    return true;
}

static bool note_loss(struct mlp *m, uint32_t epoch, uint32_t step, bool tell)
{
    struct train_result *r = &m->run->result;
    float loss;

    if (!read_loss(m, step, &loss))
        return false;
    if (step == 0)
        r->loss_first = loss;
    r->loss_last = loss;
    if (r->history_count < TRAIN_HISTORY)
        r->history[r->history_count++] = (struct train_point){ step + 1, loss };
    if (!isfinite(loss)) {
        trouble_own(&m->run->trouble, "the loss is not finite at step %u: lower --lr (now %g)", step, m->run->opt.rate);
        return false;
    }
    if (tell)
        progress_step(m->run, epoch, step + 1, loss);
    return true;
}

/* A signal asked for the end: the step under way is finished, its loss read. True: end the run. */
static bool stop_asked(struct mlp *m, uint32_t epoch)
{
    int sig = train_stop_signal();

    if (!sig)
        return false;
    /* While testing, scores have taken the places of the losses. */
    bool training = m->step < m->run->result.steps_planned || epoch < (uint32_t)m->run->opt.epochs;
    if (!training || m->step == 0 || note_loss(m, epoch, m->step - 1, false))
        m->run->stopped_by = sig;
    return true;
}

static bool train_epoch(struct mlp *m, uint32_t epoch)
{
    uint32_t count = m->run->train.count, every = (m->steps_per_epoch + TELLS_AN_EPOCH - 1) / TELLS_AN_EPOCH;

    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(dice_next(m) % (i + 1)), t = m->order_host[i];
        m->order_host[i] = m->order_host[j];
        m->order_host[j] = t;
    }
    if (!upload(m, m->order, m->order_host, count * 4ull, "the order of images"))
        return false;
    for (uint32_t s = 0; s < m->steps_per_epoch; s++) {
        if (!train_step(m, s * m->batch) || stop_asked(m, epoch))
            return false;
        bool tell = (s + 1) % every == 0 || s + 1 == m->steps_per_epoch;
        if ((tell || m->step == 1) && !note_loss(m, epoch, m->step - 1, tell))
            return false;
    }
    m->run->result.epochs = epoch + 1;
    return true;
}

static bool wait_for_tests(struct mlp *m)
{
    TRY(m, umdStreamSynchronize(m->stream, UMD_TIMEOUT_INFINITE), "testing");
    return true;
}

static bool test(struct mlp *m)
{
    uint32_t count = m->run->test.count, batches = (count + m->batch - 1) / m->batch;
    struct mlp_stats *stats = calloc(batches, sizeof(*stats));
    uint64_t hits = 0;

    if (!stats) {
        trouble_own(&m->run->trouble, "out of host memory");
        return false;
    }
    bool ok = true;
    for (uint32_t b = 0; ok && b < batches; b++) {
        uint32_t first = b * m->batch, left = count - first;
        ok = !stop_asked(m, m->run->result.epochs) && run_forward(m, false, first, left < m->batch ? left : m->batch, b);
        if (b % 4 == 3)
            ok = ok && wait_for_tests(m);
    }
    ok = ok && download(m, stats, m->stats, batches * sizeof(*stats), "test scores");
    for (uint32_t b = 0; b < batches; b++)
        hits += stats[b].hits;
    free(stats);
    if (ok)
        m->run->result.accuracy = (double)hits / (double)count;
    return ok;
}

/* A network that guesses right less than this often has learned nothing: ten classes make 10 %. */
#define SANITY_FLOOR 0.5
#define SANITY_STEPS 100u

static int run_mlp(struct train_run *run)
{
    struct mlp m = { .run = run, .batch = (uint32_t)run->opt.batch };

    if (run->train.count < m.batch) {
        trouble_own(&run->trouble, "%u training images do not fill a batch of %u", run->train.count, m.batch);
        return TRAIN_NO_START;
    }
    m.steps_per_epoch = run->train.count / m.batch;
    run->result.steps_planned = m.steps_per_epoch * (uint32_t)run->opt.epochs;
    run->started = set_up(&m);
    bool ok = run->started && !stop_asked(&m, 0);
    for (int e = 0; ok && e < run->opt.epochs; e++)
        ok = train_epoch(&m, (uint32_t)e);
    ok = ok && test(&m);
    tear_down(&m);
    if (run->stopped_by)
        return TRAIN_SIGNAL + run->stopped_by;
    /* A device that fails while data is copied to it stopped the run; what could not be had kept it from starting. */
    if (!run->started && !trouble_is_device(&run->trouble))
        return TRAIN_NO_START;
    if (!ok)
        return run->trouble.code != UMD_SUCCESS ? TRAIN_DEVICE : TRAIN_WRONG;
    if (run->result.accuracy < SANITY_FLOOR && run->result.steps >= SANITY_STEPS) {
        trouble_own(&run->trouble, "test accuracy %.2f %% after %u steps: nothing was learned", run->result.accuracy * 100.0, run->result.steps);
        return TRAIN_WRONG;
    }
    return TRAIN_DONE;
}

const struct workload workload_mlp = {
    .name = "mlp",
    .summary = "multilayer perceptron 784-hidden-10 on handwritten digits",
    .run = run_mlp,
};

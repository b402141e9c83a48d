/* SPDX-License-Identifier: MIT */
/* report.c - the run as JSON, written beside its place and moved there when whole. */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train.h"

struct place {
    char path[PATH_MAX];        /* where it goes: what a link names, so that the link stays one */
    char temp[PATH_MAX + 8];    /* beside it, until it is whole */
};

static int open_beside(const char *path, struct place *at)
{
    struct stat st;

    if (!train_full_path(path, at->path) && snprintf(at->path, sizeof(at->path), "%s", path) >= (int)sizeof(at->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (stat(at->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP;
        return -1;
    }
    snprintf(at->temp, sizeof(at->temp), "%s.XXXXXX", at->path);
    return mkstemp(at->temp);
}

/* It is moved to its place when whole, which a device, pipe or folder there does not allow. */
static void report_reason(const char *path, int err, char *why, uint32_t why_B)
{
    if (err == EISDIR || err == ENOTSUP)
        snprintf(why, why_B, "the report %s cannot be written: it is %s, not a regular file; name a new file or one to be replaced", path,
                 err == EISDIR ? "a directory" : "a device, pipe or socket");
    else
        snprintf(why, why_B, "the report %s cannot be written: %s", path, strerror(err));
}

bool report_begin(const char *path, char *why, uint32_t why_B)
{
    struct place at;
    int fd = open_beside(path, &at);

    if (fd < 0) {
        report_reason(path, errno, why, why_B);
        return false;
    }
    close(fd);
    unlink(at.temp);
    /* That of an earlier run would tell of this one, should it be killed. */
    if (unlink(at.path) == 0 || errno == ENOENT)
        return true;
    report_reason(path, errno, why, why_B);
    return false;
}

static void put(struct json_object *o, const char *key, struct json_object *value)
{
    json_object_object_add(o, key, value);
}

static struct json_object *real(double v)
{
    return isfinite(v) ? json_object_new_double(v) : NULL; /* JSON has no NaN; NULL becomes null */
}

static struct json_object *options_json(const struct train_options *o)
{
    struct json_object *j = json_object_new_object();
    const char *from_env = getenv("PETREL_CARRIER"); /* as umdInit chooses */
    put(j, "data", json_object_new_string(o->data_dir ? o->data_dir : "built-in"));
    put(j, "epochs", json_object_new_int(o->epochs));
    put(j, "batch", json_object_new_int(o->batch));
    put(j, "hidden", json_object_new_int(o->hidden));
    put(j, "lr", json_object_new_double(o->rate));
    put(j, "seed", json_object_new_uint64(o->seed));
    put(j, "mode", json_object_new_string(o->mode));
    put(j, "carrier", json_object_new_string(o->carrier ? o->carrier : from_env && *from_env ? from_env : "direct"));
    put(j, "faults", o->faults ? json_object_new_string(o->faults) : NULL);
    return j;
}

static struct json_object *result_json(const struct train_result *r)
{
    struct json_object *j = json_object_new_object(), *history = json_object_new_array();
    put(j, "steps", json_object_new_int64(r->steps));
    put(j, "steps_planned", json_object_new_int64(r->steps_planned));
    put(j, "epochs", json_object_new_int64(r->epochs));
    put(j, "train_images", json_object_new_int64(r->train_images));
    put(j, "test_images", json_object_new_int64(r->test_images));
    put(j, "loss_first", r->history_count ? real((double)r->loss_first) : NULL);
    put(j, "loss_last", r->history_count ? real((double)r->loss_last) : NULL);
    put(j, "test_accuracy", r->accuracy < 0 ? NULL : real(r->accuracy));
    put(j, "wall_s", real(r->wall_s));
    put(j, "simulated_ns", r->device_asked ? json_object_new_uint64(r->device_ns) : NULL);
    put(j, "resets", json_object_new_uint64(r->resets));
    put(j, "vram_high_water_B", json_object_new_uint64(r->vram_high_B));
    put(j, "verified_steps", json_object_new_int64(r->verified));
    put(j, "verify_worst_deviation", r->verified ? real(r->verify_worst) : NULL);
    for (uint32_t i = 0; i < r->history_count; i++) {
        struct json_object *p = json_object_new_object();
        put(p, "step", json_object_new_int64(r->history[i].step));
        put(p, "loss", real((double)r->history[i].loss));
        json_object_array_add(history, p);
    }
    put(j, "history", history);
    return j;
}

static struct json_object *text_or_null(const char *text)
{
    return text[0] ? json_object_new_string(text) : NULL;
}

static struct json_object *number_or_null(const char *text)
{
    return text[0] ? json_object_new_uint64(strtoull(text, NULL, 0)) : NULL;
}

static struct json_object *record_json(const struct trouble_record *r)
{
    struct json_object *j = json_object_new_object();
    put(j, "name", json_object_new_string(umdStatusName(r->code)));
    put(j, "record", text_or_null(r->id));
    put(j, "raised_by", text_or_null(r->where));
    put(j, "figures", text_or_null(r->figures));
    return j;
}

static struct json_object *trouble_json(struct trouble *t)
{
    static struct trouble_facts facts;

    if (t->code == UMD_SUCCESS && !t->own[0])
        return NULL;
    struct json_object *j = json_object_new_object();
    if (t->code == UMD_SUCCESS) {
        put(j, "text", json_object_new_string(t->own));
        return j;
    }
    umdStatus root = trouble_root(t);
    struct json_object *causes = json_object_new_array();
    trouble_facts(t, &facts);
    put(j, "code", json_object_new_int(root));
    put(j, "name", json_object_new_string(umdStatusName(root)));
    put(j, "text", json_object_new_string(umdStatusString(root)));
    put(j, "todo", json_object_new_string(umdStatusTodo(t->lost ? t->lost : root))); /* once the device is lost its loss decides */
    put(j, "returned", json_object_new_string(umdStatusName(t->code)));
    put(j, "doing", json_object_new_string(t->doing));
    put(j, "record", text_or_null(facts.root.id));
    put(j, "raised_by", text_or_null(facts.root.where));
    put(j, "figures", text_or_null(facts.root.figures));
    put(j, "kernel", text_or_null(facts.kernel));
    put(j, "source", text_or_null(facts.source));
    put(j, "stream", number_or_null(facts.stream));
    put(j, "submission", number_or_null(facts.submission));
    put(j, "job", number_or_null(facts.job));
    put(j, "done", text_or_null(facts.done));
    for (uint32_t i = 0; i < facts.cause_count; i++)
        json_object_array_add(causes, record_json(&facts.causes[i]));
    put(j, "causes", causes);
    put(j, "callback", facts.other_callback ? record_json(&facts.callback) : NULL);
    return j;
}

static struct json_object *notices_json(const struct trouble *t)
{
    struct json_object *all = json_object_new_array();
    for (uint32_t i = 0; i < t->notice_count; i++) {
        struct json_object *j = json_object_new_object();
        put(j, "name", json_object_new_string(umdStatusName(t->notices[i].code)));
        put(j, "count", json_object_new_int64(t->notices[i].count));
        put(j, "text", json_object_new_string(t->notices[i].text));
        json_object_array_add(all, j);
    }
    return all;
}

static bool write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, text, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        text += w;
        n -= (size_t)w;
    }
    return fsync(fd) == 0 || errno == EINVAL;
}

bool report_write(const char *path, const char *workload, struct train_run *run, int exit_status, char *why, uint32_t why_B)
{
    struct place at;
    struct json_object *j = json_object_new_object();

    put(j, "workload", json_object_new_string(workload));
    put(j, "version", json_object_new_string(PETREL_VERSION));
    put(j, "exit_status", json_object_new_int(exit_status));
    put(j, "interrupted", json_object_new_boolean(run->stopped_by != 0));
    put(j, "options", options_json(&run->opt));
    put(j, "result", result_json(&run->result));
    put(j, "error", trouble_json(&run->trouble));
    put(j, "device_lost", run->trouble.lost ? json_object_new_string(umdStatusName(run->trouble.lost)) : NULL);
    put(j, "went_on_after", notices_json(&run->trouble));

    const char *text = json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
    int fd = open_beside(path, &at);
    bool ok = fd >= 0 && write_all(fd, text, strlen(text)) && write_all(fd, "\n", 1) && fchmod(fd, 0644) == 0;
    ok = ok && rename(at.temp, at.path) == 0;
    if (!ok) {
        report_reason(path, errno, why, why_B);
        if (fd >= 0)
            unlink(at.temp);
    }
    if (fd >= 0)
        close(fd);
    json_object_put(j);
    return ok;
}

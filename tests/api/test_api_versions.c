/* SPDX-License-Identifier: MIT */
/* test_api_versions.c - programs built with the header of another version (B8): each call that takes a struct with size_B, and umdInit's version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <umd/umd_log.h>

#include "fault_plan.h"
#include "fixtures.h"

enum { ROOM = 65536 + 64, MARK = 0xa5 };

enum kind {
    GIVEN,    /* the program fills the struct in */
    TOLD,     /* the library does */
    SHOWN,    /* the library did, and the program hands it back: no size is refused */
};

struct call {
    const char *function, *type;
    enum kind kind;
    uint32_t first_B, own_B;
    umdStatus (*make)(struct fx *f, void *p);
    const void *(*good)(struct fx *f);    /* GIVEN: what works */
    void (*undo)(void);                   /* what a success has to be followed by */
};

/* ---- The calls ---- */

static umdStatus make_init(struct fx *f, void *p) { (void)f; return umdInit(p); }
static umdStatus make_info(struct fx *f, void *p) { return umdDeviceGetInfo(f->dev, p); }
static umdStatus make_device_cause(struct fx *f, void *p) { return umdDeviceGetFirstCause(f->dev, p); }
static umdStatus make_context_cause(struct fx *f, void *p) { return umdContextGetFirstCause(f->ctx, p); }
static umdStatus make_last(struct fx *f, void *p) { (void)f; return umdGetLastErrorDetail(p); }
static umdStatus make_by_id(struct fx *f, void *p) { (void)f; return umdGetErrorDetailById(fx_detail().id, p); }
static umdStatus make_cause(struct fx *f, void *p) { (void)f; return umdGetFirstCause(fx_detail().id, p); }
static umdStatus make_scene(struct fx *f, void *p) { (void)f; return umdGetErrorScene(fx_detail().id, p); }
static umdStatus make_launch(struct fx *f, void *p)
{
    umdStatus st = umdLaunchKernel(f->stream, fx_kernel(f, "axpy"), p);
    return st < 0 ? st : umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
}

static const void *good_init(struct fx *f)
{
    static umdInitDesc d;

    (void)f;
    d = fx_desc();
    return &d;
}

static struct fx_args args; /* of the test that runs */

static const void *good_launch(struct fx *f)
{
    static umdLaunchDesc d;

    if (!args.dst)
        args = (struct fx_args){ fx_alloc(f, 4096), fx_alloc(f, 4096), 1, 32 };
    d = (umdLaunchDesc){ .size_B = sizeof(d), .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    return &d;
}

static void undo_init(void) { assert_ok(umdShutdown()); }

#define DETAIL_ "umdErrorDetail", TOLD, UMD_ERROR_DETAIL_SIZE_V1, sizeof(umdErrorDetail)
static const struct call calls[] = {
    { "umdInit", "umdInitDesc", GIVEN, UMD_INIT_DESC_SIZE_V1, sizeof(umdInitDesc), make_init, good_init, undo_init },
    { "umdLaunchKernel", "umdLaunchDesc", GIVEN, UMD_LAUNCH_DESC_SIZE_V1, sizeof(umdLaunchDesc), make_launch, good_launch, NULL },
    { "umdDeviceGetInfo", "umdDeviceInfo", TOLD, UMD_DEVICE_INFO_SIZE_V1, sizeof(umdDeviceInfo), make_info, NULL, NULL },
    { "umdGetLastErrorDetail", DETAIL_, make_last, NULL, NULL },
    { "umdGetErrorDetailById", DETAIL_, make_by_id, NULL, NULL },
    { "umdGetFirstCause", DETAIL_, make_cause, NULL, NULL },
    { "umdDeviceGetFirstCause", DETAIL_, make_device_cause, NULL, NULL },
    { "umdContextGetFirstCause", DETAIL_, make_context_cause, NULL, NULL },
    { "umdGetErrorScene", "umdErrorScene", TOLD, UMD_ERROR_SCENE_SIZE_V1, sizeof(umdErrorScene), make_scene, NULL, NULL },
    { .function = "umdErrorDetailFormat", .type = "umdErrorDetail", .kind = SHOWN },
    { .function = "umdErrorDetailFormatFull", .type = "umdErrorDetail", .kind = SHOWN },
    { .function = "umdErrorDetailFigure", .type = "umdErrorDetail", .kind = SHOWN },
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* ---- The table against the headers ---- */

/* The public calls of the header that have a pointer to the struct; each must have a row. */
static uint32_t calls_with(const char *header, const char *type)
{
    char pointer[80], function[64];
    uint32_t n = 0;

    snprintf(pointer, sizeof(pointer), "%s *", type);
    for (const char *line = header; line; line = strchr(line, '\n'), line += line != NULL) {
        const char *end = strchr(line, '\n'), *open, *at;
        if (strncmp(line, "UMD_API", 7) || !(open = strchr(line, '(')) || !(at = strstr(open, pointer)) || (end && at > end))
            continue;
        const char *name = open;
        while (name > line && name[-1] != ' ')
            name--;
        snprintf(function, sizeof(function), "%.*s", (int)(open - name), name);
        bool have = false;
        for (size_t i = 0; i < CALLS; i++)
            have |= !strcmp(calls[i].function, function) && !strcmp(calls[i].type, type);
        if (!have)
            fail_msg("no row for %s(%s *)", function, type);
        n++;
    }
    return n;
}

/* Structs without size_B, and their size for good. */
static const struct { const char *type; size_t size_B, published_B; } fixed[] = {
#define FIXED(type_, B_) { #type_, sizeof(type_), B_ }
    FIXED(umdDevice, 8), FIXED(umdContext, 8), FIXED(umdModule, 8), FIXED(umdKernel, 8), FIXED(umdStream, 8), FIXED(umdEvent, 8),
    FIXED(umdAdvice, 32), FIXED(umdRecordId, 16), FIXED(umdHop, 120), FIXED(umdSceneCall, 216), FIXED(umdErrorNote, 32),
    FIXED(umdErrorCounts, 56), FIXED(umdFigure, 720), FIXED(umdLogModule, 32), FIXED(umdLogSite, 64), FIXED(umdLogStats, 48),
};

static void assert_fixed(const char *type)
{
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        if (strcmp(fixed[i].type, type))
            continue;
        assert_int_equal(fixed[i].size_B, fixed[i].published_B);
        return;
    }
    fail_msg("%s has no size_B: programs built with this header keep its size; begin it with size_B, or add it here for good", type);
}

/* Each struct of the headers that begins with size_B is in the table, and each call that takes one; each other one is of the size it was published with. */
static void headers_and_table_agree(void **state)
{
    static const char *const names[] = { "umd.h", "umd_diag.h", "umd_log.h" };
    char *headers[3], path[4096], type[64];
    uint32_t structs = 0, uses = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t size_B;
        snprintf(path, sizeof(path), "%s/%s", HEADERS, names[i]);
        uint8_t *bytes = fx_read_file(path, &size_B);
        headers[i] = malloc(size_B + 1);
        assert_non_null(headers[i]);
        memcpy(headers[i], bytes, size_B);
        headers[i][size_B] = '\0';
        free(bytes);
    }
    for (size_t i = 0; i < 3; i++)
        for (const char *at = headers[i]; (at = strstr(at, "typedef struct ")); at++) {
            int body = 0;
            if (sscanf(at, "typedef struct %63[A-Za-z0-9] {%n", type, &body) != 1 || !body)
                continue;
            if (strncmp(at + body + strspn(at + body, " \n"), "uint32_t size_B;", 16)) {
                assert_fixed(type);
                continue;
            }
            structs++;
            for (size_t k = 0; k < 3; k++)
                uses += calls_with(headers[k], type);
        }
    assert_int_equal(structs, 5);
    assert_int_equal(uses, CALLS);
    for (size_t i = 0; i < 3; i++)
        free(headers[i]);
}

/* ---- Sizes ---- */

/* A program's struct of size_B bytes; from is where its tail, which the library does not know, is not zero. */
struct try { uint32_t size_B, from; bool ok; };

static void prepare(const struct call *c, struct fx *f, const struct try *t, uint8_t *p)
{
    const uint32_t size_B = t->size_B > ROOM ? c->own_B : t->size_B;

    memset(p, MARK, ROOM);
    if (c->kind == GIVEN) {
        memset(p, 0, size_B);
        memcpy(p, c->good(f), size_B < c->own_B ? size_B : c->own_B);
        if (t->from < size_B)
            p[t->from] = 1;
    }
    memcpy(p, &t->size_B, sizeof(t->size_B));
}

static bool all(const uint8_t *p, size_t n, uint8_t value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

static void check(const struct call *c, struct fx *f, const struct try *t, uint8_t *p, uint8_t *before)
{
    const uint32_t both_B = t->size_B < c->own_B ? t->size_B : c->own_B;
    char figure[64];

    prepare(c, f, t, p);
    memcpy(before, p, ROOM);
    const umdRecordId last = fx_detail().id;
    umdStatus st = c->make(f, p);
    if (st != (t->ok ? UMD_SUCCESS : UMD_ERR_PARAM_STRUCT_SIZE))
        fail_msg("%s size_B=%u from=%u: %s", c->function, t->size_B, t->from, umdStatusName(st));
    if (c->kind == GIVEN || !t->ok) {
        assert_memory_equal(p, before, ROOM); /* it is the program's */
    } else {
        assert_memory_equal(p, before, 4);
        assert_false(all(p + 4, both_B - 4, MARK));
        assert_true(all(p + both_B, t->size_B - both_B, 0));
        assert_true(all(p + t->size_B, ROOM - t->size_B, MARK));
    }
    if (t->ok && c->undo)
        c->undo();
    if (t->ok || strncmp(c->function, "umdGet", 6) == 0) { /* those of umd_diag.h leave the last error alone */
        assert_int_equal(fx_detail().id.seq, last.seq);
        return;
    }
    snprintf(figure, sizeof(figure), t->from < t->size_B ? "size_B=%u known_B=%u nonzero_at_B=%u" : "size_B=%u smallest_B=", t->size_B, c->own_B, t->from);
    fx_assert_figure(UMD_ERR_PARAM_STRUCT_SIZE, figure, __FILE__, __LINE__);
}

static void sizes(void **state)
{
    struct fx *f = *state;
    uint8_t *p = malloc(ROOM), *before = malloc(ROOM);

    assert_true(p && before);
    assert_st(umdStreamQuery((umdStream){ 0 }), UMD_ERR_HANDLE_INVALID); /* there is a last error */
    for (size_t i = 0; i < CALLS; i++) {
        const struct call *c = &calls[i];
        if (c->kind == SHOWN || c->make == make_device_cause || c->make == make_context_cause)
            continue;
        const bool given = c->kind == GIVEN;
        const struct try tries[] = {
            { 0, UINT32_MAX, false }, { 4, UINT32_MAX, false }, { c->first_B - 1, UINT32_MAX, false },
            { c->own_B + 1025, UINT32_MAX, false }, { 0xcccccccc, UINT32_MAX, false },
            { c->first_B, UINT32_MAX, true }, { c->own_B, UINT32_MAX, true },
            { c->own_B + 8, UINT32_MAX, true }, { c->own_B + 1024, UINT32_MAX, true },
            { c->own_B + 8, c->own_B, !given }, { c->own_B + 8, c->own_B + 7, !given }, { c->own_B + 1024, c->own_B + 1023, !given },
        };
        for (size_t k = 0; k < sizeof(tries) / sizeof(tries[0]); k++)
            check(c, f, &tries[k], p, before);
    }
    free(p);
    free(before);
    args = (struct fx_args){ 0 };
}

/* The first causes need a failure: the device is lost. */
static void sizes_after_loss(void **state)
{
    struct fx *f = *state;
    uint8_t *p = malloc(ROOM), *before = malloc(ROOM);

    assert_true(p && before);
    assert_ok(umd_fault_plan_set("hw.bus.off=1*fire"));
    umdStatus st = make_launch(f, (void *)(uintptr_t)good_launch(f));
    assert_st(st, UMD_ERR_DEV_LOST_OFF_BUS);
    for (size_t i = 0; i < CALLS; i++) {
        const struct call *c = &calls[i];
        if (c->make != make_device_cause && c->make != make_context_cause && c->make != make_info)
            continue;
        const struct try tries[] = {
            { 0, UINT32_MAX, false }, { c->first_B - 1, UINT32_MAX, false }, { c->own_B + 1025, UINT32_MAX, false }, { c->first_B, UINT32_MAX, true },
            { c->own_B, UINT32_MAX, true }, { c->own_B + 8, UINT32_MAX, true }, { c->own_B + 1024, UINT32_MAX, true },
        };
        for (size_t k = 0; k < sizeof(tries) / sizeof(tries[0]); k++)
            check(c, f, &tries[k], p, before);
    }
    free(p);
    free(before);
    args = (struct fx_args){ 0 };
}

/* ---- The version ---- */

struct newer_init { umdInitDesc d; uint64_t grown; };

static void version(void **state)
{
    struct newer_init newer = { .d = fx_desc(), .grown = 1 };

    (void)state;
    newer.d.size_B = sizeof(newer);
    assert_fails(umdInit(&newer.d), UMD_ERR_PARAM_STRUCT_SIZE, "nonzero_at_B=72"); /* of this version, and yet larger */
    newer.d.version = UMD_VERSION + 1;
    assert_fails(umdInit(&newer.d), UMD_ERR_INIT_VERSION, "program=0.2 library=0.1");
    newer.grown = 0; /* asks for nothing new, and was built with it all the same */
    assert_fails(umdInit(&newer.d), UMD_ERR_INIT_VERSION, "program=0.2 library=0.1");
    newer.d.version = (UMD_VERSION_MAJOR + 1) << 16;
    assert_fails(umdInit(&newer.d), UMD_ERR_INIT_VERSION, "program=1.0 library=0.1");
    newer.d.size_B = UINT32_MAX;
    assert_fails(umdInit(&newer.d), UMD_ERR_INIT_VERSION, "program=1.0");
    newer.d.size_B = 8; /* the least that has a version */
    assert_fails(umdInit(&newer.d), UMD_ERR_INIT_VERSION, "program=1.0");
    newer.d.size_B = 7;
    assert_fails(umdInit(&newer.d), UMD_ERR_PARAM_STRUCT_SIZE, "size_B=7 smallest_B=72");
    newer.d.size_B = sizeof(newer);
    newer.d.version = UMD_VERSION;
    assert_ok(umdInit(&newer.d));
    assert_ok(umdShutdown());
    newer.d.size_B = UMD_INIT_DESC_SIZE_V1;
    newer.d.version = UMD_VERSION - 1;
    newer.grown = UINT64_MAX; /* not the library's to look at */
    assert_ok(umdInit(&newer.d));
    newer.d.version = UMD_VERSION + 1; /* checked though the stack is up */
    assert_fails(umdInit(&newer.d), UMD_ERR_INIT_VERSION, "program=0.2 library=0.1");
    assert_ok(umdShutdown());
    assert_fails(umdShutdown(), UMD_ERR_INIT_REQUIRED, "call=umdShutdown");
}

/* What an older program hands back ends behind its own version. */
static void shown_details(void **state)
{
    struct fx *f = *state;
    umdErrorDetail *d = malloc(UMD_ERROR_DETAIL_SIZE_V1);
    char text[4096], again[4096];
    umdFigure figure;

    (void)f;
    assert_non_null(d); /* of exactly that size: an address sanitizer sees a read behind it */
    assert_st(umdStreamQuery((umdStream){ 0 }), UMD_ERR_HANDLE_INVALID);
    d->size_B = UMD_ERROR_DETAIL_SIZE_V1;
    assert_ok(umdGetLastErrorDetail(d));
    assert_true(umdErrorDetailFormat(d, text, sizeof(text)) > 100);
    umdErrorDetail own = fx_detail();
    assert_true(umdErrorDetailFormat(&own, again, sizeof(again)) > 100);
    assert_string_equal(text, again);
    assert_true(umdErrorDetailFormatFull(d, text, sizeof(text)) > 100);
    assert_true(umdErrorDetailFigure(d, "wanted", &figure));
    assert_string_equal(figure.text, "stream");
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_and_table_agree), cmocka_unit_test(version),
        cmocka_unit_test_setup_teardown(sizes, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(sizes_after_loss, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(shown_details, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

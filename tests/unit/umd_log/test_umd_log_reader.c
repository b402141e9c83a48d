/* SPDX-License-Identifier: MIT */
/* test_umd_log_reader.c - the readers of umd-log against what a log may hold: cases by hand, then random mutations from fixed seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <umd/umd_log.h>

#include "../../../tools/umd-log/filter.h"
#include "../../../tools/umd-log/set.h"
#include "../../../tools/umd-log/story.h"

UMD_LOG_MODULE("umd.test.reader");

#define SEEDS 60
#define MUTATIONS 400

static char dir[64];
static uint64_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

static const char *const samples[] = {
    "2026-11-29T17:54:00.667771334Z 6338.546634115 ERROR 18470.18470 kmd.vm ctx=9 depth=1 rec=f3f0ca53:18470:1 trace=0123456789abcdef0123456789abcdef: "
    "UMD_ERR_HW_PAGE_FAULT: A kernel touched an address. address=0x1234 access=write name=\"a b\" cause=f3f0ca53:18470:2 [vm_fault vm.c:120]",
    "2026-11-29T17:54:00.5Z 1.000000001 INFO  7.8 umd.mem depth=0: pool grown id=3 size_B=4096 [grow pool.c:7]",
    "2026-11-29T17:54:00.5Z 1.1 INFO  7.8 umd.mem depth=0 rec=f3f0ca53:18470:1: absorbed UMD_ERR_HW_PAGE_FAULT: Dealt with. [grow pool.c:7]",
    "2026-11-29T17:54:00.5Z 1.2 ERROR 7.8 umd.mem depth=0 rec=f3f0ca53:18470:2: a record was swallowed: nobody saw UMD_ERR_INTERNAL of f [f m.c:7]",
    "{\"Timestamp\":\"1795974840667771334\",\"ObservedTimestamp\":\"1795974840669208205\",\"SeverityNumber\":17,\"SeverityText\":\"ERROR\",\"Body\":"
    "\"UMD_ERR_HW_HANG: Stuck. job=3\",\"Resource\":{\"service.name\":\"petrel\",\"process.pid\":18470,\"host\":\"n\"},\"InstrumentationScope\":{\"Name\":"
    "\"kmd.reset\"},\"Attributes\":{\"thread.id\":18470,\"petrel.mono_ns\":\"6338546634115\",\"petrel.call_depth\":1,\"code.function.name\":\"f\","
    "\"code.file.path\":\"vm.c\",\"code.line.number\":120,\"petrel.context_id\":\"9\",\"petrel.code\":-4000,\"petrel.record\":\"f3f0ca53:18470:1\","
    "\"petrel.figures\":{\"job\":3},\"new\":[1,{\"a\":null}]}}",
    "# petrel log, version 0.1.0, pid 18470, opened 2026-11-29T17:54:00.669505909Z",
    "2026-11-29T17:54:00.5Z ERROR UMD_ERR_MEM_ALLOC_FAILED: Used up. heap=vram size_B=4096 | where: call umdMemAlloc, context 3 | next: Free. (action: free what is short, then "
    "retry, 3 times, 20 ms apart; largest size that fits: 2048 bytes) | "
    "record f3f0ca53:18470:4",
    "2026-11-29T17:54:00.5Z INFO  umd.stream: stream created stream=1",
    "==== 2026-11-29T17:54:00.5Z ERROR 18470.18471 kmd.vram\nUMD_ERR_EXEC_FAILED (-3001)\n  what     It failed.\n  at first UMD_ERR_MEM_ALLOC_FAILED: Used\n"
    "           up.\n  where    call umdMemAlloc(size_B=4096, x=(a)), context 3, thread 18471, seen\n           in module kmd.vram by fail_locked (vram.c:115)\n"
    "  figures  heap=vram size_B=4096 (4 KiB) name=\"a (b)\"\n           free_B=0\n  hops     winsys   ioctl    winsys.c:139   UMD_ERR_MEM_ALLOC_FAILED -> "
    "UMD_ERR_EXEC_FAILED\n           torn\n  next     See the cause. (action:\n           retry, once)\n  absorbed for a reason\n  state    absorbed; severity 2; real 1.5 s; call depth 2; cause f3f0ca53:18470:3\n"
    "  record   f3f0ca53:18470:4 at 12.5 s, and 3 times more",
};
#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static struct log_rec parsed(const char *line, bool json)
{
    struct log_rec rec = { 0 };

    assert_true((json ? log_parse_json : log_parse_text)(&rec, line, strlen(line)));
    return rec;
}

static void text_line_is_taken_apart(void **state)
{
    struct log_rec r = parsed(samples[0], false);
    char value[16];

    (void)state;
    assert_int_equal(r.real_ns, 1795974840667771334ull);
    assert_int_equal(r.mono_ns, 6338546634115ull);
    assert_int_equal(r.level, UMD_LOG_ERROR);
    assert_int_equal(r.pid, 18470);
    assert_int_equal(r.context_id, 9);
    assert_int_equal(r.depth, 1);
    assert_true(log_id_equal(r.id, (umdRecordId){ .boot = 0xf3f0ca53, .pid = 18470, .seq = 1 }));
    assert_int_equal(r.code, UMD_ERR_HW_PAGE_FAULT);
    assert_string_equal(r.code_name, "UMD_ERR_HW_PAGE_FAULT");
    assert_string_equal(r.module, "kmd.vm");
    assert_string_equal(r.trace_id, "0123456789abcdef0123456789abcdef");
    assert_string_equal(r.func, "vm_fault");
    assert_string_equal(r.file, "vm.c");
    assert_int_equal(r.line, 120);
    assert_true(log_figure_get(r.message, "name", value, sizeof(value)));
    assert_string_equal(value, "a b");
    assert_false(log_figure_get(r.message, "addres", value, sizeof(value)));
    log_rec_finish(&r);
}

static void json_line_is_taken_apart(void **state)
{
    struct log_rec r = parsed(samples[4], true);

    (void)state;
    assert_int_equal(r.real_ns, 1795974840667771334ull);
    assert_int_equal(r.observed_ns, 1795974840669208205ull);
    assert_int_equal(r.mono_ns, 6338546634115ull);
    assert_int_equal(r.level, UMD_LOG_ERROR);
    assert_int_equal(r.pid, 18470);
    assert_int_equal(r.line, 120);
    assert_string_equal(r.func, "f");
    assert_string_equal(r.code_name, "UMD_ERR_HW_HANG");
    assert_string_equal(log_rec_extra_of(&r, "host"), "n");
    assert_string_equal(log_rec_extra_of(&r, "new"), "[1,{\"a\":null}]");
    log_rec_finish(&r);
}

static void a_line_of_the_run_log_is_taken_apart(void **state)
{
    struct log_rec r = { 0 };

    (void)state;
    assert_false(log_parse_text(&r, samples[6], strlen(samples[6])));
    assert_true(log_parse_run(&r, samples[6], strlen(samples[6])));
    assert_string_equal(r.message, "UMD_ERR_MEM_ALLOC_FAILED: Used up. heap=vram size_B=4096");
    assert_int_equal(r.code, UMD_ERR_MEM_ALLOC_FAILED);
    assert_int_equal(r.level, UMD_LOG_ERROR);
    assert_int_equal(r.context_id, 3);
    assert_int_equal(r.pid, 18470);
    assert_int_equal(r.id.seq, 4);
    assert_string_equal(log_rec_extra_of(&r, "call"), "umdMemAlloc");
    assert_string_equal(log_rec_extra_of(&r, "action"), "free_retry");
    assert_string_equal(log_rec_extra_of(&r, "delay_ms"), "20");
    assert_string_equal(log_rec_extra_of(&r, "count"), "3");
    assert_string_equal(log_rec_extra_of(&r, "largest_fit_B"), "2048");
    assert_true(log_parse_run(&r, samples[7], strlen(samples[7])));
    assert_string_equal(r.module, "umd.stream");
    assert_string_equal(r.message, "stream created stream=1");
    assert_int_equal(r.id.seq, 0);
    const char *note = "2026-11-29T17:54:00.5Z INFO  umd.error: failure told code=UMD_ERR_HW_HANG job=3 kernel=k | record a:7:2";
    assert_true(log_parse_run(&r, note, strlen(note)));
    assert_string_equal(r.message, "failure told code=UMD_ERR_HW_HANG job=3 kernel=k");
    assert_true(r.id.boot == 10 && r.id.pid == 7 && r.id.seq == 2 && r.pid == 7);
    assert_false(log_parse_run(&r, samples[0], strlen(samples[0]))); /* a line of the text log is none */
    assert_false(log_parse_run(&r, "2026-11-29T17:54:00.5Z INFO  two words: x", 41));
    log_rec_finish(&r);
}

static bool block(struct log_rec *rec, const char *text)
{
    struct log_block b = { 0 };

    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
        assert_true(log_block_add(&b, s, strcspn(s, "\n")));
    bool good = log_block_parse(rec, &b);
    assert_int_equal(b.used, 0);
    log_block_finish(&b);
    return good;
}

static void a_record_of_the_disaster_log_is_taken_apart(void **state)
{
    struct log_rec r = { 0 };

    (void)state;
    assert_true(log_block_begins(samples[8]));
    assert_true(block(&r, samples[8]));
    assert_string_equal(r.message, "UMD_ERR_MEM_ALLOC_FAILED: Used up. heap=vram size_B=4096 name=\"a (b)\" free_B=0 cause=f3f0ca53:18470:3 repeat=3");
    assert_string_equal(r.code_name, "UMD_ERR_MEM_ALLOC_FAILED");
    assert_int_equal(r.code, UMD_ERR_MEM_ALLOC_FAILED);
    assert_string_equal(r.module, "kmd.vram");
    assert_string_equal(r.func, "fail_locked");
    assert_string_equal(r.file, "vram.c");
    assert_int_equal(r.line, 115);
    assert_int_equal(r.tid, 18471);
    assert_int_equal(r.depth, 2);
    assert_int_equal(r.context_id, 3);
    assert_int_equal(r.id.seq, 4);
    assert_int_equal(r.mono_ns, 12500000000ull);
    assert_string_equal(log_rec_extra_of(&r, "call"), "umdMemAlloc");
    assert_string_equal(log_rec_extra_of(&r, "code_out"), "UMD_ERR_EXEC_FAILED");
    assert_string_equal(log_rec_extra_of(&r, "hops"), "winsys:ioctl:winsys.c:139:UMD_ERR_MEM_ALLOC_FAILED>UMD_ERR_EXEC_FAILED");
    assert_string_equal(log_rec_extra_of(&r, "end"), "absorbed");
    assert_string_equal(log_rec_extra_of(&r, "reason"), "for a reason");
    assert_string_equal(log_rec_extra_of(&r, "action"), "retry");
    assert_string_equal(log_rec_extra_of(&r, "count"), "1");
    assert_null(log_rec_extra_of(&r, "largest_fit_B"));
    assert_true(block(&r, "==== 2026-11-29T17:54:00.5Z ERROR 7.8 ccl\n  what     a plain line x=1\n  where    f (m.c:7)"));
    assert_string_equal(r.message, "a plain line x=1");
    assert_string_equal(r.func, "f");
    assert_int_equal(r.line, 7);
    assert_false(block(&r, "==== 2026-11-29T17:54:00.5Z ERROR ccl\n  what     x"));
    assert_false(block(&r, "==== 2026-11-29T17:54:00.5Z loud 1.1 ccl"));
    assert_true(block(&r, "==== 2026-11-29T17:54:00.5Z ERROR 7.8 ccl")); /* torn right there */
    log_rec_finish(&r);
}

static void what_is_no_record_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "x", "2026", "2026-11-29T17:54:00Z", "2026-11-29T17:54:00Z 1.0 INFO", "2026-11-29T17:54:00Z 1.0 INFO 1.1",
        "2026-11-29T17:54:00Z 1.0 INFO 1.1 m depth=1", "2026-11-29T17:54:00Z 1.0 INFO 1.1 m word: text", "2026-11-29T17:54:00Z 1.0 info 1.1 m: t",
        "2026-11-29T25:54:00Z 1.0 INFO 1.1 m: t", "2026-11-29T17:54:00Z -1.0 INFO 1.1 m: t", "2026-11-29T17:54:00Z 1.0 INFO 1,1 m: t",
        "9999-11-29T17:54:00Z 1.0 INFO 1.1 m: t",
    };
    static const char *const bad_json[] = {
        "{", "{}", "[]", "null", "{\"Timestamp\":1}", "{\"Body\":\"x\"}", "{\"Timestamp\":1,\"Body\":\"x\"} x", "{\"Timestamp\":1,\"Body\":\"x\"",
        "{\"Timestamp\":1,\"Body\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}",
    };
    struct log_rec rec = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(log_parse_text(&rec, bad[i], strlen(bad[i])));
    for (size_t i = 0; i < sizeof(bad_json) / sizeof(bad_json[0]); i++)
        assert_false(log_parse_json(&rec, bad_json[i], strlen(bad_json[i])));
    log_rec_finish(&rec);
}

static void trailers_and_headers_at_their_limits(void **state)
{
    static const struct { const char *line, *message, *func; uint32_t number; } cases[] = {
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: text", "text", "", 0 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m:", "", "", 0 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: [f x.c:1]", "", "f", 1 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: a [b] [f x.c:1]", "a [b]", "f", 1 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: a [f x.c:]", "a [f x.c:]", "", 0 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: a [x.c:1]", "a [x.c:1]", "", 0 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: a[f x.c:1]", "a[f x.c:1]", "", 0 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m: ]", "]", "", 0 },
        { "2026-11-29T17:54:00Z 1.0 INFO 1.1 m trace=a b: c: d: e", "c: d: e", "", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct log_rec r = parsed(cases[i].line, false);
        assert_string_equal(r.message, cases[i].message);
        assert_string_equal(r.func, cases[i].func);
        assert_int_equal(r.line, cases[i].number);
        log_rec_finish(&r);
    }
}

/* A record whose texts all end within its buffer, hold nothing that steers a terminal, and that can be copied. */
static void check(const struct log_rec *rec)
{
    const char *const texts[] = { rec->level_text, rec->module, rec->func, rec->file, rec->trace_id, rec->message, rec->code_name };
    struct log_rec copy = { 0 };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_non_null(texts[i]);
        for (const char *c = texts[i]; *c; c++)
            assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
    }
    assert_in_range(rec->level, 0, UMD_LOG_TRACE);
    assert_true(log_rec_copy(&copy, rec));
    assert_string_equal(copy.message, rec->message);
    assert_int_equal(copy.extra_count, rec->extra_count);
    for (uint32_t i = 0; i < rec->extra_count; i++)
        assert_string_equal(copy.extra[i].value, rec->extra[i].value);
    log_rec_finish(&copy);
}

static size_t mutated(char *out, size_t size)
{
    size_t n = 0;

    for (uint32_t lines = 1 + next_random(6); lines; lines--) {
        const char *s = samples[next_random(SAMPLES)];
        size_t k = strlen(s);
        if (n + k + 2 > size)
            break;
        memcpy(out + n, s, k);
        out[n + k] = '\n';
        n += k + 1;
    }
    for (uint32_t edits = next_random(12); edits && n > 1; edits--) {
        size_t at = next_random((uint32_t)n), span = 1 + next_random(40);
        span = span > n - at ? n - at : span;
        switch (next_random(5)) {
        case 0: out[at] = (char)next_random(256); break;
        case 1: memmove(out + at, out + at + span, n - at - span); n -= span; break;       /* cut out */
        case 2: if (n + span < size) { memmove(out + at + span, out + at, n - at); n += span; } break; /* said twice */
        case 3: memset(out + at, next_random(2) ? 0 : '9', span); break;
        default: out[at] = "\n\"{}[]:=\\ ,.#-"[next_random(14)]; break;
        }
    }
    return n;
}

/* Written to a file in one go, read through reader, merge, filter and the trees of errors. */
static void mutations_are_survived(void **state)
{
    char path[96], *bytes = malloc(65536);
    uint64_t records = 0;

    (void)state;
    assert_non_null(bytes);
    snprintf(path, sizeof(path), "%s/fuzz", dir);
    for (int seed = 0; seed < SEEDS; seed++) {
        random_state = 0x9e3779b97f4a7c15ull * (uint64_t)(seed + 1);
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        for (int i = 0; i < MUTATIONS; i++)
            fwrite(bytes, 1, mutated(bytes, 65536), f);
        fclose(f);
        struct log_set *set = log_set_open(&(const char *){ path }, 1, LOG_ROTATED_RUN);
        struct story_book book;
        const struct log_rec *rec;
        assert_non_null(set);
        story_book_init(&book);
        while ((rec = log_set_next(set)) != NULL) {
            check(rec);
            assert_true(story_book_add(&book, rec));
        }
        story_book_link(&book);
        struct log_counts c = log_set_counts(set, 0);
        assert_int_equal(c.records + c.comments + c.foreign + c.too_long + c.inner, c.lines);
        records += c.records;
        story_book_finish(&book);
        log_set_close(set);
    }
    assert_in_range(records, SEEDS * MUTATIONS / 4, (uint64_t)SEEDS * MUTATIONS * 20); /* the mutations leave some whole */
    free(bytes);
}

static void flip(uint8_t *bytes, size_t n)
{
    for (uint32_t edits = next_random(8); edits; edits--)
        bytes[next_random((uint32_t)n)] = (uint8_t)next_random(256);
}

/* The binary format, whole, with bytes changed, and cut; plain, compressed, and as what it is not. */
static void binary_mutations_are_survived(void **state)
{
    static uint8_t whole[65536], bytes[65536];
    char path[96], mutant[96];
    const struct log_rec *rec;

    (void)state;
    snprintf(path, sizeof(path), "%s/whole.bin", dir);
    snprintf(mutant, sizeof(mutant), "%s/mutant", dir);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_BINARY, "info"), UMD_SUCCESS);
    for (int i = 0; i < 40; i++) {
        umdLogMessage(UMD_LOG_INFO, "test", 7, i % 2 ? "0123456789abcdef0123456789abcdef" : NULL, "said by a framework figure=1");
        UMD_LOG(UMD_LOG_WARN, "said by a site i=%d text=%s", i, "words");
        if (i % 8 == 0)
            umdLogFlush(5000);
    }
    umdLogCloseFile(UMD_LOG_FORMAT_BINARY);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    size_t n = fread(whole, 1, sizeof(whole), f);
    fclose(f);
    assert_in_range(n, 500, sizeof(whole) - 1);
    for (int seed = 0; seed < 3000; seed++) {
        size_t cut = n;
        random_state = 0x9e3779b97f4a7c15ull * (uint64_t)(seed + 1);
        memcpy(bytes, whole, n);
        if (seed)
            flip(bytes, n);
        if (seed % 3 == 2)
            cut = next_random((uint32_t)n);
        if (seed % 5 == 4) {
            gzFile gz = gzopen(mutant, "wbe");
            gzwrite(gz, bytes, (unsigned)cut);
            gzclose(gz);
        } else {
            f = fopen(mutant, "we");
            fwrite(bytes, 1, cut, f);
            fclose(f);
        }
        int err;
        struct log_reader *r = log_reader_open(mutant, &err);
        struct log_rec one = { 0 };
        uint64_t count = 0;
        if (!r) {
            assert_int_equal(err, EBADMSG);
            assert_true(seed > 0);
            continue;
        }
        while (log_reader_next(r, &one, false) == LOG_READ_RECORD) {
            rec = &one;
            check(rec);
            count++;
        }
        if (seed == 0)
            assert_int_equal(count, 80);
        log_rec_finish(&one);
        log_reader_close(r);
    }
}

/* Many files, merged: nothing is lost, and the axis does not go back. */
static void many_files_merge_in_order(void **state)
{
    enum { FILES = 40, LINES = 50 };
    static char path[FILES][96];
    const char *paths[FILES];
    const struct log_rec *rec;
    uint64_t last_ns = 0, count = 0;

    (void)state;
    random_state = 7;
    for (int i = 0; i < FILES; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/rank%d", dir, i);
        paths[i] = path[i];
        FILE *f = fopen(path[i], "we");
        assert_non_null(f);
        for (uint32_t n = 0, ms = 0; n < LINES; n++) {
            ms += next_random(30);
            fprintf(f, "2026-11-29T17:54:%02u.%03uZ %u.%03u INFO  %d.1 m: n=%u\n", ms / 1000, ms % 1000, ms / 1000, ms % 1000, i + 1, n);
        }
        fclose(f);
    }
    struct log_set *set = log_set_open(paths, FILES, LOG_ROTATED_RUN);
    assert_non_null(set);
    for (int round = 0; round < 2; round++) {
        uint32_t next[FILES] = { 0 };
        for (last_ns = count = 0; (rec = log_set_next(set)) != NULL; count++) {
            char n[16];
            assert_true(rec->real_ns >= last_ns);
            last_ns = rec->real_ns;
            assert_true(log_figure_get(rec->message, "n", n, sizeof(n)));
            assert_int_equal(strtoul(n, NULL, 10), next[rec->source]++); /* stable */
        }
        assert_int_equal(count, FILES * LINES);
        assert_true(log_set_rewind(set));
    }
    log_set_close(set);
}

/* Threads write late by a little: the window puts one process in order by its monotonic clock, equal times as they stand. */
static void late_lines_are_put_in_order(void **state)
{
    static const unsigned order[] = { 3, 1, 2, 2, 5, 4, 9, 6, 7, 8 };
    const struct log_rec *rec;
    char path[96];
    uint64_t last = 0;
    unsigned count = 0;

    (void)state;
    snprintf(path, sizeof(path), "%s/late", dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        fprintf(f, "2026-11-29T17:54:00.%03uZ 1.%03u INFO  1.%zu m: x=1\n", order[i], order[i], i);
    fclose(f);
    struct log_set *set = log_set_open(&(const char *){ path }, 1, LOG_ROTATED_RUN);
    assert_non_null(set);
    while ((rec = log_set_next(set)) != NULL) {
        assert_true(rec->mono_ns >= last);
        last = rec->mono_ns;
        if (count == 1)
            assert_int_equal(rec->tid, 2);
        if (count == 2)
            assert_int_equal(rec->tid, 3);
        count++;
    }
    assert_int_equal(count, 10);
    log_set_close(set);
}

/* What the layer above found out of a record stands by it, whether the raise came before it, after it, or not at all. */
static void completions_are_joined(void **state)
{
    static const char *const lines[] = {
        "2026-11-29T17:54:01Z 1.0 ERROR 1.1 kmd.a depth=0 rec=a:1:1: UMD_ERR_HW_HANG: Stuck. ring=0 job=3",
        "2026-11-29T17:54:01Z 1.1 INFO  1.2 umd.a depth=0 rec=a:1:1: failure told code=UMD_ERR_HW_HANG context=1 job=3 kernel=k1 source=a.c:7 stream=2",
        "2026-11-29T17:54:01Z 1.2 INFO  1.2 umd.a depth=0 rec=a:1:1: failure told code=UMD_ERR_HW_HANG context=1 job=3 kernel=other",
        "2026-11-29T17:54:02Z 2.0 INFO  1.2 umd.a depth=0 rec=a:1:2: warning told code=UMD_ERR_HW_LONG_RUNNING context=1 job=4 kernel=k2 done=recovered",
        "2026-11-29T17:54:02Z 2.1 WARN  1.1 kmd.a depth=0 rec=a:1:2: UMD_ERR_HW_LONG_RUNNING: Long. job=4",
        "2026-11-29T17:54:03Z 3.0 INFO  1.2 umd.a depth=0 rec=a:1:3: failure told code=UMD_ERR_HW_HANG context=1 job=5 done=job-failed stream=2",
        "2026-11-29T17:54:04Z 4.0 ERROR 1.1 kmd.a depth=0 rec=a:1:4: UMD_ERR_HW_HANG: Stuck. ring=0 job=6",
    };
    static const struct { const char *kernel, *added; bool raised; } want[] = {
        { "k1 at a.c:7", "kernel=k1 source=a.c:7 stream=2", true }, { "k2", "kernel=k2 done=recovered", true },
        { NULL, "done=job-failed stream=2", false }, { NULL, NULL, true },
    };
    struct story_book book;
    struct log_rec rec = { 0 };
    char kernel[64];

    (void)state;
    story_book_init(&book);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_true(log_parse_text(&rec, lines[i], strlen(lines[i])));
        assert_true(story_book_add(&book, &rec));
    }
    story_book_link(&book);
    assert_int_equal(book.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct story *s = story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = i + 1 });
        assert_int_equal(story_kernel(s, kernel, sizeof(kernel)), want[i].kernel != NULL);
        assert_string_equal(kernel, want[i].kernel ? want[i].kernel : "");
        assert_int_equal(s->has_raised, want[i].raised);
        assert_int_equal(s->added != NULL, want[i].added != NULL);
        if (s->added)
            assert_string_equal(s->added, want[i].added);
    }
    story_book_finish(&book);
    log_rec_finish(&rec);
}

/* What is to be done: as the end of the record tells, else its raise, else the table of codes. */
static void the_advice_of_a_record_is_its_own(void **state)
{
    static const char *const lines[] = {
        "2026-11-29T17:54:00Z 1.0 ERROR 1.1 kmd.a depth=0 rec=a:1:1: UMD_ERR_EXEC_CANCELLED: Gone. queue=1 action=rebuild_context",
        "2026-11-29T17:54:01Z 1.1 INFO  1.1 diag.record depth=0 rec=a:1:1: ended UMD_ERR_EXEC_CANCELLED: end=delivered action=skip hops=\"\"",
        "2026-11-29T17:54:02Z 2.0 ERROR 1.1 kmd.a depth=0 rec=a:1:2: UMD_ERR_MEM_FRAGMENTED: Holes. action=free_retry delay_ms=5 count=2 largest_fit_B=4096",
        "2026-11-29T17:54:03Z 3.0 ERROR 1.1 kmd.a depth=0 rec=a:1:3: UMD_ERR_MEM_FRAGMENTED: Holes. free_B=1",
        "2026-11-29T17:54:04Z 4.0 ERROR 1.1 kmd.a depth=0 rec=a:1:4: UMD_ERR_MEM_FRAGMENTED: Holes. action=pray count=9",
    };
    static const struct { umdAdvice advice; bool told; } want[] = {
        { { .action = UMD_ACTION_SKIP }, true }, { { .action = UMD_ACTION_FREE_RETRY, .delay_ms = 5, .count = 2, .largest_fit_B = 4096 }, true },
        { { .action = UMD_ACTION_FREE_RETRY, .count = 1 }, false }, { { .action = UMD_ACTION_FREE_RETRY, .count = 1 }, false },
    };
    struct story_book book;
    struct log_rec rec = { 0 };

    (void)state;
    story_book_init(&book);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_true(log_parse_text(&rec, lines[i], strlen(lines[i])));
        assert_true(story_book_add(&book, &rec));
    }
    story_book_link(&book);
    for (uint32_t i = 0; i < 4; i++) {
        const struct story *s = story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = i + 1 });
        assert_int_equal(s->advice_told, want[i].told);
        assert_int_equal(s->advice.action, want[i].advice.action);
        assert_int_equal(s->advice.delay_ms, want[i].advice.delay_ms);
        assert_int_equal(s->advice.count, want[i].advice.count);
        assert_int_equal(s->advice.largest_fit_B, want[i].advice.largest_fit_B);
    }
    story_book_finish(&book);
    log_rec_finish(&rec);
}

/* Causes lead across processes; a ring of causes in a damaged log ends; what the driver absorbed is no first cause. */
static void causes_make_trees(void **state)
{
    static const char *const lines[] = {
        "2026-11-29T17:54:01Z 1.0 ERROR 1.1 umd.a depth=1 rec=a:1:1: UMD_ERR_DEV_LOST_OFF_BUS: Gone. x=1",
        "2026-11-29T17:54:01Z 1.1 ERROR 1.1 umd.a depth=1 rec=a:1:1: absorbed UMD_ERR_DEV_LOST_OFF_BUS: Another was taken.",
        "2026-11-29T17:54:02Z 2.0 ERROR 1.1 umd.a depth=1 rec=a:1:2: UMD_ERR_PARAM_NULL: A null. argument=x",
        "2026-11-29T17:54:03Z 3.0 ERROR 2.1 kmd.a depth=0 rec=a:2:1: UMD_ERR_HW_HANG: Stuck. job=3",
        "2026-11-29T17:54:04Z 4.0 ERROR 1.1 umd.a depth=1 rec=a:1:3: UMD_ERR_EXEC_FAILED: Failed. cause=a:2:1",
        "2026-11-29T17:54:05Z 5.0 ERROR 1.1 umd.a depth=1 rec=a:1:4: UMD_ERR_EXEC_FAILED: Failed. cause=a:1:5",
        "2026-11-29T17:54:05Z 5.1 ERROR 1.1 umd.a depth=1 rec=a:1:5: UMD_ERR_EXEC_FAILED: Failed. cause=a:1:4",
        "2026-11-29T17:54:06Z 6.0 ERROR 1.1 umd.a depth=1 rec=a:1:6: UMD_ERR_EXEC_FAILED: Failed. cause=a:9:9",
        "2026-11-29T17:54:07Z 7.0 ERROR 1.1 umd.a depth=1 rec=a:1:2: UMD_ERR_PARAM_NULL: A null. argument=x repeat=10",
    };
    struct story_book book;
    struct log_rec rec = { 0 };

    (void)state;
    story_book_init(&book);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_true(log_parse_text(&rec, lines[i], strlen(lines[i])));
        assert_true(story_book_add(&book, &rec));
    }
    story_book_link(&book);
    assert_int_equal(book.count, 7);
    assert_int_equal(book.absorbed, 1);
    struct story *hang = story_find(&book, (umdRecordId){ .boot = 10, .pid = 2, .seq = 1 });
    struct story *failed = story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = 3 });
    assert_ptr_equal(book.first_cause, hang);
    assert_ptr_equal(failed->parent, hang);
    assert_true(story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = 6 })->cause_missing);
    struct story *a = story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = 4 }), *b = story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = 5 });
    assert_true((a->parent == b) != (b->parent == a));
    assert_int_equal(story_find(&book, (umdRecordId){ .boot = 10, .pid = 1, .seq = 2 })->times, 11);
    story_book_finish(&book);
    log_rec_finish(&rec);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/umd-log-test-XXXXXX");
    return mkdtemp(dir) ? 0 : 1;
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_line_is_taken_apart),
        cmocka_unit_test(json_line_is_taken_apart),
        cmocka_unit_test(a_line_of_the_run_log_is_taken_apart), cmocka_unit_test(a_record_of_the_disaster_log_is_taken_apart),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(trailers_and_headers_at_their_limits),
        cmocka_unit_test(late_lines_are_put_in_order),
        cmocka_unit_test(many_files_merge_in_order),
        cmocka_unit_test(completions_are_joined),
        cmocka_unit_test(the_advice_of_a_record_is_its_own), cmocka_unit_test(causes_make_trees),
        cmocka_unit_test(mutations_are_survived),
        cmocka_unit_test(binary_mutations_are_survived),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* test_log_binary.c - the binary file: what goes in comes out, each file alone, torn and damaged files, files made to do harm. */
#include "diag_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "log_binary.h"

UMD_LOG_MODULE("umd.test.binary");

static void start(const char *path, const char *levels)
{
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_BINARY, levels), UMD_SUCCESS);
}

static void stop(void)
{
    umdLogFlush(5000);
    umdLogCloseFile(UMD_LOG_FORMAT_BINARY);
}

static struct umd_log_binary *opened(const char *path)
{
    struct umd_log_binary *b = NULL;

    assert_int_equal(umd_log_binary_open(path, &b), UMD_SUCCESS);
    return b;
}

/* Counts the records whose message has the text; the last of them is copied out, its message too. */
static unsigned find(const char *path, const char *part, struct umd_log_binary_record *last, char *message, size_t size, struct umd_log_binary_stats *stats)
{
    struct umd_log_binary *b = opened(path);
    struct umd_log_binary_record r;
    unsigned n = 0;

    while (umd_log_binary_next(b, &r) == UMD_SUCCESS) {
        if (!strstr(r.message, part))
            continue;
        n++;
        if (last)
            *last = r;
        if (message)
            snprintf(message, size, "%s", r.message);
    }
    if (stats)
        umd_log_binary_get_stats(b, stats);
    umd_log_binary_close(b);
    return n;
}

static void a_record_comes_back_whole(void **state)
{
    const char *path = scratch("whole");
    struct umd_log_binary_record r;
    char line[4096];

    (void)state;
    start(path, "trace");
    umd_record_set_context(77);
    uint64_t before_ns = umd_sys()->mono_ns();
    UMD_LOG(UMD_LOG_WARN, "all kinds i=%d u=%" PRIu64 " s=\"%s\" f=%.2f c=%c", -5, UINT64_MAX, "two words", 1.25, 'x');
    uint64_t after_ns = umd_sys()->mono_ns();
    int here = __LINE__ - 2;
    umd_record_set_context(0);
    umdLogMessage(UMD_LOG_INFO, "ccl", 9, "0123456789abcdef0123456789abcdef", "all-reduce begins");
    stop();
    struct umd_log_binary *b = opened(path);
    assert_int_equal(umd_log_binary_head_of(b)->pid, getpid());
    do
        assert_int_equal(umd_log_binary_next(b, &r), UMD_SUCCESS);
    while (strcmp(r.module, "umd.test.binary") != 0);
    assert_string_equal(r.message, "all kinds i=-5 u=18446744073709551615 s=\"two words\" f=1.25 c=x");
    assert_int_equal(r.level, UMD_LOG_WARN);
    assert_string_equal(r.func, "a_record_comes_back_whole");
    assert_string_equal(r.file, "test_log_binary.c");
    assert_int_equal(r.line, here);
    assert_int_equal(r.context_id, 77);
    assert_int_equal(r.pid, getpid());
    assert_int_equal(r.tid, gettid());
    assert_true(r.mono_ns + 1000000 >= before_ns && r.mono_ns <= after_ns + 1000000);
    uint64_t now = umd_sys()->real_ns();
    assert_true(r.real_ns <= now + 1000000000u && now - r.real_ns < 600000000000ull);
    assert_non_null(strstr(r.fmt, "i=%d"));
    assert_true(umd_log_binary_format(&r, UMD_LOG_FORMAT_TEXT, line, sizeof(line)) < sizeof(line));
    assert_non_null(strstr(line, " WARN  "));
    assert_non_null(strstr(line, "ctx=77"));
    assert_true(umd_log_binary_format(&r, UMD_LOG_FORMAT_JSON, line, sizeof(line)) < sizeof(line));
    assert_non_null(strstr(line, "\"petrel.figures\":{\"i\":-5,"));
    assert_int_equal(umd_log_binary_next(b, &r), UMD_SUCCESS);
    assert_string_equal(r.module, "ccl");
    assert_string_equal(r.message, "all-reduce begins");
    assert_string_equal(r.trace_id, "0123456789abcdef0123456789abcdef");
    assert_int_equal(r.context_id, 9);
    assert_int_equal(umd_log_binary_next(b, &r), UMD_STATUS_NOT_READY);
    umd_log_binary_close(b);
}

static void error_records_keep_code_and_id(void **state)
{
    struct umd_log_binary_record r;
    char message[512];

    (void)state;
    start(scratch("codes"), "info");
    assert_int_equal(UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x", 64), UMD_ERR_HW_PAGE_FAULT);
    umdRecordId id = umd_record_current();
    UMD_ABSORB(UMD_ERR_HW_PAGE_FAULT, "A test made it.");
    stop();
    assert_int_equal(find(scratch("codes"), "address=0x40", &r, message, sizeof(message), NULL), 1);
    assert_int_equal(r.code, UMD_ERR_HW_PAGE_FAULT);
    assert_int_equal(r.record.boot, id.boot);
    assert_int_equal(r.record.pid, id.pid);
    assert_int_equal(r.record.seq, id.seq);
}

/* Rotated often: each file has a head and the call sites it uses, even those logged before it was begun. */
static void each_rotated_file_is_decoded_alone(void **state)
{
    char path[160], name[200];
    unsigned total = 0, files = 0;

    (void)state;
    snprintf(path, sizeof(path), "%s", scratch("rotated"));
    umdLogSetRotation(8192, 100);
    start(path, "info");
    for (int i = 0; i < 3000; i++) {
        if (i % 2)
            UMD_LOG(UMD_LOG_INFO, "odd i=%04d filler=%s", i, "0123456789");
        else
            UMD_LOG(UMD_LOG_INFO, "even i=%04d filler=%s", i, "0123456789");
        if (i % 50 == 49)
            umdLogFlush(5000);
    }
    stop();
    umdLogSetRotation(128u << 20, 5);
    for (int i = 0; i < 100; i++) {
        struct umd_log_binary_stats stats;
        struct stat st;
        if (i)
            snprintf(name, sizeof(name), "%s.%d", path, i);
        else
            snprintf(name, sizeof(name), "%s", path);
        if (stat(name, &st) != 0)
            break;
        files++;
        total += find(name, "i=", NULL, NULL, 0, &stats);
        assert_int_equal(stats.bad_items, 0);
        assert_int_equal(stats.damaged_blocks, 0);
        assert_false(stats.torn);
        assert_true(st.st_size <= 8192 + 2048);
    }
    assert_true(files > 3);
    assert_int_equal(total, 3000);
}

static size_t load(const char *path, uint8_t *bytes, size_t size)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    size_t n = fread(bytes, 1, size, f);
    fclose(f);
    return n;
}

static void store(const char *path, const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static uint8_t bytes[1u << 18], changed[1u << 18];

/* A file of ten blocks with ten records each. */
static size_t sample(void)
{
    const char *path = scratch("sample");

    start(path, "info");
    for (int i = 0; i < 100; i++) {
        UMD_LOG(UMD_LOG_INFO, "record i=%02d", i);
        if (i % 10 == 9)
            umdLogFlush(5000);
    }
    stop();
    size_t n = load(path, bytes, sizeof(bytes));
    assert_true(n > 1000 && n < sizeof(bytes));
    return n;
}

/* Cut anywhere, what was whole is read, and the rest is told as torn. A file that grows on is read on. */
static void a_torn_tail_is_seen_and_read_on(void **state)
{
    struct umd_log_binary_record r;
    size_t n = sample();
    char path[160];

    (void)state;
    snprintf(path, sizeof(path), "%s", scratch("torn"));
    unsigned before = 0;
    for (size_t cut = sizeof(struct umd_log_binary_head); cut <= n; cut += 7) {
        struct umd_log_binary_stats stats;
        store(path, bytes, cut);
        unsigned count = find(path, "record i=", NULL, NULL, 0, &stats);
        assert_true(count >= before && count <= 100);
        assert_int_equal(count % 10, 0);
        assert_int_equal(stats.damaged_blocks, 0);
        before = count;
    }
    store(path, bytes, n - 5);
    struct umd_log_binary *b = opened(path);
    unsigned count = 0;
    while (umd_log_binary_next(b, &r) == UMD_SUCCESS)
        count += strstr(r.message, "record i=") != NULL;
    assert_int_equal(count, 90);
    FILE *f = fopen(path, "a");
    assert_int_equal(fwrite(bytes + n - 5, 1, 5, f), 5);
    fclose(f);
    while (umd_log_binary_next(b, &r) == UMD_SUCCESS)
        count += strstr(r.message, "record i=") != NULL;
    assert_int_equal(count, 100);
    umd_log_binary_close(b);
}

/* Any byte flipped: nothing but the block it is in is lost, and the damage is told. */
static void a_damaged_block_costs_no_other(void **state)
{
    size_t n = sample();
    char path[160];

    (void)state;
    snprintf(path, sizeof(path), "%s", scratch("damaged"));
    for (size_t at = sizeof(struct umd_log_binary_head); at < n; at += 11) {
        struct umd_log_binary_stats stats;
        memcpy(changed, bytes, n);
        changed[at] ^= 0x55;
        store(path, changed, n);
        unsigned count = find(path, "record i=", NULL, NULL, 0, &stats);
        bool first = count == 0; /* the block with the definition of the call site */
        if (!first && count != 90)
            fail_msg("at %zu: %u records", at, count);
        assert_true(stats.damaged_blocks + stats.torn + stats.bad_items > 0);
    }
}

/* Bytes at random, and sound CRCs over nonsense: the reader ends, and reads nothing beyond its bounds (sanitizers watch). */
static void hostile_files_do_no_harm(void **state)
{
    size_t n = sample();
    uint64_t seed = 88172645463325252ull;
    char path[160];

    (void)state;
    snprintf(path, sizeof(path), "%s", scratch("hostile"));
    for (int round = 0; round < 400; round++) {
        memcpy(changed, bytes, n);
        size_t head = sizeof(struct umd_log_binary_head), at = head;
        for (int k = 0; k < 12; k++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            changed[head + seed % (n - head)] = (uint8_t)(seed >> 32);
        }
        while (at + sizeof(struct umd_log_binary_block) < n) { /* make each block's CRC right again */
            struct umd_log_binary_block block;
            memcpy(&block, bytes + at, sizeof(block));
            size_t size = sizeof(block) + block.payload_B, from = offsetof(struct umd_log_binary_block, payload_B);
            memcpy(&block, changed + at, sizeof(block));
            block.mark = UMD_BINARY_BLOCK_MARK;
            block.payload_B = (uint32_t)(size - sizeof(block));
            memcpy(changed + at, &block, sizeof(block));
            block.crc = (uint32_t)crc32(crc32(0, NULL, 0), changed + at + from, (uInt)(size - from));
            memcpy(changed + at, &block, sizeof(block));
            at += size;
        }
        store(path, changed, n);
        (void)find(path, "record i=", NULL, NULL, 0, NULL);
        for (size_t i = head; i < n; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            changed[i] = (uint8_t)seed;
        }
        store(path, changed, n);
        (void)find(path, "record i=", NULL, NULL, 0, NULL);
    }
}

/* Heads without end, each of which claims all that follows: the work grows with the file, not with its square (the time limit is the assertion). */
static void heads_without_end_are_no_work_without_end(void **state)
{
    enum { HEADS = 160000 };
    const struct umd_log_binary_block fake = { .mark = UMD_BINARY_BLOCK_MARK, .crc = 1, .payload_B = UMD_BINARY_PAYLOAD_MAX_B };
    struct umd_log_binary_stats stats;
    struct umd_log_binary_record r;
    struct umd_log_binary *b;
    uint32_t read = 0;
    size_t n = sample();
    char path[160];

    (void)state;
    snprintf(path, sizeof(path), "%s", scratch("heads"));
    store(path, bytes, n);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    for (int i = 0; i < HEADS; i++)
        assert_int_equal(fwrite(&fake, sizeof(fake), 1, f), 1);
    fclose(f);
    assert_int_equal(umd_log_binary_open(path, &b), UMD_SUCCESS);
    while (umd_log_binary_next(b, &r) == UMD_SUCCESS)
        read++;
    umd_log_binary_get_stats(b, &stats);
    umd_log_binary_close(b);
    assert_true(read >= 100); /* what came before */
    assert_true(stats.damaged_blocks > 1000 && stats.torn);
}

/* Of the record that is open on this thread. */
static const char *last_record_figures(void)
{
    static umdErrorDetail d;

    d.size_B = sizeof(d);
    assert_int_equal(umdGetErrorDetailById(umd_record_current(), &d), UMD_SUCCESS);
    UMD_ABSORB((umdStatus)d.code, "A test made it.");
    return d.figures;
}

static uint8_t *put_str(uint8_t *at, const char *s)
{
    *at++ = (uint8_t)strlen(s);
    memcpy(at, s, strlen(s));
    return at + strlen(s);
}

/* A format that would print gigabytes, and a message that would steer a terminal. */
static void a_hostile_format_is_tamed(void **state)
{
    size_t n = sample(), head = sizeof(struct umd_log_binary_head);
    struct umd_log_binary_block block = { .mark = UMD_BINARY_BLOCK_MARK, .count = 1 };
    struct umd_log_binary_record r;
    char path[160], message[4096];
    uint8_t *from = changed + head + sizeof(block), *at = from;

    (void)state;
    (void)n;
    memcpy(changed, bytes, head);
    *at++ = UMD_BINARY_SITE;
    *at++ = 5;
    *at++ = UMD_LOG_INFO;
    *at++ = 1;
    at = put_str(at, "m");
    at = put_str(at, "f");
    at = put_str(at, "c");
    at = put_str(at, "evil %999999999d %.999999999f \033[2J end");
    *at++ = UMD_BINARY_RECORD;
    *at++ = 0;
    *at++ = 5;
    *at++ = 16;
    memset(at, 0, 16);
    at += 16;
    block.payload_B = (uint32_t)(at - from);
    memcpy(changed + head, &block, sizeof(block));
    size_t covered = offsetof(struct umd_log_binary_block, payload_B);
    block.crc = (uint32_t)crc32(crc32(0, NULL, 0), changed + head + covered, (uInt)(sizeof(block) - covered + block.payload_B));
    memcpy(changed + head, &block, sizeof(block));
    snprintf(path, sizeof(path), "%s", scratch("evil"));
    store(path, changed, (size_t)(at - changed));
    assert_int_equal(find(path, "evil", &r, message, sizeof(message), NULL), 1);
    assert_null(strchr(message, '\033'));
}

static void what_is_no_log_is_refused(void **state)
{
    struct umd_log_binary *b = NULL;
    size_t n = sample();

    (void)state;
    store(scratch("not"), (const uint8_t *)"# petrel log, version", 21);
    assert_int_equal(umd_log_binary_open(scratch("not"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "no binary log"));
    assert_int_equal(umd_log_binary_open(scratch("missing"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "No such file"));
    memcpy(changed, bytes, n);
    changed[12] = 99;
    store(scratch("newer"), changed, n);
    assert_int_equal(umd_log_binary_open(scratch("newer"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "a version this program does not know"));
    memcpy(changed, bytes, n);
    changed[30] ^= 1;
    store(scratch("bent"), changed, n);
    assert_int_equal(umd_log_binary_open(scratch("bent"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "its head is damaged"));
    store(scratch("short"), bytes, 40);
    assert_int_equal(umd_log_binary_open(scratch("short"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "cut off within its head"));
    assert_null(b);
}

static int reads_left;
static ssize_t read_fails(int fd, void *buf, size_t n)
{
    if (reads_left-- > 0)
        return umd_sys_default()->read(fd, buf, n);
    errno = EIO;
    return -1;
}

/* The host's own word for it, in the head and behind it; then the reader can go on. */
static void a_read_that_fails_says_why(void **state)
{
    struct umd_sys table = *umd_sys_default();
    struct umd_log_binary_record r;
    struct umd_log_binary *b = NULL;
    size_t n = sample();

    (void)state;
    store(scratch("failing"), bytes, n);
    table.read = read_fails;
    umd_sys_set(&table);
    reads_left = 0;
    assert_int_equal(umd_log_binary_open(scratch("failing"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "errno=5 reason=\"Input/output error\""));
    assert_null(b);
    reads_left = 1;
    assert_int_equal(umd_log_binary_open(scratch("failing"), &b), UMD_SUCCESS);
    umdStatus st = UMD_SUCCESS;
    while (st == UMD_SUCCESS) /* what the first read brought */
        st = umd_log_binary_next(b, &r);
    assert_int_equal(st, UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "failing\" errno=5 reason="));
    umd_sys_set(NULL);
    while ((st = umd_log_binary_next(b, &r)) == UMD_SUCCESS)
        ;
    assert_int_equal(st, UMD_STATUS_NOT_READY);
    umd_log_binary_close(b);
    assert_int_equal(umd_log_binary_open(scratch("missing"), &b), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_record_figures(), "errno=2 "));
}

/* Equal runs of stepped mode give equal bytes, addresses among the arguments or not. */
static size_t stepped_run(const char *path, uint8_t *to)
{
    int local = 0;

    umd_sys_step_begin(7);
    start(path, "info");
    for (int i = 0; i < 20; i++) {
        umd_sys_step_set_clock((uint64_t)i * 1000);
        void *heap = malloc(1); /* never the same place twice in a row */
        UMD_LOG(UMD_LOG_INFO, "stepped i=%d at=%p", i, i % 2 ? heap : (void *)&local);
        free(heap);
    }
    stop();
    umd_sys_step_end();
    return load(path, to, sizeof(bytes));
}

static void stepped_runs_are_equal(void **state)
{
    (void)state;
    size_t n = stepped_run(scratch("step1"), bytes);
    size_t m = stepped_run(scratch("step2"), changed);
    assert_int_equal(n, m);
    assert_memory_equal(bytes, changed, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_comes_back_whole), cmocka_unit_test(error_records_keep_code_and_id),
        cmocka_unit_test(each_rotated_file_is_decoded_alone), cmocka_unit_test(a_torn_tail_is_seen_and_read_on),
        cmocka_unit_test(a_damaged_block_costs_no_other), cmocka_unit_test(hostile_files_do_no_harm), cmocka_unit_test(heads_without_end_are_no_work_without_end),
        cmocka_unit_test(a_hostile_format_is_tamed), cmocka_unit_test(what_is_no_log_is_refused), cmocka_unit_test(a_read_that_fails_says_why), cmocka_unit_test(stepped_runs_are_equal),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    scratch_remove();
    return failed;
}

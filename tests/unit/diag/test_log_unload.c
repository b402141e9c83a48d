/* SPDX-License-Identifier: MIT */
/* test_log_unload.c - call sites of a library that is unloaded: its lines are whole, and those of the next one in its place are its own. */
#include "diag_fixture.h"

#include <dlfcn.h>
#include <pthread.h>

#include "log_binary.h"

UMD_LOG_MODULE("umd.test.unload");

static const char *plugins[2];

static void use(const char *path, int count)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        fail_msg("%s", dlerror());
    void (*log)(int) = (void (*)(int))dlsym(lib, "plugin_log");
    assert_non_null(log);
    log(count); /* nothing is flushed by hand */
    assert_int_equal(dlclose(lib), 0);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD)); /* it is gone indeed */
}

static void lines_of_an_unloaded_library_are_whole(void **state)
{
    char text_path[160], binary_path[160];
    struct umd_log_binary *b = NULL;
    struct umd_log_binary_record r;
    unsigned seen[2] = { 0 };

    (void)state;
    snprintf(text_path, sizeof(text_path), "%s", scratch("text"));
    snprintf(binary_path, sizeof(binary_path), "%s", scratch("binary"));
    assert_int_equal(umdLogOpenFile(text_path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(binary_path, UMD_LOG_FORMAT_BINARY, "info"), UMD_SUCCESS);
    for (int i = 0; i < 6; i++)
        use(plugins[i % 2], 50);
    UMD_LOG(UMD_LOG_INFO, "the log goes on x=%d", 1);
    umdLogFlush(10000);
    const char *text = slurp(text_path);
    assert_int_equal(count_of(text, "plugin.1 depth=0: plugin 1 logs i="), 150);
    assert_int_equal(count_of(text, "plugin.2 depth=0: plugin 2 logs i="), 150);
    assert_int_equal(count_of(text, "the log goes on"), 1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogCloseFile(UMD_LOG_FORMAT_BINARY);
    assert_int_equal(umd_log_binary_open(binary_path, &b), UMD_SUCCESS);
    while (umd_log_binary_next(b, &r) == UMD_SUCCESS) {
        for (int i = 0; i < 2; i++) {
            char module[32], begin[48];
            snprintf(module, sizeof(module), "plugin.%d", i + 1);
            snprintf(begin, sizeof(begin), "plugin %d logs i=", i + 1);
            seen[i] += strcmp(r.module, module) == 0 && strncmp(r.message, begin, strlen(begin)) == 0;
        }
    }
    umd_log_binary_close(b);
    assert_int_equal(seen[0], 150);
    assert_int_equal(seen[1], 150);
}

static char constructor_path[160];
static bool constructor_line;

/* The thread holds the loader's lock, which the writer needs for the names in the story of the failure. */
static void in_constructor(void)
{
    umdStatus st = UMD_FAIL(UMD_ERR_RES_FILE, "path=x errno=%d", 5);
    UMD_ABSORB(st, "A test made it.");
    umdLogFlush(300); /* by then the writer is at it */
    UMD_LOG(UMD_LOG_INFO, "in the constructor x=%d", 1);
    umdLogFlush(20000);
    constructor_line = count_of(slurp(constructor_path), "in the constructor x=1") == 1;
}

static void the_loader_does_not_hold_up_the_log(void **state)
{
    char call[32], disaster[160];

    (void)state;
    snprintf(constructor_path, sizeof(constructor_path), "%s", scratch("held"));
    snprintf(disaster, sizeof(disaster), "%s", scratch("disaster"));
    assert_int_equal(umdLogOpenFile(constructor_path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(disaster, UMD_LOG_FORMAT_DISASTER, NULL), UMD_SUCCESS);
    snprintf(call, sizeof(call), "%lx", (unsigned long)(uintptr_t)in_constructor);
    setenv("PLUGIN_CALL", call, 1);
    void *lib = dlopen(plugins[0], RTLD_NOW | RTLD_LOCAL);
    unsetenv("PLUGIN_CALL");
    assert_non_null(lib);
    assert_true(constructor_line);
    umdLogFlush(20000);
    assert_int_equal(count_of(slurp(disaster), "UMD_ERR_RES_FILE (-"), 1);
    assert_non_null(strstr(slurp(disaster), "  stack    digest "));
    assert_int_equal(dlclose(lib), 0);
    umdLogCloseFile(UMD_LOG_FORMAT_DISASTER);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* ---- A sink that holds the writer up ---- */

/* What a library could not get out is counted; and of the next one, when the sink goes on, nothing is missing. */
static void a_sink_that_hung_once_costs_later_libraries_nothing(void **state)
{
    char path[160];
    umdLogStats before, after;

    (void)state;
    path_of(path, sizeof(path), "hung");
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umdLogGetStats(&before);
    writer_stop();
    use(plugins[0], 50);
    writer_go();
    umdLogFlush(20000);
    umdLogGetStats(&after);
    assert_int_equal(count_of(slurp(path), "plugin 1 logs i=") + after.dropped - before.dropped, 50);
    for (int i = 0; i < 4; i++)
        use(plugins[1], 50);
    umdLogFlush(20000);
    assert_int_equal(count_of(slurp(path), "plugin 2 logs i="), 200);
    umdLogGetStats(&before);
    assert_int_equal(before.dropped, after.dropped);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void *one_line(void *arg)
{
    UMD_LOG(UMD_LOG_INFO, "a thread ends i=%d", (int)(intptr_t)arg);
    return NULL;
}

static void *many_threads(void *arg)
{
    pthread_t t;

    for (int i = 0; i < 200; i++) {
        if (pthread_create(&t, NULL, one_line, (void *)(intptr_t)i) != 0 || pthread_join(t, NULL) != 0)
            *(bool *)arg = true;
    }
    return NULL;
}

/* Both free rings: whoever unloads a library, and the writer. */
static void threads_end_while_libraries_go(void **state)
{
    pthread_t t;
    bool failed = false;

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("ends"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(pthread_create(&t, NULL, many_threads, &failed), 0);
    for (int i = 0; i < 60; i++)
        use(plugins[i % 2], 1);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_false(failed);
    umdLogFlush(20000);
    const char *text = slurp(scratch("ends"));
    assert_int_equal(count_of(text, "a thread ends i="), 200);
    assert_int_equal(count_of(text, "logs i=0"), 60);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lines_of_an_unloaded_library_are_whole),
                                        cmocka_unit_test(the_loader_does_not_hold_up_the_log),
                                        cmocka_unit_test(a_sink_that_hung_once_costs_later_libraries_nothing),
                                        cmocka_unit_test(threads_end_while_libraries_go) };

    if (argc < 3) {
        fprintf(stderr, "usage: test_diag_log_unload PLUGIN1 PLUGIN2\n");
        return 1;
    }
    plugins[0] = argv[1];
    plugins[1] = argv[2];
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}

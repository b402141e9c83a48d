/* SPDX-License-Identifier: MIT */
/* diag_fixture.c - scratch directory, files and child processes for the tests of umd/diag. */
#include "diag_fixture.h"

static char dir[64];

/* Our children start threads: allowed here, since they touch none of the parent's locks. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0"; }

const char *scratch(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    if (!dir[0]) {
        snprintf(dir, sizeof(dir), "/tmp/petrel-test-XXXXXX");
        assert_non_null(mkdtemp(dir));
    }
    snprintf(path, 128, "%s/%s", dir, name);
    return path;
}

void scratch_remove(void)
{
    char command[128];

    if (!dir[0])
        return;
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
    dir[0] = '\0';
}

const char *slurp(const char *path)
{
    static char *texts[2];
    static unsigned next;
    char **text = &texts[next++ % 2];
    size_t size = 8u << 20;

    if (!*text)
        *text = malloc(size);
    assert_non_null(*text);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(*text, 1, size - 1, f) : 0;
    (*text)[n] = '\0';
    if (f)
        fclose(f);
    return *text;
}

unsigned count_of(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *s = text; (s = strstr(s, part)); s += strlen(part))
        n++;
    return n;
}

int in_child(void (*fn)(void *), void *arg, char *text, size_t size)
{
    int fds[2], status;
    size_t used = 0;
    ssize_t n;

    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        fn(arg);
        _exit(0);
    }
    close(fds[1]);
    while (used + 1 < size && (n = read(fds[0], text + used, size - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

umdErrorDetail last_error(void)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    assert_int_equal(umdGetLastErrorDetail(&d), UMD_SUCCESS);
    return d;
}

umd_record_counts counts_now(void)
{
    umd_record_counts c;

    umd_record_get_counts(&c);
    return c;
}

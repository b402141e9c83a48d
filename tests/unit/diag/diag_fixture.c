/* SPDX-License-Identifier: MIT */
/* diag_fixture.c - scratch directory, files and child processes for the tests of umd/diag. */
#include "diag_fixture.h"

#include <stdatomic.h>
#include <sys/resource.h>

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

const char *path_of(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s", scratch(name));
    return to;
}

const char *logged(const char *path)
{
    umdLogFlush(20000);
    return slurp(path);
}

static _Atomic(bool) stop, stands;

static ssize_t hanging_write(int fd, const void *buf, size_t n)
{
    while (atomic_load(&stop) && gettid() != getpid()) { /* the writer only */
        atomic_store(&stands, true);
        usleep(1000);
    }
    return umd_sys_default()->write(fd, buf, n);
}

void writer_stop(void)
{
    static struct umd_sys table;

    table = *umd_sys_default();
    table.write = hanging_write;
    atomic_store(&stands, false);
    atomic_store(&stop, true);
    umd_sys_set(&table);
    umdLogMessage(UMD_LOG_WARN, "umd.test", 0, NULL, "the writer stands here");
    while (!atomic_load(&stands))
        usleep(1000);
}

void writer_go(void)
{
    atomic_store(&stop, false);
    umd_sys_set(NULL);
}

unsigned count_of(const char *text, const char *part)
{
    const char *end = text + strlen(text);
    unsigned n = 0;

    for (const char *s = text; (s = memmem(s, (size_t)(end - s), part, strlen(part))); s += strlen(part)) /* strstr is slow under a sanitizer */
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

struct program { const char *name, *env; };

static void become_program(void *arg)
{
    const struct program *p = arg;
    const struct rlimit no_core = { 0, 0 };
    char env[1024], *save = NULL;

    setrlimit(RLIMIT_CORE, &no_core); /* some die on purpose */
    snprintf(env, sizeof(env), "%s", p->env);
    for (char *s = strtok_r(env, " ", &save); s; s = strtok_r(NULL, " ", &save))
        putenv(s);
    execl("/proc/self/exe", "test", "--run", p->name, (char *)NULL);
    _exit(126);
}

int in_program(const char *name, const char *env, char *text, size_t size)
{
    return in_child(become_program, &(struct program){ name, env }, text, size);
}

bool run_program(int argc, char **argv, const struct run *runs, size_t count, int *status_out)
{
    if (argc != 3 || strcmp(argv[1], "--run") != 0)
        return false;
    *status_out = 127;
    for (size_t i = 0; i < count; i++)
        if (strcmp(argv[2], runs[i].name) == 0)
            *status_out = runs[i].fn();
    return true;
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

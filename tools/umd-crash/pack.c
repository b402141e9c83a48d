/* SPDX-License-Identifier: MIT */
/* pack.c - one file of all that tells of a crash, and the command that hands it on. */
#include "../umd-tool-env.h"
#include "pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "archive.h"
#include "emergency.h"
#include "record.h"
#include "show.h"
#include "umd-text.h"
#include "umd-tool.h"

extern char **environ;

enum { POLL_MS = 20, KILL_AFTER_MS = 2000, FILES_MAX = 64, LOGS_MAX = FILES_MAX - 4 };

/* What went in, for the answer. */
struct bundle {
    struct archive *a;
    char dir[64];
    char names[FILES_MAX][100];
    size_t count;
};

/* The name that it gets in the bundle: two logs of two folders may have one. NULL: no more fit. */
static const char *take_name(struct bundle *b, const char *name)
{
    char *full = b->names[b->count];
    const size_t size = sizeof(b->names[0]);

    if (b->count == FILES_MAX)
        return NULL;
    size_t n_name = strlen(name), room = size - strlen(b->dir) - 2 - 21; /* a number may come before it */
    if (n_name > room)
        name += n_name - room; /* its end tells what it is */
    snprintf(full, size, "%s/%s", b->dir, name);
    for (size_t i = 0, more = 1; i < b->count; i++)
        if (strcmp(b->names[i], full) == 0) {
            snprintf(full, size, "%s/%zu-%s", b->dir, more++, name);
            i = (size_t)-1;
        }
    b->count++;
    return full;
}

static void add(struct bundle *b, const char *name, const void *bytes, size_t n)
{
    const char *full = take_name(b, name);

    if (full)
        archive_add(b->a, full, bytes, n);
}

/* Of a pipe, whose size is known at its end alone. */
static bool add_stream(struct bundle *b, const char *name, FILE *f)
{
    char *bytes = NULL;
    size_t n = 0, room = 0, got;

    do {
        if (n == room) {
            char *more = realloc(bytes, room ? room *= 2 : (room = 65536));
            if (!more) {
                free(bytes);
                errno = ENOMEM;
                return false;
            }
            bytes = more;
        }
        got = fread(bytes + n, 1, room - n, f);
        n += got;
    } while (got);
    bool ok = !ferror(f);
    if (ok)
        add(b, name, bytes, n);
    free(bytes);
    return ok;
}

/* False: it cannot be read; errno says why. */
static bool add_file(struct bundle *b, const char *name, const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rbe");

    if (!f)
        return false;
    const char *full = fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? take_name(b, name) : NULL;
    bool ok = full ? archive_add_file(b->a, full, fileno(f)) : add_stream(b, name, f);
    int err = errno;
    fclose(f);
    errno = err;
    return ok;
}

static bool add_memory(struct bundle *b, const char *name, FILE *f, char **text, size_t *n)
{
    bool ok = f && !ferror(f);

    ok = f && fclose(f) == 0 && ok;
    if (ok)
        add(b, name, *text, *n);
    else
        tool_say("out of memory");
    free(*text);
    return ok;
}

static bool add_story(struct bundle *b, const char *path, const struct crash *c, const struct crash_symbols *s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (f)
        crash_show(f, text_base_name(path), c, s);
    return add_memory(b, "story.txt", f, &text, &n);
}

static bool add_build_ids(struct bundle *b, const struct crash_symbols *s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    for (size_t i = 0; f && i < s->module_count; i++)
        fprintf(f, "%s %s\n", s->modules[i].build_id[0] ? s->modules[i].build_id : "-", s->modules[i].path);
    return add_memory(b, "build-ids.txt", f, &text, &n);
}

/* That of the same process: a later one with its id has another file. */
static bool is_ring_of(const char *path, const struct crash *c)
{
    struct umd_emergency_head head;
    umdErrorDetail unused;
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (umd_emergency_read_head(path, &head) != UMD_SUCCESS) {
        (void)umd_record_export(&unused); /* the caller tells it */
        return false;
    }
    return head.pid == (uint32_t)crash_u64(crash_line(c, "crash"), "pid") && head.start_real_ns <= crash_u64(crash_line(c, "crash"), "real_ns");
}

/* The one that is named, that of the program's settings, or what is found; where there is none the bundle is without, and it is said. */
static bool add_emergency(struct bundle *b, const struct crash *c, const char *named)
{
    const uint32_t pid = (uint32_t)crash_u64(crash_line(c, "crash"), "pid");
    const char *set = env_before("UMD_EMERGENCY_FILE");
    struct umd_emergency_found found[8];

    if (named && !is_ring_of(named, c)) {
        tool_say("%s is no emergency file of process %u that crashed; name another with --emergency, or leave it out", named, pid);
        return false;
    }
    if (named || (set && *set && is_ring_of(set, c)))
        return add_file(b, text_base_name(named ? named : set), named ? named : set);
    const uint32_t n = umd_emergency_find(pid, found, 8);
    for (uint32_t i = 0; i < n; i++) {
        if (is_ring_of(found[i].path, c) && add_file(b, text_base_name(found[i].path), found[i].path))
            return true;
    }
    tool_say("the bundle is without an emergency file: none of process %u is found; name it with --emergency, or set PETREL_STATE_DIR as it was set for the "
             "program (the snapshot has its last records all the same)", pid);
    return true;
}

/* ---- Handing on ---- */

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

static volatile sig_atomic_t interrupted;
static void on_signal(int sig) { interrupted = sig; }

/* Until the child has ended, time is over, or this tool is to end. */
static bool await_child(pid_t pid, uint64_t until_ms, bool heed, int *status_out)
{
    for (;;) {
        pid_t r = waitpid(pid, status_out, WNOHANG);
        if (r == pid || (r < 0 && errno != EINTR))
            return r == pid;
        if (now_ms() >= until_ms || (heed && interrupted))
            return false;
        (void)poll(NULL, 0, POLL_MS);
    }
}

/* The command's group is another than this tool's: what it starts ends with it. 0 or errno. */
static int start(char *line, const char *file, pid_t *pid_out)
{
    char *const argv[] = { "sh", "-c", line, "sh", (char *)file, NULL };
    posix_spawnattr_t attr;
    sigset_t usual;

    posix_spawnattr_init(&attr);
    sigemptyset(&usual);
    sigaddset(&usual, SIGXFSZ); /* which the tool ignores */
    posix_spawnattr_setsigdefault(&attr, &usual);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    int err = posix_spawn(pid_out, "/bin/sh", NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    return err;
}

/* Gives the terminal, where there is one and this tool has it, to a group, so that it may ask there, and Ctrl-C reaches it. */
static void give_terminal(int tty, pid_t group)
{
    if (tty < 0)
        return;
    void (*before)(int) = signal(SIGTTOU, SIG_IGN); /* who is not in front may not, else */
    (void)tcsetpgrp(tty, group);
    signal(SIGTTOU, before);
    if (group != getpgrp())
        (void)kill(-group, SIGCONT); /* it may have asked already */
}

static int own_terminal(void)
{
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (tty >= 0 && tcgetpgrp(tty) == getpgrp())
        return tty;
    if (tty >= 0)
        close(tty);
    return -1;
}

/* True: it has ended by itself. */
static bool run_to_end(pid_t pid, int timeout_s, int *status)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
    const struct sigaction act = { .sa_handler = on_signal };
    const int tty = own_terminal();

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct sigaction was;
        if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(ends[i], &act, NULL);
    }
    give_terminal(tty, pid);
    const bool itself = await_child(pid, now_ms() + (uint64_t)timeout_s * 1000u, true, status);
    if (!itself) {
        kill(-pid, SIGTERM);
        bool ended = await_child(pid, now_ms() + KILL_AFTER_MS, false, status);
        kill(-pid, SIGKILL); /* the shell may be gone before what it has started */
        if (!ended)
            (void)waitpid(pid, status, 0);
    }
    if (tty >= 0) {
        give_terminal(tty, getpgrp());
        close(tty);
    }
    return itself;
}

static int hand_on(const char *command, const char *file, int timeout_s)
{
    size_t n = strlen(command) + 8;
    char *line = malloc(n);
    pid_t pid;
    int status = 0;

    if (!line) {
        tool_say("out of memory; the bundle is %s", file);
        return EXIT_ENVIRONMENT;
    }
    snprintf(line, n, "%s \"$1\"", command);
    (void)env_give_back();
    int err = start(line, file, &pid);
    free(line);
    if (err) {
        tool_say("the command cannot be started: %s; the bundle is %s", strerror(err), file);
        return EXIT_ENVIRONMENT;
    }
    if (!run_to_end(pid, timeout_s, &status)) {
        if (interrupted)
            tool_say("the command was ended by signal %d; the bundle is %s", (int)interrupted, file);
        else
            tool_say("the command took more than %d s and was ended; the bundle is %s", timeout_s, file);
        return EXIT_ENVIRONMENT;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_DONE;
    tool_say("the command failed (%s %d); the bundle is %s", WIFEXITED(status) ? "exit status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), file);
    return EXIT_ENVIRONMENT;
}

static void answer(const struct bundle *b, const char *output, bool json)
{
    if (!json) {
        printf("%s\n", output);
        return;
    }
    struct json_object *o = json_object_new_object(), *files = json_object_new_array();
    json_add_text(o, "bundle", output);
    for (size_t i = 0; i < b->count; i++)
        json_object_array_add(files, json_text(b->names[i]));
    json_object_object_add(o, "files", files);
    json_put_away(o);
}

int crash_pack(const char *path, const struct crash *c, const struct crash_symbols *s, const struct pack_options *options)
{
    struct bundle b = { 0 };
    char output[4400];
    bool ok = true;

    snprintf(b.dir, sizeof(b.dir), "%.60s", text_base_name(path));
    for (size_t i = 0; options->logs && options->logs[i]; i++) {
        if (i == LOGS_MAX)
            return tool_usage("at most %d logs go into a bundle", LOGS_MAX);
    }
    if (options->output)
        snprintf(output, sizeof(output), "%s", options->output);
    else
        snprintf(output, sizeof(output), "%s.tar.gz", text_base_name(path));
    b.a = archive_begin(output);
    if (!b.a) {
        tool_say("%s cannot be written: %s; name another file with --output", output, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    if (!add_file(&b, "snapshot", path)) {
        tool_say("%s cannot be read: %s", path, strerror(errno));
        ok = false;
    }
    ok = ok && add_story(&b, path, c, s) && add_build_ids(&b, s) && add_emergency(&b, c, options->emergency);
    for (size_t i = 0; ok && options->logs && options->logs[i]; i++) {
        if (!add_file(&b, text_base_name(options->logs[i]), options->logs[i])) {
            tool_say("%s cannot be read: %s", options->logs[i], errno == ESTALE ? "it was cut short meanwhile" : strerror(errno));
            ok = false;
        }
    }
    if (!ok) {
        archive_abort(b.a); /* a bundle that was there before stays */
        return EXIT_ENVIRONMENT;
    }
    if (!archive_end(b.a)) {
        tool_say("%s cannot be written: %s; name another file with --output", output, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    answer(&b, output, options->json);
    tool_flush(); /* before what the command says */
    return options->command && *options->command ? hand_on(options->command, output, options->timeout_s) : EXIT_DONE;
}

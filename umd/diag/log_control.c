/* SPDX-License-Identifier: MIT */
/* log_control.c - the control socket: served by the writer thread, between its drains, and never waited for. Protocol: log_control.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log_control.h"
#include "log_control_serve.h"
#include "log_sinks.h"

UMD_LOG_MODULE("diag.control");

#define CLIENTS_MAX 8u
#define IDLE_NS 10000000000ull
#define PAUSE_NS 1000000000ull  /* after accept found no descriptor */
#define EVENTS 16
#define LOCK_MS 1000

struct client {
    int fd;                     /* -1: free */
    uint64_t heard_ns;
    size_t used;
    char in[UMD_CONTROL_LINE_B];
};

static struct umd_mutex lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log control", .rank = 89 };
static struct {
    int listen_fd;
    uint64_t paused_ns;         /* 0: connections are taken */
    struct client clients[CLIENTS_MAX];
} control = { .listen_fd = -1 };            /* under the lock */
static _Atomic(int) epoll_fd = -1;

static socklen_t address_of(struct sockaddr_un *a, uint32_t pid)
{
    *a = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "petrel-control.%u", pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- Open and close ---- */

static int watch(int fd, uint64_t tag)
{
    struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP, .data.u64 = tag };

    return epoll_ctl(atomic_load(&epoll_fd), EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : errno;
}

static void close_client(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->used = 0;
}

static void close_locked(void)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        close_client(&control.clients[i]);
    if (control.listen_fd >= 0)
        close(control.listen_fd);
    control.listen_fd = -1;
    int fd = atomic_exchange(&epoll_fd, -1);
    if (fd >= 0)
        close(fd);
}

/* 0 or errno. */
static int open_locked(void)
{
    struct sockaddr_un name;
    socklen_t n = address_of(&name, (uint32_t)getpid());

    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        control.clients[i].fd = -1;
    control.paused_ns = 0;
    control.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control.listen_fd < 0)
        return errno;
    atomic_store(&epoll_fd, epoll_create1(EPOLL_CLOEXEC));
    if (atomic_load(&epoll_fd) < 0 || bind(control.listen_fd, (const struct sockaddr *)&name, n) < 0 || listen(control.listen_fd, CLIENTS_MAX) < 0)
        return errno;
    return watch(control.listen_fd, CLIENTS_MAX);
}

void umd_log_control_open(void)
{
    int err = 0;

    if (!umd_log_control_wanted() || umd_log_is_sync()) /* stepped, or without a thread: nobody could serve it */
        return;
    if (!umd_mutex_lock_for(&lock, LOCK_MS * 1000000ull))
        return;
    if (control.listen_fd < 0) {
        err = open_locked();
        if (err)
            close_locked();
    }
    umd_mutex_unlock(&lock);
    if (err)
        UMD_LOG(UMD_LOG_WARN, "no control socket errno=%d reason=\"%s\"", err, strerrordesc_np(err));
    else
        umd_log_writer_attend();
}

void umd_log_control_close(void)
{
    if (!umd_mutex_lock_for(&lock, LOCK_MS * 1000000ull))
        return; /* the writer is held up by a sink while it serves a client: the end of the process closes all */
    close_locked();
    umd_mutex_unlock(&lock);
}

/* The child has none until it starts the stack itself; its copies of the parent's go. */
void umd_log_control_atfork(int stage)
{
    static bool locked; /* a command may wait for a sink that blocks: fork does not */

    if (stage == 0) {
        locked = umd_host_lock_for(&lock.m, LOCK_MS * 1000000ull);
        return;
    }
    if (stage == 2 && control.listen_fd >= 0)
        close_locked();
    if (locked)
        pthread_mutex_unlock(&lock.m);
    else if (stage == 2)
        pthread_mutex_init(&lock.m, NULL);
}

/* ---- Commands ---- */

static void tell_change(int which, const char *spec)
{
    char message[UMD_CONTROL_LINE_B + 64];

    snprintf(message, sizeof(message), "levels set by the control socket sink=%s spec=\"%s\"",
             which == UMD_LEVELS_ALL ? "all" : umd_log_sink_kind_of((enum umd_log_sink_id)which)->name, spec);
    umd_log_drain_lock();
    umd_log_sinks_say(UMD_LOG_INFO, message, NULL);
    umd_log_drain_unlock();
}

/* An answer that does not fit is none: half an object. */
static void out_whole(struct umd_out *o, void (*fn)(struct umd_out *o, const char *spec), const char *spec)
{
    UMD_OUT_LIT(o, "ok ");
    fn(o, spec);
    if (o->len >= o->size) {
        o->len = 0;
        UMD_OUT_LIT(o, "error what there is to tell is longer than an answer can be");
    }
}

static void set_levels(struct umd_out *o, int which, const char *spec)
{
    size_t bad;
    char text[160];

    umd_log_drain(); /* what was logged before goes by the levels before */
    if (!umd_log_levels_set(which, spec, UMD_SOURCE_CONTROL, &bad)) {
        snprintf(text, sizeof(text), "error levels are [module=]off|error|warn|info|debug|trace, mistake at position %zu", bad);
        umd_out_str(o, text);
        return;
    }
    tell_change(which, spec);
    out_whole(o, umd_log_status_levels, spec);
}

/* NAME SPEC */
static void set_sink_levels(struct umd_out *o, const char *rest)
{
    size_t n = strcspn(rest, " ");
    const char *spec = rest + n + strspn(rest + n, " ");

    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        const char *name = umd_log_sink_kind_of((enum umd_log_sink_id)i)->name;
        if (strlen(name) != n || memcmp(name, rest, n) != 0)
            continue;
        if (!umd_log_levels_enabled((enum umd_log_sink_id)i)) {
            UMD_OUT_LIT(o, "error the process has no such file: ");
            umd_out_str(o, name);
            return;
        }
        set_levels(o, i, spec);
        return;
    }
    UMD_OUT_LIT(o, "error unknown sink, known are:");
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        umd_out_char(o, ' ');
        umd_out_str(o, umd_log_sink_kind_of((enum umd_log_sink_id)i)->name);
    }
}

/* All that was logged, stories of the disaster log too: served by the writer, this is its own way. */
static void write_all(void)
{
    umd_log_drain();
    umd_log_disaster_tell(umd_log_sink_of(UMD_SINK_DISASTER));
}

static void out_status(struct umd_out *o, const char *unused)
{
    (void)unused;
    umd_log_status(o);
}

/* One line without its end; the answer goes to o, also without. */
static void run(struct umd_out *o, const char *line)
{
    size_t n = strcspn(line, " ");
    const char *rest = line + n + strspn(line + n, " ");

    if (n == 5 && memcmp(line, "level", n) == 0) {
        set_levels(o, UMD_LEVELS_ALL, rest);
    } else if (n == 7 && memcmp(line, "console", n) == 0) {
        set_levels(o, UMD_SINK_CONSOLE, rest);
    } else if (n == 4 && memcmp(line, "sink", n) == 0) {
        set_sink_levels(o, rest);
    } else if (strcmp(line, "flush") == 0) {
        write_all();
        UMD_OUT_LIT(o, "ok");
    } else if (strcmp(line, "reopen") == 0) {
        write_all();
        umd_log_drain_lock();
        umd_log_sinks_reopen();
        umd_log_drain_unlock();
        UMD_OUT_LIT(o, "ok");
    } else if (strcmp(line, "status") == 0) {
        out_whole(o, out_status, NULL);
    } else {
        UMD_OUT_LIT(o, "error unknown command, known are: level SPEC, sink NAME SPEC, console SPEC, reopen, flush, status");
    }
}

/* False: the client does not take its answers. */
static bool answer(int fd, struct umd_out *o)
{
    size_t n = o->len < o->size ? o->len : o->size - 1;

    o->buf[n] = '\n';
    return send(fd, o->buf, n + 1, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)(n + 1);
}

static bool serve_line(struct client *c, char *line)
{
    static char text[UMD_CONTROL_ANSWER_B]; /* under the lock */
    struct umd_out o = { .buf = text, .size = sizeof(text) };

    for (char *s = line; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = ' ';
    size_t n = strlen(line);
    while (n && line[n - 1] == ' ')
        line[--n] = '\0';
    run(&o, line);
    return answer(c->fd, &o);
}

/* A bounded piece of what a client sent; the rest is there at the next round. */
static void hear(struct client *c)
{
    ssize_t got = recv(c->fd, c->in + c->used, sizeof(c->in) - c->used, MSG_DONTWAIT);
    char *end;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || memchr(c->in + c->used, '\0', (size_t)got)) {
        close_client(c);
        return;
    }
    c->heard_ns = umd_sys()->mono_ns();
    c->used += (size_t)got;
    while ((end = memchr(c->in, '\n', c->used))) {
        *end = '\0';
        if (!serve_line(c, c->in)) {
            close_client(c);
            return;
        }
        size_t gone = (size_t)(end - c->in) + 1;
        memmove(c->in, c->in + gone, c->used - gone);
        c->used -= gone;
    }
    if (c->used == sizeof(c->in)) /* longer than a line may be */
        close_client(c);
}

static bool same_user(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

/* A free place, or that of one who has been silent for long. */
static struct client *place(void)
{
    struct client *oldest = &control.clients[0];

    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        if (control.clients[i].fd < 0)
            return &control.clients[i];
        if (control.clients[i].heard_ns < oldest->heard_ns)
            oldest = &control.clients[i];
    }
    if (umd_sys()->mono_ns() - oldest->heard_ns < IDLE_NS)
        return NULL;
    close_client(oldest);
    return oldest;
}

static void take_connection(void)
{
    static const char others[] = "error only the process's own user is heard\n", many[] = "error too many clients\n";
    int fd = accept4(control.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        control.paused_ns = umd_sys()->mono_ns(); /* it stays ready: not to be asked all the time */
        (void)epoll_ctl(atomic_load(&epoll_fd), EPOLL_CTL_DEL, control.listen_fd, NULL);
    }
    if (fd < 0)
        return;
    struct client *c = same_user(fd) ? place() : NULL;
    if (!c) {
        (void)!(same_user(fd) ? send(fd, many, sizeof(many) - 1, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : send(fd, others, sizeof(others) - 1, MSG_DONTWAIT | MSG_NOSIGNAL));
        close(fd);
        return;
    }
    c->fd = fd;
    c->used = 0;
    c->heard_ns = umd_sys()->mono_ns();
    if (watch(fd, (uint64_t)(c - control.clients)) != 0)
        close_client(c);
}

int umd_log_control_fd(void) { return atomic_load(&epoll_fd); }

void umd_log_control_serve(void)
{
    struct epoll_event events[EVENTS];

    umd_mutex_lock(&lock);
    int fd = atomic_load(&epoll_fd);
    if (fd >= 0 && control.paused_ns && umd_sys()->mono_ns() - control.paused_ns > PAUSE_NS) {
        control.paused_ns = 0;
        (void)watch(control.listen_fd, CLIENTS_MAX);
    }
    int n = fd >= 0 ? epoll_wait(fd, events, EVENTS, 0) : 0;
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == CLIENTS_MAX)
            take_connection();
        else if (control.clients[events[i].data.u64].fd >= 0)
            hear(&control.clients[events[i].data.u64]);
    }
    umd_mutex_unlock(&lock);
}

bool umd_log_control_paused(void)
{
    umd_mutex_lock(&lock);
    bool paused = control.paused_ns != 0;
    umd_mutex_unlock(&lock);
    return paused;
}

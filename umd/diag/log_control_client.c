/* SPDX-License-Identifier: MIT */
/* log_control_client.c - asks a running process over its control socket; for umd-log and tests. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "diag_internal.h"
#include "log_control.h"

UMD_LOG_MODULE("diag.control");

/* 0 or errno; *fd_out is the caller's. */
static int connect_to(uint32_t pid, uint32_t timeout_ms, int *fd_out)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct timeval limit = { .tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000 + 1 };
    struct ucred peer;
    socklen_t n = sizeof(peer);

    int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "petrel-control.%u", pid);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    *fd_out = fd;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
        connect(fd, (const struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0)
        return errno == EAGAIN ? ETIMEDOUT : errno;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        return errno;
    return peer.uid == geteuid() && (uint32_t)peer.pid == pid ? 0 : EPERM; /* somebody else took the name */
}

/* One line, without its end. 0 or errno. */
static int receive(int fd, char *buf, size_t size, uint64_t until_ns)
{
    size_t used = 0;

    for (;;) {
        uint64_t now = umd_sys_default()->mono_ns();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int r = poll(&p, 1, now < until_ns ? (int)((until_ns - now) / 1000000u) + 1 : 0);
        if (r == 0)
            return ETIMEDOUT;
        ssize_t got = r < 0 ? -1 : recv(fd, buf + used, size - 1 - used, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return errno;
        char *end = memchr(buf + used, '\n', (size_t)got);
        used += (size_t)got;
        if (end) {
            *end = '\0';
            return 0;
        }
        if (got == 0 || used == size - 1)
            return got == 0 ? ECONNRESET : EMSGSIZE;
    }
}

static int ask(int fd, const char *command, uint32_t timeout_ms, char *line, size_t size)
{
    uint64_t until_ns = umd_sys_default()->mono_ns() + (uint64_t)timeout_ms * 1000000u;
    size_t n = strlen(command);
    char request[UMD_CONTROL_LINE_B];

    memcpy(request, command, n);
    request[n] = '\n';
    if (send(fd, request, n + 1, MSG_NOSIGNAL) != (ssize_t)(n + 1))
        return errno == EAGAIN ? ETIMEDOUT : errno;
    return receive(fd, line, size, until_ns);
}

umdStatus umd_log_control(uint32_t pid, const char *command, uint32_t timeout_ms, char *answer, size_t size)
{
    char line[UMD_CONTROL_ANSWER_B + 1];
    int fd = -1;

    if (!command || !answer || !size)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", command ? "answer" : "command");
    if (strlen(command) > UMD_CONTROL_LINE_B - 2 || strchr(command, '\n'))
        return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=command length_B=%zu max=%u", strlen(command), UMD_CONTROL_LINE_B - 2);
    answer[0] = '\0';
    int err = connect_to(pid, timeout_ms, &fd);
    if (!err)
        err = ask(fd, command, timeout_ms, line, sizeof(line));
    if (fd >= 0)
        close(fd);
    if (err)
        return UMD_FAIL(umd_record_file_code(err), "socket=control pid=%u errno=%d reason=\"%s\"", pid, err,
                        err == ECONNREFUSED ? "the process has no control socket" : strerrordesc_np(err));
    bool ok = strncmp(line, "ok", 2) == 0 && (line[2] == '\0' || line[2] == ' ');
    const char *text = ok ? line + 2 : strncmp(line, "error ", 6) == 0 ? line + 6 : line;
    umd_copy_str(answer, size, text + (ok && *text == ' '));
    return ok ? UMD_SUCCESS : UMD_FAIL(UMD_ERR_CONFIG_VALUE, "command=\"%.200s\" pid=%u reason=\"%.200s\"", command, pid, text);
}

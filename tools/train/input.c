/* SPDX-License-Identifier: MIT */
/* input.c - opens what is to be read: a regular file, so that nobody is waited for. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *input_open(const char *path, const char **why_out)
{
    struct stat st;
    const char *why = NULL;
    FILE *file = NULL;

    /* Not to wait for a writer, where it is a pipe; of a regular file the flag means nothing. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0)
        why = errno == ENXIO ? "it is a device, pipe or socket, not a regular file" : strerror(errno);
    else if (S_ISDIR(st.st_mode))
        why = "it is a directory";
    else if (!S_ISREG(st.st_mode))
        why = "it is a device, pipe or socket, not a regular file";
    else if (!(file = fdopen(fd, "rb")))
        why = strerror(errno);
    if (fd >= 0 && !file)
        close(fd);
    if (why)
        *why_out = why;
    return file;
}

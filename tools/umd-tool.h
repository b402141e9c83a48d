/* SPDX-License-Identifier: MIT */
/* umd-tool.h - what the command-line tools share: output that could not be written, bytes that no terminal should get. */
#ifndef UMD_TOOL_H
#define UMD_TOOL_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOOL_NO_OUTPUT = 2 };

/*
 * First thing in main. A file opened later must not take the number of a standard stream that the caller has closed; what is beyond the limit
 * of file sizes is told by EFBIG, not by a signal that ends the process without a word.
 */
static inline void tool_start(void)
{
    signal(SIGXFSZ, SIG_IGN);
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", O_RDONLY); /* writing to it fails, as it should */
    }
}

/*
 * The file that a fault specification stands for, NULL: it is one itself. "@FILE" and an absolute path are a file everywhere; on a command
 * line the name of a file that exists is, too, and so is what has a '/' but no '=' (then it cannot be read, and that is said).
 */
static inline const char *tool_fault_file(const char *text, bool command_line)
{
    if (text[0] == '@' || text[0] == '/')
        return text + (text[0] == '@');
    return command_line && (access(text, F_OK) == 0 || (strchr(text, '/') && !strchr(text, '='))) ? text : NULL;
}

/* The tools tell what is wrong themselves; lines of the log on the console tell it twice. Set but empty is not set. */
static inline bool tool_wants_console(void)
{
    const char *text = getenv("UMD_LOG_CONSOLE");
    return text && *text;
}

/* Last thing in main: what printf could not write is known only now. Value: the exit status, after one line if output is missing. */
static inline int tool_finish(const char *tool, int status)
{
    errno = 0;
    bool bad = fflush(stdout) != 0;
    int err = errno;

    if (!bad && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: standard output could not be written: %s\n", tool, err ? strerror(err) : "an earlier write failed");
    return status ? status : TOOL_NO_OUTPUT;
}

/* Length of the printable UTF-8 sequence at s, 0 if it is none: control characters and torn sequences are not. */
static inline size_t tool_printable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

    if (n == 0 || s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0))
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

/* In place: what a terminal could take for a command becomes '?'. */
static inline void tool_clean(char *text)
{
    while (*text) {
        size_t n = tool_printable(text);
        if (n == 0)
            *text = '?';
        text += n ? n : 1;
    }
}

/* text ends with a NUL at text[n]. */
static inline bool tool_is_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = text[i] == '\n' || text[i] == '\r' || text[i] == '\t' ? 1 : tool_printable(text + i);
        if (k == 0)
            return false;
        i += k;
    }
    return true;
}

#endif

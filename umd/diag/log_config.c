/* SPDX-License-Identifier: MIT */
/* log_config.c - finds the configuration file and reads section [log] of it, with inih. */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag_internal.h"
#include "log_config.h"

#define FILE_MAX_B (1u << 20)
#define PATH_B 4096u

struct reading {
    void (*each)(void *arg, const struct umd_log_config_entry *e);
    void *arg;
    const char *path;
    const char *at, *end;   /* of the text, not read yet */
    unsigned line;          /* handed out last */
};

static void problem(struct reading *r, const char *key, const char *value, const char *what)
{
    r->each(r->arg, &(struct umd_log_config_entry){
        .section = "log", .key = key, .value = value, .file = r->path, .line = r->line, .problem = what,
    });
}

/* inih's fgets: one call is one line, which is how lines are counted. Blanks in front go, since inih would take them for a continuation. */
static char *next_line(char *buf, int size, void *arg)
{
    struct reading *r = arg;

    if (r->at >= r->end)
        return NULL;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    stop = stop ? stop : r->end;
    while (r->at < stop && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    size_t n = (size_t)(stop - r->at);
    r->line++;
    if (memchr(r->at, '\0', n) || n + 2 > (size_t)size) {
        char begin[32];
        snprintf(begin, sizeof(begin), "%.31s", r->at);
        problem(r, "-", begin, n + 2 > (size_t)size ? "line too long" : "a zero byte in the line");
        n = 0;
    }
    memcpy(buf, r->at, n);
    buf[n] = '\n';
    buf[n + 1] = '\0';
    r->at = stop + 1;
    return buf;
}

static int entry(void *arg, const char *section, const char *key, const char *value)
{
    struct reading *r = arg;

    r->each(r->arg, &(struct umd_log_config_entry){ .section = section, .key = key, .value = value, .file = r->path, .line = r->line });
    return 1;
}

static void parse(struct reading *r)
{
    int bad = ini_parse_stream(next_line, r, entry, r);

    if (bad > 0) {
        r->line = (unsigned)bad;
        problem(r, "-", "", "neither [section] nor key = value");
    } else if (bad < 0) { /* what came before holds */
        problem(r, "PETREL_CONFIG", r->path, "no memory to read it");
    }
}

/* The whole file, ended; NULL with *why_out. */
static char *read_whole(const char *path, size_t *size_out, const char **why_out)
{
    int64_t size = umd_sys()->file_size(path);
    size_t used = 0;

    if (size < 0 || size > FILE_MAX_B) {
        *why_out = size < 0 ? (errno == EINVAL ? "not a file" : strerrordesc_np(errno)) : "larger than 1 MiB";
        return NULL;
    }
    int fd = umd_sys()->open(path, O_RDONLY, 0);
    char *text = fd < 0 ? NULL : umd_diag_alloc((size_t)size + 1);
    if (!text)
        *why_out = strerrordesc_np(errno);
    while (text && used < (size_t)size) {
        ssize_t n = umd_sys()->read(fd, text + used, (size_t)size - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    if (fd >= 0)
        umd_sys()->close(fd);
    *size_out = used;
    return text;
}

/* False: there is none. */
static bool find(char *path, size_t size)
{
    const char *home = secure_getenv("HOME"), *xdg = secure_getenv("XDG_CONFIG_HOME");

    if (xdg && xdg[0] == '/')
        snprintf(path, size, "%s/petrel/petrel.ini", xdg);
    else
        snprintf(path, size, "%s/.config/petrel/petrel.ini", home ? home : "");
    if ((home || xdg) && umd_sys()->file_size(path) >= 0)
        return true;
    snprintf(path, size, "/etc/petrel.ini");
    return umd_sys()->file_size(path) >= 0;
}

void umd_log_config_read(void (*each)(void *arg, const struct umd_log_config_entry *e), void *arg)
{
    const char *named = secure_getenv("PETREL_CONFIG"), *why = NULL;
    char path[PATH_B];
    size_t size = 0;

    if (named ? !*named : !find(path, sizeof(path)))
        return;
    if (named)
        UMD_COPY_STR(path, named);
    struct reading r = { .each = each, .arg = arg, .path = path };
    char *text = read_whole(path, &size, &why);
    if (!text) {
        problem(&r, "PETREL_CONFIG", path, why);
        return;
    }
    r.at = text;
    r.end = text + size;
    parse(&r);
    umd_diag_free(text);
}

/* SPDX-License-Identifier: MIT */
/* crash_file.c - reads a crash snapshot; trusts nothing in it. */
#include "crash_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_encode.h"
#include "snapshot.h"
#include "umd-text.h"

#define FILE_MAX_B (256u << 20)

static char *read_file(const char *path, char *why, size_t size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not hold us up before it is refused */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");

    if (!f || fstat(fileno(f), &st) != 0) {
        snprintf(why, size, "%s", strerror(errno));
        if (f)
            fclose(f);
        else if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_B) {
        snprintf(why, size, "no crash snapshot");
        fclose(f);
        return NULL;
    }
    char *data = malloc((size_t)st.st_size + 1);
    size_t n = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
    const int err = data && ferror(f) ? errno : 0;
    fclose(f);
    if (!data || err) { /* what is there is not all of it, and would look cut short */
        snprintf(why, size, "%s", err ? strerror(err) : "out of memory");
        free(data);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) /* a text has none; a reader of lines would end there */
        if (!data[i])
            data[i] = '?';
    data[n] = '\0';
    return data;
}

static bool add_line(struct crash_section *s, char *line)
{
    if ((s->count & (s->count - 1)) == 0) { /* 0, 1, 2, 4 ...: room for twice as many */
        char **more = realloc(s->lines, (s->count ? 2 * s->count : 1) * sizeof(*more));
        if (!more)
            return false;
        s->lines = more;
    }
    text_clean(line); /* anybody's file; the texts of it are escaped */
    s->lines[s->count++] = line;
    return true;
}

static bool parse(struct crash *c, char *at)
{
    struct crash_section *s = NULL;

    for (char *next; at && *at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        text_clean(at); /* the writer escapes what a terminal should not get; whatever else it is was not written by it */
        size_t n = strlen(at);
        if (n > 2 && at[0] == '[' && at[n - 1] == ']' && !strchr(at, ' ')) {
            at[n - 1] = '\0';
            if (strcmp(at + 1, "end") == 0)
                c->whole = true;
            if (c->section_count == CRASH_SECTIONS)
                return true;
            s = &c->sections[c->section_count++];
            s->name = at + 1;
            text_clean(at);
        } else if (s && !add_line(s, at)) {
            return false;
        }
    }
    return true;
}

bool crash_load(const char *path, struct crash *c, char *why, size_t size)
{
    static const char magic[] = UMD_CRASH_MAGIC "\n";

    *c = (struct crash){ 0 };
    c->data = read_file(path, why, size);
    if (!c->data)
        return false;
    if (strncmp(c->data, magic, sizeof(magic) - 1) != 0) {
        bool other = strncmp(c->data, "petrel-crash ", 13) == 0;
        snprintf(why, size, other ? "a snapshot of another version; this tool reads \"%s\"" : "no crash snapshot; one begins with \"%s\"", UMD_CRASH_MAGIC);
        crash_unload(c);
        return false;
    }
    if (!parse(c, c->data + sizeof(magic) - 1)) {
        snprintf(why, size, "out of memory");
        crash_unload(c);
        return false;
    }
    return true;
}

void crash_unload(struct crash *c)
{
    for (size_t i = 0; i < c->section_count; i++)
        free(c->sections[i].lines);
    free(c->data);
    *c = (struct crash){ 0 };
}

const struct crash_section *crash_section(const struct crash *c, const char *name)
{
    static const struct crash_section none = { .name = "" };

    for (size_t i = 0; i < c->section_count; i++)
        if (strcmp(c->sections[i].name, name) == 0)
            return &c->sections[i];
    return &none;
}

const char *crash_line(const struct crash *c, const char *name)
{
    const struct crash_section *s = crash_section(c, name);

    return s->count ? s->lines[0] : "";
}

/* Where the value of key begins, NULL: nowhere. Text in quotes is stepped over, as it may hold anything. */
static const char *find(const char *line, const char *key)
{
    size_t n = strlen(key);

    for (const char *s = line; *s;) {
        while (*s == ' ')
            s++;
        if (strncmp(s, key, n) == 0 && s[n] == '=')
            return s + n + 1;
        for (bool quoted = false; *s && (quoted || *s != ' '); s++)
            quoted ^= *s == '"';
    }
    return NULL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool crash_text(const char *line, const char *key, char *out, size_t size)
{
    const char *s = find(line, key);
    size_t n = 0;

    out[0] = '\0';
    if (!s)
        return false;
    bool quoted = *s == '"';
    for (s += quoted; *s && *s != (quoted ? '"' : ' ') && n + 1 < size; s++) {
        if (quoted && s[0] == '\\' && s[1] == 'x' && hex_digit(s[2]) >= 0 && hex_digit(s[3]) >= 0) {
            int v = hex_digit(s[2]) * 16 + hex_digit(s[3]);
            out[n++] = v ? (char)v : '?';
            s += 3;
        } else {
            out[n++] = *s;
        }
    }
    out[n] = '\0';
    text_clean(out);
    return true;
}

void crash_message(const char *line, char *out, size_t size)
{
    char fmt[CRASH_TEXT_B];
    uint8_t args[CRASH_TEXT_B];

    if (crash_text(line, "message", out, size) || !crash_text(line, "fmt", fmt, sizeof(fmt)))
        return;
    (void)umd_log_decode(out, size, fmt, args, crash_bytes(line, "args", args, sizeof(args)));
    text_clean(out);
}

uint64_t crash_u64(const char *line, const char *key)
{
    const char *s = find(line, key);

    return s ? strtoull(s, NULL, 0) : 0;
}

int64_t crash_i64(const char *line, const char *key)
{
    const char *s = find(line, key);

    return s ? strtoll(s, NULL, 0) : 0;
}

size_t crash_bytes(const char *line, const char *key, uint8_t *out, size_t size)
{
    const char *s = *key ? find(line, key) : line;
    size_t n = 0;

    for (; s && n < size && hex_digit(s[0]) >= 0 && hex_digit(s[1]) >= 0; s += 2)
        out[n++] = (uint8_t)(hex_digit(s[0]) * 16 + hex_digit(s[1]));
    return n;
}

bool crash_newest(const char *dir, char *path, size_t size)
{
    struct dirent *e;
    struct timespec best = { 0 };
    DIR *d = opendir(dir);
    bool have = false;

    while (d && (e = readdir(d))) {
        char name[4400];
        struct stat st;
        if (strncmp(e->d_name, UMD_CRASH_PREFIX, strlen(UMD_CRASH_PREFIX)) != 0 || strstr(e->d_name, ".tar"))
            continue;
        snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
        if (stat(name, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        bool newer = st.st_mtim.tv_sec != best.tv_sec ? st.st_mtim.tv_sec > best.tv_sec : st.st_mtim.tv_nsec > best.tv_nsec;
        if (!have || newer) {
            best = st.st_mtim;
            have = snprintf(path, size, "%s", name) < (int)size;
        }
    }
    if (d)
        closedir(d);
    return have;
}

/* SPDX-License-Identifier: MIT */
/* state_dir.c - the user's directory for what must outlive a process, and how old files in such a directory are bounded. */
#include "state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REMOVE_MAX 64u  /* files that one call removes */

static bool append(char *out, size_t size, const char *text)
{
    size_t used = strlen(out), n = strlen(text);

    if (used + n >= size)
        return false;
    memcpy(out + used, text, n + 1);
    return true;
}

bool umd_path_join(char *out, size_t size, const char *dir, const char *name)
{
    out[0] = '\0';
    return append(out, size, dir) && append(out, size, "/") && append(out, size, name);
}

static bool with_uid(char *out, size_t size, const char *prefix)
{
    char digits[12];
    size_t at = sizeof(digits) - 1;
    uint32_t uid = (uint32_t)geteuid();

    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + uid % 10);
    while (uid /= 10);
    out[0] = '\0';
    return append(out, size, prefix) && append(out, size, digits + at);
}

bool umd_state_dir(uint32_t index, char *out, size_t size)
{
    const char *own = secure_getenv("PETREL_STATE_DIR"), *run = secure_getenv("XDG_RUNTIME_DIR");

    out[0] = '\0';
    if (own && *own)
        return index == 0 && append(out, size, own);
    switch (index) {
    case 0: return run && *run == '/' && umd_path_join(out, size, run, "petrel");
    case 1: return with_uid(out, size, "/dev/shm/petrel-");
    case 2: return with_uid(out, size, "/tmp/petrel-");
    default: return false;
    }
}

int umd_state_dir_check(const char *path)
{
    struct stat st;

    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int err = fstat(fd, &st) != 0 ? errno : st.st_uid != geteuid() ? EPERM : st.st_mode & 022 ? EACCES : 0;
    close(fd);
    return err;
}

int umd_state_dir_make(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return errno;
    return umd_state_dir_check(path);
}

/* As the kernel lays them out; the C library has no struct for it. */
struct entry {
    uint64_t ino;
    int64_t off;
    uint16_t size_B;
    uint8_t type;
    char name[];
};

struct walk {
    const char *dir, *prefix;
    void (*fn)(void *arg, const struct umd_state_file *file);
    void *arg;
};

static void visit(const struct walk *w, const char *name)
{
    char path[UMD_STATE_PATH_B];
    struct stat st;

    if (strncmp(name, w->prefix, strlen(w->prefix)) != 0 || !umd_path_join(path, sizeof(path), w->dir, name))
        return;
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    w->fn(w->arg, &(struct umd_state_file){
        .path = path, .name = name, .size_B = (uint64_t)st.st_size,
        .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec,
    });
}

bool umd_state_files(const char *dir, const char *prefix, void (*fn)(void *arg, const struct umd_state_file *file), void *arg)
{
    const struct walk w = { dir, prefix, fn, arg };
    char buf[2048] __attribute__((aligned(8)));
    long n;

    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
        for (long at = 0; at < n; at += ((const struct entry *)(buf + at))->size_B)
            visit(&w, ((const struct entry *)(buf + at))->name);
    close(fd);
    return n == 0;
}

struct oldest {
    bool (*old)(const struct umd_state_file *file);
    uint32_t count;
    uint64_t mtime_ns;
    char path[UMD_STATE_PATH_B];
};

static void note_oldest(void *arg, const struct umd_state_file *file)
{
    struct oldest *o = arg;

    if (o->old && !o->old(file))
        return;
    if (o->count++ == 0 || file->mtime_ns < o->mtime_ns) {
        o->mtime_ns = file->mtime_ns;
        o->path[0] = '\0';
        (void)append(o->path, sizeof(o->path), file->path);
    }
}

void umd_state_files_keep(const char *dir, const char *prefix, uint32_t keep, bool (*old)(const struct umd_state_file *file))
{
    for (uint32_t i = 0; i < REMOVE_MAX; i++) {
        struct oldest o = { .old = old };
        if (!umd_state_files(dir, prefix, note_oldest, &o) || o.count <= keep || (unlink(o.path) != 0 && errno != ENOENT))
            return;
    }
}

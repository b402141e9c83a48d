/* SPDX-License-Identifier: MIT */
/* emergency_file.c - the emergency ring's file: making it, naming it, bounding the old ones, reading it back. */
#include "emergency_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "diag_internal.h"
#include "state_dir.h"

UMD_LOG_MODULE("diag.emergency");

#define STEM "emergency"
#define PREFIX STEM "."
#define VERSION 2u
#define CRC_FROM offsetof(struct umd_emergency_slot, seq)
#define FIND_MAX 64u
#define CLAIM_TRIES 4u      /* others that start meanwhile */
static const char magic[8] = { 'P', 'T', 'R', 'L', 'E', 'M', 'R', 'G' };

_Static_assert(sizeof(struct umd_emergency_slot) == 896, "the slot is a file format");
_Static_assert(sizeof(struct umd_emergency_head) == 72, "the head is a file format");

uint32_t umd_emergency_crc(const struct umd_emergency_slot *s)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)s + CRC_FROM, (uInt)(sizeof(*s) - CRC_FROM));
}

/* Like the library's memory, the default file is no fault site: a plan aims at the driver's files. A test's own table counts. */
static int open_at(bool plan, const char *path, int flags, unsigned mode)
{
    return plan || umd_sys() != umd_sys_default() ? umd_sys()->open(path, flags, mode) : open(path, flags | O_CLOEXEC, mode);
}

static ssize_t write_to(bool plan, int fd, const void *buf, size_t n)
{
    return plan || umd_sys() != umd_sys_default() ? umd_sys()->write(fd, buf, n) : umd_sys_write_plain(fd, buf, n);
}

static void *map(bool plan, int fd)
{
    if (plan || umd_sys() != umd_sys_default())
        return umd_sys()->mmap(NULL, UMD_EMERGENCY_MAP_B, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return mmap(NULL, UMD_EMERGENCY_MAP_B, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Field 22 of /proc/PID/stat: clock ticks from boot to the start of the process. 0: unknown. */
static uint64_t start_ticks(uint32_t pid)
{
    char path[32] = "/proc/", text[512];
    size_t at = 6;
    uint64_t ticks = 0;

    for (uint32_t div = 1000000000u; div; div /= 10)
        if (pid / div || div == 1)
            path[at++] = (char)('0' + pid / div % 10);
    memcpy(path + at, "/stat", 6);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *s = strrchr(text, ')'); /* the name may hold blanks; the state behind it is field 3 */
    for (int field = 2; s && field < 22; field++)
        s = strchr(s + 1, ' ');
    for (s = s ? s + 1 : ""; *s >= '0' && *s <= '9'; s++)
        ticks = ticks * 10 + (uint64_t)(*s - '0');
    return ticks;
}

/* Of the process: the thread that puts the first record may have a name of its own. */
static void program_name(char out[16])
{
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, 15);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        prctl(PR_GET_NAME, out);
    else
        out[out[n - 1] == '\n' ? n - 1 : n] = '\0';
}

void umd_emergency_init_head(uint8_t *base)
{
    struct umd_emergency_head *head = (struct umd_emergency_head *)base;

    *head = (struct umd_emergency_head){
        .version = VERSION, .slot_size_B = sizeof(struct umd_emergency_slot), .slot_count = UMD_EMERGENCY_SLOTS,
        .pid = (uint32_t)getpid(), .start_real_ns = umd_sys()->real_ns(),
    };
    UMD_COPY_STR(head->program_version, PETREL_VERSION);
    program_name(head->program);
    memcpy(head->magic, magic, sizeof(magic));
}

static int write_zeros(bool plan, int fd)
{
    static const uint8_t zeros[65536];

    for (size_t left = UMD_EMERGENCY_MAP_B; left;) {
        ssize_t n = write_to(plan, fd, zeros, left < sizeof(zeros) ? left : sizeof(zeros));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        left -= (size_t)n;
    }
    return 0;
}

static bool read_all(int fd, void *buf, size_t n)
{
    for (uint8_t *at = buf; n;) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool head_is_good(const struct umd_emergency_head *head)
{
    return memcmp(head->magic, magic, sizeof(magic)) == 0 && head->version == VERSION &&
        head->slot_size_B == sizeof(struct umd_emergency_slot) && head->slot_count == UMD_EMERGENCY_SLOTS;
}

static bool read_head(int fd, struct umd_emergency_head *head_out) { return read_all(fd, head_out, sizeof(*head_out)) && head_is_good(head_out); }

/* The process that has made the file still runs, as far as this PID namespace tells. */
static bool head_lives(const struct umd_emergency_head *head)
{
    return head->start_ticks && head->start_ticks == start_ticks(head->pid);
}

/*
 * Whoever has the lock of the file that a path names owns it. The lock belongs to the open file, which the mapping keeps when the descriptor
 * is closed: it goes with the process, and is seen from another PID namespace. 0, EBUSY: another has it, ENOLCK: no locks there.
 */
static int lock_file(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? EBUSY : ENOLCK;
}

static bool is_locked(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

static bool is_at(int fd, const char *path)
{
    struct stat mine, there;

    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* What a process before has left at path becomes path.1. 0, or EBUSY: its process lives. Whatever else is wrong shows when the file is made. */
static int put_aside(const char *path, bool plan)
{
    struct umd_emergency_head head;
    char old[UMD_STATE_PATH_B + 2];
    struct stat st;
    size_t n = strlen(path);

    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (plan ? 0 : O_NOFOLLOW));
    bool may_write = fd >= 0;
    if (!may_write)
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (plan ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return 0;
    bool there = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int err = !there ? 0 : may_write ? lock_file(fd) : is_locked(fd) ? EBUSY : ENOLCK;
    if (err == ENOLCK)
        err = read_head(fd, &head) && head.pid != (uint32_t)getpid() && head_lives(&head) ? EBUSY : 0;
    if (!err && there && st.st_size > 0 && is_at(fd, path)) {
        bool fits = n + 3 <= sizeof(old);
        if (fits) {
            memcpy(old, path, n);
            memcpy(old + n, ".1", 3);
        }
        if ((!fits || umd_sys()->rename(path, old) != 0) && may_write)
            (void)umd_sys_truncate(fd, 0); /* overwritten: this run's records matter more */
    }
    close(fd);
    return err;
}

/* The new file is this process's: no other has taken it, or put it aside, since it was opened. 0, EBUSY, or EAGAIN: once more. */
static int claim(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return S_ISCHR(st.st_mode) ? 0 : EINVAL; /* of a device the map tells what is wrong */
    if (lock_file(fd) == EBUSY)
        return EBUSY;
    return is_at(fd, path) && fstat(fd, &st) == 0 && st.st_size == 0 ? 0 : EAGAIN;
}

/* Opens the file at path, empty and claimed. 0 or errno; EBUSY: another process has it, or was quicker each time. */
static int open_own(const char *path, bool plan, int *fd_out)
{
    int err = EAGAIN;

    for (uint32_t tries = 0; tries < CLAIM_TRIES && err == EAGAIN; tries++) {
        err = put_aside(path, plan);
        if (err)
            break;
        int fd = open_at(plan, path, O_RDWR | O_CREAT | (plan ? 0 : O_NOFOLLOW), plan ? 0644 : 0600);
        if (fd < 0)
            return errno;
        err = claim(fd, path);
        if (err)
            umd_sys()->close(fd);
        else
            *fd_out = fd;
    }
    return err == EAGAIN ? EBUSY : err;
}

static int map_at(const char *path, bool plan, uint8_t **base_out)
{
    int fd = -1;
    int err = open_own(path, plan, &fd);

    if (err)
        return err;
    err = write_zeros(plan, fd);
    if (!err) {
        void *m = map(plan, fd);
        if (m == MAP_FAILED)
            err = errno;
        else
            *base_out = m;
    }
    if (err && umd_sys()->file_size(path) >= 0) /* a device is not ours to remove */
        umd_sys()->unlink(path);
    umd_sys()->close(fd);
    if (!err) {
        umd_emergency_init_head(*base_out);
        ((struct umd_emergency_head *)*base_out)->start_ticks = start_ticks((uint32_t)getpid());
    }
    return err;
}

static bool append_number(char *path, size_t size, uint64_t number)
{
    char digits[24];
    size_t at = sizeof(digits) - 1, used = strlen(path);

    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    digits[--at] = '.';
    if (used + sizeof(digits) - at > size)
        return false;
    memcpy(path + used, digits + at, sizeof(digits) - at);
    return true;
}

int umd_emergency_map_file(char *path, size_t size, bool plan, uint8_t **base_out)
{
    const uint32_t pid = (uint32_t)getpid();
    int err = map_at(path, plan, base_out);

    /* Another process has it. The same again under path.PID: one of another PID namespace. */
    if (err == EBUSY && append_number(path, size, pid))
        err = map_at(path, plan, base_out);
    if (err == EBUSY && append_number(path, size, start_ticks(pid)))
        err = map_at(path, plan, base_out);
    return err;
}

void umd_emergency_let_go(uint8_t *base)
{
    (void)mmap(base, UMD_EMERGENCY_MAP_B, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* ---- Whose file is it ---- */

/* Process of emergency.PID; *whole_out false: emergency.PID.N, of a program that is gone whoever has the id now. 0: another name. */
static uint32_t pid_of(const char *name, bool *whole_out)
{
    const char *s = name + sizeof(PREFIX) - 1;
    uint64_t pid = 0;

    for (; *s >= '0' && *s <= '9' && pid < UINT32_MAX; s++)
        pid = pid * 10 + (uint64_t)(*s - '0');
    *whole_out = *s == '\0';
    return (*s == '\0' || *s == '.') && pid <= INT32_MAX ? (uint32_t)pid : 0;
}

/* A process that has just opened its file has neither lock nor head in it yet: then the id alone counts. */
static bool alive(const struct umd_state_file *file)
{
    struct umd_emergency_head head = { 0 };
    bool whole;
    uint32_t pid = pid_of(file->name, &whole);
    int fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool locked = fd >= 0 && is_locked(fd), have = fd >= 0 && !locked && read_head(fd, &head);

    if (fd >= 0)
        close(fd);
    if (locked)
        return true;
    if (!pid || !whole || (kill((pid_t)pid, 0) != 0 && errno != EPERM))
        return false;
    return !have || !head.start_ticks || head.start_ticks == start_ticks(pid);
}

static bool dead(const struct umd_state_file *file)
{
    bool whole;

    return pid_of(file->name, &whole) != 0 && !alive(file);
}

int umd_emergency_map_default(uint8_t **base_out, char *path_out, size_t size)
{
    char dir[UMD_STATE_PATH_B];
    int err = ENOENT;

    path_out[0] = '\0';
    for (uint32_t i = 0; i < UMD_STATE_DIRS; i++) {
        if (!umd_state_dir(i, dir, sizeof(dir)))
            continue;
        umd_copy_str(path_out, size, dir);
        err = umd_state_dir_make(dir);
        if (!err && !(umd_path_join(path_out, size, dir, STEM) && append_number(path_out, size, (uint32_t)getpid())))
            err = ENAMETOOLONG;
        if (!err)
            err = map_at(path_out, false, base_out);
        if (err == EBUSY && append_number(path_out, size, start_ticks((uint32_t)getpid()))) /* of one in another PID namespace */
            err = map_at(path_out, false, base_out);
        if (!err) {
            umd_state_files_keep(dir, PREFIX, UMD_EMERGENCY_KEEP, dead);
            return 0;
        }
    }
    return err;
}

uint8_t *umd_emergency_map_memory(void)
{
    int fd = umd_sys() == umd_sys_default() ? memfd_create("petrel-emergency", MFD_CLOEXEC) : umd_sys()->memfd_create("petrel-emergency", UMD_EMERGENCY_MAP_B);

    if (fd < 0)
        return NULL;
    void *m = umd_sys_truncate(fd, UMD_EMERGENCY_MAP_B) == 0 ? map(false, fd) : MAP_FAILED;
    close(fd);
    if (m == MAP_FAILED)
        return NULL;
    umd_emergency_init_head(m);
    return m;
}

/* ---- Reading ---- */

static int by_seq(const void *a, const void *b)
{
    const struct umd_emergency_slot *x = a, *y = b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Opens, and reads the page of the head. Value: the descriptor; -1: *st_out says why. */
static int open_ring(const char *path, struct umd_emergency_head *head_out, umdStatus *st_out)
{
    uint8_t page[UMD_EMERGENCY_PAGE_B];

    int fd = umd_sys()->open(path, O_RDONLY, 0);
    if (fd < 0) {
        *st_out = UMD_FAIL(umd_record_file_code(errno), "path=\"%.300s\" errno=%d reason=\"%s\"", path, errno, strerrordesc_np(errno));
        return -1;
    }
    bool ok = read_all(fd, page, sizeof(page));
    memcpy(head_out, page, sizeof(*head_out));
    head_out->program[sizeof(head_out->program) - 1] = '\0'; /* whatever the file says */
    head_out->program_version[sizeof(head_out->program_version) - 1] = '\0';
    if (ok && head_is_good(head_out))
        return fd;
    umd_sys()->close(fd);
    *st_out = UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.300s\" reason=\"no emergency ring of this version\"", path);
    return -1;
}

umdStatus umd_emergency_read_head(const char *path, struct umd_emergency_head *head_out)
{
    struct umd_emergency_head head;
    umdStatus st = UMD_SUCCESS;

    if (!path || !head_out)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", path ? "head_out" : "path");
    int fd = open_ring(path, &head, &st);
    if (fd < 0)
        return st;
    umd_sys()->close(fd);
    *head_out = head;
    return UMD_SUCCESS;
}

umdStatus umd_emergency_read(const char *path, struct umd_emergency_slot *slots_out, uint32_t max, uint32_t *count_out, uint32_t *damaged_out)
{
    struct umd_emergency_head head;
    uint32_t count = 0, damaged = 0;
    umdStatus st = UMD_SUCCESS;

    if (!path || !slots_out || !count_out || !damaged_out)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", path ? "output" : "path");
    int fd = open_ring(path, &head, &st);
    if (fd < 0)
        return st;
    for (uint32_t i = 0; i < UMD_EMERGENCY_SLOTS; i++) {
        struct umd_emergency_slot s;
        if (!read_all(fd, &s, sizeof(s))) {
            damaged += UMD_EMERGENCY_SLOTS - i;
            break;
        }
        if (s.seq && s.crc == umd_emergency_crc(&s)) {
            if (count < max)
                memcpy(&slots_out[count++], &s, sizeof(s));
        } else if (s.seq || s.crc) {
            damaged++;
        }
    }
    umd_sys()->close(fd);
    qsort(slots_out, count, sizeof(*slots_out), by_seq);
    *count_out = count;
    *damaged_out = damaged;
    return UMD_SUCCESS;
}

/* ---- Finding ---- */

struct search {
    uint32_t pid, count;
    struct umd_emergency_found *all; /* FIND_MAX, newest first */
};

static void note_file(void *arg, const struct umd_state_file *file)
{
    struct search *s = arg;
    bool whole;
    uint32_t pid = pid_of(file->name, &whole), at = 0;

    if (!pid || (s->pid && pid != s->pid))
        return;
    while (at < s->count && s->all[at].mtime_ns >= file->mtime_ns)
        at++;
    if (at == FIND_MAX)
        return;
    uint32_t behind = (s->count < FIND_MAX ? s->count : FIND_MAX - 1) - at;
    memmove(&s->all[at + 1], &s->all[at], behind * sizeof(s->all[0]));
    s->all[at] = (struct umd_emergency_found){ .pid = pid, .alive = alive(file), .mtime_ns = file->mtime_ns };
    UMD_COPY_STR(s->all[at].path, file->path);
    s->count += s->count < FIND_MAX;
}

uint32_t umd_emergency_find(uint32_t pid, struct umd_emergency_found *found_out, uint32_t max)
{
    char dir[UMD_STATE_PATH_B];
    struct search s = { .pid = pid };

    s.all = umd_diag_alloc(FIND_MAX * sizeof(s.all[0]));
    if (!s.all)
        return 0;
    for (uint32_t i = 0; i < UMD_STATE_DIRS; i++)
        if (umd_state_dir(i, dir, sizeof(dir)) && umd_state_dir_check(dir) == 0)
            (void)umd_state_files(dir, PREFIX, note_file, &s);
    uint32_t n = s.count < max ? s.count : max;
    if (n)
        memcpy(found_out, s.all, n * sizeof(*found_out));
    umd_diag_free(s.all);
    return n;
}

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
#include <unistd.h>
#include <zlib.h>

#include "diag_internal.h"
#include "state_dir.h"

UMD_LOG_MODULE("diag.emergency");

#define PREFIX "emergency."
#define VERSION 2u
#define CRC_FROM offsetof(struct umd_emergency_slot, seq)
#define FIND_MAX 64u
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
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        left -= (size_t)n;
    }
    return 0;
}

int umd_emergency_map_file(const char *path, bool plan, uint8_t **base_out)
{
    char old[UMD_STATE_PATH_B + 2];
    int err = 0;

    size_t n = strlen(path);
    if (n + 3 <= sizeof(old) && umd_sys()->file_size(path) > 0) {
        memcpy(old, path, n);
        memcpy(old + n, ".1", 3);
        umd_sys()->rename(path, old); /* failing, it is overwritten: this run's records matter more */
    }
    int fd = open_at(plan, path, O_RDWR | O_CREAT | O_TRUNC | (plan ? 0 : O_NOFOLLOW), plan ? 0644 : 0600);
    if (fd < 0)
        return errno;
    err = write_zeros(plan, fd);
    if (!err) {
        void *m = map(plan, fd);
        if (m == MAP_FAILED)
            err = errno;
        else
            *base_out = m;
    }
    umd_sys()->close(fd);
    if (err && umd_sys()->file_size(path) >= 0) /* a device or pipe is not ours to remove */
        umd_sys()->unlink(path);
    if (!err) {
        umd_emergency_init_head(*base_out);
        ((struct umd_emergency_head *)*base_out)->start_ticks = start_ticks((uint32_t)getpid());
    }
    return err;
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

/* A process that has just opened its file has no head in it yet: then the id alone counts. */
static bool alive(const struct umd_state_file *file)
{
    struct umd_emergency_head head = { 0 };
    bool whole;
    uint32_t pid = pid_of(file->name, &whole);

    if (!pid || !whole || (kill((pid_t)pid, 0) != 0 && errno != EPERM))
        return false;
    int fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool have = fd >= 0 && read_all(fd, &head, sizeof(head)) && head_is_good(&head);
    if (fd >= 0)
        close(fd);
    return !have || !head.start_ticks || head.start_ticks == start_ticks(pid);
}

static bool dead(const struct umd_state_file *file)
{
    bool whole;

    return pid_of(file->name, &whole) != 0 && !alive(file);
}

int umd_emergency_map_default(uint8_t **base_out, char *path_out, size_t size)
{
    char dir[UMD_STATE_PATH_B], name[sizeof(PREFIX) + 12] = PREFIX;
    uint32_t pid = (uint32_t)getpid();
    size_t at = sizeof(PREFIX) - 1;
    int err = ENOENT;

    for (uint32_t div = 1000000000u; div; div /= 10)
        if (pid / div || div == 1)
            name[at++] = (char)('0' + pid / div % 10);
    path_out[0] = '\0';
    for (uint32_t i = 0; i < UMD_STATE_DIRS; i++) {
        if (!umd_state_dir(i, dir, sizeof(dir)))
            continue;
        umd_copy_str(path_out, size, dir);
        err = umd_state_dir_make(dir);
        if (!err && !umd_path_join(path_out, size, dir, name))
            err = ENAMETOOLONG;
        if (!err)
            err = umd_emergency_map_file(path_out, false, base_out);
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
        *st_out = UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.300s\" errno=%d reason=\"%s\"", path, errno, strerrordesc_np(errno));
        return -1;
    }
    bool ok = read_all(fd, page, sizeof(page));
    memcpy(head_out, page, sizeof(*head_out));
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

/* SPDX-License-Identifier: MIT */
/* profile.c - reads device profiles (INI); one table says which keys exist and what is sane. */
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.profile");

#define HW_PROFILE_DEFAULT "petrel-p1"
#define HW_PROFILE_FILE_MAX 65536u

extern const char hw_profile_petrel_p1[]; /* generated from profiles/petrel-p1.ini */

/* KEY(section, key, member, smallest, largest) */
#define HW_PROFILE_KEYS(KEY)                                          \
    KEY("device", "clock_khz", clock_khz, 1000, 10000000)             \
    KEY("device", "vram_B", vram_B, 1 << 20, 1ll << 40)               \
    KEY("device", "sysmem_B", sysmem_B, 1 << 20, 1ll << 40)           \
    KEY("cu", "cu_count", cu.cu_count, 1, 256)                        \
    KEY("cu", "warps_per_cu", cu.warps_per_cu, 1, 64)                 \
    KEY("cu", "local_B", cu.local_B, 1024, 1 << 20)                   \
    KEY("cu", "regs_per_cu", cu.regs_per_cu, 64, 1 << 16)             \
    KEY("cu", "issue_per_cycle", cu.issue_per_cycle, 1, 16)           \
    KEY("latency", "alu", cu.lat_alu, 1, 100000)                      \
    KEY("latency", "mul", cu.lat_mul, 1, 100000)                      \
    KEY("latency", "div", cu.lat_div, 1, 100000)                      \
    KEY("latency", "fp", cu.lat_fp, 1, 100000)                        \
    KEY("latency", "fdiv", cu.lat_fdiv, 1, 100000)                    \
    KEY("latency", "special", cu.lat_special, 1, 100000)              \
    KEY("latency", "local", cu.lat_local, 1, 100000)                  \
    KEY("latency", "l1", cu.lat_l1, 1, 100000)                        \
    KEY("latency", "l2", cu.lat_l2, 1, 100000)                        \
    KEY("latency", "dram", cu.lat_dram, 1, 100000)                    \
    KEY("latency", "link", cu.lat_link, 1, 1000000)                   \
    KEY("cache", "l1_B", cu.l1_B, 128, 1 << 24)                       \
    KEY("cache", "l2_B", cu.l2_B, 128, 1 << 28)                       \
    KEY("memory", "dram_B_per_clk", cu.dram_B_per_clk, 1, 65536)      \
    KEY("memory", "link_B_per_clk", link_B_per_clk, 1, 65536)         \
    KEY("engine", "sdma_B_per_clk", sdma_B_per_clk, 1, 65536)         \
    KEY("engine", "packet_clk", packet_clk, 1, 1000000)               \
    KEY("engine", "launch_clk", launch_clk, 1, 10000000)              \
    KEY("engine", "slice_clk", slice_clk, 100, 10000000)              \
    KEY("engine", "fw_boot_ns", fw_boot_ns, 1, 10000000000ll)         \
    KEY("engine", "selftest_ns", selftest_ns, 1, 10000000000ll)       \
    KEY("host", "threads", cu.host_threads, 1, HW_CU_THREADS_MAX)

static const struct hw_profile_key {
    const char *section, *key;
    size_t offset, width_B;
    uint64_t min, max;
} hw_profile_keys[] = {
#define KEY(section_, key_, member_, min_, max_) \
    { section_, key_, offsetof(struct hw_profile, member_), sizeof(((struct hw_profile *)0)->member_), min_, max_ },
    HW_PROFILE_KEYS(KEY)
#undef KEY
};
#define HW_PROFILE_KEY_COUNT (sizeof(hw_profile_keys) / sizeof(hw_profile_keys[0]))

/* One parse: where figures go, and what was wrong first. */
struct hw_profile_parse {
    struct hw_profile *profile;
    const char *source;
    umdStatus st;
    bool seen[HW_PROFILE_KEY_COUNT];
};

static void profile_store(struct hw_profile *profile, const struct hw_profile_key *k, uint64_t v)
{
    uint8_t *at = (uint8_t *)profile + k->offset;
    if (k->width_B == 8) {
        memcpy(at, &v, 8);
    } else {
        uint32_t v32 = (uint32_t)v;
        memcpy(at, &v32, 4);
    }
}

/* inih: 1 accepts the line; 0 makes ini_parse_string report its number. */
static int profile_line(void *user, const char *section, const char *key, const char *value)
{
    struct hw_profile_parse *parse = user;
    if (parse->st < 0)
        return 1; /* the first mistake is the one to report */
    for (size_t i = 0; i < HW_PROFILE_KEY_COUNT; i++) {
        const struct hw_profile_key *k = &hw_profile_keys[i];
        if (strcmp(k->section, section) != 0 || strcmp(k->key, key) != 0)
            continue;
        char *end = NULL;
        errno = 0;
        uint64_t v = strtoull(value, &end, 0);
        if (errno != 0 || end == value || *end != '\0' || value[0] == '-' || v < k->min || v > k->max) {
            parse->st = UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=%s.%s value=\"%.40s\" min=%" PRIu64 " max=%" PRIu64 " profile=\"%s\"",
                                 section, key, value, k->min, k->max, parse->source);
            return 0;
        }
        profile_store(parse->profile, k, v);
        parse->seen[i] = true;
        return 1;
    }
    parse->st = UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=%.40s.%.40s expected=\"a key of the profile\" profile=\"%s\"", section, key, parse->source);
    return 0;
}

static umdStatus profile_parse(const char *text, const char *source, bool whole, struct hw_profile *profile)
{
    struct hw_profile_parse parse = { .profile = profile, .source = source, .st = UMD_SUCCESS };
    int line = ini_parse_string(text, profile_line, &parse);
    if (parse.st < 0)
        return parse.st;
    if (line != 0)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=profile value=\"%s\" line=%d expected=\"[section], or name = value\"", source, line);
    for (size_t i = 0; whole && i < HW_PROFILE_KEY_COUNT; i++) {
        if (!parse.seen[i])
            return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=%s.%s value=missing min=%" PRIu64 " max=%" PRIu64 " profile=\"%s\"", hw_profile_keys[i].section,
                            hw_profile_keys[i].key, hw_profile_keys[i].min, hw_profile_keys[i].max, source);
    }
    return UMD_SUCCESS;
}

/* Whole file as a string that the caller frees. */
static umdStatus profile_read(const char *path, char **text_out)
{
    const struct umd_sys *sys = umd_sys();
    int fd = sys->open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=profile value=\"%s\" errno=%d expected=\"" HW_PROFILE_DEFAULT " or a path\"", path, errno);
    char *text = umd_alloc(HW_PROFILE_FILE_MAX + 1);
    if (!text) {
        sys->close(fd);
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    }
    size_t have = 0;
    ssize_t got = 0;
    while (have < HW_PROFILE_FILE_MAX && (got = sys->read(fd, text + have, HW_PROFILE_FILE_MAX - have)) > 0)
        have += (size_t)got;
    int error = errno;
    sys->close(fd);
    if (got < 0 || have == HW_PROFILE_FILE_MAX || memchr(text, 0, have)) {
        umd_free(text);
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=profile value=\"%s\" errno=%d size_B=%zu expected=\"a text file\"", path, got < 0 ? error : 0, have);
    }
    text[have] = '\0';
    *text_out = text;
    return UMD_SUCCESS;
}

umdStatus hw_profile_load(const char *name, struct hw_profile *profile_out)
{
    struct hw_profile profile = { 0 };
    umdStatus st = profile_parse(hw_profile_petrel_p1, HW_PROFILE_DEFAULT, true, &profile);
    if (st < 0)
        return st;
    if (name && strcmp(name, HW_PROFILE_DEFAULT) != 0) {
        char *text = NULL;
        st = profile_read(name, &text);
        if (st < 0)
            return st;
        st = profile_parse(text, name, false, &profile);
        umd_free(text);
        if (st < 0)
            return st;
    }
    UMD_LOG(UMD_LOG_DEBUG, "profile loaded clock_khz=%u cu_count=%u", profile.clock_khz, profile.cu.cu_count);
    *profile_out = profile;
    return UMD_SUCCESS;
}

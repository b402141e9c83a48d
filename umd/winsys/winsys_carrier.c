/* SPDX-License-Identifier: MIT */
/* winsys_carrier.c - finds the kernel driver's module, loads it, and calls it in record scopes of its own. */
#include "winsys_carrier.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("winsys.carrier");

#define KMD_FILE "libpetrel_kmd.so"

/* Folder of this library, without the last slash; false where the loader does not know. */
static bool own_folder(char *buf, size_t size)
{
    Dl_info info;

    if (!dladdr((const void *)(uintptr_t)umd_carrier_init, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int n = slash ? (int)(slash - info.dli_fname) : 1;
    int len = snprintf(buf, size, "%.*s", n, slash ? info.dli_fname : ".");
    return len >= 0 && (size_t)len < size;
}

/* An explicit path is the only one tried; else beside this library, then where the build tree has it. */
static void *load(char *error, size_t error_size)
{
    static const char *const places[] = { "%s/" KMD_FILE, "%s/../kmd_sim/" KMD_FILE };
    const char *env = secure_getenv("PETREL_KMD");
    char folder[3072], path[4096];
    void *so = NULL;

    if (env && *env) {
        so = dlopen(env, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!so)
            snprintf(error, error_size, "%s", dlerror());
        return so;
    }
    if (!own_folder(folder, sizeof(folder))) {
        snprintf(error, error_size, "the folder of this library is not known");
        return NULL;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !so; i++) {
        snprintf(path, sizeof(path), i ? places[1] : places[0], folder);
        so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!so && !error[0]) {
            const char *why = dlerror();
            snprintf(error, error_size, "%s", why ? why : "unknown");
        } else if (!so && strstr(error, "No such file")) {
            const char *why = dlerror();
            if (why && !strstr(why, "No such file"))
                snprintf(error, error_size, "%s", why);
        }
    }
    return so;
}

static umdStatus load_kmd(const struct petrel_kmd_ops **kmd_out)
{
    char error[256] = "";
    petrel_kmd_entry_fn entry;
    void *so = load(error, sizeof(error));

    if (!so)
        return UMD_FAIL(UMD_ERR_INIT_CARRIER, "module=" KMD_FILE " reason=\"%s\"", error);
    void *sym = dlsym(so, PETREL_KMD_ENTRY_SYMBOL);
    if (!sym)
        return UMD_FAIL(UMD_ERR_INIT_CARRIER, "module=" KMD_FILE " reason=\"no symbol " PETREL_KMD_ENTRY_SYMBOL "\"");
    memcpy(&entry, &sym, sizeof(entry));
    const struct petrel_kmd_ops *kmd = entry();
    if (!kmd || kmd->abi != PETREL_KMD_ABI)
        return UMD_FAIL(UMD_ERR_INIT_CARRIER, "module=" KMD_FILE " reason=version abi=%u expected=%u", kmd ? kmd->abi : 0u, PETREL_KMD_ABI);
    if (!kmd->probe || !kmd->remove || !kmd->open || !kmd->close || !kmd->ioctl || !kmd->read || !kmd->mmap || !kmd->munmap)
        return UMD_FAIL(UMD_ERR_INIT_CARRIER, "module=" KMD_FILE " reason=\"an operation is missing\"");
    *kmd_out = kmd;
    return UMD_SUCCESS;
}

/* The driver's record of a failed call without error_ptr, taken out of its scope into the caller's. */
static umdStatus adopt(int ret, const char *what, bool have, const umdErrorDetail *detail)
{
    if (have && detail->code < 0) {
        umdStatus st = umd_record_import(detail);
        return UMD_HOP(st);
    }
    return UMD_FAIL(UMD_ERR_INIT_CARRIER, "call=%s errno=%d record=missing", what, -ret);
}

umdStatus umd_carrier_init(struct umd_carrier *carrier, const struct umd_winsys_config *config, uint32_t *count_out)
{
    struct petrel_kmd_config c = {
        .device_count = config->device_count, .expected_count = config->expected_count, .stepped = config->stepped,
        .profile = config->profile, .vram_B = config->vram_B, .watchdog_ns = config->watchdog_ns, .functional = config->functional,
        .host_threads = config->host_threads,
    };
    umdErrorDetail detail;
    bool have = false;

    umdStatus st = load_kmd(&carrier->kmd);
    if (st < 0)
        return UMD_HOP(st);
    carrier->stepped = config->stepped;
    umd_record_scope_begin();
    int ret = carrier->kmd->probe(&c, count_out);
    if (ret)
        have = umd_record_export(&detail);
    umd_record_scope_end();
    return ret ? adopt(ret, "probe", have, &detail) : UMD_SUCCESS;
}

void umd_carrier_fini(struct umd_carrier *carrier)
{
    umd_record_scope_begin();
    carrier->kmd->remove();
    umd_record_scope_end();
}

umdStatus umd_carrier_open(struct umd_carrier *carrier, uint32_t index, struct umd_carrier_file *file)
{
    umdErrorDetail detail;
    bool have = false;

    umd_record_scope_begin();
    int ret = carrier->kmd->open(index, true, &file->file);
    if (ret)
        have = umd_record_export(&detail);
    umd_record_scope_end();
    file->carrier = carrier;
    return ret ? adopt(ret, "open", have, &detail) : UMD_SUCCESS;
}

void umd_carrier_close(struct umd_carrier_file *file)
{
    umd_record_scope_begin();
    file->carrier->kmd->close(file->file);
    umd_record_scope_end();
}

/* Ends what a call without a story left open: the caller makes do with its errno. */
static void scope_leave(bool failed)
{
    umdErrorDetail detail;

    if (failed && umd_record_export(&detail))
        umd_record_drop(&detail, "the caller makes do with its errno");
    umd_record_scope_end();
}

/* The record of a failed call becomes the story; one that a call left open although it did its work is told to nobody. */
static bool take_story(bool failed, struct umd_winsys_story *story)
{
    if (failed)
        return umd_record_export(&story->detail);
    if (__builtin_expect(umd_record_current().seq != 0, 0))
        UMD_ABSORB(UMD_ERR_INTERNAL, "the call into the kernel driver did its work all the same");
    return false;
}

int umd_carrier_fail(struct umd_winsys_story *story, umdStatus st)
{
    story->have = umd_record_export(&story->detail);
    return -umdStatusErrno(st);
}

int umd_carrier_ioctl(struct umd_carrier_file *file, unsigned long cmd, void *arg, struct umd_winsys_story *story)
{
    umd_record_scope_begin();
    int ret = file->carrier->kmd->ioctl(file->file, cmd, arg);
    story->have = take_story(ret != 0, story);
    umd_record_scope_end();
    return ret;
}

ssize_t umd_carrier_read(struct umd_carrier_file *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    umd_record_scope_begin();
    ssize_t n = file->carrier->kmd->read(file->file, buf, size_B, timeout_ns);
    scope_leave(n < 0);
    return n;
}

void *umd_carrier_mmap(struct umd_carrier_file *file, uint64_t offset, size_t size_B, int *error_out, struct umd_winsys_story *story)
{
    int error = 0;

    umd_record_scope_begin();
    void *p = file->carrier->kmd->mmap(file->file, offset, size_B, &error);
    if (!p && !error)
        error = -ENOMEM;
    story->have = take_story(error != 0, story);
    umd_record_scope_end();
    *error_out = error;
    return error ? NULL : p;
}

int umd_carrier_munmap(struct umd_carrier_file *file, void *addr, size_t size_B)
{
    umd_record_scope_begin();
    int ret = file->carrier->kmd->munmap(file->file, addr, size_B);
    scope_leave(ret != 0);
    return ret;
}

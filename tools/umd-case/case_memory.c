/* SPDX-License-Identifier: MIT */
/* case_memory.c - cases of device memory: used up, in pieces, freed wrongly, used after it was freed. */
#include <inttypes.h>
#include <stdlib.h>

#include "case.h"

static uint64_t free_now(const struct scene *s)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };

    MUST(umdDeviceGetInfo(s->device, &info));
    return info.vram_free_B;
}

/* A loop that forgets to free what its last step allocated. */
static void out_of_memory(void)
{
    struct scene s;
    umdDevicePtr kept[64], one;
    umdStatus st = UMD_SUCCESS;
    int step = 0;

    case_start(&s, NULL);
    case_say("each step allocates 8 MiB and frees nothing; %" PRIu64 " MiB are free", free_now(&s) / MIB);
    while (step < 64 && (st = umdMemAlloc(s.context, 8 * MIB, 0, 0, &kept[step])) == UMD_SUCCESS)
        step++;
    case_say("step %d is the first that fails; %" PRIu64 " MiB are free", step, free_now(&s) / MIB);
    case_gives(st, "umdMemAlloc(s.context, 8 * MIB, 0, 0, &kept[step])", UMD_ERR_MEM_ALLOC_FAILED);
    for (int again = 0; again < 20; again++) { /* what a loop does that does not look at its codes: the record counts it */
        st = umdMemAlloc(s.context, 8 * MIB, 0, 0, &one);
        if (st != UMD_ERR_MEM_ALLOC_FAILED)
            case_wrong("try %d returned %s", again, umdStatusName(st));
    }
    case_gives(st, "umdMemAlloc, for the twentieth time since", UMD_ERR_MEM_ALLOC_FAILED);
    GIVES(umdMemAlloc(s.context, 65 * MIB, 0, 0, &one), UMD_ERR_MEM_SIZE);
    STILL_WORKS(umdMemFree(s.context, kept[0]));
    STILL_WORKS(umdMemAlloc(s.context, 8 * MIB, 0, 0, &one));
    case_end(&s);
}

/* Fill with 2 MiB blocks, free every other one, ask for 64 MiB. */
static void fragmentation(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();
    umdErrorDetail detail = { .size_B = sizeof(detail) };
    umdDevicePtr block[128], big;
    uint32_t n = 0;

    desc.vram_B = 256 * MIB;
    case_start(&s, &desc);
    while (n < 128 && umdMemAlloc(s.context, 2 * MIB, 0, 0, &block[n]) == UMD_SUCCESS)
        n++;
    for (uint32_t i = 0; i < n; i += 2)
        MUST(umdMemFree(s.context, block[i]));
    case_say("%u blocks of 2 MiB, every other one freed: %" PRIu64 " MiB are free", n, free_now(&s) / MIB);
    GIVES(umdMemAlloc(s.context, 64 * MIB, 0, 0, &big), UMD_ERR_MEM_FRAGMENTED);
    MUST(umdGetLastErrorDetail(&detail));
    STILL_WORKS(umdMemAlloc(s.context, detail.advice.largest_fit_B, 0, 0, &big));
    for (uint32_t i = 1; i < n; i += 2)
        MUST(umdMemFree(s.context, block[i]));
    STILL_WORKS(umdMemAlloc(s.context, 64 * MIB, 0, 0, &big));
    case_end(&s);
}

static void double_free(void)
{
    struct scene s;
    umdContext other;
    char host[256] = { 0 };

    case_start(&s, NULL);
    umdDevicePtr once = case_alloc(&s, 4096), ptr = case_alloc(&s, 256);
    MUST(umdMemFree(s.context, once));
    GIVES(umdMemFree(s.context, once), UMD_ERR_MEM_DOUBLE_FREE);
    GIVES(umdMemFree(s.context, ptr + 64), UMD_ERR_MEM_POINTER);
    MUST(umdContextCreate(s.device, &other));
    GIVES(umdMemFree(other, ptr), UMD_ERR_MEM_POINTER);
    GIVES(umdMemcpyHtoD(s.stream, ptr + 200, host, 100), UMD_ERR_COPY_RANGE);
    GIVES(umdMemcpyHtoD(s.stream, once, host, 100), UMD_ERR_MEM_POINTER);
    STILL_WORKS(umdMemcpyHtoD(s.stream, ptr, host, sizeof(host)));
    STILL_WORKS(umdMemFree(s.context, ptr));
    MUST(umdContextDestroy(other));
    case_end(&s);
}

/* The host frees a buffer, and a kernel launched later still writes to it: found by the device, reported by the wait. */
static void use_after_free(void)
{
    struct scene s;

    case_start(&s, NULL);
    umdDevicePtr near = case_alloc(&s, 4 * MIB), gone = case_alloc(&s, 4 * MIB);
    (void)near;
    MUST(umdMemFree(s.context, gone));
    MUST(case_launch(&s, "add", (struct case_args){ .dst = gone, .a = 1, .n = 32 }, 1));
    GIVES(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_PAGE_FAULT);
    GIVES(umdContextGetStatus(s.context), UMD_ERR_HW_PAGE_FAULT);
    case_close(&s);
    case_open(&s);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    STILL_WORKS(case_launch(&s, "add", (struct case_args){ .dst = ptr, .a = 1, .n = 32 }, 1));
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

/* Twice as many elements as there is room for: the last workgroups write behind the allocation. */
static void overrun(void)
{
    struct scene s;
    umdErrorDetail detail = { .size_B = sizeof(detail) };
    umdFigure far = { 0 };

    case_start(&s, NULL);
    umdDevicePtr ptr = case_alloc(&s, 64 * 1024);
    MUST(case_launch(&s, "add", (struct case_args){ .dst = ptr, .a = 1, .n = 32 * 1024 }, 1024));
    GIVES(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_PAGE_FAULT);
    MUST(umdGetLastErrorDetail(&detail));
    if (!umdErrorDetailFigure(&detail, "overrun_B", &far))
        case_wrong("the record does not say by how much: %s", detail.figures);
    case_end(&s);
}

const struct umd_case memory_cases[] = {
    { "out-of-memory", "a loop that never frees, until device memory is used up", out_of_memory },
    { "fragmentation", "enough memory is free, but not in one piece", fragmentation },
    { "double-free", "freed twice, an inner pointer, another context's, a copy that is too long", double_free },
    { "use-after-free", "a kernel writes to a buffer that was freed: a page fault", use_after_free },
    { "overrun", "a kernel writes behind the end of a buffer: a page fault", overrun },
    { 0 },
};

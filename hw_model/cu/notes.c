/* SPDX-License-Identifier: MIT */
/* notes.c - what a code object's notes say about where lanes meet, read from memory that may say anything. */
/*
 * A note is a hint. Whatever it says, converge.c uses it as the index of an instruction that it has looked at itself, and lanes that wait
 * where others never come are let go as all are. So a bad one is passed over and counted, and the dispatch goes on; only
 * memory that cannot be read refuses it, as the packet's fault.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <hw/petrel_codeobj.h>
#include <umd/umd_log.h>

#include "cu_priv.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu.notes");

static uint64_t round_up_4(uint64_t v)
{
    return (v + 3) & ~3ull;
}

static void take_pairs(struct cu_notes *n, const uint8_t *pairs, uint64_t va, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, va += sizeof(struct petrel_meet)) {
        struct petrel_meet m;

        memcpy(&m, pairs + i * sizeof(m), sizeof(m));
        n->meets[n->count++] = (struct cu_meet){
            .branch = va + (uint64_t)(int64_t)m.branch,
            .meet = m.meet == PETREL_MEET_RETURN || m.meet == PETREL_MEET_NONE ? (uint64_t)m.meet
                                                                                : va + offsetof(struct petrel_meet, meet) + (uint64_t)(int64_t)m.meet,
        };
    }
}

/* All pairs of all notes of ours, as far as these lie within the bytes that were read. */
static void parse(struct cu_notes *n, const uint8_t *bytes, uint64_t va, uint64_t size_B)
{
    for (uint64_t at = 0, name_B, desc_B; size_B - at >= sizeof(Elf64_Nhdr); at += name_B + desc_B) {
        Elf64_Nhdr h;

        memcpy(&h, bytes + at, sizeof(h));
        at += sizeof(h);
        name_B = round_up_4(h.n_namesz);
        desc_B = round_up_4(h.n_descsz);
        if (name_B > size_B - at || desc_B > size_B - at - name_B) {
            n->ignored++;
            return;
        }
        if (h.n_type == PETREL_NOTE_CONVERGE && h.n_namesz == sizeof(PETREL_NOTE_NAME) && !memcmp(bytes + at, PETREL_NOTE_NAME, sizeof(PETREL_NOTE_NAME)))
            take_pairs(n, bytes + at + name_B, va + at + name_B, h.n_descsz / sizeof(struct petrel_meet));
    }
}

static int by_branch(const void *a, const void *b)
{
    const struct cu_meet *x = a, *y = b;

    return x->branch < y->branch ? -1 : x->branch > y->branch;
}

/* Sorted; of two that speak of one branch none is to be believed. */
static void sort(struct cu_notes *n)
{
    uint32_t kept = 0;

    n->pairs = n->count;
    qsort(n->meets, n->count, sizeof(*n->meets), by_branch);
    for (uint32_t i = 0, same; i < n->count; i += same) {
        for (same = 1; i + same < n->count && n->meets[i + same].branch == n->meets[i].branch;)
            same++;
        if (same == 1)
            n->meets[kept++] = n->meets[i];
        else
            n->ignored += same;
    }
    n->count = kept;
}

void cu_notes_drop(struct hw_cu_array *a)
{
    umd_free(a->notes.meets);
    a->notes = (struct cu_notes){ 0 };
}

bool cu_notes_load(struct hw_cu_array *a, struct hw_cu_fault *fault_out)
{
    const struct petrel_code *c = &a->code_info;
    struct cu_notes *n = &a->notes;
    uint64_t fault_va = 0;
    uint32_t fault = 0;
    uint8_t *bytes;

    if (n->loaded && n->root == a->root && n->va == c->notes_va && n->size_B == c->notes_B)
        return true;
    cu_notes_drop(a);
    if (!c->notes_B)
        return true;
    umd_record_scope_begin(); /* stepped: a caller's thread, whose record is none of this */
    bytes = umd_alloc(c->notes_B);
    n->meets = bytes ? umd_alloc(c->notes_B / sizeof(struct petrel_meet) * sizeof(*n->meets) + 1) : NULL;
    if (!n->meets)
        UMD_ABSORB(UMD_ERR_MEM_HOST_ALLOC_FAILED, "lanes meet where the code itself says, without its notes, which is slower and not wrong");
    umd_record_scope_end();
    if (n->meets) {
        fault = cu_memory_read(a, c->notes_va, c->notes_B, bytes, &fault_va);
        if (!fault) {
            parse(n, bytes, c->notes_va, c->notes_B);
            sort(n);
            n->loaded = true;
            n->root = a->root;
            n->va = c->notes_va;
            n->size_B = c->notes_B;
        }
    }
    umd_free(bytes);
    if (fault)
        *fault_out = (struct hw_cu_fault){ .fault = fault, .va = fault_va, .pc = a->d.entry_va, .info = PETREL_FAULT_INFO(PETREL_ACCESS_READ, 0, 0, 0) };
    return !fault;
}

bool cu_notes_find(const struct hw_cu_array *a, uint64_t pc, uint64_t *meet_out)
{
    uint32_t low = 0, high = a->notes.count;

    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;

        if (a->notes.meets[mid].branch < pc)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == a->notes.count || a->notes.meets[low].branch != pc)
        return false;
    *meet_out = a->notes.meets[low].meet;
    return true;
}

void cu_notes_tell(struct hw_cu_array *a)
{
    if (a->notes.ignored)
        UMD_LOG(UMD_LOG_DEBUG, "notes ignored=%u of=%u", a->notes.ignored, a->notes.pairs);
    a->notes.ignored = 0;
}

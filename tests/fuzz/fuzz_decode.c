/* SPDX-License-Identifier: MIT */
/* fuzz_decode.c - any bits: decoding, expanding and disassembling end, agree with the table, and say the same twice. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok)
        __builtin_trap();
}

static void check_text(uint32_t bits, uint64_t pc)
{
    char whole[CU_DISASM_MAX], cut[8];
    size_t n = cu_disasm(bits, pc, whole, sizeof(whole));

    check(n > 0 && n < sizeof(whole) && strlen(whole) == n);
    check(cu_disasm(bits, pc, cut, sizeof(cut)) == n || n >= sizeof(cut));
    check(strncmp(whole, cut, strlen(cut)) == 0 && strlen(cut) < sizeof(cut));
}

static void check_one(uint32_t bits, uint64_t pc)
{
    uint32_t full = (bits & 3) == 3 ? bits : cu_expand_rvc((uint16_t)bits);
    struct cu_uop u, again;
    bool ok;

    memset(&u, 0, sizeof(u));
    memset(&again, 0, sizeof(again));
    ok = cu_decode(full, pc, &u);
    check(ok == cu_decode(full, pc, &again) && memcmp(&u, &again, sizeof(u)) == 0);
    check(ok == (u.op < CU_OP_COUNT) && (ok || u.op == CU_OP_ILLEGAL));
    check(!ok || (full & cu_insns[u.op].mask) == cu_insns[u.op].match);
    check(u.rd <= CU_REG_SINK && u.rs1 < 32 && u.rs2 < 32 && u.rs3 < 32);
    check(u.d < CU_SLOT_COUNT && u.s1 < CU_SLOT_COUNT && u.s2 < CU_SLOT_COUNT && u.s3 < CU_SLOT_COUNT);
    if ((bits & 3) != 3 && full) {
        const struct cu_rvc *row = cu_find_rvc((uint16_t)bits);
        check(row && ((uint16_t)bits & row->mask) == row->match && ok && u.op == row->full);
    }
    check_text((bits & 3) == 3 ? bits : bits & 0xffff, pc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t bits;

        memcpy(&bits, data + at, sizeof(bits));
        check_one(bits, 0x80000000ull + at);
    }
    return 0;
}

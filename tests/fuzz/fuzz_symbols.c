/* SPDX-License-Identifier: MIT */
/* fuzz_symbols.c - any file: names and lines are had of it or not, and what comes out is text that a terminal may see. */
#include <string.h>

#include "sim.h"
#include "umd-tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What umd-text.c says when standard output cannot be written; nothing here writes there. */
void tool_say(const char *fmt, ...) { (void)fmt; __builtin_trap(); }

static void check_text(const char *text, size_t text_B)
{
    if (strnlen(text, text_B) == text_B)
        __builtin_trap();
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            __builtin_trap();
}

static void locate(struct sim_symbols *y, uint64_t pc)
{
    struct sim_location at;

    sim_locate(y, pc, &at);
    check_text(at.function, sizeof(at.function));
    check_text(at.file, sizeof(at.file));
    if (at.function[0] && at.offset > pc)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "tohost", "begin_signature", "", "_start" };
    struct sim_symbols *y = sim_symbols_open(data, size);
    uint64_t va, word;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        va = 0;
        if (sim_symbol(y, names[i], &va))
            locate(y, va);
    }
    for (size_t at = 24; at + 8 <= size && at < 24 + 8 * 40; at += 8) { /* the entry, then whatever comes */
        memcpy(&word, data + at, sizeof(word));
        locate(y, word);
    }
    for (uint64_t pc = 0x80000000; pc < 0x80000040; pc += 2)
        locate(y, pc);
    sim_symbols_close(y);
    return 0;
}

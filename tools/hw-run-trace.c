/* SPDX-License-Identifier: MIT */
/* hw-run-trace.c - see hw-run-trace.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hw-run-trace.h"

static const char *place_of(struct trace *t, uint64_t pc)
{
    struct trace_place *p = &t->places[pc / 2 % TRACE_PLACES];
    struct sim_location at;

    if (p->known && p->pc == pc)
        return p->text;
    *p = (struct trace_place){ .pc = pc, .known = true };
    sim_locate(t->symbols, pc, &at);
    if (at.function[0])
        snprintf(p->text, sizeof(p->text), "<%.40s+0x%" PRIx64 ">", at.function, at.offset);
    return p->text;
}

static void print_value(const struct hw_cu_trace *i)
{
    unsigned first = (unsigned)__builtin_ctz(i->mask);
    bool same = true;

    for (unsigned l = 0; l < 32; l++)
        same = same && (!(i->mask >> l & 1) || i->after[l] == i->after[first]);
    printf("  %s=", sim_register(i->rd));
    if (same) {
        printf("0x%" PRIx64, i->after[first]);
        return;
    }
    for (unsigned l = first; l < 32; l++)
        if (i->mask >> l & 1)
            printf("%s%u:0x%" PRIx64, l == first ? "" : ",", l, i->after[l]);
}

void trace_print(struct trace *t, const struct hw_cu_trace *i)
{
    char text[64];

    sim_disasm(i->bits, i->pc, text, sizeof(text));
    printf("%08" PRIx32 " 0x%" PRIx64 " %s %0*" PRIx32 " %s", i->mask, i->pc, place_of(t, i->pc), i->size_B * 2, i->bits, text);
    if (i->after)
        print_value(i);
    putchar('\n');
}

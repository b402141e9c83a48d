/* SPDX-License-Identifier: MIT */
/* tls.c - thread-local storage: a block of each lane at the top of its private window, filled from a template. */
#include <assert.h>
#include <string.h>

#include "cu_priv.h"

void hw_cu_set_code(struct hw_cu_array *cus, const struct petrel_code *code)
{
    cus->code_info = *code;
}

uint32_t cu_memory_read(const struct hw_cu_array *a, uint64_t from, uint64_t size_B, uint8_t *out, uint64_t *va_out)
{
    for (uint64_t done = 0, n; done < size_B; done += n) {
        struct hw_xlat x;
        uint64_t va = *va_out = from + done;
        uint32_t fault = va < PETREL_VA_USER_END ? a->config.translate(a->config.translate_priv, a->root, va, PETREL_ACCESS_READ, &x) : PETREL_FAULT_PAGE;

        if (!fault && !(x.rights & PETREL_PTE_READ))
            fault = PETREL_FAULT_ACCESS;
        if (fault)
            return fault;
        n = x.page_va + x.page_B - va;
        n = n < size_B - done ? n : size_B - done;
        memcpy(out + done, x.host + (va - x.page_va), n);
    }
    return 0;
}

bool cu_tls_load(struct hw_cu_array *a, struct hw_cu_fault *fault_out)
{
    const struct petrel_code *c = &a->code_info;
    uint64_t va = 0;
    uint32_t fault = 0;

    a->tls_block_B = (uint32_t)petrel_tls_block_B(c);
    assert(a->tls_block_B <= sizeof(a->tls) && c->tls_file_B <= c->tls_B);
    memset(a->tls, 0, a->tls_block_B);
    if (c->tls_B && (a->tls_block_B > a->config.private_B / 2 || !a->config.scratch))
        fault = PETREL_FAULT_RESOURCES;
    else
        fault = cu_memory_read(a, c->tls_va, c->tls_file_B, a->tls, &va);
    if (fault)
        *fault_out = (struct hw_cu_fault){ .fault = fault, .va = va, .pc = a->d.entry_va, .info = PETREL_FAULT_INFO(PETREL_ACCESS_READ, 0, 0, 0) };
    return !fault;
}

/* Private memory interleaves lanes by eight bytes. */
void cu_tls_fill(struct cu_warp *w)
{
    const struct hw_cu_array *a = w->cu->array;
    uint64_t place = (uint64_t)w->cu->index * a->config.warps_per_cu + w->slot, at = a->config.private_B - a->tls_block_B;
    uint64_t *cell = (uint64_t *)(a->config.scratch + place * CU_LANES * a->config.private_B) + at / 8 * CU_LANES;

    for (uint32_t i = 0; i < a->tls_block_B / 8; i++) {
        uint64_t v;

        memcpy(&v, a->tls + 8 * i, sizeof(v));
        for (unsigned l = 0; l < CU_LANES; l++)
            *cell++ = v;
    }
}

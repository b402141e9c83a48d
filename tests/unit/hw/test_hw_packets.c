/* SPDX-License-Identifier: MIT */
/* test_hw_packets.c - every packet, good and malformed; indirect buffers and privilege; fences; semaphores between rings. */
#include "hw_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "record.h"

#define C PETREL_RING_COMPUTE0
#define D PETREL_RING_COPY0
#define DATA_VA 0x100000000ull
#define IB_VA 0x200000000ull
#define IB_AT (HWT_DATA_AT + 0x100000)

static const struct packet_row { uint8_t op; uint16_t count; uint8_t rings; bool privileged; } rows[] = {
#define RINGS_C 1
#define RINGS_D 2
#define RINGS_CD 3
#define PKT(name_, op_, count_, rings_, priv_, text_) { op_, count_, RINGS_##rings_, priv_ },
    PETREL_PACKETS(PKT)
#undef PKT
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct hwt *packet_fixture(enum hw_run_mode mode, uint32_t ring)
{
    struct hwt *t = hwt_boot(mode);
    hwt_map(t, DATA_VA, HWT_DATA_AT, 16, HWT_RW | PETREL_PTE_EXEC);
    hwt_map(t, IB_VA, IB_AT, 4, PETREL_PTE_READ);
    hwt_context(t, ring, 0xabc);
    return t;
}

static uint64_t data64(struct hwt *t, uint64_t off)
{
    return __atomic_load_n((uint64_t *)(t->vram + HWT_DATA_AT + off), __ATOMIC_ACQUIRE);
}

/* Ring stops at that packet, says so in registers and by an interrupt, and does nothing more. */
static void check_packet_fault(struct hwt *t, uint32_t ring, uint32_t header, uint32_t dword)
{
    assert_int_equal(hwt_settle(t, ring), PETREL_RING_FAULTED);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, FAULT)), PETREL_FAULT_PACKET);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(ring, FAULT_DATA)), header);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(ring, FAULT_VA)), dword);
    assert_true(hwt_wait_event(t, PETREL_IRQ_FAULT));
    assert_int_equal(hwt_fence_value(t, ring), 0);
}

static void test_good_packets(void **state)
{
    for (uint32_t ring = 0; ring < 2; ring++) {
        struct hwt *t = packet_fixture(ring ? HW_RUN_THREADED : HW_RUN_STEPPED, ring);
        hwt_dw(t, ring, 0);
        hwt_dw(t, ring, PETREL_PKT(PETREL_OP_BARRIER, 0));
        hwt_write(t, ring, DATA_VA + 8, 0x1122334455667788ull);
        hwt_fill(t, ring, DATA_VA + 4096, 64, 0xabababab, 4);
        hwt_copy(t, ring, DATA_VA + 4096, DATA_VA + 4100 + 64, 64);
        hwt_dw(t, ring, PETREL_PKT(PETREL_OP_TIMESTAMP, 2));
        hwt_dw64(t, ring, DATA_VA + 16);
        hwt_wait64(t, ring, DATA_VA + 8, 0x1122334455667788ull);
        hwt_dw(t, ring, PETREL_PKT(PETREL_OP_MARK, 2));
        hwt_dw64(t, ring, 0x9988776655443322ull);
        hwt_dw(t, ring, PETREL_PKT(PETREL_OP_TLB_INVAL, 1));
        hwt_dw(t, ring, 0xffffffff);
        assert_true(hwt_finish(t, ring, hwt_fence(t, ring, true)));
        assert_true(data64(t, 8) == 0x1122334455667788ull);
        assert_true(data64(t, 4100 + 64 + 56) == 0xababababababababull);
        assert_in_range(data64(t, 16), 1, hwt_r64(t, R_CLOCK_NS));
        assert_true(data64(t, 16) < *(uint64_t *)(t->vram + HWT_FENCE_AT + ring * 64 + 8));
        assert_true(hwt_r64(t, PETREL_RING_REG(ring, MARK)) == 0x9988776655443322ull);
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(ring, JOB)), 0xabc);
        assert_true(hwt_wait_event(t, PETREL_IRQ_FENCE));
        assert_int_equal(t->events[0].data, 1);
        assert_int_equal(t->events[0].ring, ring);
        assert_int_equal(t->events[0].job, 0xabc);
        assert_int_equal(t->events[0].time_ns, *(uint64_t *)(t->vram + HWT_FENCE_AT + ring * 64 + 8));
        hwt_destroy(t);
    }
}

/* Wrong count, unknown flag, wrong ring, unknown opcode: for every row of the table. */
static void test_malformed_headers(void **state)
{
    for (size_t i = 0; i < ROWS; i++) {
        for (uint32_t kind = 0; kind < 4; kind++) {
            const uint32_t ring = rows[i].rings & 1 ? C : D;
            uint32_t header = PETREL_PKT(rows[i].op, rows[i].count);
            if (kind == 0)
                header += 1;
            else if (kind == 1)
                header |= 0x00800000u;
            else if (kind == 2)
                header = (header & 0x00ffffffu) | 0xee000000u;
            else if (rows[i].count)
                header -= 1;
            else
                continue;
            struct hwt *t = packet_fixture(HW_RUN_STEPPED, ring);
            const uint32_t at = t->wptr[ring];
            hwt_dw(t, ring, header);
            for (uint32_t n = 0; n < rows[i].count + 1u; n++)
                hwt_dw(t, ring, 0);
            hwt_fence(t, ring, false);
            hwt_doorbell(t, ring);
            check_packet_fault(t, ring, header, at);
            assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, RPTR)), at);
            hwt_destroy(t);
        }
    }
}

static void test_wrong_ring_and_truncated(void **state)
{
    struct hwt *t = packet_fixture(HW_RUN_STEPPED, D);
    const uint32_t at = t->wptr[D], header = PETREL_PKT(PETREL_OP_DISPATCH, 16);
    hwt_dw(t, D, header);
    for (int i = 0; i < 16; i++)
        hwt_dw(t, D, 0);
    hwt_doorbell(t, D);
    check_packet_fault(t, D, header, at);
    hwt_destroy(t);

    t = packet_fixture(HW_RUN_STEPPED, C);
    const uint32_t cut = t->wptr[C];
    hwt_dw(t, C, PETREL_PKT(PETREL_OP_WRITE, 4)); /* the doorbell says there is no more than this */
    hwt_doorbell(t, C);
    check_packet_fault(t, C, PETREL_PKT(PETREL_OP_WRITE, 4), cut);
    hwt_destroy(t);

    t = packet_fixture(HW_RUN_STEPPED, C);
    hw_write32(t->dev, PETREL_RING_REG(C, WPTR), HWT_RING_DW + 8); /* more than the ring holds */
    check_packet_fault(t, C, 0, 0);
    hwt_destroy(t);
}

/* Fields that no memory access would catch. */
static void test_malformed_fields(void **state)
{
    static const struct { uint32_t n, dw[9]; } cases[] = {
        { 9, { PETREL_PKT(PETREL_OP_SET_CONTEXT, 8), 0x1001, 0, 1, 0, 0, 0 } },              /* root not on a page */
        { 9, { PETREL_PKT(PETREL_OP_SET_CONTEXT, 8), 0, 0x10, 1, 0, 0, 0 } },                /* root past VRAM */
        { 9, { PETREL_PKT(PETREL_OP_SET_CONTEXT, 8), 0x1000, 0, 1, 0, 0, 4 } },              /* flags */
        { 6, { PETREL_PKT(PETREL_OP_FENCE, 5), 0x40004, 0, 1, 0, 0 } },                      /* alignment */
        { 6, { PETREL_PKT(PETREL_OP_FENCE, 5), (uint32_t)HWT_VRAM_B - 8, 0, 1, 0, 0 } },     /* half outside */
        { 6, { PETREL_PKT(PETREL_OP_FENCE, 5), 0x40000, 0, 1, 0, 2 } },                      /* flags */
        { 7, { PETREL_PKT(PETREL_OP_FILL, 6), 0, 1, 64, 0, 0, 3 } },                         /* element */
        { 7, { PETREL_PKT(PETREL_OP_FILL, 6), 0, 1, 6, 0, 0, 4 } },                          /* half an element */
        { 7, { PETREL_PKT(PETREL_OP_COPY, 6), 0, 1, 32, 1, 64, 0 } },                        /* overlap */
        { 7, { PETREL_PKT(PETREL_OP_COPY, 6), 0, 1, 0, 2, 0xffffffff, 0xffffffff } },        /* wraps */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
        const uint32_t at = t->wptr[C];
        for (uint32_t n = 0; n < cases[i].n; n++)
            hwt_dw(t, C, cases[i].dw[n]);
        hwt_doorbell(t, C);
        check_packet_fault(t, C, cases[i].dw[0], at);
        hwt_destroy(t);
    }
}

static void test_dispatch_shape(void **state)
{
    static const struct petrel_dispatch shapes[] = {
        { .grid = { 0, 1, 1 }, .block = { 1, 1, 1 } },
        { .grid = { 1, 1, 1 }, .block = { 0, 1, 1 } },
        { .grid = { 1, 1, 1 }, .block = { 1025, 1, 1 } },
        { .grid = { 1, 1, 1 }, .block = { 512, 2, 2 } },
        { .grid = { 1, 1, 1 }, .block = { 65536, 65536, 65536 } },
        { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .flags = 1 },
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
        const uint32_t at = t->wptr[C];
        uint32_t dw[16];
        memcpy(dw, &shapes[i], sizeof(dw));
        hwt_dw(t, C, PETREL_PKT(PETREL_OP_DISPATCH, 16));
        for (int n = 0; n < 16; n++)
            hwt_dw(t, C, dw[n]);
        hwt_doorbell(t, C);
        check_packet_fault(t, C, PETREL_PKT(PETREL_OP_DISPATCH, 16), at);
        hwt_destroy(t);
    }
}

static void test_code_shape(void **state)
{
    static const struct petrel_code shapes[] = {
        { .tls_B = PETREL_TLS_MAX_B + 1 }, { .tls_file_B = 9, .tls_B = 8 }, { .tls_B = 8, .tls_align = 24 },
        { .tls_B = 8, .tls_align = 2 * PETREL_TLS_ALIGN_MAX }, { .tls_va = UINT64_MAX - 3, .tls_file_B = 8, .tls_B = 8 },
        { .reserved = { 0, 1 } }, { .reserved = { 1 } },
        { .notes_va = DATA_VA, .notes_B = PETREL_NOTES_MAX_B + 1 }, { .notes_va = DATA_VA, .notes_B = UINT64_MAX },
        { .notes_va = DATA_VA + 2, .notes_B = 8 }, { .notes_va = 1 }, { .notes_va = UINT64_MAX - 3, .notes_B = 8 },
        { .tls_va = DATA_VA, .tls_file_B = 8, .tls_B = PETREL_TLS_MAX_B, .tls_align = PETREL_TLS_ALIGN_MAX,
          .notes_va = DATA_VA, .notes_B = PETREL_NOTES_MAX_B }, /* good */
    };
    const size_t count = sizeof(shapes) / sizeof(shapes[0]);
    for (size_t i = 0; i < count; i++) {
        struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
        const uint32_t at = t->wptr[C];
        uint32_t dw[16];
        memcpy(dw, &shapes[i], sizeof(dw));
        hwt_dw(t, C, PETREL_PKT(PETREL_OP_CODE, 16));
        for (int n = 0; n < 16; n++)
            hwt_dw(t, C, dw[n]);
        if (i + 1 < count) {
            hwt_doorbell(t, C);
            check_packet_fault(t, C, PETREL_PKT(PETREL_OP_CODE, 16), at);
        } else {
            uint64_t seq = hwt_fence(t, C, true);
            hwt_doorbell(t, C);
            assert_true(hwt_finish(t, C, seq));
        }
        hwt_destroy(t);
    }
}

/* ---- Memory faults of words ---- */

static void test_word_faults(void **state)
{
    static const struct { uint8_t op; uint64_t va; uint32_t fault, access; } cases[] = {
        { PETREL_OP_WRITE, DATA_VA + 4, PETREL_FAULT_MISALIGNED, PETREL_ACCESS_WRITE },
        { PETREL_OP_WRITE, 0x9000, PETREL_FAULT_PAGE, PETREL_ACCESS_WRITE },
        { PETREL_OP_WRITE, IB_VA, PETREL_FAULT_ACCESS, PETREL_ACCESS_WRITE },
        { PETREL_OP_TIMESTAMP, 1ull << 52, PETREL_FAULT_PAGE, PETREL_ACCESS_WRITE },
        { PETREL_OP_WAIT, 0x9008, PETREL_FAULT_PAGE, PETREL_ACCESS_READ },
        { PETREL_OP_INDIRECT, 0x9000, PETREL_FAULT_PAGE, PETREL_ACCESS_READ },
        { PETREL_OP_INDIRECT, IB_VA + 2, PETREL_FAULT_MISALIGNED, PETREL_ACCESS_READ },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
        const uint32_t count = cases[i].op == PETREL_OP_TIMESTAMP ? 2 : cases[i].op == PETREL_OP_INDIRECT ? 3 : 4;
        hwt_dw(t, C, PETREL_PKT(cases[i].op, count));
        hwt_dw64(t, C, cases[i].va);
        for (uint32_t n = 2; n < count; n++)
            hwt_dw(t, C, 5);
        hwt_doorbell(t, C);
        assert_int_equal(hwt_settle(t, C), PETREL_RING_FAULTED);
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, FAULT)), cases[i].fault);
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, FAULT_VA)), cases[i].va);
        assert_int_equal(PETREL_FAULT_INFO_ACCESS(hwt_r64(t, PETREL_RING_REG(C, FAULT_INFO))), cases[i].access);
        hwt_destroy(t);
    }
    /* Without SET_CONTEXT nothing is mapped. */
    struct hwt *t = hwt_boot(HW_RUN_STEPPED);
    hwt_write(t, C, DATA_VA, 1);
    hwt_doorbell(t, C);
    assert_int_equal(hwt_settle(t, C), PETREL_RING_FAULTED);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, FAULT)), PETREL_FAULT_PAGE);
    hwt_destroy(t);
}

/* ---- Indirect buffers ---- */

static uint32_t *ib(struct hwt *t)
{
    return (uint32_t *)(t->vram + IB_AT);
}

static void test_indirect(void **state)
{
    struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
    uint32_t *p = ib(t) + 1021, n = 0; /* packets cross the page, which continues elsewhere */
    hwt_map(t, IB_VA + 4096, IB_AT + 0x8000, 1, PETREL_PTE_READ);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t dw[] = { PETREL_PKT(PETREL_OP_WRITE, 4), (uint32_t)DATA_VA + i * 8, (uint32_t)(DATA_VA >> 32), 100 + i, 0, 0 };
        for (uint32_t k = 0; k < 6; k++, n++)
            *(n < 3 ? p + n : (uint32_t *)(t->vram + IB_AT + 0x8000) + (n - 3)) = dw[k];
    }
    const uint32_t before = t->wptr[C];
    hwt_indirect(t, C, IB_VA + 1021 * 4, n);
    hwt_indirect(t, C, 0x123, 0); /* empty: not even looked at */
    assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(data64(t, i * 8), 100 + i);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, RPTR)), before + 4 + 4 + 6);
    hwt_destroy(t);
}

/* Privileged packets and physical addresses trap in an indirect buffer, though the same bytes are fine in the ring. */
static void test_privilege(void **state)
{
    for (size_t i = 0; i < ROWS; i++) {
        const bool phys = rows[i].op == PETREL_OP_WRITE || rows[i].op == PETREL_OP_COPY;
        if ((!rows[i].privileged && !phys) || !(rows[i].rings & 1))
            continue;
        struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
        const uint32_t header = PETREL_PKT(rows[i].op, rows[i].count) | (rows[i].privileged ? 0 : PETREL_PKT_PHYS);
        ib(t)[0] = 0;
        ib(t)[1] = header;
        const uint32_t at = t->wptr[C];
        hwt_indirect(t, C, IB_VA, 2 + rows[i].count);
        hwt_fence(t, C, false);
        hwt_doorbell(t, C);
        check_packet_fault(t, C, header, 1); /* dword in the buffer */
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, RPTR)), at);
        hwt_destroy(t);
    }
    struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
    hwt_dw(t, C, PETREL_PKT(PETREL_OP_WRITE, 4) | PETREL_PKT_PHYS);
    hwt_dw64(t, C, HWT_DATA_AT + 40);
    hwt_dw64(t, C, 99);
    assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    assert_int_equal(data64(t, 40), 99);
    hwt_destroy(t);
}

/* ---- Order and rings ---- */

static void test_ring_wraps(void **state)
{
    struct hwt *t = packet_fixture(HW_RUN_THREADED, C);
    for (uint32_t i = 0; i < 3000; i++) { /* over four times around */
        hwt_write(t, C, DATA_VA + i % 512 * 8, i);
        if (i % 200 == 199)
            assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    }
    assert_true(t->wptr[C] > 3 * HWT_RING_DW);
    assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    for (uint32_t i = 0; i < 512; i++)
        assert_int_equal(data64(t, i * 8), i < 3000 % 512 ? 3000 / 512 * 512 + i : (3000 / 512 - 1) * 512 + i);
    hwt_destroy(t);
}

/* The copy ring waits for the compute ring, which waits for the host: order and times follow. */
static void semaphores(enum hw_run_mode mode)
{
    struct hwt *t = packet_fixture(mode, C);
    hwt_context(t, D, 0xdef);
    hwt_wait64(t, D, DATA_VA + 64, 5);
    hwt_copy(t, D, DATA_VA + 128, DATA_VA + 256, 8);
    const uint64_t copied = hwt_fence(t, D, true);
    hwt_wait64(t, C, DATA_VA + 72, 1);
    hwt_write(t, C, DATA_VA + 128, 4711);
    hwt_write(t, C, DATA_VA + 64, 5);
    const uint64_t written = hwt_fence(t, C, false);
    hwt_doorbell(t, D);
    hwt_doorbell(t, C);
    hwt_pass(t, 1000000);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, STATUS)), PETREL_RING_BUSY);
    assert_int_equal(hwt_fence_value(t, C), 0);
    __atomic_store_n((uint64_t *)(t->vram + HWT_DATA_AT + 72), 1, __ATOMIC_RELEASE); /* no doorbell: the engine polls */
    assert_true(hwt_finish(t, C, written));
    assert_true(hwt_finish(t, D, copied));
    assert_int_equal(data64(t, 256), 4711);
    hwt_destroy(t);
}

static void test_semaphores(void **state)
{
    semaphores(HW_RUN_STEPPED);
    semaphores(HW_RUN_THREADED);
}

/* Two long copies take as long as one: rings run side by side in device time. */
static void test_rings_are_concurrent(void **state)
{
    struct hwt *t = packet_fixture(HW_RUN_STEPPED, C);
    hwt_context(t, D, 1);
    for (uint64_t i = 0; i < 64; i++)
        hwt_map_huge(t, 0x400000000ull + (i << 21), HWT_DATA_AT + 0x1000000 + (i % 8 << 21), HWT_RW);
    const uint64_t size_B = 16ull << 20, start_ns = hwt_r64(t, R_CLOCK_NS);
    hwt_copy(t, C, 0x400000000ull, 0x400000000ull + (16ull << 21), size_B);
    hwt_copy(t, D, 0x400000000ull, 0x400000000ull + (40ull << 21), size_B);
    const uint64_t c = hwt_fence(t, C, false), d = hwt_fence(t, D, false);
    hwt_doorbell(t, C);
    assert_true(hwt_finish(t, D, d));
    assert_true(hwt_finish(t, C, c));
    const double one_ns = (double)size_B / 256 / 1.4;
    for (uint32_t r = 0; r < 2; r++) {
        const double took_ns = (double)(*(uint64_t *)(t->vram + HWT_FENCE_AT + r * 64 + 8) - start_ns);
        assert_true(took_ns > one_ns && took_ns < one_ns * 1.2);
    }
    hwt_destroy(t);
}

/* Lines about a job have its context, whoever's call the device runs in; who calls has its own again. */
static void test_context_of_lines(void **state)
{
    char path[64], line[512];
    unsigned lines = 0;
    snprintf(path, sizeof(path), "/tmp/petrel-hw-context-%d.log", (int)getpid());
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "trace"), UMD_SUCCESS);
    umd_record_set_context(5);
    struct hwt *t = hwt_boot(HW_RUN_STEPPED);
    hwt_context(t, C, 71);
    const uint64_t c = hwt_fence(t, C, true);
    hwt_doorbell(t, C);
    hwt_context(t, D, 72);
    const uint64_t d = hwt_fence(t, D, true);
    hwt_doorbell(t, D);
    assert_true(hwt_finish(t, C, c) && hwt_finish(t, D, d));
    assert_int_equal(umd_record_get_context(), 5);
    hwt_destroy(t);
    umd_record_set_context(0);
    umdLogFlush(20000);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (!strstr(line, ": packet "))
            continue;
        lines++;
        assert_non_null(strstr(line, strstr(line, " ring=0 ") ? " ctx=1071 " : " ctx=1072 "));
    }
    fclose(f);
    unlink(path);
    assert_int_equal(lines, UMD_LOG_CEILING >= UMD_LOG_TRACE ? 4 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_packets),
        cmocka_unit_test(test_malformed_headers),
        cmocka_unit_test(test_wrong_ring_and_truncated),
        cmocka_unit_test(test_malformed_fields),
        cmocka_unit_test(test_dispatch_shape),
        cmocka_unit_test(test_code_shape),
        cmocka_unit_test(test_word_faults),
        cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_privilege),
        cmocka_unit_test(test_ring_wraps),
        cmocka_unit_test(test_semaphores),
        cmocka_unit_test(test_rings_are_concurrent),
        cmocka_unit_test(test_context_of_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* petrel_csr.h - numbers of the compute unit's own control and status registers. */
#ifndef PETREL_CSR_H
#define PETREL_CSR_H

/* Read-only user CSRs 0xcc0..: constant over a work-item's life. */
#define PETREL_CSR_LOCAL_ID_X  0xcc0
#define PETREL_CSR_LOCAL_ID_Y  0xcc1
#define PETREL_CSR_LOCAL_ID_Z  0xcc2
#define PETREL_CSR_GROUP_ID_X  0xcc3
#define PETREL_CSR_GROUP_ID_Y  0xcc4
#define PETREL_CSR_GROUP_ID_Z  0xcc5
#define PETREL_CSR_BLOCK_X     0xcc6
#define PETREL_CSR_BLOCK_Y     0xcc7
#define PETREL_CSR_BLOCK_Z     0xcc8
#define PETREL_CSR_GRID_X      0xcc9
#define PETREL_CSR_GRID_Y      0xcca
#define PETREL_CSR_GRID_Z      0xccb
#define PETREL_CSR_LANE        0xccc
#define PETREL_CSR_WARP        0xccd /* warp in the workgroup */
#define PETREL_CSR_LOCAL_BASE  0xcce /* address of the workgroup's local memory */
#define PETREL_CSR_ARGS        0xccf

#endif

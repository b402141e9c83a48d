/* SPDX-License-Identifier: MIT */
/* petrel_device_ops.h - inline functions behind petrel_device.h, over CSRs and custom-0. */
#ifndef PETREL_DEVICE_OPS_H
#define PETREL_DEVICE_OPS_H
#endif

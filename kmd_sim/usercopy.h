/* SPDX-License-Identifier: MIT */
/* usercopy.h - reading and writing the caller's memory without trusting its pointers. */
#ifndef KMD_USERCOPY_H
#define KMD_USERCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Installs the fault handler; counted. Without it the copies still work, more slowly. */
void usercopy_init(void);
void usercopy_fini(void);

/**
 * Brackets the copies of one system call, so that it asks once, not at each copy, whether the handler is still ours: two system
 * calls. Called again after a sleep in between. Copies outside of the brackets ask each time.
 */
void usercopy_begin(void);
void usercopy_end(void);

/**
 * 0 or -EFAULT with a record that names `what`. A failed copy may have moved a prefix.
 * Cost: that of a string move; 2 us with process_vm_readv when another handler has taken the place of ours.
 */
int copy_from_user(void *dst, uint64_t src_user, size_t size_B, const char *what);
int copy_to_user(uint64_t dst_user, const void *src, size_t size_B, const char *what);
/** Copies without raising: for probes. */
bool usercopy_try_from(void *dst, uint64_t src_user, size_t size_B);
bool usercopy_try_to(uint64_t dst_user, const void *src, size_t size_B);

#endif

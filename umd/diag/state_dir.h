/* SPDX-License-Identifier: MIT */
/* state_dir.h - the user's directory for what must outlive a process, and how old files in such a directory are bounded. */
#ifndef UMD_DIAG_STATE_DIR_H
#define UMD_DIAG_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>

/*
 * All of it works on system calls alone, without memory and locks: a signal handler may be the one that needs it.
 *
 * Candidates in order: $PETREL_STATE_DIR alone, where it is set; else $XDG_RUNTIME_DIR/petrel, /dev/shm/petrel-UID, /tmp/petrel-UID.
 */
#define UMD_STATE_DIRS 3u
#define UMD_STATE_PATH_B 512u   /* longer paths are not used: a signal's stack may be small */
/* False: no such candidate, or its path does not fit. */
bool umd_state_dir(uint32_t index, char *out, size_t size);
/* Makes it with mode 0700 if it is not there. 0, or an errno value: EPERM another user's, EACCES others may write to it, ENOTDIR or
 * ELOOP a file or a symbolic link. */
int umd_state_dir_make(const char *path);
/* As above, without making it. */
UMD_API int umd_state_dir_check(const char *path);

/* Joins path parts; false if they do not fit. */
bool umd_path_join(char *out, size_t size, const char *dir, const char *name);

struct umd_state_file { const char *path, *name; uint64_t mtime_ns, size_B; };
/* Calls fn for each regular file of dir whose name begins with prefix. False: the directory cannot be read. */
bool umd_state_files(const char *dir, const char *prefix, void (*fn)(void *arg, const struct umd_state_file *file), void *arg);
/* Removes the oldest of those files for which `old` holds (NULL: all) until `keep` are left. A bounded number per call. */
void umd_state_files_keep(const char *dir, const char *prefix, uint32_t keep, bool (*old)(const struct umd_state_file *file));

#endif

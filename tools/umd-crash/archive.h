/* SPDX-License-Identifier: MIT */
/* archive.h - a tar.gz (POSIX ustar in gzip) whose bytes follow from what is put in alone. */
#ifndef CRASH_ARCHIVE_H
#define CRASH_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

struct archive;
/* NULL: errno says why. The file appears under its name with archive_end. */
struct archive *archive_begin(const char *path);
/* A file of that name (under 100 bytes) and those bytes. What cannot be written archive_end tells. */
void archive_add(struct archive *a, const char *name, const void *bytes, size_t n);
/* The same of a regular file at its start, as large as it is now; not held in memory. False: it cannot be read whole, errno says why. */
bool archive_add_file(struct archive *a, const char *name, int fd);
/* The file that was there before stays, nothing else is left. */
void archive_abort(struct archive *a);
/* False: it could not be written, and nothing is left. */
bool archive_end(struct archive *a);

#endif

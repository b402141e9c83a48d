/* SPDX-License-Identifier: MIT */
/* gunzip.h - bytes out of a gzip file, up to the place where it is damaged. */
#ifndef UMD_LOG_GUNZIP_H
#define UMD_LOG_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gunzip;

/* Reads from fd, which stays the caller's and must live as long. NULL: no memory. */
struct gunzip *gunzip_open(int fd);
void gunzip_close(struct gunzip *g); /* NULL is fine */
/* Up to n bytes; 0: the end, of the file or of what is sound in it; -1 with errno: it cannot be read. Members that follow each other are one. */
ssize_t gunzip_read(struct gunzip *g, void *to, size_t n);
/* All that could be inflated has been handed out, and there was more that could not, or a checksum that is wrong. */
bool gunzip_is_damaged(const struct gunzip *g);

#endif

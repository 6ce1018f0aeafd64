/*
 * io.h - writing that does not stop half-way.
 */
#ifndef ANALYZER_UTIL_IO_H
#define ANALYZER_UTIL_IO_H

#include <stddef.h>
#include <stdint.h>

/* All of it, at that place of the file. 0 or negative errno, -ENOSPC where nothing is taken. */
int io_write_at(int fd, const void *data, size_t bytes, uint64_t at);

#endif

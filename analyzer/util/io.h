/*
 * io.h - reads and writes without partial results.
 */
#ifndef ANALYZER_UTIL_IO_H
#define ANALYZER_UTIL_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read up to `bytes` bytes at offset `at`. How many, fewer only at the end; negative errno. */
ssize_t io_read_at(int fd, void *into, size_t bytes, uint64_t at);
/* Write all bytes at offset `at`. 0 or negative errno; -ENOSPC: the system accepts no byte. */
int io_write_at(int fd, const void *data, size_t bytes, uint64_t at);

#endif

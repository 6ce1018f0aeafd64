/*
 * io.h - writes without partial results.
 */
#ifndef ANALYZER_UTIL_IO_H
#define ANALYZER_UTIL_IO_H

#include <stddef.h>
#include <stdint.h>

/* Write all bytes at offset `at`. 0 or negative errno; -ENOSPC: the system accepts no byte. */
int io_write_at(int fd, const void *data, size_t bytes, uint64_t at);

#endif

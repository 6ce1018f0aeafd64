/*
 * io.h - reads and writes without partial results.
 */
#ifndef ANALYZER_UTIL_IO_H
#define ANALYZER_UTIL_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/text/err.h"
#include "util/text/str.h"

/* Read up to `bytes` bytes at offset `at`. How many, fewer only at the end; negative errno. */
ssize_t io_read_at(int fd, void *into, size_t bytes, uint64_t at);
/* Write all bytes at offset `at`. 0 or negative errno; -ENOSPC: the system accepts no byte. */
int io_write_at(int fd, const void *data, size_t bytes, uint64_t at);
/* Append a whole file to the text. 0; -EFBIG: it has more than `most` bytes; -EIO: it cannot be
 * read to its end, or there is no memory; other negative errno: it cannot be opened. With err. */
int io_read_text(const char *path, size_t most, struct str *text, struct err *err);

#endif

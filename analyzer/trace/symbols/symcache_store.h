/*
 * symcache_store.h - the cache directory of symcache.c: $WHYOOM_CACHE, else $XDG_CACHE_HOME/whyoom,
 * else
 * ~/.cache/whyoom. Private, mode 0700 with files of mode 0600; a directory of another user is not
 * used. Files appear whole or not at all.
 */
#ifndef ANALYZER_TRACE_SYMCACHE_STORE_H
#define ANALYZER_TRACE_SYMCACHE_STORE_H

#include <stddef.h>

#include "trace/symbols/symcache.h"

#define SYMCACHE_SUFFIX ".symbols" /* of a file name, after hexadecimal digits and "-" */

/* The identity of this program's own file. */
const struct symcache_mark *symcache_store_program(const struct symcache_store *store);
/* Read a whole file, which the caller frees. NULL: absent, of another user, or larger than `most`.
 */
char *symcache_store_read(
    struct symcache_store *store, const char *name, size_t most, size_t *bytes);
/* Write a file, and make the directory if needed. Errors are ignored. */
void symcache_store_write(
    struct symcache_store *store, const char *name, const void *data, size_t bytes);

#endif

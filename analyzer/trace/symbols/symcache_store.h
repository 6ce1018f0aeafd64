/*
 * symcache_store.h - the directory in which symcache.c keeps its files: $WHYOOM_CACHE, else
 * $XDG_CACHE_HOME/whyoom, else ~/.cache/whyoom. Private: ours alone, mode 0700, and its files 0600;
 * another one's is not used. Files appear whole or not at all.
 */
#ifndef ANALYZER_TRACE_SYMCACHE_STORE_H
#define ANALYZER_TRACE_SYMCACHE_STORE_H

#include <stddef.h>

#include "trace/symbols/symcache.h"

#define SYMCACHE_SUFFIX ".symbols" /* of a name; before it hexadecimal digits and "-" */

/* This program's own file. */
const struct symcache_mark *symcache_store_program(const struct symcache_store *store);
/* A whole file, to be freed; NULL: there is none, it is not ours, or has more than `most` bytes. */
char *symcache_store_read(
    struct symcache_store *store, const char *name, size_t most, size_t *bytes);
/* Makes the directory first. What fails is left out. */
void symcache_store_write(
    struct symcache_store *store, const char *name, const void *data, size_t bytes);

#endif

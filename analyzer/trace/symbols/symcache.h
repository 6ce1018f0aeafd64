/*
 * symcache.h - caches the functions of addresses on disk from one report to the next, as DWARF is
 * slow to read. One cache file for each ELF file, by build id and file system facts; a change of
 * the ELF file, its debug information or this program invalidates it. Optional: a failed read or
 * write costs time only. A cache file is not trusted: a wrong, cut or foreign one counts as none.
 */
#ifndef ANALYZER_TRACE_SYMCACHE_H
#define ANALYZER_TRACE_SYMCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "trace/symbols/objfile.h"

/* The identity of a file in the file system; all 0: there is no file. */
struct symcache_mark {
	uint64_t device, inode, size, mtime_ns, ctime_ns;
};
struct symcache_mark symcache_mark(const struct stat *st);

/* How many paths may hold an ELF file's debug information. */
#define SYMCACHE_PLACES 4u
#define SYMCACHE_LINK_MAX 256u

/* What else the answers depend on. */
struct symcache_debug {
	char link[SYMCACHE_LINK_MAX]; /* the name in .gnu_debuglink, "" */
	struct symcache_mark places[SYMCACHE_PLACES];
};

/* Open the cache directory. NULL: no cache, by WHYOOM_CACHE=off or without a directory for it. */
struct symcache_store *symcache_store_open(void);
/* Close it, and remove the oldest files when it has grown too large. */
void symcache_store_close(struct symcache_store *store);

/* Load the cached answers of a file; `store` may be NULL. NULL: no memory. */
struct symcache *symcache_open(struct symcache_store *store, const uint8_t *id, size_t id_bytes,
    const struct symcache_mark *file);
/* What the cached answers depend on; NULL: there are none. */
const struct symcache_debug *symcache_kept(const struct symcache *c);
/* True: the answers are on disk, or will be once it is closed. */
bool symcache_is_kept(const struct symcache *c);
/* Drop all cached answers; new ones depend on `debug`. NULL: do not save any. */
void symcache_renew(struct symcache *c, const struct symcache_debug *debug);
/* Save new answers and free the cache. */
void symcache_close(struct symcache *c);

/* Look an address up as objfile_lookup() does; strings live as long as the cache. -1: not cached.
 */
int symcache_find(
    const struct symcache *c, uint64_t address, struct objfile_frame frames[OBJFILE_FRAMES_MAX]);
/* Add an answer; the cache copies the frames' strings and makes `frames` point to them. False: no
 * memory. */
bool symcache_add(struct symcache *c, uint64_t address, struct objfile_frame *frames, size_t count);

#endif

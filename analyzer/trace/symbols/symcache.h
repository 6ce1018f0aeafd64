/*
 * symcache.h - what was found out about addresses of ELF files, kept on disk from one report to the
 * next: DWARF is dear to read. One file for each ELF file as it was, found by build id and by what
 * the file system says of it; whatever changes, an ELF file, its debug information or this program,
 * makes its answers old. Never needed: what cannot be read is found out again, what cannot be
 * written is not kept. What is read is not trusted: a wrong, cut or foreign file counts as none.
 */
#ifndef ANALYZER_TRACE_SYMCACHE_H
#define ANALYZER_TRACE_SYMCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "trace/symbols/objfile.h"

/* A file as the file system knows it; all 0: there is none. */
struct symcache_mark {
	uint64_t device, inode, size, mtime_ns, ctime_ns;
};
struct symcache_mark symcache_mark(const struct stat *st);

/* The files with an ELF file's debug information may be at as many places. */
#define SYMCACHE_PLACES 4u
#define SYMCACHE_LINK_MAX 256u

/* What else the answers depend on. */
struct symcache_debug {
	char link[SYMCACHE_LINK_MAX]; /* the name in .gnu_debuglink, "" */
	struct symcache_mark places[SYMCACHE_PLACES];
};

/* The directory. NULL: nothing is kept, as asked by WHYOOM_CACHE=off, or because there is no place
 * for it. */
struct symcache_store *symcache_store_open(void);
/* Takes the oldest away when there is too much. */
void symcache_store_close(struct symcache_store *store);

/* Reads what is kept of this file; `store` may be NULL. NULL: no memory. */
struct symcache *symcache_open(struct symcache_store *store, const uint8_t *id, size_t id_bytes,
    const struct symcache_mark *file);
/* What the kept answers depended on; NULL: nothing is kept. */
const struct symcache_debug *symcache_kept(const struct symcache *c);
/* What is found out is on disk, or will be when it is closed. */
bool symcache_is_kept(const struct symcache *c);
/* The kept answers are of no use, and what new ones depend on; NULL: they are not to be kept. */
void symcache_renew(struct symcache *c, const struct symcache_debug *debug);
/* Writes what is new. */
void symcache_close(struct symcache *c);

/* An answer as of objfile_lookup(), of strings that live as long as the cache; -1: none is kept. */
int symcache_find(
    const struct symcache *c, uint64_t address, struct objfile_frame frames[OBJFILE_FRAMES_MAX]);
/* One more answer; the frames' strings become the cache's own. false: no memory. */
bool symcache_add(struct symcache *c, uint64_t address, struct objfile_frame *frames, size_t count);

#endif

/*
 * objfile.h - the ELF file behind a module of the trace, and what its symbols and DWARF say about
 * an address. Offline: only files of this machine are looked at, by path and build id; nothing is
 * fetched. The file is local, but its path was somebody else's choice: only regular files are read.
 */
#ifndef ANALYZER_TRACE_OBJFILE_H
#define ANALYZER_TRACE_OBJFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/definitions/definitions.h"

struct objfile;
struct symcache_store;

enum objfile_state {
	OBJFILE_FOUND,
	OBJFILE_NONE, /* nothing that could have a file, such as the vdso */
	OBJFILE_MISSING, /* no file, nor debug information by build id */
	OBJFILE_DIFFERENT, /* there is a file, but another one */
	OBJFILE_UNREADABLE,
};

/* Never NULL but without memory. What is in `store`, which may be NULL, is not looked up again, and
 * what is looked up goes there when the file is closed. */
struct objfile *objfile_open(
    const struct def_module *module, struct symcache_store *store, enum objfile_state *state);
void objfile_close(struct objfile *o);
/* What it says is, or will be when it is closed, kept on disk: to open it again takes next to no
 * time.
 */
bool objfile_is_kept(const struct objfile *o);

/* One function at an address; of inlined ones the innermost is last. */
struct objfile_frame {
	const char *function; /* readable; NULL: unknown */
	const char *file;
	uint32_t line;
	bool inlined;
};
#define OBJFILE_FRAMES_MAX 64u

/* Functions at an address of the file's own, outermost first; strings live as long as the object.
 * 0: nothing is known. */
size_t objfile_lookup(struct objfile *o, uint64_t address, struct objfile_frame *frames);

/* The readable form of a C++ or Rust name, to be freed; NULL: it is not mangled. */
char *objfile_demangle(const char *name);

#endif

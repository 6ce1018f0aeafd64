/*
 * objfile.h - opens the ELF file of a module and looks addresses up in its symbols and DWARF.
 * Offline: it reads files of this machine, by path and build id, and fetches nothing. The path
 * comes from the trace, so only regular files are read.
 */
#ifndef ANALYZER_TRACE_OBJFILE_H
#define ANALYZER_TRACE_OBJFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/definitions/definitions.h"

struct objfile;
struct symcache_store;

/* Open the file of a module: the one at its path, or debug information of its build id. Answers are
 * taken from and, on close, saved to `store`, which may be NULL. NULL: no memory. */
struct objfile *objfile_open(const struct def_module *module, struct symcache_store *store);
void objfile_close(struct objfile *o);
/* True: its answers are on disk, or will be once it is closed, so opening it again is cheap. */
bool objfile_is_kept(const struct objfile *o);

/* A function at an address. */
struct objfile_frame {
	const char *function; /* readable; NULL: unknown */
	const char *file;
	uint32_t line;
	bool inlined;
};
#define OBJFILE_FRAMES_MAX 64u

/* Give the functions at an address of the file, outermost first, inlined ones included. Strings
 * live as long as the object. Returns how many; 0: none known. */
size_t objfile_lookup(struct objfile *o, uint64_t address, struct objfile_frame *frames);

/* The readable form of a C++ or Rust name; the caller frees it. NULL: it is not mangled. */
char *objfile_demangle(const char *name);

#endif

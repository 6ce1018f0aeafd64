/*
 * definitions.h - reads the definition chunks of a file: strings, modules, code objects, facts,
 * spaces, threads and stacks. In two passes, as records come in any order and stacks name the
 * others.
 */
#ifndef ANALYZER_TRACE_DEFS_H
#define ANALYZER_TRACE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/cursor.h"
#include "trace/definitions/stacks.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

struct def_range {
	uint64_t address, size, offset;
	uint32_t flags; /* 1 executable, 2 writable */
};

/* A loaded ELF file. Loaded twice, it is one module. */
struct def_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_bytes;
	uint64_t bias, device, inode, file_size, mtime_ns;
	struct def_range *ranges;
	size_t range_count;
};

/* A Python code object. Objects of equal contents are one. */
struct def_code {
	uint32_t version; /* major * 256 + minor */
	uint32_t first_line;
	bool plain_name; /* the name is not qualified */
	const char *name, *file;
	const uint8_t *lines;
	size_t line_bytes;
};

struct def_thread {
	uint32_t serial, tid;
	const char *name;
};

struct def_info {
	const char *key, *value;
	size_t value_bytes; /* values may hold NULs */
};

struct def_pending; /* a stack whose base is defined later */
struct def_flights; /* stacks whose lookup is under way */

struct defs {
	struct arena arena;
	struct map strings; /* id: address of the text */
	struct map module_ids, code_ids, space_ids; /* id: index plus 1 */
	struct intern same; /* contents of modules and code objects */
	struct map same_ids; /* intern id: index plus 1 */
	VEC(struct def_module) modules;
	VEC(struct def_code) codes;
	VEC(const char *) spaces;
	VEC(struct def_thread) threads;
	VEC(struct def_info) infos;
	struct map thread_serials;
	struct intern info_keys;
	struct stacks stacks;
	VEC(struct def_pending) pending;
	struct map pending_ids;
	struct def_flights *flights;
	uint64_t unknown; /* records of unknown kinds, from a newer version */
	uint64_t broken; /* records whose body contradicts the format */
	bool checks; /* records have checksums: after a bad one, search on 8 bytes further */
	/* The last body: bytes of its sound records, and the offset of its first damaged or
	 * unfinished record (DEFS_SOUND: there is none). */
	uint64_t sound_bytes;
	size_t unsound_at;
};

#define DEFS_SOUND SIZE_MAX

int defs_init(struct defs *d, uint64_t bytes_of_definitions);
void defs_fini(struct defs *d);

/* Read the body of a definition chunk: all bodies with `stacks` false, then all with true. *torn:
 * the rest of the body cannot be divided into records. 0 or -ENOMEM. */
int defs_read(struct defs *d, const void *body, size_t bytes, bool stacks, bool *torn);
/* Zero the records of a body that `before`, an earlier copy of it, had complete: defs_read() then
 * reads only what a running process added. */
void defs_forget(uint8_t *body, const uint8_t *before, size_t bytes, bool checks);
/* Call after both passes over what was there: resolves stacks that came before their base. Further
 * passes may add to it. 0 or -ENOMEM. */
int defs_pause(struct defs *d);
/* The same after the last pass. */
int defs_finish(struct defs *d);

/* stack_tree.c, for definitions.c: take a definition of a stack. Its bytes must stay valid until
 * defs_stacks_settle(), as several lookups run at a time. 0; 1: it contradicts the format; -ENOMEM.
 * A contradiction that is found later counts in d->broken. */
int defs_stack(struct defs *d, struct cursor *c);
/* Finish all lookups: each stack is defined, or waits for its base. 0 or -ENOMEM. */
int defs_stacks_settle(struct defs *d);
void defs_stacks_fini(struct defs *d);

const char *defs_string(const struct defs *d, uint64_t id);
const struct def_info *defs_info(const struct defs *d, const char *key);

#endif

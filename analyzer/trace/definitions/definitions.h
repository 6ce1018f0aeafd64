/*
 * definitions.h - what the definition chunks of a file say: strings, modules, code objects, facts,
 * spaces, threads and stacks. Two passes over the chunks: records may come in any order, and
 * stacks name the others.
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

/* An ELF file that was loaded. One that was loaded twice is one module. */
struct def_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_bytes;
	uint64_t bias, device, inode, file_size, mtime_ns;
	struct def_range *ranges;
	size_t range_count;
};

/* A Python code object; one of the same contents is the same. */
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
struct def_flights; /* stacks that are being looked for */

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
	uint64_t unknown; /* records of kinds that a newer version has */
	uint64_t broken; /* records whose body contradicts the format */
	bool checks; /* records end with one: what has none is looked past, 8 bytes at a time */
	/* Of the last body: bytes of its sound records, and where the first lies that is not, or is
	 * not finished; DEFS_SOUND: all are. */
	uint64_t sound_bytes;
	size_t unsound_at;
};

#define DEFS_SOUND SIZE_MAX

int defs_init(struct defs *d, uint64_t bytes_of_definitions);
void defs_fini(struct defs *d);

/* The body of a definition chunk, once with each pass: false first, true for the stacks. *torn is
 * set when its framing is broken from some point on. 0 or -ENOMEM. */
int defs_read(struct defs *d, const void *body, size_t bytes, bool stacks, bool *torn);
/* After both passes: stacks whose base came later than they. Nothing is defined any more. */
int defs_finish(struct defs *d);

const char *defs_string(const struct defs *d, uint64_t id);
const struct def_info *defs_info(const struct defs *d, const char *key);

#endif

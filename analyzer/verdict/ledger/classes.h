/*
 * classes.h - what lives, each byte in one class: by what the findings claim, the best first; then
 * by what the history of its place shows. The rest is in no class, and in `heap_other`,
 * `maps_other`, `shared_other` and `files_other`. Blames nobody: a class is where bytes are, not
 * why it ran out.
 */
#ifndef ANALYZER_VERDICT_CLASSES_H
#define ANALYZER_VERDICT_CLASSES_H

#include "verdict/result.h"

enum live_class {
	CLASS_WEIGHTS,
	CLASS_POOLS,
	CLASS_PROMPT,
	CLASS_RETAINED,
	CLASS_LEAKED,
	CLASS_REQUESTS,
	CLASS_ONE_OFF,
	CLASS_COUNT,
	CLASS_NONE = CLASS_COUNT,
};
const char *class_name(enum live_class class); /* the ledger's row: "grows with the prompt" */
/* Returns the class of what a cause claims; CLASS_NONE where it claims nothing that lives. */
enum live_class class_of_cause(enum cause cause);

struct classes_input {
	const struct callsites *callsites;
	const enum role *roles; /* by place; NULL: nothing is known */
	const struct candidate *candidates; /* of these places, best first */
	size_t candidate_count;
	bool device;
	/* All that lives, which is more than places tell; shared memory and files are of map_bytes.
	 */
	uint64_t heap_bytes, map_bytes, shared_bytes, file_bytes;
};

/* Blocks, private mappings and shared memory apart: they lie in different rows' room. */
struct classes {
	struct {
		uint64_t heap, maps, shared; /* maps: those of files, too */
	} of[CLASS_COUNT];
	uint64_t heap_other, maps_other, shared_other, files_other;
	uint64_t arenas, arenas_free; /* the interpreter's: in use and in no class; not in use */
};

/* 0 or -ENOMEM. */
int classes_make(const struct classes_input *in, struct classes *out);

#endif

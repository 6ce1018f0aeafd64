/*
 * classes.h - put each live byte in one class: by the findings' claims, the best finding first,
 * then by the history of its call site. Bytes of no class are in `heap_other`, `maps_other`,
 * `shared_other` and `files_other`. A class says where bytes are, not why memory ran out.
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
	const enum role *roles; /* by call site; NULL: none is known */
	const struct candidate *candidates; /* of these call sites, best first */
	size_t candidate_count;
	bool device;
	/* All live bytes, which are more than the call sites'. map_bytes includes shared memory and
	 * files. */
	uint64_t heap_bytes, map_bytes, shared_bytes, file_bytes;
};

/* Bytes of blocks, private mappings and shared memory: a limit charges each in another way. */
struct classes {
	struct {
		uint64_t heap, maps, shared; /* maps: with those of files */
	} of[CLASS_COUNT];
	uint64_t heap_other, maps_other, shared_other, files_other;
	uint64_t arenas, arenas_free; /* of the interpreter: in use, in no class; not in use */
};

/* Fill *out. 0 or -ENOMEM. */
int classes_make(const struct classes_input *in, struct classes *out);

#endif

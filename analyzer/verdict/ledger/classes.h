/*
 * classes.h - puts each live byte in one class: by the findings' claims, the best finding first,
 * then by its call site's history. Bytes without a class are in `heap_other`, `maps_other`,
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
/* Return the class of a cause's claims; CLASS_NONE if it claims no live bytes. */
enum live_class class_of_cause(enum cause cause);

struct classes_input {
	const struct callsites *callsites;
	const enum role *roles; /* by call site; NULL: unknown */
	const struct candidate *candidates; /* of these call sites, best first */
	size_t candidate_count;
	/* It failed, and no cause was found: what grew stays without a class, because a class says
	 * a cause that the verdict does not. */
	bool undecided;
	bool device;
	bool attached; /* its work had begun before its first event */
	/* All live bytes, with or without a call site. map_bytes includes shared memory, files. */
	uint64_t heap_bytes, map_bytes, shared_bytes, file_bytes;
};

/* Bytes of blocks, private mappings and shared memory: a limit charges each differently. */
struct classes {
	struct {
		uint64_t heap, maps, shared; /* maps: including files */
	} of[CLASS_COUNT];
	uint64_t heap_other, maps_other, shared_other, files_other;
	uint64_t arenas, arenas_free; /* the interpreter's: used, without a class; free */
};

/* Fill *out, and the call sites' own classes. 0 or -ENOMEM. */
int classes_make(const struct classes_input *in, struct classes *out);

#endif

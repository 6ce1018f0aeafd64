/*
 * detect.h - the form every detector fills, and what it hands back. A detector sees the model of
 * one process and says whether the shape of its cause is there, what bytes it accounts for, with
 * which evidence, and what the program would have held without it. It knows no rival, prints
 * nothing, and does not decide: verdict/ replays the trace without each cause and ranks them.
 */
#ifndef ANALYZER_DETECT_DETECT_H
#define ANALYZER_DETECT_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "model/place.h"

/* What a detector is given. Everything belongs to the caller. */
struct scene {
	const struct model *model;
	const struct places *places;
	const struct failure *failure; /* the request nobody recovered from, or NULL */
	bool failed; /* the process ran out, by refusal or by a kill */
	uint64_t limit_bytes; /* 0: none known */
	uint64_t usage_bytes; /* at the moment, in the limit's measure; 0: not known */
};

/* What a block would have been, had the cause not been there. Rules work on the sum of a place, or
 * on one block alone, so that a replay needs no memory for each block. */
enum rule {
	RULE_CAP_SIZE, /* each block at most `value` bytes */
	RULE_KEEP_BYTES, /* the place holds at most `value` bytes: the oldest go first */
	RULE_EXPIRE, /* each block is released after `value` ns, if not before */
	RULE_STREAM, /* blocks above `value` bytes are taken in pieces of that size */
};

struct claim {
	uint32_t place;
	enum rule rule;
	uint64_t value;
	uint64_t bytes; /* live at the moment, that would not have been */
};
#define CLAIMS_MAX 64u

struct evidence {
	const char *fact; /* static words */
	double value;
	const char *unit; /* "bytes", "blocks", "share", "ns", "1" */
};
#define EVIDENCE_MAX 16u

struct finding {
	const char *cause; /* a row of the table of causes */
	double strength; /* 0 to 1: how well the shape fits, whatever its size */
	uint64_t bytes; /* sum over claims */
	uint64_t request_bytes; /* of the refused request, that would not have been asked for */
	uint32_t blame; /* place, or PLACE_NONE */
	const char *fix; /* key into the fixes: usually the cause */
	struct claim claims[CLAIMS_MAX];
	uint32_t claim_count;
	struct evidence evidence[EVIDENCE_MAX];
	uint32_t evidence_count;
};

#define DETECT_SILENT 1 /* judge(): the shape is not there */

struct detector {
	const char *name, *claim; /* "leak", and what it asserts in a sentence */
	int (*open)(const struct scene *scene, void **state);
	/* Each event of the first pass; NULL when the model's facts are enough. */
	void (*on_event)(void *state, const struct event *event);
	int (*judge)(void *state, struct finding *out); /* 0, DETECT_SILENT, negative errno */
	void (*close)(void *state);
};

extern const struct detector *const detectors[]; /* ends with NULL */

/* For detectors: adds to a finding; what no longer fits is left out. */
void finding_claim(
    struct finding *f, uint32_t place, enum rule rule, uint64_t value, uint64_t bytes);
void finding_evidence(struct finding *f, const char *fact, double value, const char *unit);

#endif

/*
 * causes.h - the causes that a verdict can name and the facts that support it: the rows of
 * causes.def as enums, with their texts. All strings are static; every function is thread-safe.
 */
#ifndef ANALYZER_KNOWLEDGE_CAUSES_H
#define ANALYZER_KNOWLEDGE_CAUSES_H

enum cause {
	CAUSE_UNKNOWN, /* the evidence does not decide; also: no cause */
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) CAUSE_##id,
#include "knowledge/causes.def"
	CAUSE_COUNT
};

/* Return the name, as in reports and JSON: "leak"; "unknown" for CAUSE_UNKNOWN. */
const char *cause_name(enum cause cause);
/* Return the cause of that name; CAUSE_UNKNOWN for "unknown" and for any other word. */
enum cause cause_by_name(const char *name);
/* Return the change that takes the cause away; NULL where there is none. */
const char *cause_what_if(enum cause cause);

enum unit { UNIT_BYTES, UNIT_BLOCKS, UNIT_SHARE, UNIT_NS, UNIT_COUNT };

enum fact {
#define FACT(id, text, unit) FACT_##id,
#include "knowledge/causes.def"
	FACT_COUNT
};

const char *fact_text(enum fact fact); /* "blocks never released" */
enum unit fact_unit(enum fact fact);
/* Return the unit as in JSON: "bytes", "blocks", "share", "ns" or "1". */
const char *unit_name(enum unit unit);

#endif

/*
 * framework_frames.h - inside verdict/: the knowledge files' data on a process's symbols and
 * stacks. Each symbol and each stack is looked up once. Stacks share most of their frames, so a
 * lookup costs only the frames that a stack does not share.
 */
#ifndef ANALYZER_VERDICT_FRAMEWORK_FRAMES_H
#define ANALYZER_VERDICT_FRAMEWORK_FRAMES_H

#include "knowledge/knowledge.h"
#include "model/feed.h"
#include "util/map.h"
#include "util/vec.h"

struct framework_stack {
	uint16_t role : 6; /* enum role of the innermost frame with a role, except an allocator's */
	uint16_t stage : 6; /* of the innermost frame in a pipeline's stage */
	uint16_t in_request : 1; /* one of its frames begins the work of a request */
	uint16_t seen : 1; /* used by framework_frames.c */
};

/* The frames of one feed. */
struct framework_frames {
	const struct knowledge *knowledge;
	VEC(struct framework_symbol) symbols; /* by symbol id */
	VEC(const struct knowledge_framework *) frameworks; /* of these symbols */
	struct map owners; /* frameworks, by the address of a file's or module's name */
	VEC(struct framework_stack) stacks; /* by stack id */
	uint32_t looks; /* number of single lookups; UINT32_MAX: all were looked up */
	struct stack_path path; /* of the last lookup */
	/* by frame: of the stack's frames up to it, from the outermost */
	VEC(struct framework_stack) on_path;
};

struct framework_frames *framework_frames_new(
    const struct knowledge *knowledge); /* NULL: no memory */
void framework_frames_free(struct framework_frames *frames); /* accepts NULL */

/* Look up a symbol: afresh, or with memory. The strings belong to the knowledge. */
struct knowledge_place framework_lookup(const struct knowledge *knowledge, const struct symbol *s);
struct knowledge_place framework_frame(struct framework_frames *frames, const struct symbol *s);
/* Return a symbol's result, for an id below symbols.count; no framework: not looked up. */
struct knowledge_place framework_looked_at(const struct framework_frames *frames, size_t symbol);
/* Look up a stack. Without memory it has no role and no stage. */
struct framework_stack framework_stack(
    struct framework_frames *frames, const struct feed *feed, uint32_t stack);
/* Look up all stacks of a feed that has many, before its events are read: later this would need the
 * most memory of all steps. */
void framework_look_ahead(struct framework_frames *frames, const struct feed *feed);
/* True if the role is a stage of a pipeline, not an entry or fan-out, which hands work on. */
bool framework_is_stage(enum role role);

#endif

/*
 * framework_frames.h - inside verdict/: what the knowledge files say of a process' symbols and of
 * its stacks. Each symbol is looked up once, and each stack looked at once; the stacks of a process
 * share most of their frames, so a look costs what a stack has of its own.
 */
#ifndef ANALYZER_VERDICT_KNOWN_FRAMES_H
#define ANALYZER_VERDICT_KNOWN_FRAMES_H

#include "knowledge/knowledge.h"
#include "model/feed.h"
#include "util/map.h"
#include "util/vec.h"

struct framework_stack {
	uint16_t role : 6; /* enum role of the innermost frame that has one, but an allocator's */
	uint16_t stage : 6; /* of the innermost that is of a stage of a pipeline */
	uint16_t in_request : 1; /* a frame on it is where the work of a request begins */
	uint16_t seen : 1; /* its own */
};

/* Of one feed. */
struct framework_frames {
	const struct knowledge *knowledge;
	VEC(struct framework_symbol) symbols; /* by their ids */
	VEC(const struct knowledge_framework *) frameworks; /* that symbols are of */
	struct map owners; /* frameworks, by where the name of a Python file or module is */
	VEC(struct framework_stack) stacks; /* by their ids */
	uint32_t looks; /* at single ones; UINT32_MAX: all were looked at */
	struct stack_path path; /* the stack that was looked at last */
	VEC(struct framework_stack) on_path; /* of its frames from the outermost to each */
};

struct framework_frames *framework_frames_new(
    const struct knowledge *knowledge); /* NULL: no memory */
void framework_frames_free(struct framework_frames *frames); /* accepts NULL */

/* Looked up now. */
struct knowledge_place known_callsite(const struct knowledge *knowledge, const struct symbol *s);
struct knowledge_place framework_frame(struct framework_frames *frames, const struct symbol *s);
/* By a symbol's id below symbols.count; of no framework: it was not looked at. */
struct knowledge_place framework_looked_at(const struct framework_frames *frames, size_t symbol);
/* Of no role and no stage where there is no memory to tell. */
struct framework_stack framework_stack(
    struct framework_frames *frames, const struct feed *feed, uint32_t stack);
/* Looks at all stacks of a feed that has many of them: before its events are read no more memory is
 * taken than what that takes. */
void framework_look_ahead(struct framework_frames *frames, const struct feed *feed);
/* Work that is handed on is of the stage that it is handed to. */
bool framework_is_stage(enum role role);

#endif

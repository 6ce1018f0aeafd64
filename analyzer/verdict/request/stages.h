/*
 * stages.h - inside verdict/: what each stage of a pipeline (loading documents, splitting,
 * embedding, retrieval, prompt assembly, the model's call, a tool, checkpoints, history) held, by
 * the roles of the frames on the stacks: the innermost frame with a role decides.
 *
 * An event costs a look into a table.
 */
#ifndef ANALYZER_VERDICT_STAGES_H
#define ANALYZER_VERDICT_STAGES_H

#include "verdict/framework/framework_frames.h"

struct stage {
	enum role role;
	uint64_t held, peak; /* bytes, at the moment and at most until then */
	uint64_t peak_ns, total; /* total: bytes ever acquired */
};

struct stages {
	const struct feed *feed;
	struct framework_frames *known; /* NULL: nothing is known, and there are no stages */
	struct stage list[ROLE_COUNT]; /* by role */
};

/* Both are borrowed; `known` may be NULL. There is nothing to give back. */
void stages_init(struct stages *s, const struct feed *feed, struct framework_frames *known);

/* ROLE_NONE: of no stage that is known, or there is no memory to tell. */
enum role stages_of(const struct stages *s, uint32_t stack);
/* Is a frame on it where the work of a request begins? False also for those too small to matter. */
bool stages_in_request(const struct stages *s, uint32_t stack);

void stages_acquired(struct stages *s, uint32_t stack, uint64_t size, uint64_t time_ns);
void stages_released(struct stages *s, uint32_t stack, uint64_t size);

/* Those that ever held anything, by what they held at most, the largest first. */
size_t stages_list(const struct stages *s, struct stage *out, size_t room);

#endif

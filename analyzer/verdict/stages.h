/*
 * stages.h - inside verdict/: what each stage of a pipeline (loading documents, splitting,
 * embedding, retrieval, prompt assembly, the model's call, a tool, checkpoints, history) held, by
 * the roles of the frames on the stacks: the innermost frame with a role decides.
 *
 * A stack is looked at once; an event costs a look into a table.
 */
#ifndef ANALYZER_VERDICT_STAGES_H
#define ANALYZER_VERDICT_STAGES_H

#include "knowledge/knowledge.h"
#include "model/feed.h"

struct stage {
	enum role role;
	uint64_t held, peak; /* bytes, at the moment and at most until then */
	uint64_t peak_ns, total; /* total: bytes ever acquired */
};

struct stages {
	const struct feed *feed;
	struct known_frames *frames; /* NULL: nothing is known, and there are no stages */
	uint8_t *of_stack; /* STAGE_*, by stack */
	uint32_t limit;
	struct stack_path path; /* the stack that was looked at last */
	uint8_t *seen; /* of its frames from the outermost to each: as a stack's byte */
	size_t seen_room;
	struct stage list[ROLE_COUNT]; /* by role */
};

void stages_init(struct stages *s, const struct feed *feed, const struct knowledge *knowledge);
void stages_fini(struct stages *s);

/* ROLE_NONE: of no stage that is known, or there is no memory to tell. */
enum role stages_of(struct stages *s, uint32_t stack);
/* Is a frame on it where the work of a request begins? False also for those too small to matter. */
bool stages_in_request(struct stages *s, uint32_t stack);

void stages_acquired(struct stages *s, uint32_t stack, uint64_t size, uint64_t time_ns);
void stages_released(struct stages *s, uint32_t stack, uint64_t size);

/* Those that ever held anything, by what they held at most, the largest first. */
size_t stages_list(const struct stages *s, struct stage *out, size_t room);

#endif

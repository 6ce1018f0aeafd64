/*
 * stages.h - inside verdict/: the memory of each stage of a pipeline (loading documents, splitting,
 * embedding, retrieval, prompt assembly, the model's call, a tool, checkpoints, history). The
 * innermost frame with a role decides a stack's stage. An event costs one table lookup.
 */
#ifndef ANALYZER_VERDICT_STAGES_H
#define ANALYZER_VERDICT_STAGES_H

#include "verdict/framework/framework_frames.h"

struct stage {
	enum role role;
	uint64_t held, peak; /* bytes: at the moment; the peak before */
	uint64_t peak_ns;
	uint64_t total; /* bytes ever acquired */
};

struct stages {
	const struct feed *feed;
	struct framework_frames *known; /* NULL: no known frames and no stages */
	struct stage list[ROLE_COUNT]; /* by role */
};

/* Both arguments must outlive *s; `known` may be NULL. There is nothing to free. */
void stages_init(struct stages *s, const struct feed *feed, struct framework_frames *known);

/* True if the work of a request begins at a frame of that stack. */
bool stages_in_request(const struct stages *s, uint32_t stack);
/* Return requests that begin there, too. They ask *s until is_entry is NULL. NULL: no memory. */
struct requests *stages_requests(struct stages *s);

void stages_acquired(struct stages *s, uint32_t stack, uint64_t size, uint64_t time_ns);
void stages_released(struct stages *s, uint32_t stack, uint64_t size);

/* List the stages that ever held anything, the highest peak first. Returns their number. */
size_t stages_list(const struct stages *s, struct stage out[ROLE_COUNT]);

#endif

/*
 * roles.h - what memory is for: live bytes by the role that the knowledge files give to the frames
 * of its stacks, and what is retained after the work is done. Results are of the model's end.
 */
#ifndef ANALYZER_WATCH_ROLES_H
#define ANALYZER_WATCH_ROLES_H

#include <stdint.h>

#include "model/callsite/callsite.h"
#include "verdict/framework/framework_frames.h"

/* Sum up the live bytes of a space by role; without a role: ROLE_NONE. `frames` remembers the
 * stacks; NULL: nothing is known of any. Takes time by the number of stacks. */
void roles_sum(struct framework_frames *frames, const struct model *m, uint64_t bytes[ROLE_COUNT]);
/* Return the bytes that growing call sites kept until `now_ns`, and that stores (caches, snapshots)
 * hold. */
uint64_t roles_retained(struct framework_frames *frames, const struct model *m,
    const struct callsites *all, uint64_t now_ns);

#endif

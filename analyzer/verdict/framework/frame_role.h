/*
 * frame_role.h - whose code a frame is, for pictures of stacks.
 */
#ifndef ANALYZER_VERDICT_FRAME_ROLE_H
#define ANALYZER_VERDICT_FRAME_ROLE_H

#include "knowledge/knowledge.h"
#include "model/callsite/blame.h"

/* ROLE(NAME, name, words) */
#define FRAME_ROLES(ROLE)                                                                          \
	ROLE(OWN, own, "your code")                                                                \
	ROLE(FRAMEWORK, framework, "framework")                                                    \
	ROLE(LIBRARY, library, "library")                                                          \
	ROLE(RUNTIME, runtime, "runtime, interpreter")
enum frame_role {
#define ROLE(NAME, name, words) FRAME_##NAME,
	FRAME_ROLES(ROLE)
#undef ROLE
	    FRAME_ROLE_COUNT
};
/* `known` NULL: no library is a framework. */
enum frame_role frame_role(const struct blame_context *context, const struct knowledge *known,
    const struct symbol *symbol);
/* "own", and "your code". */
const char *frame_role_name(enum frame_role role);
const char *frame_role_words(enum frame_role role);

#endif

/* frame_role.c - see frame_role.h. */
#include "verdict/framework/frame_role.h"

static const struct {
	const char *name, *words;
} roles[] = {
#define ROLE(NAME, name, words) {#name, words},
    FRAME_ROLES(ROLE)
#undef ROLE
};

const char *frame_role_name(enum frame_role role)
{
	return roles[role].name;
}

const char *frame_role_words(enum frame_role role)
{
	return roles[role].words;
}

/* True for a library that the knowledge files name. */
static bool of_framework(const struct knowledge *known, const struct symbol *s)
{
	const char *module = s->python ? NULL : s->module ? s->module : "";

	return known && knowledge_owner(known, s->file, module);
}

enum frame_role frame_role(
    const struct blame_context *context, const struct knowledge *known, const struct symbol *s)
{
	enum owner owner = s->cut ? OWNER_RUNTIME : blame_owner(context, s);

	if (owner == OWNER_USER)
		return FRAME_OWN;
	if (owner == OWNER_RUNTIME)
		return FRAME_RUNTIME;
	return of_framework(known, s) ? FRAME_FRAMEWORK : FRAME_LIBRARY;
}

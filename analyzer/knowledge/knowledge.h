/*
 * knowledge.h - what is known of frameworks beforehand, read from data files, one a framework: the
 * roles of their functions, what to change when each cause struck, and the messages that they
 * write when memory runs out. It sharpens and it names settings; no verdict may need it.
 *
 * Strings live as long as the knowledge. Lookups change nothing, so that threads may share one.
 */
#ifndef ANALYZER_KNOWLEDGE_KNOWLEDGE_H
#define ANALYZER_KNOWLEDGE_KNOWLEDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "knowledge/causes.h"
#include "util/text/err.h"

enum role {
	ROLE_NONE,
#define ROLE(id, name, what) ROLE_##id,
#include "knowledge/roles.def"
#undef ROLE
	ROLE_COUNT
};

/* Who keeps what was put there, on purpose. */
static inline bool role_is_store(enum role role)
{
	return role == ROLE_CHECKPOINTER || role == ROLE_CACHE;
}
const char *role_name(enum role role); /* "kv-cache"; "none" */
enum role role_by_name(const char *name); /* ROLE_NONE: there is none of that name */

enum message_kind {
#define KIND(id, name, what) MESSAGE_##id,
#include "knowledge/kinds.def"
#undef KIND
	MESSAGE_KIND_COUNT
};
const char *message_kind_name(enum message_kind kind); /* "failure" */

struct knowledge_framework {
	const char *id, *name; /* "vllm", "vLLM" */
	const char *path; /* of its file */
	bool serves; /* it has functions in which the work of a request begins */
};

/* What to change for a cause. */
struct knowledge_fix {
	const struct knowledge_framework *framework;
	enum cause cause;
	enum role role; /* only where the blamed frame has it; ROLE_NONE: anywhere */
	const char *space; /* only where the memory of "host" or "device" ran out; "": anywhere */
	const char *setting; /* the framework's own name for it, as `--max-model-len`; "" without */
	const char *text;
};
/* Does it apply where that space's memory ran out? "": nobody knows which. */
bool knowledge_fix_applies(const struct knowledge_fix *fix, const char *space);

#define KNOWLEDGE_CAUSES_MAX 4u
struct knowledge_cause {
	enum cause cause;
	double confidence; /* from the message alone */
};

/* A message in a log. The pattern is compiled by who matches it. */
struct knowledge_message {
	const struct knowledge_framework *framework;
	const char *name; /* "vllm/no-blocks", unique */
	const char *from; /* who writes it, for people */
	enum message_kind kind;
	const char *space; /* "host", "device" or "" */
	/* Literal texts, one of which every match holds in its first line. */
	const char *const *needles;
	size_t needle_count;
	const char *pattern; /* PCRE2, with {MACROS} */
	const char *each_name, *each; /* repeated within the match, as an array; NULL: nothing */
	const char *group; /* messages of one group that follow each other are one event; "" */
	const char *meaning;
	struct knowledge_cause causes[KNOWLEDGE_CAUSES_MAX]; /* likeliest first */
	size_t cause_count;
	const char *const *fixes;
	size_t fix_count;
	const char *const *overrules; /* settings that have no effect where this is said */
	size_t overrule_count;
	unsigned line;
};

struct knowledge;

/* Nothing known yet; NULL: no memory. */
struct knowledge *knowledge_new(void);
void knowledge_free(struct knowledge *knowledge);

/* Adds one file, which comes before those added earlier where they disagree. 0; negative errno with
 * err, which names file and line: then nothing of it was added. */
int knowledge_add(struct knowledge *knowledge, const char *path, struct err *err);
/* Adds every *.know file of a directory, by name. A file with a mistake is noted and left out. 0;
 * -ENOMEM, or another negative errno: the directory cannot be read. */
int knowledge_add_dir(struct knowledge *knowledge, const char *path);
/* What is shipped, then the user's own, as docs/explain.md says. NULL: no memory. Where nothing is
 * installed it knows nothing, and that is noted. */
struct knowledge *knowledge_open(void);

struct knowledge_place {
	enum role role;
	const struct knowledge_framework *framework; /* NULL: of none */
};
/* What a frame is known to be. Python: `module` is NULL; native code: `module` is the path of its
 * ELF file, and `file` is not asked. */
struct knowledge_place knowledge_place(
    const struct knowledge *knowledge, const char *function, const char *file, const char *module);
/* Its two parts. Is its function one of those that have a role? Else it is only of a framework, by
 * where its file is: the same for all functions of a file. */
bool knowledge_match(const struct knowledge *k, const char *function, const char *file,
    const char *module, struct knowledge_place *place);
const struct knowledge_framework *knowledge_owner(
    const struct knowledge *k, const char *file, const char *module);

const struct knowledge_framework *knowledge_framework(
    const struct knowledge *knowledge, const char *id); /* NULL: not known */
/* The fixes of a framework for a cause, those for `role` first; at most `room`. */
size_t knowledge_fixes(const struct knowledge *knowledge,
    const struct knowledge_framework *framework, enum cause cause, enum role role,
    const struct knowledge_fix **out, size_t room);
size_t knowledge_messages(
    const struct knowledge *knowledge, const struct knowledge_message *const **out);

#endif

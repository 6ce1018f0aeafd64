/*
 * knowledge.h - what is known about frameworks, from data files, one for each framework: the roles
 * of their functions, what to change for each cause, and their messages when memory runs out. It
 * sharpens a verdict and names settings; no verdict depends on it.
 *
 * Strings live as long as the knowledge. Lookups change nothing, so threads may share one.
 */
#ifndef ANALYZER_KNOWLEDGE_KNOWLEDGE_H
#define ANALYZER_KNOWLEDGE_KNOWLEDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "util/text/err.h"

/* The causes that a verdict can name and the facts that support it: the rows of causes.def, with
 * their texts, which are static. */
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

enum role {
	ROLE_NONE,
#define ROLE(id, name, what) ROLE_##id,
#include "knowledge/roles.def"
#undef ROLE
	ROLE_COUNT
};

/* True for roles that keep memory on purpose. */
static inline bool role_is_store(enum role role)
{
	return role == ROLE_CHECKPOINTER || role == ROLE_CACHE;
}
const char *role_name(enum role role); /* "kv-cache"; "none" */

enum message_kind {
#define KIND(id, name, what) MESSAGE_##id,
#include "knowledge/kinds.def"
#undef KIND
	MESSAGE_KIND_COUNT
};
const char *message_kind_name(enum message_kind kind); /* "failure" */

struct knowledge_framework {
	const char *id, *name; /* "vllm", "vLLM" */
	const char *path; /* of the framework's file */
	bool serves; /* some of its functions begin the work of a request */
};

/* A change that helps against a cause. */
struct knowledge_fix {
	const struct knowledge_framework *framework;
	enum cause cause;
	enum role role; /* only if the blamed frame has this role; ROLE_NONE: any */
	const char *space; /* only if "host" or "device" memory ran out; "": any */
	bool threads; /* only if several threads allocate */
	bool resident; /* only if the limit does not count address space */
	const char *setting; /* the framework's own name, as `--max-model-len`; "": none */
	const char *text;
};
/* True if the fix applies to that space's memory; space "": unknown. */
bool knowledge_fix_applies(const struct knowledge_fix *fix, const char *space);

#define KNOWLEDGE_CAUSES_MAX 4u
struct knowledge_cause {
	enum cause cause;
	double confidence; /* from the message alone */
};

/* A message in a log. The reader that matches it compiles the pattern. */
struct knowledge_message {
	const struct knowledge_framework *framework;
	const char *name; /* "vllm/no-blocks", unique */
	const char *from; /* the program that writes it, for people */
	enum message_kind kind;
	const char *space; /* "host", "device" or "" */
	/* Literal texts: the first line of each match contains one of them. */
	const char *const *needles;
	size_t needle_count;
	const char *pattern; /* PCRE2, with {MACROS} */
	const char *each_name, *each; /* repeated within the match, as an array; NULL: none */
	const char *group; /* consecutive messages of one group are one event; "": none */
	const char
	    *claim; /* what ran out, by the words of an unknown program; NULL: it has needles */
	bool yields; /* a claim that contains it says more */
	enum message_kind
	    alone; /* its kind in a log without a failure; MESSAGE_KIND_COUNT: `kind` */
	bool fallback; /* for programs that are not known: any message that is known outranks it */
	const char *meaning;
	struct knowledge_cause causes[KNOWLEDGE_CAUSES_MAX]; /* likeliest first */
	size_t cause_count;
	const char *const *fixes;
	size_t fix_count;
	const char *const *overrules; /* settings that have no effect after this message */
	size_t overrule_count;
	unsigned line;
};

struct knowledge;

/* Create empty knowledge. NULL: no memory. */
struct knowledge *knowledge_new(void);
void knowledge_free(struct knowledge *knowledge);

/* Add one file. It takes precedence over earlier files. 0; negative errno with err, which names
 * file and line; then nothing of the file was added. */
int knowledge_add(struct knowledge *knowledge, const char *path, struct err *err);
/* Add every *.know file of a directory, in order of names. A file with a mistake is noted and
 * skipped. 0; -ENOMEM, or another negative errno: the directory cannot be read. */
int knowledge_add_dir(struct knowledge *knowledge, const char *path);
/* Create knowledge from the shipped files, then the user's own, as docs/explain.md says. NULL: no
 * memory. Without an installation it is empty, and a note says so. */
struct knowledge *knowledge_open(void);

struct knowledge_place {
	enum role role;
	const struct knowledge_framework *framework; /* NULL: of no framework */
};
/* Return what is known about a frame. Python: `module` is NULL. Native code: `module` is the path
 * of its ELF file, and `file` is ignored. */
struct knowledge_place knowledge_place(
    const struct knowledge *knowledge, const char *function, const char *file, const char *module);
/* The two parts of knowledge_place(): does the frame's function have a role; and which framework
 * owns its file, the same for all functions of the file? */
bool knowledge_match(const struct knowledge *k, const char *function, const char *file,
    const char *module, struct knowledge_place *place);
const struct knowledge_framework *knowledge_owner(
    const struct knowledge *k, const char *file, const char *module);

const struct knowledge_framework *knowledge_framework(
    const struct knowledge *knowledge, const char *id); /* NULL: unknown */
/* Find a framework's fixes for a cause, those for `role` first; at most `room`. */
size_t knowledge_fixes(const struct knowledge *knowledge,
    const struct knowledge_framework *framework, enum cause cause, enum role role,
    const struct knowledge_fix **out, size_t room);
size_t knowledge_messages(
    const struct knowledge *knowledge, const struct knowledge_message *const **out);

#endif

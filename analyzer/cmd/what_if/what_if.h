/*
 * what_if.h - the changes that `whyoom what-if` is asked about, and what it answers: of PyTorch's
 * blocks on one device, or of the host's.
 */
#ifndef ANALYZER_CMD_WHAT_IF_H
#define ANALYZER_CMD_WHAT_IF_H

#include "model/callsite/callsite.h"
#include "model/request/lengths.h"
#include "report/what_if.h"

enum what_if_kind {
	WHAT_IF_MEMORY, /* value: bytes of the device, or of the limit */
	WHAT_IF_EXPANDABLE,
	WHAT_IF_MAX_SPLIT, /* value: bytes */
	WHAT_IF_WITHOUT_SITE, /* site */
	WHAT_IF_CAP_GROWTH, /* value: bytes by which each place may grow */
	WHAT_IF_CONCURRENCY, /* value: so many requests in flight, and the others wait */
	WHAT_IF_MAX_LEN, /* value: tokens of an input; or share, of the longest one */
	WHAT_IF_TOGETHER, /* all of the others */
	WHAT_IF_NONE, /* does not apply to this trace: why_not says why, and nothing is changed */
};

struct what_if_change {
	enum what_if_kind kind;
	uint64_t value;
	double share; /* 0: it is a value */
	const char *stats; /* "function", or "file.py:12" */
	uint32_t callsite; /* it is this one, once the places are known */
	char words[160]; /* as a person says it */
	char why_not[300]; /* empty: it applies */
};
#define WHAT_IF_CHANGES (WHAT_IF_ROWS - 1)
#define WHAT_IF_NOT_HERE 1 /* instead of 0: what is asked for does not apply; err says why */

/* Of inputs, where their lengths are asked about. */
struct what_if_lengths {
	bool asked;
	uint64_t tokens; /* of the longest, as the user says; 0: that was not said */
	struct lengths of;
	char reference[160]; /* sizes: what they are taken from */
	double fits; /* the largest share of the longest that fits; 0: none does */
};

struct what_if_answer {
	struct what_if_view view;
	struct what_if_lengths lengths;
};

#define WHAT_IF_NOT_AT_ONCE                                                                        \
	"no two requests, tasks or threads overlapped at that moment, as far as the trace shows"
/* From then on the change, or all changes of a kind, are WHAT_IF_NONE. */
void what_if_not(struct what_if_change *change, const char *why);
void what_if_none(
    struct what_if_change *changes, size_t count, enum what_if_kind kind, const char *why);
bool what_if_wants(const struct what_if_change *changes, size_t count, enum what_if_kind kind);

/* The memory that a change of input lengths concerns, and a test of whether a length fits there. */
struct what_if_scene {
	struct feed feed;
	const struct callsites *callsites;
	const char *space;
	uint64_t moment_ns;
	/* Says of each of n lengths whether it fits. 0 or an error, which is passed on. */
	int (*fit)(void *arg, const double *most, bool *fits, size_t n, struct err *err);
	void *arg;
};
#define WHAT_IF_TRIES 15u /* n is at most that */

/* what_if_len.c. Reads who worked at what, and finds the largest share of the longest input that
 * fits; nothing where no lengths are asked about. Changes of lengths are WHAT_IF_NONE where inputs
 * have none there. One that is asked for in tokens, when nobody says how many the longest input
 * had, becomes that share. 0 or negative with err. */
int what_if_lengths_find(struct what_if_lengths *l, const struct what_if_scene *scene,
    struct what_if_change *changes, size_t count, struct err *err);
void what_if_lengths_fini(struct what_if_lengths *l);
/* The lengths, in the measure of `of`, that these ask for; the shortest, where it is all together.
 * 0: none is asked for. */
double what_if_lengths_most(const struct what_if_lengths *l, const struct what_if_change *changes,
    size_t count, size_t which);
/* Of `share`, in tokens; 0: not known. */
uint64_t what_if_lengths_tokens(const struct what_if_lengths *l, double share);
/* Fills the part of the view; it borrows l->reference. */
void what_if_lengths_view(const struct what_if_lengths *l, struct what_if_inputs *out);

/* The place that a user means; 0, or WHAT_IF_NOT_HERE: none, or several. */
int what_if_find_site(
    const struct callsites *callsites, const char *stats, uint32_t *out, struct err *err);
/* Of all sites that are asked about: those that are none do not apply. */
void what_if_find_sites(
    const struct callsites *callsites, struct what_if_change *changes, size_t count);

/* Each: 0 or negative with err; the space is out's, and `m` the model of the trace. `changes` has
 * WHAT_IF_TOGETHER last where that was asked for. */
int what_if_torch(const struct trace_set *set, const struct model *m,
    struct what_if_change *changes, size_t count, struct what_if_answer *out, struct err *err);
/* Of the host's memory; or where that is asked about a device whose driver refused, of its space:
 * by what lived, not by its allocator. */
int what_if_host(const struct trace_set *set, struct what_if_change *changes, size_t count,
    struct what_if_answer *out, struct err *err);

#endif

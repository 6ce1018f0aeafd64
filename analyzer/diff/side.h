/*
 * side.h - inside diff/: one side of a comparison, read from its trace: the lines that acquired
 * memory, and how much each held in each space at the moment.
 */
#ifndef ANALYZER_DIFF_SIDE_H
#define ANALYZER_DIFF_SIDE_H

#include "diff/diff.h"
#include "diff/names.h"
#include "diff/series.h"
#include "model/callsite/wrappers.h"
#include "model/request/phase.h"
#include "model/space/space.h"
#include "util/map.h"

#define SITE_NONE UINT32_MAX

/* A line of this side. */
struct site {
	struct names names;
	uint64_t callee, caller; /* hashes of the functions around it; 0: none */
	const char *function, *file; /* the trace's; file NULL: unknown */
	uint32_t line;
	bool python, arenas;
	uint32_t stack; /* the one with most bytes ever acquired, */
	uint32_t frame; /* and the line's index in it */
	uint64_t stack_bytes, total_bytes, total_count, largest; /* of all spaces */
};

/* Stacks of one site with the same lasting names. */
struct chain {
	uint64_t key;
	uint32_t site;
	uint32_t stack, frame; /* one of them */
};

/* All that was acquired with a stack, in any space. */
struct stack_sum {
	uint64_t bytes, count, largest;
	uint32_t site, chain;
	bool mapped; /* a mapping, not a block */
};

/* What a union of trees shows of a chain. */
struct chain_sums {
	uint64_t live, peak, acquired; /* live: until the moment */
};

/* A part of the run, which phases.c aligns with one of the other side. */
struct side_phase {
	const char *name;
	uint64_t from_ns, until_ns;
};
#define SIDE_PHASES (PHASES_MAX + 2u) /* what comes before and after them, too */

struct side_space {
	char name[32];
	enum space_kind kind; /* SPACE_OTHER for the host */
	/* From the first pass: */
	uint64_t acquired, live, peak, peak_at; /* peak_at: acquisitions until the peak */
	uint64_t until; /* acquisitions until the moment */
	/* From the second: */
	bool watched, done, settled;
	uint64_t count; /* acquisitions so far */
	uint64_t count_then; /* at the moment */
	uint64_t time_ns, requests;
	struct series sum;
	struct series *series; /* by site */
	uint64_t *chain_bytes; /* by chain: live, or acquired */
	struct diff_layout layout;
	struct curve_points *curve;
	struct chain_sums *sums; /* by chain, where pictures are asked for; else NULL */
};

struct side {
	struct diff_moment moment;
	enum diff_by by;
	struct trace *trace;
	struct feed feed;
	struct verdict_result verdict;
	bool judged;
	const char *at; /* the moment in words */
	bool by_peak; /* each space at its own high-water mark */
	bool at_failure; /* stop at the refused request */
	uint64_t until_ns; /* else: this time */
	const char *program; /* path of the executable; NULL: unknown */
	struct blame_memory memory;
	struct blame_context context;

	VEC(struct stack_sum) stacks; /* by stack */
	VEC(struct site) sites;
	VEC(struct chain) chains;
	VEC(struct names) names; /* by symbol id; `all` 0: not read yet */
	struct side_phase phases[SIDE_PHASES];
	uint32_t phase_count;
	bool pictures;
	struct map wrappers; /* hashes of functions that allocate for their callers */
	struct side_space *spaces[SPACES_MAX + 1]; /* the host first */
	size_t space_count;
	bool marks; /* requests are known */
	struct {
		uint64_t begun, finished, at_once, largest;
	} requests; /* of the whole run, or until the failure */
	struct arena arena;
	struct str scratch;
};

/* Open: choose the process and judge it. `s` is zeroed. 0; negative errno with err. Always call
 * side_fini(). */
int side_open(struct side *s, const struct diff_moment *moment, enum diff_by by, struct err *err);
/* Choose the moment, once the other side is open. 0; negative errno with err. */
int side_moment(struct side *s, const struct side *other, struct err *err);
/* passes.c: sum up each stack until the moment. Then side_wrappers(), side_sites(), and
 * side_read(), which fills the series. 0; negative errno with err. */
int side_sum(struct side *s, struct err *err);
int side_read(struct side *s, struct err *err);
/* sites.c: find functions that only allocate for their callers; then name the line of each stack,
 * with both sides' wrappers in s->wrappers. 0 or -ENOMEM. */
int side_wrappers(struct side *s);
int side_sites(struct side *s);
/* servers.c: note in s->wrappers functions that serve lines with blocks of each one's size. The
 * list has the frame that is blamed so far. 0 or -ENOMEM. */
int side_servers(struct side *s, const struct wrapper_input *list, size_t count);
/* Return the lasting names of a frame, kept by symbol. */
struct names side_names(struct side *s, const struct symbol *symbol);
struct side_space *side_space(const struct side *s, const char *name); /* NULL: there is none */
void side_fini(struct side *s);

#endif

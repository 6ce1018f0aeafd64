/*
 * diff.h - compares two moments: of two traces, or of one. Lines and stacks are matched by names
 * that survive a rebuild, and a difference is called a change only where it is more than the line
 * varies by itself. Nothing here prints.
 *
 * Both trace sets must outlive the result; strings and symbols belong to them or to the result.
 * Memory grows with distinct stacks and live blocks.
 */
#ifndef ANALYZER_DIFF_DIFF_H
#define ANALYZER_DIFF_DIFF_H

#include "model/callsite/blame.h"
#include "verdict/framework/frame_role.h"
#include "verdict/result.h"

enum diff_by {
	DIFF_LIVE, /* bytes that live at the moment */
	DIFF_TOTAL, /* bytes acquired until then, released ones too */
};
#define DIFF_BY_COUNT 2
const char *diff_by_name(enum diff_by by); /* "live", "total" */

/* Which process, and when. */
struct diff_moment {
	const struct trace_set *set;
	uint64_t pid; /* 0: the one that the report is about */
	const char *at; /* "failure", "peak", "end"; NULL: seconds, or the default */
	double seconds; /* since the start; used when greater than 0 */
};

struct diff_request {
	struct diff_moment a, b; /* a is the older: "grew" means that b has more */
	const char *space; /* NULL: all */
	enum diff_by by;
	bool per_request; /* bytes are divided by the number of requests begun */
	bool pictures; /* make the trees of stacks, too */
};

enum diff_kind { DIFF_SAME, DIFF_GREW, DIFF_SHRANK, DIFF_NEW, DIFF_GONE };
const char *diff_kind_name(enum diff_kind kind); /* "same", "grew", as in the JSON */

/* What shows a change. */
enum diff_reason {
	DIFF_BY_HELD, /* the bytes themselves */
	DIFF_BY_TOP, /* how much it holds when it is busy */
	DIFF_BY_SIZE, /* the sizes of its blocks */
	DIFF_BY_ACQUIRED, /* the bytes that it acquires */
};

/* A line or a space on one side. */
struct diff_amount {
	uint64_t bytes; /* by the measure that is compared; per request if so asked */
	double error; /* standard error of bytes; 0: they are exact */
	uint64_t blocks; /* as many: live ones, or acquired ones */
	uint64_t mean, largest; /* bytes of a block */
	uint64_t top; /* typical of the most that it holds when it is busy */
};

/* What the pictures show of lines and stacks: bytes. */
enum diff_measure {
	DIFF_AT_MOMENT, /* live bytes */
	DIFF_AT_PEAK, /* at the space's own peak until the moment */
	DIFF_ACQUIRED, /* in all until the moment */
};
#define DIFF_MEASURES 3

/* A line of the program, or all arenas of an interpreter for small objects. */
struct diff_line {
	const char *function, *file; /* B's; A's if it is gone. file NULL, line 0: unknown */
	uint32_t line, line_before; /* line_before: A's; 0: it is new */
	const char *renamed; /* A's function, if it had another name; NULL */
	bool arenas;
	bool unmatched; /* only one side has it */
	enum diff_kind kind;
	enum diff_reason reason; /* unless DIFF_SAME */
	struct diff_amount a, b;
	int64_t change; /* bytes; by the reason's own measure */
	uint64_t noise; /* a change below this is none */
	struct stack_view stack; /* the heaviest, of the side with more */
	size_t frame; /* the line's index in it */
	uint64_t a_bytes[DIFF_MEASURES], b_bytes[DIFF_MEASURES]; /* for pictures */
	/* Parts of the result's stacks. */
	size_t first_stack, stack_count;
};

/* A stack of a changed line. */
struct diff_stack {
	struct stack_view stack; /* B's, or A's if B has none */
	size_t frame;
	uint64_t a, b; /* bytes */
};

/* The layout of a space; known false: it has none, or was not at its moment. The host's segments
 * are ranges of its blocks. */
struct diff_layout {
	bool known;
	uint64_t segments, segment_bytes, holes, hole_bytes, largest_hole;
	/* What the host's malloc and the interpreter say of themselves: free bytes that they keep.
	 */
	bool malloc_known, arenas_known;
	uint64_t malloc_free, arenas_free;
};

/* The same phase of both runs, or one that only one of them has. */
#define DIFF_POINTS 120u
struct diff_curve {
	bool present; /* this side has the phase, and read of it before the moment */
	uint64_t from_ns, until_ns;
	uint64_t most, last; /* live bytes: the most in it, and at its end */
	/* The most live bytes in equal parts of its time; only `points` were read before the
	 * moment. */
	uint32_t points;
	const uint64_t *at;
};
struct diff_phase {
	const char *name; /* "loading", or the program's; "run" for all of it */
	struct diff_curve a, b;
};

/* The stacks of both sides as one tree, by the names that survive a rebuild. */
struct diff_frame {
	struct symbol symbol; /* B's, or A's if B has none; line 0: it is called at several */
	enum frame_role role;
};
struct diff_node {
	uint32_t parent, frame; /* node 0 is all of the space, without a frame */
	uint64_t a[DIFF_MEASURES], b[DIFF_MEASURES]; /* of stacks that end here */
	uint64_t changed; /* acquired on both sides by those of lines that changed */
};
struct diff_tree {
	struct diff_frame *frames;
	struct diff_node *nodes; /* a parent comes before its children */
	size_t frame_count, node_count; /* no nodes: it was not asked for */
};

struct diff_space_side {
	bool present; /* this side has the space */
	uint64_t time_ns; /* of the moment */
	struct diff_amount amount;
	uint64_t peak_bytes; /* until the moment's end of reading */
	uint64_t requests; /* begun until the moment; 0: not known */
	uint64_t acquired; /* acquisitions until the moment */
	/* Bytes of lines that match no line of the other side, and of stacks that match no stack
	 * but a line. */
	uint64_t unmatched_bytes, by_line_bytes;
	struct diff_layout layout;
};

struct diff_space {
	const char *name; /* "host", "cuda:0" */
	struct diff_space_side a, b;
	double work; /* how many times as much work B's whole run has done; 0: unknown */
	bool work_by_requests; /* counted in requests, not in acquisitions */
	bool larger, smaller; /* as a whole, beyond the error of a sample */
	struct diff_phase *phases; /* in the order of time */
	size_t phase_count;
	struct diff_tree tree;
	struct diff_line *lines; /* changes first, the largest first; then by difference */
	size_t line_count, changed;
};

/* A fact that both sides have a value of: a setting, a version, a limit, a row of a ledger. */
enum diff_fact_kind {
	DIFF_LIMIT,
	DIFF_SETTING,
	DIFF_VERSION,
	DIFF_LEDGER,
	DIFF_REQUESTS,
	DIFF_PHASE,
};
#define DIFF_FACT_KINDS 6
const char *diff_fact_kind_name(enum diff_fact_kind kind); /* "limit" */
struct diff_fact {
	enum diff_fact_kind kind;
	const char *name;
	const char *space; /* of a row of a ledger; else NULL */
	const char *a, *b; /* text; NULL: not recorded, or a number */
	bool number, is_bytes, a_known, b_known;
	int64_t a_value, b_value;
};

struct diff_result;
/* Return whether it is worth a line. */
bool diff_fact_differs(const struct diff_result *r, const struct diff_fact *f);

struct diff_side_view {
	const char *path, *cmdline, *at;
	uint32_t pid;
	enum cause cause; /* the verdict on the whole run */
	double confidence;
	enum failure_kind failure;
	uint64_t sample_every; /* bytes; 0: every block was recorded */
	/* Recorded from an attach on: what was there before is in no line. */
	bool attached;
	uint64_t ran_ns, before_bytes; /* 0: not known */
	struct trace_set_damage damage;
};

struct diff_result {
	const char *sentence; /* what changed */
	struct diff_side_view a, b;
	enum diff_by by;
	bool per_request;
	bool one_run; /* two moments of one trace */
	struct diff_space *spaces; /* the host first */
	size_t space_count;
	/* The changes of all spaces, the largest first. */
	const struct diff_line **changes;
	const struct diff_space **change_spaces; /* of each */
	size_t change_count;
	struct diff_stack *stacks;
	size_t stack_count;
	struct diff_fact *facts;
	size_t fact_count;
	struct diff_sides *sides; /* private */
	struct arena arena; /* owns the words */
};

/* 0; negative errno with err: no such process, space, moment, or no requests for per_request. */
int diff_make(const struct diff_request *request, struct diff_result *out, struct err *err);
void diff_fini(struct diff_result *result);

/* Return the largest share by which a space is larger in B than in A, beyond the error of a sample:
 * 0.05 is 5 %. Infinite where A has nothing. */
double diff_growth(const struct diff_result *result);

#endif

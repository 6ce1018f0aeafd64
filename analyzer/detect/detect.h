/*
 * detect.h - the form every detector fills, and what it hands back. A detector sees the model of
 * one process and says whether the shape of its cause is there, what bytes it accounts for, with
 * which evidence, and what the program would have held without it. It knows no rival, prints
 * nothing, and does not decide: verdict/ replays the trace without each cause and ranks them.
 */
#ifndef ANALYZER_DETECT_DETECT_H
#define ANALYZER_DETECT_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "knowledge/knowledge.h"
#include "model/callsite/callsite.h"
#include "model/model.h"
#include "model/request/request_held.h"

/* Free memory inside an allocator that cannot hand it back: holes between live blocks; on the host
 * all that malloc holds free. */
struct scene_slack {
	bool known;
	uint64_t bytes, holes, largest;
	uint64_t reserved; /* of bytes, address space that is kept to grow into, and in no hole */
	uint64_t arenas; /* of bytes, free in the interpreter's arenas: counted as live elsewhere */
	uint64_t arenas_steady; /* in use in these, and so it was when there were half as many */
	uint64_t below; /* free at the level below, for a segment more */
	uint32_t pinned_by; /* place whose blocks border on most of it, or CALLSITE_NONE */
};

/* Other processes of the same pool, under the same limit. */
struct scene_workers {
	uint32_t count;
	uint64_t bytes; /* resident */
};

/* What other processes hold of the same memory. */
struct scene_others {
	bool known;
	uint64_t bytes;
	uint64_t grown; /* part of bytes that came since this process began there; 0: not known */
	struct scene_workers workers; /* of the others */
};

/* How the process ended. */
struct scene_end {
	bool failed; /* the process ran out, by a refused request or by a kill */
	bool presumed; /* its end alone says so, and a growth that it would explain */
	const struct failure *refused; /* the request nobody recovered from, or NULL */
	uint64_t since_ns; /* only growth after it counts; 0: all growth */
};

/* A limit that the program set itself, below the memory that there is. */
struct scene_own_limit {
	bool known;
	uint64_t kept_back; /* bytes that were free, and not allowed */
};

/* The limit that the process met. */
struct scene_limit {
	uint64_t bytes; /* 0: none known */
	uint64_t usage; /* at the moment, in the limit's measure; 0: not known */
	bool is_virtual; /* the limit is on the size of the address space */
	uint64_t stacks; /* part of usage that threads' stacks take, where it is virtual */
	uint64_t threads; /* beside the first one, that these stacks are of; 0: not known */
	struct scene_own_limit own; /* it is this one */
};

/* What a detector is given. Everything belongs to the caller. `model`, `callsites` and `roles` are
 * of the space that ran out, whichever it is. */
struct scene {
	const char *space; /* NULL: the host's */
	const struct model *model;
	const struct callsites *callsites;
	const enum role *roles; /* of each call site, by its index; NULL: none is known */
	/* The whole process, where `model` is of a part of it: all that it acquired and released
	 * tells its work. NULL: the same. */
	const struct scene_work {
		const struct model *model;
		const struct callsites *callsites;
	} * work;
	/* Blocks of the space that were released before a checkpoint, at an unknown time. */
	struct {
		uint64_t count, bytes;
	} replaced;
	bool sampled; /* of small blocks only a sample is known */
	const struct requests_held *held; /* by requests in flight; NULL: not known */
	struct scene_end end;
	struct scene_limit limit;
	struct scene_slack slack;
	struct scene_others others;
};

/* What a block would have been, had the cause not been there. Rules work on the sum of a place, or
 * on one block alone, so that a replay needs no memory for each block. */
enum rule {
	RULE_CAP_SIZE, /* each block at most `value` bytes */
	RULE_KEEP_BYTES, /* the place holds at most `value` bytes: the oldest go first */
	RULE_EXPIRE, /* each block is released after `value` ns, if not before */
	RULE_STREAM, /* blocks above `value` bytes are taken in pieces of that size */
};

struct claim {
	uint32_t callsite;
	enum rule rule;
	uint64_t value;
	uint64_t bytes; /* live at the moment, that would not have been */
};
#define CLAIMS_MAX 64u

struct evidence {
	enum fact fact;
	double value; /* in the fact's unit */
};
#define EVIDENCE_MAX 16u

/* Which form of its cause a finding is: sentence and advice differ. */
enum finding_form {
	FORM_USUAL,
	FORM_BACKLOG, /* concurrency: work that waits in a queue without a bound */
	FORM_WORKERS, /* concurrency: processes of one pool */
	FORM_STACKS, /* external: address space that threads' stacks take */
};

struct finding {
	enum cause cause; /* of the detector; set by its caller */
	enum finding_form form;
	double strength; /* 0 to 1: how well the shape fits, whatever its size */
	uint64_t bytes; /* sum over claims */
	uint64_t request_bytes; /* of the refused request, that would not have been asked for */
	uint64_t slack_bytes; /* of the allocator's holes, that would have been of use */
	uint64_t other_bytes; /* of others, that would have been free */
	/*
	 * It asserts that nothing grew: what is to be explained is the shortfall alone, beside the
	 * bytes by which a trend raised the high-water mark all the same.
	 */
	bool steady;
	uint64_t trend_bytes;
	/* Where the allocator itself can be asked, the replay without the cause also has: */
	bool coalesced; /* its holes in one piece all along */
	bool alone; /* what others hold of the memory given back */
	/* When the growth that it explains began; 0: when that of all whose shape is there did. */
	uint64_t start_ns;
	uint32_t blame; /* place, or CALLSITE_NONE */
	uint32_t workers; /* of concurrency: processes of the pool; 0: it is all in one */
	bool late; /* weights: put in place beside work */
	bool copied; /* that made it first; what is claimed are copies of it */
	struct claim claims[CLAIMS_MAX];
	uint32_t claim_count;
	struct evidence evidence[EVIDENCE_MAX];
	uint32_t evidence_count;
};

#define DETECT_SILENT 1 /* the shape is not there */

/*
 * Look for one shape and fill `out`, but for its cause. Returns 0, or DETECT_SILENT with `out`
 * undefined. A detector keeps nothing: what it needs of the events, the model has gathered.
 */
typedef int detector(const struct scene *scene, struct finding *out);

extern detector *const detectors[CAUSE_COUNT]; /* by cause; NULL for CAUSE_UNKNOWN */

/* For detectors: adds to a finding; what no longer fits is left out. */
void finding_claim(
    struct finding *f, uint32_t callsite, enum rule rule, uint64_t value, uint64_t bytes);
/* The place holds so much less than it does, if that much. */
void finding_claim_without(
    struct finding *f, const struct callsites *callsites, uint32_t callsite, uint64_t bytes);
void finding_evidence(struct finding *f, enum fact fact, double value);
/* Returns the value of that fact; 0 where the finding lacks it. */
double finding_fact(const struct finding *f, enum fact fact);

/* 0 to 1: how clearly each generation of the place's blocks left as many behind as the others. */
double finding_stays(const struct callsite *p);
/* Claims the tables (arrays, hash tables) that point to what the places that `of` names keep, for
 * they end with it; the refused request, too, when it was for one. Returns the bytes they hold. */
uint64_t finding_claim_tables(const struct scene *scene, struct finding *f,
    bool (*of)(const struct scene *scene, const struct callsite *p));

/* Most of what lives there came to be under the frames of a store that is known: kept on purpose.
 */
bool scene_in_store(const struct scene *scene, const struct callsite *p);
/* Its blocks stay as those of a known store do, a number of them for each of the store's, which are
 * more: it is what that keeps without a copy. */
bool scene_kept_with_store(const struct scene *scene, const struct callsite *p);
/* What requests in flight hold at a place is so many times what is known of it: small objects lie
 * in the interpreter's arenas, which are nobody's, beside larger blocks of the same line. */
double scene_held_times(const struct scene *scene, uint32_t callsite);
/* A place on a device that is known to put weights there. */
bool scene_is_weights(const struct scene *scene, uint32_t callsite);
/* The refused request was made at a place that is known for that role. */
bool scene_asks_for(const struct scene *scene, enum role role);
/* What that place makes follows its input from request to request, and takes so much more that it
 * is no copy, parse or other form of it: what a model works with while it reads its prompt. */
bool scene_amplifies(const struct scene *scene, uint32_t callsite);
/* On a device that holds nothing but what is known for weights, nothing that a request could be
 * made of: the refused one is the first of a line that makes none, larger than all of them. */
bool scene_asks_beside_weights(const struct scene *scene);
/* It was for a thread's stack: whoever calls for a thread has no say in how large that is. */
bool scene_asks_for_thread(const struct scene *scene);
/* Of the live bytes, the share that lies in places known for that role. */
double scene_share_of(const struct scene *scene, enum role role);

/* 0 when `part` is an eighth of `rest`, 1 from equal on. */
double dominance(double part, double rest);
/* Of the bytes acquired from then on, the share given back: what is only put in place gives back at
 * most its staged copies. */
double scene_worked_since(const struct scene *scene, uint64_t since_ns);
/* No more than so many blocks and mappings were acquired since its first, whoever's, but for what
 * its own line made on the way. */
bool scene_made_no_more(const struct scene *scene, const struct callsite *p, uint64_t most);
/* Between its blocks many others came and went, small as they may be: requests were served, though
 * they took next to nothing beside what each left. Of the host alone. */
bool scene_worked_between(const struct scene *scene, const struct callsite *p);
/* Calls had worked before that: they gave back a good part of `bytes`, beside the copy of the first
 * block of it. The code of modules, which runs once, does not count. */
bool scene_worked_before(
    const struct scene *scene, uint64_t since_ns, uint64_t bytes, uint64_t copy);
/* Weights were read all along since the first of its blocks, until the moment: whatever came and
 * went may be on their way. */
bool scene_reads_weights(const struct scene *scene, const struct callsite *of);
/* Few large blocks hold nearly all that this place keeps: of parameters and pools, not of records.
 */
bool scene_few_large(const struct scene *scene, const struct callsite *p);
/* Its blocks come in turns with those of two lines more, as many of each: of a layer's parameters,
 * whatever their sizes. */
bool scene_in_turns(const struct scene *scene, const struct callsite *p);
/* Its blocks got larger now and then, and never smaller again, as what holds a number with more and
 * more digits: a pool's are equal, and of a layer's parameters the small ones come again. */
bool scene_sizes_drift(const struct callsite *p);
/* Each of its large blocks is of a size of its own, as data come in: a model's layers are alike. */
bool scene_sizes_scatter(const struct callsite *p);
/* Blocks of several sizes, and each size again and again, as a model's layers have them. */
bool scene_sizes_recur(const struct scene *scene, uint32_t callsite);
/* What came and went since the first of its blocks may be the copies that they were staged in: one
 * call was open all the time, or next to nothing else was made, and did not give back much more
 * than it kept. */
bool scene_is_staged(const struct scene *scene, const struct callsite *p);
/* Blocks of other sizes came between its own, and stay as well: of a layer's parameters each may be
 * made by a line that makes all of one shape. */
bool scene_in_company(const struct scene *scene, const struct callsite *p);
/* Staged, and of several sizes that come again and again, at this line or together with others in
 * the same call: a model, layer after layer. */
bool scene_is_read_in(const struct scene *scene, uint32_t callsite);
/* Of the mappings that the place makes at least as many were given back as there are. */
bool scene_maps_in_passing(const struct scene *scene, const struct callsite *p);
/* 0 to 1: what one worker holds, against what the others of its pool hold under the same limit. */
double scene_beside_workers(const struct scene *scene, uint64_t bytes);
/* Of all blocks acquired in that space until its model's end, the share that was released: nothing
 * is worked with that never gives anything back. */
double scene_churn(const struct scene *scene);
/* The same of bytes. */
double scene_given_back(const struct scene *scene);

#endif

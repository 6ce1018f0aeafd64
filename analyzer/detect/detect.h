/*
 * detect.h - what a detector is given and what it returns. A detector sees the model of one process
 * and says whether the shape of its cause is there, which bytes the cause accounts for, with which
 * evidence, and what the program would have held without it. It knows no rival, prints nothing and
 * does not decide: verdict/ replays the trace without each cause and ranks the findings.
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
	uint64_t reserved; /* part of bytes: address space reserved to grow into, in no hole */
	uint64_t arenas; /* part of bytes: free in the interpreter's arenas, live elsewhere */
	uint64_t arenas_steady; /* in use in the arenas, as when there were half as many */
	uint64_t below; /* free at the level below, for another segment */
	uint32_t pinned_by; /* call site whose blocks border on most of it, or CALLSITE_NONE */
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

/* What a block would have been without the cause. A rule works on the sum of a call site or on one
 * block alone, so that a replay needs no memory for each block. */
enum rule {
	RULE_CAP_SIZE, /* each block at most `value` bytes */
	RULE_KEEP_BYTES, /* the call site holds at most `value` bytes: the oldest go first */
	RULE_EXPIRE, /* each block is released after `value` ns, if not before */
	RULE_STREAM, /* blocks above `value` bytes are taken in pieces of that size */
};

struct claim {
	uint32_t callsite;
	enum rule rule;
	uint64_t value;
	uint64_t bytes; /* live at the moment, and not without the cause */
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
	uint64_t request_bytes; /* part of the refused request that the cause asked for */
	uint64_t slack_bytes; /* part of the allocator's holes that could have been used */
	uint64_t other_bytes; /* held by others, and free without the cause */
	/* It asserts that nothing grew: it has to explain the shortfall alone, and the bytes by
	 * which a trend still raised the high-water mark. */
	bool steady;
	uint64_t trend_bytes;
	/* Where the allocator itself can be modelled, the replay without the cause also has: */
	bool coalesced; /* its holes in one piece all along */
	bool alone; /* what others hold of the memory given back */
	uint64_t start_ns; /* when its growth began; 0: with that of all causes found */
	uint32_t blame; /* call site, or CALLSITE_NONE */
	uint32_t workers; /* FORM_WORKERS: processes of the pool */
	bool late; /* weights were loaded beside work */
	bool copied; /* the blamed line made the first object; the claims are its copies */
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

/* For detectors. Add to a finding: a claim that no longer fits replaces the smallest, or is dropped
 * with its bytes; evidence that no longer fits is dropped. */
void finding_claim(
    struct finding *f, uint32_t callsite, enum rule rule, uint64_t value, uint64_t bytes);
/* Claim that the call site would hold `bytes` less; at most all that it holds. */
void finding_claim_without(
    struct finding *f, const struct callsites *callsites, uint32_t callsite, uint64_t bytes);
void finding_evidence(struct finding *f, enum fact fact, double value);
/* Return the value of that fact; 0 where the finding lacks it. */
double finding_fact(const struct finding *f, enum fact fact);
/* Return 0 to 1: how evenly each generation of the call site's blocks leaves survivors. */
double finding_stays(const struct callsite *p);
/* Claim the tables (arrays, hash tables) that point to the blocks of the call sites that `of`
 * selects, and the refused request where it was for such a table. Returns their bytes. */
uint64_t finding_claim_tables(const struct scene *scene, struct finding *f,
    bool (*of)(const struct scene *scene, const struct callsite *p));

/*
 * Questions about a scene. Each is true only where the record shows it. A call site is given as an
 * index, or as a pointer into scene->callsites->list where a copy of it may be asked about as well.
 */

/* Was most of what lives there allocated under the frames of a known store, so kept on purpose? */
bool scene_in_store(const struct scene *scene, const struct callsite *p);
/* Do its blocks stay in step with those of a known store, a fixed number for each of the store's?
 * Then the store keeps them, too. */
bool scene_kept_with_store(const struct scene *scene, const struct callsite *p);
/* Return by what factor requests in flight hold more at the call site than is known of it: small
 * objects lie in the interpreter's arenas, which belong to nobody, beside larger blocks. */
double scene_held_times(const struct scene *scene, uint32_t callsite);
/* Is it a call site on a device that is known to load weights? */
bool scene_is_weights(const struct scene *scene, uint32_t callsite);
/* Was the refused request made at a call site of that role? */
bool scene_asks_for(const struct scene *scene, enum role role);
/* Do its blocks follow the input from request to request, and are they so much larger that they
 * are no copy or other form of it? A model reading its prompt makes such blocks. */
bool scene_amplifies(const struct scene *scene, uint32_t callsite);
/* Does the device hold nothing but weights, nothing that a request could consist of, and was the
 * refused request the first of its line, larger than all of them? */
bool scene_asks_beside_weights(const struct scene *scene);
/* Was it for a thread's stack? The caller does not choose how large that is. */
bool scene_asks_for_thread(const struct scene *scene);
/* Return the share of the live bytes that call sites of that role hold. */
double scene_share_of(const struct scene *scene, enum role role);

/* Return 0 where `part` is an eighth of `rest` or less, 1 from equal on. */
double dominance(double part, double rest);
/* Return the share of the bytes acquired since then that was freed. Loading frees at most its
 * staged copies. */
double scene_worked_since(const struct scene *scene, uint64_t since_ns);
/* Were at most `most` blocks and mappings acquired since its first, by anybody but its own line? */
bool scene_made_no_more(const struct scene *scene, const struct callsite *p, uint64_t most);
/* Did many other blocks come and go between its own? Then requests were served. Host only. */
bool scene_worked_between(const struct scene *scene, const struct callsite *p);
/* Had calls worked before: freed a good part of `bytes`, beside the copy of its first block? Module
 * code, which runs once, does not count. */
bool scene_worked_before(
    const struct scene *scene, uint64_t since_ns, uint64_t bytes, uint64_t copy);
/* Were weights read all the time from its first block until the moment? Then whatever came and went
 * may be part of loading. */
bool scene_reads_weights(const struct scene *scene, const struct callsite *of);
/* Do few large blocks hold nearly all of it, as with parameters and pools, but not records? */
bool scene_few_large(const struct scene *scene, const struct callsite *p);
/* Do its blocks alternate with those of two other lines, as a layer's parameters do? */
bool scene_in_turns(const struct scene *scene, const struct callsite *p);
/* Did its blocks get larger now and then and never smaller? A pool's blocks are equal, and of a
 * layer's parameters the small ones come again. */
bool scene_sizes_drift(const struct callsite *p);
/* Has each of its large blocks a size of its own, as incoming data has? Layers are alike. */
bool scene_sizes_scatter(const struct callsite *p);
/* Do its blocks have several sizes that come again and again, as in a model's layers? */
bool scene_sizes_recur(const struct scene *scene, uint32_t callsite);
/* May what came and went since its first block be staged copies of it? One call was open all the
 * time, or next to nothing else was allocated, and not much more was freed than kept. */
bool scene_is_staged(const struct scene *scene, const struct callsite *p);
/* Did blocks of other sizes come between its own, and stay, as a layer's parameters do? */
bool scene_in_company(const struct scene *scene, const struct callsite *p);
/* Is it staged, of several sizes that recur at this line or together with others in the same call:
 * a model, layer after layer? */
bool scene_is_read_in(const struct scene *scene, uint32_t callsite);
/* Were at least as many of its mappings removed as there are now? */
bool scene_maps_in_passing(const struct scene *scene, const struct callsite *p);
/* Return 0 to 1: this worker's memory against the other workers' under the same limit. */
double scene_beside_workers(const struct scene *scene, uint64_t bytes);
/* Return the share of all blocks acquired in the space that was freed until its model's end. A
 * program that never frees anything does no work. */
double scene_churn(const struct scene *scene);
/* The same of bytes. */
double scene_given_back(const struct scene *scene);

#endif

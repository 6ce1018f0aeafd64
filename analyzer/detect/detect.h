/*
 * detect.h - the input and the result of a detector. A detector sees the model of one process and
 * decides whether its cause's shape is there, for which bytes the cause accounts, with which
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
#include "util/tuned.h"

TUNED(unsigned, MODEL_BLOCKS, 2048u, "the largest models have some two thousand parameters");

/* Free memory inside an allocator that cannot return it: holes between live blocks; on the host all
 * free memory of malloc. */
struct scene_slack {
	bool known;
	uint64_t bytes, holes, largest;
	uint64_t reserved; /* part of bytes: address space reserved for growth, in no hole */
	/* part of bytes: free in the interpreter's arenas, which count as live elsewhere */
	uint64_t arenas;
	uint64_t arenas_steady; /* used in the arenas, when there were half as many */
	uint64_t below; /* free at the level below, for another segment */
	uint32_t pinned_by; /* call site whose blocks border on most of it, or CALLSITE_NONE */
};

/* Other processes of the same pool, under the same limit. */
struct scene_workers {
	uint32_t count;
	uint64_t bytes; /* resident */
};

/* Other processes' part of the same memory. */
struct scene_others {
	bool known;
	uint64_t bytes;
	uint64_t grown; /* part of bytes, from after this process's begin there; 0: unknown */
	uint64_t left; /* part of bytes: files that the program made in memory and did not remove */
	struct scene_workers workers; /* part of the others */
};

/* CUDA graphs, and what stays with them. */
struct scene_graphs {
	uint64_t captures; /* 0: none */
	uint64_t launches; /* of graphs, between the first capture and the last one */
	uint64_t first_ns; /* of the first capture */
	uint64_t slack; /* free blocks in their pools, for no one else */
	const uint64_t *bytes; /* live, acquired in captures, by call site; NULL without captures */
	bool capturing; /* at the moment, by the thread that asked */
};

/* Work in flight on several streams, in a space whose blocks are in the order of a stream. */
struct scene_streams {
	uint32_t alike; /* streams that hold at least an eighth of what the largest holds */
	uint64_t sum, largest; /* what they hold, and one of them */
	const uint64_t *others; /* of that, beyond the largest, by call site; NULL: none is known */
};

/* How the process ended. */
struct scene_end {
	bool failed; /* the process ran out, by a refused request or by a kill */
	bool presumed; /* only its end, and a growth that would explain it, say so */
	/* the refusal that the process did not recover from, or NULL */
	const struct failure *refused;
	uint64_t since_ns; /* only growth after it counts; 0: all growth */
};

/* A limit that the program set itself, below the existing memory. */
struct scene_own_limit {
	bool known;
	uint64_t kept_back; /* bytes that were free but not allowed */
};

/* The limit that the process met. */
struct scene_limit {
	uint64_t bytes; /* 0: none known */
	uint64_t usage; /* at the moment, in the limit's measure; 0: unknown */
	bool is_virtual; /* the limit is on the size of the address space */
	uint64_t stacks; /* part of usage: threads' stacks, if is_virtual */
	uint64_t threads; /* threads beside the first one, with these stacks; 0: unknown */
	uint64_t threads_ended; /* earlier ones; 0: none, or unknown */
	uint64_t unjoined; /* part of usage: stacks of ended threads that nobody joined */
	uint64_t before; /* part of usage: there before an attach */
	struct scene_own_limit own; /* the program's own limit, if this is one */
};

/* A detector's input. Everything belongs to the caller. `model`, `callsites` and `roles` are of the
 * space that ran out. */
struct scene {
	const char *space; /* NULL: the host's */
	const struct model *model;
	const struct callsites *callsites;
	const enum role *roles; /* by call site; NULL: none is known */
	/* The whole process, if `model` is of a part: its acquisitions and releases show its work.
	 * NULL: the same. */
	const struct scene_work {
		const struct model *model;
		const struct callsites *callsites;
	} * work;
	/* Blocks of the space that were released before a checkpoint, at an unknown time. */
	struct {
		uint64_t count, bytes;
	} replaced;
	uint64_t sample_every; /* bytes a smaller block stands for; 0: every block is recorded */
	const struct requests_held *held; /* by requests in flight; NULL: unknown */
	struct scene_end end;
	struct scene_limit limit;
	struct scene_slack slack;
	struct scene_graphs graphs;
	struct scene_streams streams;
	struct scene_others others;
};

/* A block without the cause. A rule works on a call site's sum or on single blocks, so that a
 * replay needs no memory for each block. */
enum rule {
	RULE_CAP_SIZE, /* each block at most `value` bytes */
	RULE_KEEP_BYTES, /* the call site holds at most `value` bytes; its oldest blocks go first */
	RULE_EXPIRE, /* each block is released after `value` ns or earlier */
	RULE_STREAM, /* blocks above `value` bytes are allocated in pieces of that size */
};

struct claim {
	uint32_t callsite;
	enum rule rule;
	uint64_t value;
	uint64_t bytes; /* live at the moment, but not without the cause */
};
#define CLAIMS_MAX 64u

struct evidence {
	enum fact fact;
	double value; /* in the fact's unit */
};
#define EVIDENCE_MAX 16u

/* The form of a finding's cause: sentence and advice differ. */
enum finding_form {
	FORM_USUAL,
	FORM_BACKLOG, /* concurrency: work in an unbounded queue */
	FORM_WORKERS, /* concurrency: processes of one pool */
	FORM_DOUBLING, /* prompt-growth: one container that is enlarged by a factor when it is full
			*/
	FORM_WITHIN, /* prompt-growth: within one request, after many that ended small */
	FORM_STUCK, /* concurrency: requests that do not end, while others do */
	FORM_FILES, /* leak: files in memory that are closed and not removed */
	FORM_VARYING, /* external: requests vary, and the large ones do not fit */
	FORM_STAIRS, /* batch-prealloc: a block for each size of a batch, all kept */
	FORM_GRAPHS, /* batch-prealloc, state-retention: CUDA graphs */
	FORM_STREAMS, /* concurrency: work in flight on several streams */
	FORM_STACKS, /* external, leak, concurrency: address space that threads' stacks take */
	FORM_UNJOINED, /* leak: stacks of threads that ended, and that nobody joined */
};

struct finding {
	enum cause cause; /* set by the detector's caller */
	enum finding_form form;
	double strength; /* 0 to 1: how well the shape fits, whatever its size */
	uint64_t bytes; /* sum over claims */
	uint64_t request_bytes; /* part of the refused request that the cause made */
	uint64_t slack_bytes; /* part of the allocator's holes that was usable */
	uint64_t other_bytes; /* held by others, and free without the cause */
	uint64_t needed_bytes; /* what the work takes anyway: no growth to explain */
	/* It claims that nothing grew: so it must explain the shortfall alone, and the bytes by
	 * which a trend still raised the high-water mark. */
	bool steady;
	uint64_t trend_bytes;
	/* If the allocator can be modelled, the replay without the cause also has: */
	bool coalesced; /* its holes in one piece all along */
	bool alone; /* the memory that others hold, given back */
	uint64_t start_ns; /* begin of its growth; 0: the earliest of all causes found */
	uint32_t blame; /* call site, or CALLSITE_NONE */
	uint32_t workers; /* FORM_WORKERS: processes of the pool */
	bool late; /* weights were loaded beside work */
	bool copied; /* the blamed line made the first object; the claims are its copies */
	struct claim claims[CLAIMS_MAX];
	uint32_t claim_count;
	struct evidence evidence[EVIDENCE_MAX];
	uint32_t evidence_count;
};

/* All bytes that live in the space at the moment. */
static inline uint64_t scene_live(const struct scene *scene)
{
	return scene->callsites->live_bytes + scene->callsites->map_bytes;
}
/* The bytes of the refused request; 0: none. */
static inline uint64_t scene_asked(const struct scene *scene)
{
	return scene->end.refused ? scene->end.refused->size : 0;
}

#define DETECT_SILENT 1 /* the shape is not there */

/* Look for one shape and fill `out`, except its cause. Returns 0, or DETECT_SILENT with `out`
 * undefined. A detector keeps nothing: the model has gathered all that it needs of the events. */
typedef int detector(const struct scene *scene, struct finding *out);

#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) detector detect;
#include "knowledge/causes.def"
extern detector *const detectors[CAUSE_COUNT]; /* by cause; NULL for CAUSE_UNKNOWN */

/* For detectors: add to a finding. If it is full, a claim replaces the smallest, or is dropped with
 * its bytes; evidence is dropped. */
void finding_claim(
    struct finding *f, uint32_t callsite, enum rule rule, uint64_t value, uint64_t bytes);
/* Claim that the call site would hold `bytes` less; at most all that it holds. */
void finding_claim_without(
    struct finding *f, const struct callsites *callsites, uint32_t callsite, uint64_t bytes);
/* Blame the call site if its bytes are more than *most, which then are these bytes. */
static inline void finding_blame_larger(
    struct finding *f, uint32_t callsite, uint64_t bytes, uint64_t *most)
{
	if (bytes <= *most)
		return;
	*most = bytes;
	f->blame = callsite;
}
void finding_evidence(struct finding *f, enum fact fact, double value);
/* Return the value of that fact; 0: the finding lacks it. */
double finding_fact(const struct finding *f, enum fact fact);
/* Return 0 to 1: how evenly each generation of the call site's blocks leaves survivors. */
double finding_stays(const struct callsite *p);
/* Claim the tables (arrays, hash tables) that point to the blocks of the call sites that `of`
 * selects, and a refused request for such a table. Returns their bytes. */
uint64_t finding_claim_tables(const struct scene *scene, struct finding *f,
    bool (*of)(const struct scene *scene, const struct callsite *p));

/* Questions about a scene: each is true only if the record shows it. A call site is given as an
 * index, or as a pointer into scene->callsites->list, if a copy of it is valid, too. */

/* True if most live blocks were allocated under a known store's frames, so are kept on purpose. */
bool scene_in_store(const struct scene *scene, const struct callsite *p);
/* True if its blocks keep a fixed ratio to those of a known store, which then keeps them, too. */
bool scene_kept_with_store(const struct scene *scene, const struct callsite *p);
/* Return by what factor requests in flight hold more at the call site than is known: small objects
 * lie in the interpreter's arenas, without a call site, beside larger blocks. */
double scene_held_times(const struct scene *scene, uint32_t callsite);

/* True if the recording began later than the process: it was attached to. Its start is unknown. */
bool scene_attached(const struct scene *scene);
/* Return 0 to 1: how far what grew since an attach outweighs what was there before; 1 without. */
double scene_beside_before(const struct scene *scene, uint64_t bytes);
/* Return whether the refused request is another one like those in flight: other threads' requests
 * hold alike at its call site, and the asking thread holds nothing there. `of`: index in
 * held->list. Tasks of one thread are not told apart. */
bool scene_asked_beside(const struct scene *scene, uint32_t of);
/* True if most of what the program's own line holds are arenas of the interpreter, which came all
 * along. */
bool scene_has_arenas(const struct callsite *p);
/* Return the share of these arenas that requests in flight hold, after others of their kind have
 * ended. An arena has the line that happened to need it; the arrays that list the objects in it
 * have the line that made both, so they tell. 0 also where the arrays are too small for that. */
double scene_arenas_in_flight(const struct scene *scene);
/* Return the share of the `kept` bytes at the call site that several requests in flight hold: they
 * are neither finished work nor put in place for good. */
double scene_in_flight(const struct scene *scene, uint32_t callsite, uint64_t kept);
/* True for a device's call site with the role of loading weights. */
bool scene_is_weights(const struct scene *scene, uint32_t callsite);
/* True if the refused request was made at a call site of that role. */
bool scene_asks_for(const struct scene *scene, enum role role);
/* True if its blocks follow the input from request to request, and are too large for a copy or
 * another form of it, as when a model reads its prompt. */
bool scene_amplifies(const struct scene *scene, uint32_t callsite);
/* True if the device holds only weights, nothing of a request, and the refused request was the
 * first of its line, larger than all of them. */
bool scene_asks_beside_weights(const struct scene *scene);
/* True if the request was for a thread's stack, whose size the caller does not choose. */
bool scene_asks_for_thread(const struct scene *scene);
/* True if threads that never finished anything make the same blocks there again and again: each is
 * a worker that serves many requests, and what it keeps is not one request's. */
bool scene_workers_repeat(const struct scene *scene, uint32_t callsite);
/* Return 0 to 1: threads that one line started, one beside the other's work, have not ended. The
 * refused request is the next of them. */
double scene_threads_stay(const struct scene *scene);
/* Return 0 to 1: as many threads had ended as there are now, so each ends with its work; the
 * refused request is the next of them. */
double scene_threads_end(const struct scene *scene);
/* Return 0 to 1: of all threads that ended, most were never joined or detached. */
double scene_threads_unjoined(const struct scene *scene);
/* Return the share of the live bytes at call sites of that role. */
double scene_share_of(const struct scene *scene, enum role role);

/* Return 0 if `part` is at most an eighth of `rest`, and 1 if it is at least equal. */
double dominance(double part, double rest);
/* Return the freed share of the bytes acquired since. Loading frees at most its staged copies. */
double scene_worked_since(const struct scene *scene, uint64_t since_ns);
/* True if hardly any bytes were freed since: a program that starts, or puts something in place. */
bool scene_is_quiet_since(const struct scene *scene, uint64_t since_ns);
/* Return the freed share of the blocks' number since. */
double scene_released_since(const struct scene *scene, uint64_t since_ns);
/* True if it made so many blocks, or so many of one size, and no others beside them, that each is
 * of a request of its own rather than of something that is put in place. */
bool scene_many_alike(const struct scene *scene, const struct callsite *p);
/* True if its blocks come in no order, as requests of several kinds do: the mean size differs from
 * one step to the next by chance, and these sums do not recur. A layer's parameters come in the
 * same order each time. Half the squared difference of neighbours, times their blocks, estimates
 * the variance of a size (von Neumann, Annals of Mathematical Statistics, 1941); it is at most
 * (largest - mean) * (mean - smallest) (Bhatia and Davis, American Mathematical Monthly, 2000). */
bool scene_in_no_order(const struct callsite *p);
/* True if other lines acquired at most `most` blocks and mappings since its first block. */
bool scene_made_no_more(const struct scene *scene, const struct callsite *p, uint64_t most);
/* True if many other blocks came and went between its own, so requests were served. Host only. */
bool scene_worked_between(const struct scene *scene, const struct callsite *p);
/* True if far more other blocks came and went since its newest block than between any two of its
 * own: work goes on, and leaves none there. Host only, and not of a sample. */
bool scene_has_stopped(const struct scene *scene, const struct callsite *p);
/* True if earlier calls had worked: freed much of `bytes`, beside the copy of its first block.
 * Module code, which runs once, does not count. */
bool scene_worked_before(
    const struct scene *scene, uint64_t since_ns, uint64_t bytes, uint64_t copy);
/* True if weights were read from its first block until the moment: blocks that came and went may be
 * part of loading. */
bool scene_reads_weights(const struct scene *scene, const struct callsite *of);
/* Return the call site whose blocks it took the place of, one by one, after all of them were there:
 * weights that are cast to another type. CALLSITE_NONE: there is none. */
uint32_t scene_converts(const struct scene *scene, uint32_t callsite);
/* True if its blocks get larger and larger, and nearly all of them stay: each is one of a series,
 * and none takes the place of the one before. */
bool scene_keeps_series(const struct callsite *p);
/* True if few large blocks hold nearly all of it, as with parameters and pools, but not records. */
bool scene_few_large(const struct scene *scene, const struct callsite *p);
/* True if its blocks alternate with those of two other lines, as a layer's parameters do. */
bool scene_in_turns(const struct scene *scene, const struct callsite *p);
/* True if its blocks get larger now and then, and never smaller. A pool's blocks are equal, and a
 * layer's small parameters recur. */
bool scene_sizes_drift(const struct callsite *p);
/* True if each large block has another size, as incoming data has; layers are alike. */
bool scene_sizes_scatter(const struct callsite *p);
/* True if blocks that came and went since its first may be staged copies: one call was open all the
 * time, or hardly anything else was allocated, and not much more was freed than kept. */
bool scene_is_staged(const struct scene *scene, const struct callsite *p);
/* True if blocks of other sizes came between its own, and stay, as a layer's parameters do. */
bool scene_in_company(const struct scene *scene, const struct callsite *p);
/* True if it is staged, of several recurring sizes at this line or with others in the same call: a
 * model, layer after layer. */
bool scene_is_read_in(const struct scene *scene, uint32_t callsite);
/* Return the step at which the second of two goes begins, the first before any work, the second
 * still going on: none of its blocks came with the work between them, so they were put in place,
 * and then once more. 0: there is one go, or several. */
uint32_t scene_second_go(const struct scene *scene, const struct callsite *p);
/* True if that is so, and much was released in between. */
bool scene_made_again(const struct scene *scene, const struct callsite *p);
/* True if at least as many of its mappings were removed as exist now. */
bool scene_maps_in_passing(const struct scene *scene, const struct callsite *p);
/* Return 0 to 1: this worker's memory against the other workers' under the same limit. */
double scene_beside_workers(const struct scene *scene, uint64_t bytes);
/* Return the freed share of the space's blocks, until its model's end. A program that never frees
 * does no work. */
double scene_churn(const struct scene *scene);
/* The same for bytes. */
double scene_given_back(const struct scene *scene);

#endif

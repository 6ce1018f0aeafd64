/*
 * request.h - which lanes of a process (its threads, and the tasks on them: asyncio's, greenlets)
 * worked when, how the bytes that each lane acquired rose and fell, and for which requests.
 * Requests are those that the program marks; else those whose entry function is on the stack; else
 * each lane stands for a request.
 *
 * Fed with the events of one space until a moment. Constant work for an event; keeps a bounded
 * number of lanes and requests, and sums of the rest. One thread.
 */
#ifndef ANALYZER_MODEL_REQUEST_H
#define ANALYZER_MODEL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/map.h"
#include "util/vec.h"

#define REQUEST_LANES 16384u /* kept; what further ones acquire belongs to nobody */
#define REQUESTS_OPEN 4096u /* that go on at the same time, and are kept */
#define REQUEST_ROUNDS 3u /* so many are a habit */
#define REQUESTS_KEPT 32u /* of those that ended, the largest */
struct request_run {
	uint64_t id; /* the program's, 0: none */
	const char *name; /* NULL: none */
	uint32_t thread, task; /* that began it */
	uint64_t start_ns, end_ns; /* end 0: it goes on */
	uint64_t acquired, live, peak; /* bytes of blocks that were acquired for it */
	uint64_t serial; /* of its beginning */
	uint32_t next_free; /* slot + 1 */
	bool marked, used;
	bool shared; /* others than the thread and task that began it worked for it, too */
};

/*
 * Bytes rise while a lane works at something and fall when it is done. A fall counts from an eighth
 * of the lane's largest on; a round ends with a fall of at least half of that. The first rounds
 * must also give back a quarter of all that the lane held, since each may leave something behind.
 */
struct lane {
	uint32_t thread, task; /* task 0: the thread itself */
	uint32_t request; /* slot of the one it works for, if that still is `request_serial` */
	uint64_t request_serial; /* 0: none */
	uint32_t rounds_before; /* when that began */
	bool ended; /* its thread or task has gone */
	bool refused; /* it was refused memory: what it holds, its error may keep alive */
	uint64_t first_ns, last_ns; /* first and last acquisition */
	uint64_t entered_ns; /* since when it works for its request */
	uint64_t first_entered_ns; /* for its first one; 0: it never did */
	uint64_t live, peak, acquired;

	bool falling;
	uint64_t high, low, low_ns; /* of the present rise or fall */
	uint64_t largest_fall, base_ns; /* base: where the latest round ended */
	uint64_t setup_ns; /* where the first of them ended */
	uint32_t rounds;
};

/* A phase that the program marked; end 0: it goes on. */
struct marked_phase {
	const char *name; /* NULL: none was given */
	uint64_t id, start_ns, end_ns;
};
#define MARKED_PHASES 8u

/* Lanes that ended, by the power of two of what they held at most. */
struct lanes_ended {
	uint64_t count, clean; /* clean: they left no more than an eighth of it behind */
};
#define REQUEST_LEFT_PART 8u

enum request_source {
	REQUESTS_NONE,
	REQUESTS_MARKED,
	REQUESTS_FRAMES,
	REQUESTS_TASKS,
	REQUESTS_THREADS,
};
const char *request_source_name(enum request_source source); /* "marks"; "none" */

struct requests {
	/* Is a stack inside a request? NULL: no frame is known to be an entry. */
	bool (*is_entry)(void *arg, uint32_t stack);
	void *arg;

	VEC(struct lane) lanes; /* the first is everybody else's */
	struct map by_key; /* thread or task to lane */
	uint64_t last_key;
	uint32_t last_lane;
	uint64_t overflow; /* acquisitions of lanes that were not kept */
	struct lanes_ended ended[64];

	struct request_run open[REQUESTS_OPEN];
	uint32_t open_used, open_free; /* slots that ever were; slot + 1 of a free one among them */
	struct map by_id; /* of marks: id to 1 + slot */
	struct request_run kept[REQUESTS_KEPT]; /* ended, largest first */
	uint32_t kept_count;
	uint64_t begun, finished, unkept, in_flight, most_at_once;
	uint64_t finished_peak; /* the most that one of them held */
	uint64_t first_start_ns, first_end_ns; /* of the first request; 0: none, or it goes on */
	struct marked_phase phases[MARKED_PHASES]; /* the first ones */
	uint32_t phase_count;
	bool marked; /* a request was marked */
	bool tasks; /* a task was seen */
};

/* `is_entry` may be NULL. NULL: no memory. */
struct requests *requests_new(bool (*is_entry)(void *arg, uint32_t stack), void *arg);
void requests_free(struct requests *r); /* accepts NULL */

/* Apply one event of the host, or of marks, threads and tasks. 0 or -ENOMEM. */
int requests_apply(struct requests *r, const struct event *e);
/* Apply an event of another space: only whose work it was, not its bytes. */
int requests_passed(struct requests *r, const struct event *e);
/* Add or remove a block of any space. `moving`: it is replaced by its successor at once. */
int requests_acquired(struct requests *r, const struct block *b, uint64_t time_ns);
void requests_released(struct requests *r, const struct block *b, uint64_t time_ns, bool moving);

/* How requests are told apart. */
enum request_source requests_source(const struct requests *r);

/* The request that a lane works for, or NULL. */
const struct request_run *requests_of_lane(const struct requests *r, const struct lane *l);
/* The lane of a thread or task; NULL: it acquired nothing, or was not kept. */
const struct lane *requests_lane(const struct requests *r, uint32_t thread, uint32_t task);
/* How many ended lanes held at least `peak`; *clean: how many of these left next to nothing behind.
 * */
uint64_t requests_ended(const struct requests *r, uint64_t peak, uint64_t *clean);

#endif

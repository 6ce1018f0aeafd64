/*
 * request.h - the lanes of a process (threads, and their tasks: asyncio's, greenlets): when each
 * worked, how its bytes rose and fell, and for which request. Requests are those that the program
 * marks; else those whose entry function is on the stack; else each lane stands for a request.
 *
 * Fed with the events of one space until a moment. Constant work for an event. Keeps a bounded
 * number of lanes and requests, and sums of the rest. One thread.
 */
#ifndef ANALYZER_MODEL_REQUEST_H
#define ANALYZER_MODEL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/map.h"
#include "util/vec.h"

#define REQUEST_LANES 16384u /* kept; further ones share the first lane */
#define REQUESTS_OPEN 4096u /* open at the same time, and kept */
#define REQUEST_ROUNDS 3u /* this many rounds are a habit */
#define REQUESTS_KEPT 32u /* the largest of the finished ones */
struct request_run {
	uint64_t id; /* the program's number; 0: none */
	const char *name; /* NULL: none */
	uint32_t thread, task; /* of the begin */
	uint64_t start_ns, end_ns; /* end 0: unfinished */
	uint64_t acquired, live, peak; /* bytes of the request's blocks */
	uint64_t serial; /* number of the begin */
	uint32_t next_free; /* slot + 1 */
	bool marked, used;
	bool shared; /* other threads or tasks worked for it, too */
};

#define LANE_FREES 8u /* the latest releases of a lane's blocks, whose times are kept */

/* Bytes rise while a lane works and fall when the work is done. A fall counts if it is at least an
 * eighth of the lane's largest; a round ends with a fall of at least half of the largest. The first
 * rounds must also release a quarter of all bytes that the lane held, since each may leave some
 * behind. */
struct lane {
	uint32_t thread, task; /* task 0: the thread itself */
	uint32_t request; /* slot of its request, if its serial is `request_serial` */
	uint64_t request_serial; /* 0: none */
	uint32_t rounds_before; /* rounds when the request began */
	bool ended; /* its thread or task ended */
	bool refused; /* it was refused memory; an exception may keep its blocks alive */
	uint64_t first_ns, last_ns; /* first and last acquisition */
	uint64_t entered_ns; /* start of its work for the request */
	uint64_t first_entered_ns; /* the same for its first request; 0: it had none */
	uint64_t live, peak, acquired;

	uint64_t frees_ns[LANE_FREES]; /* a ring; 0: none */
	uint32_t frees; /* releases so far */

	bool falling;
	uint64_t high, low, low_ns; /* of the current rise or fall */
	uint64_t largest_fall, base, base_ns; /* base: bytes at the end of the latest round */
	uint64_t setup_ns; /* end of the first round */
	uint32_t rounds;
};

/* A phase that the program marked; end 0: unfinished. */
struct marked_phase {
	const char *name; /* NULL: unnamed */
	uint64_t id, start_ns, end_ns;
};
#define MARKED_PHASES 8u

/* Lanes that ended, by the power of two of their peak. */
struct lanes_ended {
	uint64_t count, clean; /* clean: at most an eighth of the peak was left */
	uint64_t life_ns; /* sum: from the first acquisition to the end */
};
#define REQUEST_LEFT_PART 8u

enum request_source {
	REQUESTS_NONE,
	REQUESTS_MARKED,
	REQUESTS_FRAMES,
	REQUESTS_TASKS,
	REQUESTS_THREADS,
};
const char *request_source_name(enum request_source source); /* "marks", "none", and so on */

struct requests {
	/* True if the stack is inside a request. NULL: no frame is known as an entry. */
	bool (*is_entry)(void *arg, uint32_t stack);
	void *arg;
	/* Called as a request ends; NULL: nobody asks. */
	void (*on_end)(void *end_arg, const struct request_run *q);
	void *end_arg;

	VEC(struct lane) lanes; /* the first is shared by lanes that were not kept */
	struct map by_key; /* thread or task to lane */
	uint64_t last_key;
	uint32_t last_lane;
	uint64_t overflow; /* acquisitions of lanes that were not kept */
	struct lanes_ended ended[64];

	struct request_run open[REQUESTS_OPEN];
	uint32_t open_used, open_free; /* slots ever used; 1 + the first free one */
	struct map by_id; /* of marks: id to 1 + slot */
	struct request_run kept[REQUESTS_KEPT]; /* finished, largest first */
	uint32_t kept_count;
	uint64_t begun, finished, in_flight, most_at_once;
	uint64_t finished_peak; /* the largest peak of a finished request */
	uint64_t first_start_ns, first_end_ns; /* of the first request; 0: none, or unfinished */
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
/* Add a block of any space. 0 or -ENOMEM. */
int requests_acquired(struct requests *r, const struct block *b, uint64_t time_ns);

/* How requests are told apart. */
enum request_source requests_source(const struct requests *r);

/* The request that a lane works for, or NULL. */
const struct request_run *requests_of_lane(const struct requests *r, const struct lane *l);
/* True if hardly any block of the lane was released since: it made the later ones in one go. */
bool requests_lane_only_makes(const struct lane *l, uint64_t since_ns);
/* The lane of a thread or task; NULL: it acquired nothing, or was not kept. */
const struct lane *requests_lane(const struct requests *r, uint32_t thread, uint32_t task);
/* Sum up the ended lanes that held at least `peak`. */
struct lanes_ended requests_ended(const struct requests *r, uint64_t peak);

#endif

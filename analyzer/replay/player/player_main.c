/*
 * player_main.c - whyoom-player: performs a plan (plan.h) against whatever allocator it was started
 * with. It takes nothing from that allocator for itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/group.h"
#include "replay/player/player_measure.h"
#include "replay/player_touch.h"
#include "util/num.h"

#define STACK_LEAST (64u << 10)
#define SPINS 200
#define LEND_BYTES (256u << 10) /* and more at once: allocators take memory by such pieces */

struct slot {
	void *address;
	uint64_t size; /* 0: nothing that counts */
};

/* Of the operations ahead of the one that is performed, those whose slot, and whose block, are
 * looked for already. */
#define AHEAD_SLOT 16
#define AHEAD_BLOCK 8

struct thread {
	_Alignas(64) uint32_t go; /* 1 + the part that it may run; a futex */
	uint32_t sleeping;
	int64_t small; /* bytes acquired less released, by this thread */
	int64_t large, touched; /* the same of what is not small; of it, written to */
	bool exits;
	uint32_t next_ending; /* 1 + the thread that was to end before */
	uint64_t refused_again;
	pthread_t handle;
};

static const struct plan_header *plan;
static const struct plan_part *parts;
static const struct plan_op *ops;
static const uint32_t *firsts;
static struct play *play;
static struct thread *threads;
static uint32_t done; /* parts */
static uint64_t page;
static uint32_t ending; /* 1 + the thread that announced it last */
static pthread_mutex_t ending_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned spins;
static struct timespec started;
static uint64_t sampling_ns;
static struct {
	char *address;
	uint64_t size;
} ballast;

/* The blocks, for a debugger. */
struct slot *whyoom_blocks;

/* --- the end --- */

static uint64_t elapsed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec - started.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec -
	       (uint64_t)started.tv_nsec;
}

static void __attribute__((noreturn)) end(enum play_state state, int code)
{
	static uint32_t ended;

	if (__atomic_exchange_n(&ended, 1, __ATOMIC_ACQ_REL))
		for (;;)
			pause();
	play->ns = elapsed() - sampling_ns;
	play->code = code;
	for (uint32_t i = 0; i < plan->threads; i++)
		play->refused_again += __atomic_load_n(&threads[i].refused_again, __ATOMIC_RELAXED);
	__atomic_store_n(&play->state, state, __ATOMIC_RELEASE);
	if (play->hold && state >= (play->hold_at_end ? PLAY_DONE : PLAY_REFUSED) &&
	    state <= PLAY_KILLED) {
		/* It is looked at from outside. Where parts run side by side, others go on. */
		if (play->in_turn || state == PLAY_DONE)
			player_touch_all();
		raise(SIGSTOP);
	}
	_exit(0);
}

static void __attribute__((noreturn)) refused(const struct plan_op *op, uint64_t size)
{
	play->op = (uint64_t)(op - ops);
	play->requested = size;
	end(op->what & PLAN_LAST ? PLAY_REFUSED_LAST : PLAY_REFUSED, ENOMEM);
}

/* --- samples --- */

/* Address space that is taken without memory, so that as much is in use as was in the record. */
static bool set_ballast(uint64_t bytes)
{
	int access = play->limit_kind == PLAY_LIMIT_DATA ? PROT_READ | PROT_WRITE : PROT_NONE;
	void *p;

	bytes = bytes / page * page;
	if (bytes == ballast.size)
		return true;
	if (!bytes)
		p = munmap(ballast.address, ballast.size) ? MAP_FAILED : NULL;
	else if (ballast.size)
		p = mremap(ballast.address, ballast.size, bytes, MREMAP_MAYMOVE);
	else
		p = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	ballast.address = p;
	ballast.size = bytes;
	return true;
}

/* As it is set, beside what is lent. */
static uint64_t limit_now, lent;

/* Of its own the program may have set another one any time. */
static void set_limit(uint64_t bytes)
{
	int which = play->limit_kind == PLAY_LIMIT_AS ? RLIMIT_AS : RLIMIT_DATA;
	struct rlimit64 r;

	if (getrlimit64(which, &r))
		end(PLAY_BROKEN, errno);
	limit_now = bytes;
	bytes = bytes > UINT64_MAX - lent ? bytes : bytes + lent;
	r.rlim_cur = bytes < r.rlim_max ? bytes : r.rlim_max;
	if (setrlimit64(which, &r))
		end(PLAY_BROKEN, errno);
}

/*
 * Refused here, and the record was granted it: its allocator had a last piece elsewhere, as the
 * order in which threads come decides. A little above the limit is lent until the last request is
 * there.
 */
static bool lend(uint64_t size)
{
	uint64_t more = size + LEND_BYTES;

	if ((play->limit_kind != PLAY_LIMIT_AS && play->limit_kind != PLAY_LIMIT_DATA) ||
	    more > play->lend - lent)
		return false;
	lent += more;
	play->lent = lent;
	set_limit(limit_now);
	return true;
}

static void take_back(void)
{
	if (!lent)
		return;
	lent = 0;
	set_limit(limit_now);
}

static int limit_file = -1, usage_file = -1;

/* Opens the files of the player's own cgroup. False: they are not there. */
static bool group_begin(int dir, int version)
{
	limit_file = openat(dir, group_limit_file(version), O_WRONLY | O_CLOEXEC);
	usage_file = openat(dir, group_usage_file(version), O_RDONLY | O_CLOEXEC);
	return limit_file >= 0 && usage_file >= 0;
}

/*
 * Lets as much private memory be resident as the limit leaves. What else the group is charged with,
 * the player's tables and the kernel's, is not counted. False: that is less than what is resident.
 */
static bool limit_group(const struct play_sample *s)
{
	uint64_t room = num_less(play->limit, s->beside), usage;
	char text[32];
	ssize_t n = pread(usage_file, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	usage = strtoull(text, NULL, 10);
	n = snprintf(
	    text, sizeof(text), "%llu", (unsigned long long)(room + num_less(usage, s->resident)));
	return room > s->resident && pwrite(limit_file, text, (size_t)n, 0) == n;
}

/* Replayed at some speed, nothing comes sooner than it is due. */
static void await_time(uint64_t due_ns)
{
	struct timespec t = started;
	uint64_t ns = (uint64_t)t.tv_nsec + due_ns;

	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	while (due_ns && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/*
 * What the allocator says it has is told of the sample at which most was resident. It walks all
 * that is free to say it: it is asked where there is more by a part than when it was asked last,
 * and what it said last holds for what is in between.
 */
#define MORE_PART 32

static void look_into_allocator(struct play_sample *s)
{
	static struct play_sample asked;

	if (!asked.resident || s->resident > asked.resident + asked.resident / MORE_PART) {
		measure_allocator(&asked);
		asked.resident = s->resident;
	}
	s->held = asked.held;
	s->used = asked.used;
}

#define CLEARLY_MORE 256 /* by such a part */

/* Does anybody look at what is resident at this sample? */
static bool is_seen(const struct plan_op *op, int64_t live)
{
	static int64_t most;
	bool more = live > most + most / CLEARLY_MORE;

	if (more)
		most = live;
	return more || !play->sparse || (op->shift && play->limit_kind == PLAY_LIMIT_NONE);
}

/* Alone in its epoch: no other thread runs. */
static void sample(const struct plan_op *op)
{
	struct play_sample *s = &play->samples[op->slot];
	int64_t live = 0, touched = 0;
	uint64_t before = elapsed();

	await_time(s->due_ns);
	for (uint32_t i = 0; i < plan->threads; i++) {
		live += threads[i].small + threads[i].large;
		touched += (play->touch.none ? 0 : threads[i].small) + threads[i].touched;
	}
	s->live = (uint64_t)live;
	s->touched = (uint64_t)touched;
	if (is_seen(op, live))
		player_touch_all();
	measure_process(s);
	s->size -= ballast.size;
	if (play->limit_kind == PLAY_LIMIT_DATA)
		s->data -= ballast.size;
	look_into_allocator(s);
	__atomic_store_n(&play->sample, op->slot, __ATOMIC_RELEASE);
	play->ns = before - sampling_ns; /* a killer leaves no time to tell */
	if (play->limit_kind == PLAY_LIMIT_RESIDENT && (op->shift || op->slot >= play->seldom) &&
	    s->resident + s->beside >= play->limit)
		end(PLAY_KILLED, 0);
	/* What grew beside is not in the player's group: it is told. */
	if (play->limit_kind == PLAY_LIMIT_GROUP && !limit_group(s))
		end(PLAY_KILLED, 0);
	sampling_ns += elapsed() - before;
	/* What does not fit any more is refused to whoever asks next. */
	if (s->limit)
		set_limit(s->limit);
	if (play->limit_kind == PLAY_LIMIT_AS || play->limit_kind == PLAY_LIMIT_DATA)
		set_ballast(s->beside);
}

/* --- operations --- */

/* How much of a block is written to. */
static uint64_t touched_of(enum plan_kind kind, uint64_t size)
{
	return (uint64_t)((double)size * play->touch.share[plan_class(kind, size)] / 256);
}

static void touch(void *address, uint64_t from, uint64_t to)
{
	if (!play->touch.none)
		player_touch(address, from, to);
}

static void count(struct thread *t, enum plan_kind kind, uint64_t size, int sign)
{
	if (__builtin_expect(size < PLAN_LARGE, 1)) {
		t->small += sign * (int64_t)size;
		return;
	}
	t->large += sign * (int64_t)size;
	t->touched += sign * (int64_t)(play->touch.none ? 0 : touched_of(kind, size));
}

static void adopt(struct thread *t, struct slot *s, void *p, uint64_t size, enum plan_kind kind)
{
	s->address = p;
	s->size = size;
	touch(p, 0, size < PLAN_LARGE ? size : touched_of(kind, size));
	count(t, kind, size, 1);
}

static void *acquire(const struct plan_op *op, uint64_t size)
{
	void *p = NULL;

	switch (op->what & PLAN_WHAT) {
	case PLAN_MALLOC:
		return malloc(size);
	case PLAN_CALLOC:
		return calloc(1, size);
	case PLAN_ALIGNED:
		return posix_memalign(&p, (size_t)1 << op->shift, size) ? NULL : p;
	case PLAN_MAP:
		p = mmap(NULL, size,
		    op->shift == PLAN_RESERVED ? PROT_NONE : PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (op->shift == PLAN_MEMORY ? 0 : MAP_NORESERVE),
		    -1, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	return NULL;
}

/* Once more, after it was refused; NULL: in the end. */
static void *acquire_lent(const struct plan_op *op, uint64_t size)
{
	void *p = NULL;

	while (!p && lend(size))
		p = acquire(op, size);
	return p;
}

/* What the record was refused, and came here: given back, each piece is in the one before. */
static void give_back(const struct plan_op *op, void *chain, uint64_t size)
{
	while (chain) {
		void *p = chain;

		chain = *(void **)p;
		if ((op->what & PLAN_WHAT) == PLAN_MAP)
			munmap(p, size);
		else
			free(p);
	}
}

/* False: it is refused. */
static bool try_resize(const struct plan_op *op, uint64_t size)
{
	struct slot *s = &whyoom_blocks[op->slot];
	void *p = realloc(s->address, size), *back;

	if (!p)
		return false;
	back = realloc(p, s->size ? s->size : 1);
	s->address = back ? back : p;
	return true;
}

/* Into the chain; a reservation, that cannot be written to, goes again at once. */
static bool try_piece(const struct plan_op *op, uint64_t size, void **chain)
{
	void *p = acquire(op, size);

	if (!p)
		return false;
	if ((op->what & PLAN_WHAT) == PLAN_MAP && op->shift != PLAN_MEMORY) {
		munmap(p, size);
		return true;
	}
	*(void **)p = *chain;
	*chain = p;
	return true;
}

/*
 * What the record was refused is asked for, and given back when it comes. Where an allocator finds
 * a last piece depends on how threads came by its parts: of the last refusal a little more may come
 * before it is refused here, too.
 */
static void try_refused(struct thread *t, const struct plan_op *op, uint64_t size)
{
	uint64_t piece = size > sizeof(void *) ? size : sizeof(void *), got = 0;
	bool last = op->what & PLAN_LAST, resizes = (op->what & PLAN_WHAT) == PLAN_REALLOC,
	     reserves = (op->what & PLAN_WHAT) == PLAN_MAP && op->shift != PLAN_MEMORY, comes;
	struct plan_op again = *op;
	void *chain = NULL;

	if (last)
		take_back();
	if (resizes)
		again.what = PLAN_MALLOC; /* it does not come twice where it is */
	do {
		comes = resizes && !got ? try_resize(op, piece) : try_piece(&again, piece, &chain);
		got += comes ? piece : 0;
	} while (comes && last && !reserves && got <= play->near);
	if (!comes && last) {
		play->later = got;
		refused(op, size);
	}
	t->refused_again += !comes;
	if (comes && last)
		play->granted_last = 1;
	give_back(&again, chain, piece);
}

static void resize(struct thread *t, const struct plan_op *op, uint64_t size)
{
	struct slot *s = &whyoom_blocks[op->slot];
	enum plan_kind kind = (enum plan_kind)op->shift;
	void *p;

	do
		p = realloc(s->address, size ? size : 1); /* 0 would release it */
	while (!p && lend(size));
	if (!p)
		refused(op, size);
	touch(p, s->size < size ? s->size : size,
	    size < PLAN_LARGE ? size : touched_of(PLAN_BLOCK, size));
	count(t, kind, s->size, -1);
	count(t, PLAN_BLOCK, size, 1);
	s->address = p;
	s->size = size;
}

static void release(struct thread *t, const struct plan_op *op)
{
	struct slot *s = &whyoom_blocks[op->slot];

	free(s->address);
	count(t, (enum plan_kind)op->shift, s->size, -1);
	*s = (struct slot){0};
}

/* A piece of one; the rest keeps its share. */
static void unmap(struct thread *t, const struct plan_op *op, uint64_t at, uint64_t size)
{
	struct slot *s = &whyoom_blocks[op->slot];

	munmap((char *)s->address + at, size);
	if (!s->size)
		return;
	count(t, PLAN_MAPPING, s->size, -1);
	s->size -= size;
	count(t, PLAN_MAPPING, s->size, 1);
}

static void spawn(const struct plan_op *op);

static enum plan_kind kind_of(const struct plan_op *op)
{
	switch (op->what & PLAN_WHAT) {
	case PLAN_MAP:
		return PLAN_MAPPING;
	case PLAN_CALLOC:
		return PLAN_ZEROED;
	default:
		return PLAN_BLOCK;
	}
}

/* Within the part: what lies behind it may be another thread's now. */
static inline void look_ahead(const struct plan_op *op, const struct plan_op *last)
{
	if (last - op <= AHEAD_SLOT)
		return;
	__builtin_prefetch(&whyoom_blocks[op[AHEAD_SLOT].slot], 1);
	if (op[AHEAD_BLOCK].what == PLAN_FREE)
		__builtin_prefetch(whyoom_blocks[op[AHEAD_BLOCK].slot].address, 1);
}

static void perform_one(struct thread *t, const struct plan_op *op, uint64_t *at)
{
	struct slot *s = &whyoom_blocks[op->slot];
	uint64_t size = plan_size(op);
	void *p;

	if (op->what & PLAN_REFUSED) {
		try_refused(t, op, size);
		return;
	}
	switch ((enum plan_what)op->what) {
	case PLAN_MALLOC:
	case PLAN_CALLOC:
	case PLAN_ALIGNED:
	case PLAN_MAP:
		p = acquire(op, size);
		if (!p && !(p = acquire_lent(op, size)))
			refused(op, size);
		if (op->what == PLAN_MAP && op->shift != PLAN_MEMORY)
			*s = (struct slot){.address = p}; /* none of what lives */
		else
			adopt(t, s, p, size, kind_of(op));
		break;
	case PLAN_REALLOC:
		resize(t, op, size);
		break;
	case PLAN_FREE:
		release(t, op);
		break;
	case PLAN_AT:
		*at = size;
		return;
	case PLAN_UNMAP:
		unmap(t, op, *at, size);
		break;
	case PLAN_ADVISE:
		madvise((char *)s->address + *at, size, op->shift);
		break;
	case PLAN_SAMPLE:
		sample(op);
		break;
	case PLAN_SPAWN:
		spawn(op);
		break;
	case PLAN_EXIT:
		t->exits = true;
		break;
	}
	*at = 0;
}

/* Nearly all operations are small blocks that come and go: these are performed here. */
static void perform(struct thread *t, const struct plan_part *part)
{
	const struct plan_op *op = ops + part->first, *last = op + part->count;
	bool touches = !play->touch.none;
	uint64_t at = 0;
	int64_t small = 0;

	for (; op < last; op++) {
		struct slot *s = &whyoom_blocks[op->slot];

		look_ahead(op, last);
		if (op->what == PLAN_FREE && s->size < PLAN_LARGE) {
			small -= (int64_t)s->size;
			free(s->address);
			s->address = NULL;
		} else if (op->what == PLAN_MALLOC && !op->size_high &&
			   op->size_low - 1 < page - 1) {
			char *p = malloc(op->size_low);

			if (!p && !(p = acquire_lent(op, op->size_low)))
				refused(op, op->size_low);
			if (touches)
				*(volatile char *)p = 1;
			small += op->size_low;
			*s = (struct slot){p, op->size_low};
		} else {
			perform_one(t, op, &at);
		}
	}
	t->small += small;
}

/* --- threads --- */

static long futex(uint32_t *word, int what, uint32_t value)
{
	return syscall(SYS_futex, word, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void post(uint32_t thread, uint32_t go)
{
	struct thread *t = &threads[thread];

	__atomic_store_n(&t->go, go, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&t->sleeping, __ATOMIC_SEQ_CST))
		futex(&t->go, FUTEX_WAKE, 1);
}

/* Those before `part` are done. */
static void begin_parts(uint32_t part)
{
	uint32_t before = parts[part].before;

	if (play->in_turn) {
		post(parts[part].thread, part + 1);
		return;
	}
	for (uint32_t i = part; before == part && i < plan->parts && parts[i].before == before; i++)
		post(parts[i].thread, i + 1);
}

static void await(struct thread *t, uint32_t go)
{
	for (unsigned n = 0; n < spins; n++) {
		if (__atomic_load_n(&t->go, __ATOMIC_ACQUIRE) == go)
			return;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	__atomic_store_n(&t->sleeping, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t seen = __atomic_load_n(&t->go, __ATOMIC_SEQ_CST);

		if (seen == go)
			break;
		futex(&t->go, FUTEX_WAIT, seen);
	}
	__atomic_store_n(&t->sleeping, 0, __ATOMIC_RELAXED);
}

/* Nothing of its own follows that another would wait for while he waits for its end. */
static void announce_end(struct thread *t)
{
	t->next_ending = __atomic_load_n(&ending, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&ending, &t->next_ending, (uint32_t)(t - threads) + 1,
	    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

static void join_ended(void)
{
	uint32_t first = 0;

	pthread_mutex_lock(&ending_lock);
	first = __atomic_exchange_n(&ending, 0, __ATOMIC_ACQ_REL);
	while (first) {
		struct thread *t = &threads[first - 1];

		first = t->next_ending;
		pthread_join(t->handle, NULL);
	}
	pthread_mutex_unlock(&ending_lock);
}

static void run(uint32_t thread)
{
	struct thread *t = &threads[thread];

	for (uint32_t i = firsts[thread]; i != PLAN_NONE; i = parts[i].next) {
		uint32_t now;

		await(t, i + 1);
		if (play->in_turn && __atomic_load_n(&ending, __ATOMIC_ACQUIRE))
			join_ended();
		perform(t, &parts[i]);
		if (t->exits && parts[i].next == PLAN_NONE)
			announce_end(t);
		now = __atomic_add_fetch(&done, 1, __ATOMIC_ACQ_REL);
		if (now == plan->parts)
			post(0, UINT32_MAX);
		else
			begin_parts(now);
	}
}

static void *run_thread(void *arg)
{
	struct thread *t = arg;

	run((uint32_t)(t - threads));
	while (!t->exits)
		pause();
	return NULL;
}

/* Whoever is about to end has ended before another begins: an allocator gives on what he leaves. */
static void spawn(const struct plan_op *op)
{
	uint64_t stack = play->stack > STACK_LEAST ? play->stack : STACK_LEAST;
	struct thread *t = &threads[op->slot];
	pthread_attr_t attr;
	int rc;

	join_ended();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	do
		rc = pthread_create(&t->handle, &attr, run_thread, t);
	while (rc == EAGAIN && lend(stack));
	pthread_attr_destroy(&attr);
	/* Its stack did not fit under the limit. */
	if (rc == EAGAIN && play->limit_kind != PLAY_LIMIT_NONE)
		refused(op, stack);
	if (rc)
		end(PLAY_BROKEN, rc);
}

/* --- the start --- */

static void *map_file(const char *number, int access)
{
	int fd = atoi(number);
	off_t size = lseek(fd, 0, SEEK_END); /* fstat() is a newer symbol */
	void *p;

	if (size < 0)
		return NULL;
	p = mmap(NULL, (size_t)size, access, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Shared, so that it is not among what is measured: private memory. */
static void *zeroed(uint64_t bytes)
{
	void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static bool prepare(char **argv)
{
	plan = map_file(argv[1], PROT_READ);
	play = map_file(argv[2], PROT_READ | PROT_WRITE);
	if (!plan || !play || plan->magic != PLAN_MAGIC)
		return false;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	parts = (const void *)((const char *)plan + plan->parts_at);
	ops = (const void *)((const char *)plan + plan->ops_at);
	firsts = (const void *)((const char *)plan + plan->firsts_at);
	strncpy(play->libc, gnu_get_libc_version(), sizeof(play->libc) - 1);
	threads = zeroed(plan->threads * sizeof(*threads));
	whyoom_blocks = zeroed(plan->slots * sizeof(*whyoom_blocks));
	spins = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPINS : 0;
	return threads && whyoom_blocks && player_touch_begin(page) &&
	       measure_begin(play->allocator, sizeof(play->allocator));
}

static void limit(void)
{
	if (play->limit_kind != PLAY_LIMIT_AS && play->limit_kind != PLAY_LIMIT_DATA)
		return;
	set_limit(play->limit);
	if (plan->samples && !set_ballast(play->samples[0].beside))
		end(PLAY_BROKEN, ENOMEM);
}

int main(int argc, char **argv)
{
	struct play_sample now;

	if (argc != 4 || !prepare(argv))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &started);
	if (!strstr(play->allocator, play->expected))
		end(PLAY_OTHER_ALLOCATOR, 0);
	__atomic_store_n(&play->state, PLAY_RUNNING, __ATOMIC_RELEASE);
	limit();
	measure_process(&now);
	play->base_resident = now.resident;
	if (play->limit_kind == PLAY_LIMIT_GROUP &&
	    !group_begin(atoi(argv[3]), (int)play->group_version))
		end(PLAY_BROKEN, ENOENT);
	if (plan->parts) {
		begin_parts(0);
		run(0);
		await(&threads[0], UINT32_MAX);
	}
	end(PLAY_DONE, 0);
}

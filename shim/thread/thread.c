/*
 * thread.c - creates and reaps thread states. A pthread key's destructor reports the end of a
 * thread, in its last round, so that the host's own destructors have run. A thread that ends
 * without one (a raw clone, an allocation after the last round) is found later by its tid.
 */
#include "thread/thread.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/varint.h"
#include "checkpoint/event_log.h"
#include "loaded/symbols.h"
#include "python/python.h"
#include "sampling/sampler.h"
#include "thread/chunk_writer.h"
#include "trace/definitions.h"

/* ns: no record takes this long, but its thread may have to wait for a CPU, or for the disk */
#define RECORD_NS 2000000000u
#define SLOTS_A_BLOCK 127u /* one page */
/* slot.tid in the child of a fork: the state may belong to the thread that survived the fork */
#define TID_UNKNOWN UINT32_MAX
struct slot_block {
	struct slot_block *next;
	uint32_t used;
	struct thread_slot slots[SLOTS_A_BLOCK];
};

__thread struct thread *thread_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread bool making __attribute__((tls_model("initial-exec")));

static struct {
	int lock; /* taken with signals blocked */
	struct slot_block *blocks;
	struct thread *fresh, *fresh_end; /* unused states of the newest page */
	uint32_t serials;
	struct slot_block *reap_block; /* where the next search for dead threads begins */
	uint32_t reap_index;
	int making; /* threads in thread_make() */
} threads;

/* Looked up in the C library: older ones have these functions in a library of their own. */
static struct {
	bool usable;
	unsigned key;
	int (*set)(unsigned, const void *);
} exit_key;

void *thread_wiped_pages(size_t bytes)
{
	void *p = sys_pages(bytes);

	if (p && sys_call(SYS_madvise, (long)p, (long)bytes, MADV_WIPEONFORK, 0, 0, 0) < 0)
		shim.can_wipe = false;
	return p;
}

static bool tid_is_dead(uint32_t tid)
{
	return sys_call(SYS_tgkill, shim.pid, (long)tid, 0, 0, 0, 0) == -3 /* ESRCH */;
}

/* Write the thread's last record and pass its chunk on. */
static void finish(struct thread *t)
{
	uint8_t body[16], *b = body, *p;
	uint64_t now = clock_ticks();

	if (t->chunk && t->pos + 32 <= t->end) {
		if (now < t->ticks)
			now = t->ticks;
		b = varint_put(b, now - t->ticks);
		t->ticks = now;
		p = t->pos;
		*p++ = TRACE_EXTENDED;
		p = varint_put(p, TRACE_THREAD_EXIT);
		if (sampler.by_table)
			event_log_add(
			    t->serial, t->tid, TRACE_THREAD_EXIT, now, body, (uint32_t)(b - body));
		p = varint_put_bytes(p, body, (size_t)(b - body));
		chunk_writer_commit_extended(t, p);
	}
	stack_thread_end(&t->slot->walker);
	chunk_writer_close(t);
	chunk_writer_expected_free(t->slot);
}

static struct thread_slot *slot_at(struct slot_block **block, uint32_t *index)
{
	struct thread_slot *s;

	while (*block && *index >= (*block)->used) {
		*block = (*block)->next;
		*index = 0;
	}
	if (!*block)
		return NULL;
	s = &(*block)->slots[(*index)++];
	return s;
}

/* Under the lock. Returns a free slot, or one whose thread is dead (*reap); that slot then belongs
 * to the caller. Checks only a few live threads, in turn, so that a new thread stays cheap among
 * many. */
static struct thread_slot *slot_find(uint32_t tid, bool *reap)
{
	struct slot_block *block = threads.blocks;
	struct thread_slot *s, *unused = NULL;
	uint32_t index = 0, owner;

	*reap = false;
	while ((s = slot_at(&block, &index))) {
		if (s->tid == tid) { /* dead: the caller has its tid now */
			*reap = true;
			return s;
		}
		if (!s->tid && !unused)
			unused = s;
	}
	for (int tries = 0; !unused && tries < 4; tries++) {
		s = slot_at(&threads.reap_block, &threads.reap_index);
		if (!s) {
			threads.reap_block = threads.blocks;
			threads.reap_index = 0;
			continue;
		}
		owner = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
		if (owner && tid_is_dead(owner)) {
			/* If it has ended meanwhile, nothing is left to finish. */
			*reap = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) == owner;
			return s;
		}
	}
	return unused;
}

static struct thread *state_new(void)
{
	/* whole cache lines, so that threads share none */
	size_t size = (sizeof(struct thread) + 127) & ~(size_t)127;

	if (!threads.fresh || (char *)threads.fresh + size > (char *)threads.fresh_end) {
		threads.fresh = thread_wiped_pages(4096);
		threads.fresh_end = (struct thread *)(void *)((char *)threads.fresh + 4096);
		if (!threads.fresh)
			return NULL;
	}
	threads.fresh = (struct thread *)(void *)((char *)threads.fresh + size);
	return (struct thread *)(void *)((char *)threads.fresh - size);
}

static struct thread_slot *slot_new(void)
{
	struct slot_block *block = threads.blocks;
	struct thread_slot *s;

	if (!block || block->used == SLOTS_A_BLOCK) {
		block = sys_pages(sizeof(*block));
		if (!block)
			return NULL;
		block->next = threads.blocks;
		threads.blocks = block;
	}
	s = &block->slots[block->used];
	s->thread = state_new();
	if (!s->thread)
		return NULL;
	block->used++;
	return s;
}

/* The name of a thread of this process; empty: it has none any more. */
static void name_of(uint32_t tid, char name[17])
{
	char path[64], *p = text_append(path, path + sizeof(path), "/proc/self/task/");
	long n;

	text_append(text_append_number(p, path + sizeof(path), tid), path + sizeof(path), "/comm");
	n = sys_read_file(path, name, 17);
	if (n > 0 && name[n - 1] == '\n')
		name[n - 1] = 0;
}

static void define(const struct thread *t)
{
	uint8_t body[64], *p = body;
	char name[17] = {0};

	if (t->tid == (uint32_t)sys_gettid())
		sys_call(SYS_prctl, PR_GET_NAME, (long)name, 0, 0, 0, 0);
	else
		name_of(t->tid, name);
	p = varint_put(p, t->serial);
	p = varint_put(p, t->tid);
	p = varint_put_bytes(p, name, strlen(name));
	definitions_write(TRACE_DEF_THREAD, body, (size_t)(p - body));
}

/* Fill in a zeroed state. Signals are blocked. */
static void begin(struct thread *t, struct thread_slot *s, uint32_t tid)
{
	enum trace_drop why;

	s->tid = tid;
	if (!s->walker)
		s->task = (struct stack_task){0};
	t->slot = s;
	t->tid = tid;
	t->serial = __atomic_add_fetch(&threads.serials, 1, __ATOMIC_RELAXED);
	define(t);
	chunk_writer_open(t, &why); /* on failure the first event tries again and is counted */
}

static struct thread *thread_new(void)
{
	uint32_t tid = (uint32_t)sys_gettid();
	struct thread_slot *s;
	struct thread *t;
	bool reap;

	sys_lock(&threads.lock);
	s = slot_find(tid, &reap);
	if (!s)
		s = slot_new();
	if (s)
		s->tid = tid;
	sys_unlock(&threads.lock);
	if (!s)
		return NULL;
	t = s->thread;
	if (reap)
		finish(t);
	memset(t, 0, sizeof(*t));
	begin(t, s, tid);
	return t;
}

struct thread *thread_make(void)
{
	struct thread *t = NULL;
	uint64_t signals;

	if (making)
		return NULL;
	if (shim.sandboxed) {
		if (shim_is_copy())
			thread_lifecycle.forked(NULL);
		else
			trace_file_dropped(TRACE_DROP_RIGHTS, 1, 0);
		return NULL;
	}
	making = true;
	signals = sys_block_signals();
	__atomic_fetch_add(&threads.making, 1, __ATOMIC_SEQ_CST);
	if (shim_is_unsettled())
		thread_lifecycle.forked(NULL);
	if (shim.mode == SHIM_UNSTARTED)
		thread_lifecycle.start();
	if (shim.mode == SHIM_RECORDING && !thread_self) {
		t = thread_new();
		if (t) {
			thread_self = t;
			if (exit_key.usable)
				exit_key.set(exit_key.key, t);
		} else {
			trace_file_dropped(TRACE_DROP_NO_THREAD, 1, 0);
		}
	} else if (shim.mode != SHIM_DORMANT) {
		t = thread_self;
	}
	__atomic_fetch_sub(&threads.making, 1, __ATOMIC_RELEASE);
	sys_restore_signals(signals);
	making = false;
	return t;
}

/* Reuse a state of the parent process; the call in progress continues. */
static void begin_again(struct thread *t, struct thread_slot *s, uint32_t tid)
{
	uint8_t state = t->state;
	uintptr_t frame = t->frame;

	memset(t, 0, sizeof(*t));
	t->state = state;
	t->frame = frame;
	begin(t, s, tid);
}

/*
 * Only the thread that forked exists in the child; mapped chunks belong to the parent's file. If
 * that thread has not come here yet, any state may be its own: see thread_forked_late().
 */
void thread_forked(struct thread *self)
{
	struct slot_block *block = threads.blocks;
	struct thread_slot *s, *mine = NULL;
	uint32_t index = 0, tid = (uint32_t)sys_gettid();
	bool forker = self || tid == (uint32_t)shim.pid;

	threads.lock = 0;
	threads.making = making; /* only this thread is here */
	threads.serials = 0;
	while ((s = slot_at(&block, &index))) {
		s->tid = forker ? 0 : TID_UNKNOWN;
		if (s->chunk)
			sys_call(SYS_munmap, (long)s->chunk, s->chunk_bytes, 0, 0, 0, 0);
		s->chunk = NULL;
		if (s->thread == self && self) {
			mine = s;
		} else {
			stack_thread_end(&s->walker);
			chunk_writer_expected_free(s);
		}
	}
	stack_fork_child(mine ? mine->walker : NULL);
	python_fork_child(NULL);
	if (mine)
		begin_again(self, mine, tid);
}

bool thread_forked_late(struct thread *self)
{
	struct slot_block *block;
	struct thread_slot *s, *mine = NULL;
	uint32_t index = 0, tid = (uint32_t)sys_gettid();

	sys_lock(&threads.lock);
	block = threads.blocks;
	while ((s = slot_at(&block, &index)))
		if (s->tid == TID_UNKNOWN) {
			if (s->thread == self)
				mine = s;
			s->tid = s->thread == self ? tid : 0; /* no other thread can come */
		}
	sys_unlock(&threads.lock);
	if (mine)
		begin_again(self, mine, tid);
	return mine;
}

void thread_settle(uint64_t ticks)
{
	uint64_t until = ticks + tick_clock.ticks_100ms / 5;
	struct slot_block *block;
	struct thread_slot *s;
	uint32_t index = 0;

	sys_lock(&threads.lock);
	block = threads.blocks;
	sys_unlock(&threads.lock);
	while ((s = slot_at(&block, &index))) {
		const struct thread *t = s->thread;

		while (s->tid && t != thread_self &&
		       __atomic_load_n(&t->state, __ATOMIC_RELAXED) == THREAD_RECORD &&
		       !__atomic_load_n(&t->untimed, __ATOMIC_RELAXED) &&
		       __atomic_load_n(&t->ticks, __ATOMIC_RELAXED) <= ticks &&
		       clock_ticks() < until)
			sys_yield();
	}
}

void thread_wipe(void)
{
	memset(thread_self, 0, sizeof(*thread_self));
}

void thread_chunk_leaves(struct thread *t)
{
	if (t->slot)
		__atomic_store_n(&t->slot->chunk, NULL, __ATOMIC_SEQ_CST);
}

void thread_chunk_changed(struct thread *t)
{
	thread_chunk_leaves(t); /* never shows one chunk's address with the other one's size */
	if (t->slot) {
		t->slot->chunk_bytes = t->mapped.bytes;
		__atomic_store_n(&t->slot->chunk, t->chunk, __ATOMIC_RELEASE);
	}
}

void thread_mark_vfork(bool for_ever)
{
	struct thread *t = thread_self;

	if (t) {
		t->vfork = for_ever || t->vfork == THREAD_BORROWED_FOR_EVER
			       ? THREAD_BORROWED_FOR_EVER
			       : THREAD_BORROWED;
		t->limit = NULL;
	}
}

static void thread_exits(void *state)
{
	struct thread *t = state;
	struct thread_slot *slot;
	uint64_t signals;

	if (t != thread_self || !t->serial)
		return;
	if (t->exit_rounds++ < 3 && !exit_key.set(exit_key.key, t))
		return;
	if (shim.sandboxed) {
		/* its chunk stays mapped */
		t->no_notes = true;
		thread_self = NULL;
		return;
	}
	signals = sys_block_signals();
	t->no_notes = true;
	/* thread_detach() waits for threads in this state, and from then on has finished the others
	 */
	__atomic_store_n(&t->state, THREAD_RECORD, __ATOMIC_SEQ_CST);
	if (shim.mode == SHIM_RECORDING)
		finish(t);
	thread_self = NULL;
	slot = t->slot;
	memset(t, 0, sizeof(*t));
	__atomic_store_n(&slot->tid, 0, __ATOMIC_RELEASE);
	sys_restore_signals(signals);
}

/* --- attach and detach --- */

/* After this each thread sees what was stored before it, and what each thread has stored before is
 * seen here. */
static void all_threads_barrier(void)
{
	enum { GLOBAL = 1, EXPEDITED = 1 << 3, REGISTER = 1 << 4 };

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (sys_call(SYS_membarrier, REGISTER, 0, 0, 0, 0, 0) < 0 ||
	    sys_call(SYS_membarrier, EXPEDITED, 0, 0, 0, 0, 0) < 0)
		sys_call(SYS_membarrier, GLOBAL, 0, 0, 0, 0, 0);
}

static bool is_recording_thread(const struct thread_slot *s)
{
	return __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE) && s->thread != thread_self &&
	       __atomic_load_n(&s->thread->state, __ATOMIC_ACQUIRE) == THREAD_RECORD &&
	       !tid_is_dead(s->tid);
}

/* Wait until no other thread is in a record or in thread_make(). False: some thread stays there. */
static bool wait_for_records(void)
{
	uint64_t until = sys_clock_ns(CLOCK_MONOTONIC) + RECORD_NS;
	struct slot_block *block = threads.blocks;
	struct thread_slot *s;
	uint32_t index = 0;

	while (__atomic_load_n(&threads.making, __ATOMIC_SEQ_CST))
		if (sys_clock_ns(CLOCK_MONOTONIC) > until)
			return false;
		else
			sys_yield();
	while ((s = slot_at(&block, &index)))
		while (is_recording_thread(s))
			if (sys_clock_ns(CLOCK_MONOTONIC) > until)
				return false;
			else
				sys_yield();
	return true;
}

bool thread_detach(void)
{
	struct slot_block *block = threads.blocks;
	struct thread_slot *s;
	uint32_t index = 0;

	/* Whoever has not seen that the recording has ended is in a record by now. */
	all_threads_barrier();
	if (!wait_for_records())
		return false;
	/* Mappings and failures do not ask for that first, but for room, which there is none of. */
	while ((s = slot_at(&block, &index)))
		__atomic_store_n(&s->thread->limit, NULL, __ATOMIC_SEQ_CST);
	all_threads_barrier();
	if (!wait_for_records())
		return false;
	block = threads.blocks;
	index = 0;
	while ((s = slot_at(&block, &index))) {
		if (!s->tid)
			continue;
		stack_thread_end(&s->walker);
		chunk_writer_close(s->thread);
		chunk_writer_expected_free(s);
	}
	return true;
}

/* Forget all but what the thread itself may be changing, in a call that is not recorded. */
static void forget_state(struct thread *t)
{
	const size_t state = offsetof(struct thread, state),
		     after = offsetof(struct thread, no_notes),
		     frame = offsetof(struct thread, frame), slot = offsetof(struct thread, slot);

	memset(t, 0, state);
	memset((char *)t + after, 0, frame - after);
	memset((char *)t + slot, 0, sizeof(*t) - slot);
}

bool thread_attach(void)
{
	struct slot_block *block = threads.blocks;
	struct thread_slot *s;
	uint32_t index = 0;

	if (!wait_for_records())
		return false;
	threads.serials = 0;
	while ((s = slot_at(&block, &index))) {
		struct thread *t = s->thread;

		if (!s->tid)
			continue;
		if (tid_is_dead(s->tid)) {
			s->tid = 0;
			continue;
		}
		forget_state(t);
		s->task = (struct stack_task){0};
		t->slot = s;
		t->tid = s->tid;
		t->serial = __atomic_add_fetch(&threads.serials, 1, __ATOMIC_RELAXED);
	}
	return true;
}

void thread_define_all(void)
{
	struct slot_block *block = threads.blocks;
	struct thread_slot *s;
	uint32_t index = 0;

	while ((s = slot_at(&block, &index)))
		if (s->tid)
			define(s->thread);
}

void thread_init(void)
{
	/* values of the first keys lie in the thread's own memory, so that setting one allocates
	 * nothing */
	enum { KEYS_INSIDE = 32 };
	int (*create)(unsigned *, void (*)(void *)) = symbols_find("pthread_key_create");
	int (*delete)(unsigned) = symbols_find("pthread_key_delete");

	exit_key.set = symbols_find("pthread_setspecific");
	if (!create || !delete || !exit_key.set || create(&exit_key.key, thread_exits))
		return;
	if (exit_key.key < KEYS_INSIDE)
		exit_key.usable = true;
	else
		delete (exit_key.key);
}

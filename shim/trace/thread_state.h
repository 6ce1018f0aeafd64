/*
 * thread_state.h - what the core's files need of thread.c beside thread.h.
 */
#ifndef SHIM_THREAD_STATE_H
#define SHIM_THREAD_STATE_H

#include <stddef.h>
#include <stdint.h>

struct thread;

/* Once, when recording starts. */
void threads_init(void);

/* Pages that are zero in the child of a fork, where the kernel can do that (shim.can_wipe). */
void *thread_wiped_pages(size_t bytes);

/* Clears the calling thread's state, as a fork does where the kernel can. */
void thread_wipe(void);

/* Waits, for some milliseconds at most, until no other thread is in a record that it may have begun
 * before `ticks`: what happened up to there is then in the trace, and in our tables. */
void threads_settle(uint64_t ticks);

/* What the child of a fork unmaps: nothing from the moment at which the chunk may become somebody
 * else's, as in sys_pages_free(), and after a change of t->chunk the new one. */
void thread_chunk_leaves(struct thread *t);
void thread_chunk_changed(struct thread *t);

#endif

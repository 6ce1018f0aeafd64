/*
 * lifecycle.h - starts the recording of this process, moves it to a forked child, ends it.
 * lifecycle.c composes all folders of the shim; only hooks include this header.
 */
#ifndef SHIM_LIFECYCLE_H
#define SHIM_LIFECYCLE_H

#include <stdbool.h>

#include "base/shim_state.h"

struct thread;

/* Start recording if that is possible now. Returns whether the process is being recorded; later
 * calls change nothing. */
bool lifecycle_start(void);

/* Give a forked child a state and a trace of its own. `self` is the calling thread's state, zeroed
 * by the fork, or NULL. The caller has blocked signals. Returns whether the thread can record. */
bool lifecycle_forked(struct thread *self);

/* Record that the process is about to end. `how` is an enum trace_end, `status` its exit status or
 * signal. Does nothing in a vfork child and in a copy that recorded nothing. */
void lifecycle_end(int how, int status);

/* Around an exec: the trace of a process that was attached to ends, unless the exec fails. */
void lifecycle_exec_begins(void);
void lifecycle_exec_failed(void);

/* Start recording a process that was already running when a dlopen brought us there. `settings`:
 * "NAME=VALUE" of the options, terminated by NULL, instead of the environment's; they stay valid.
 * The caller blocks signals. Returns 0 or negative errno: see hooks/attach.h. */
int lifecycle_attach(char *const *settings);

/* End such a recording. Returns 0 or negative errno: see hooks/attach.h. */
int lifecycle_detach(void);

#endif

/*
 * tracee.h - one thread under ptrace: seized, stopped, continued and let go, while the others run
 * on. The caller has SIGCHLD blocked, and makes all calls from the same thread.
 */
#ifndef ANALYZER_ATTACH_TRACEE_H
#define ANALYZER_ATTACH_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tracee {
	pid_t tid;
	int signal; /* stopped by it, which it gets when it goes on; 0: by us */
	bool stopped;
	bool trap; /* stopped by a watched address, or after a step */
	bool job; /* stopped as the whole process is, by job control */
	int held; /* a stop signal that came in the meantime, for tracee_detach(); 0: none */
};

/* Begin to trace a thread, which runs on. 0; negative errno, as PTRACE_SEIZE says. */
int tracee_seize(pid_t tid, struct tracee *out);
/* Wait until it stops by a signal, a trap or us. 0; -ETIMEDOUT: it runs on; -ESRCH: it has ended.
 */
int tracee_wait(struct tracee *t, unsigned timeout_ms);
/* Stop it. Signals that reach it meanwhile are delivered first. Returns as tracee_wait(). */
int tracee_stop(struct tracee *t, unsigned timeout_ms);
/* Let it go on, with the signal that stopped it. 0; -ESRCH. */
int tracee_continue(struct tracee *t);
/* Let it execute one instruction, and wait for that. 0; negative errno as tracee_wait(). */
int tracee_step(struct tracee *t);
/* End the tracing; it goes on. A running one is stopped for a moment. */
void tracee_detach(struct tracee *t);

#endif

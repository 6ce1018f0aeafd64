/*
 * child.h - starts the target and waits until it ends: passes signals on, stops and continues with
 * it, reaps orphans (as PID 1), and runs the sampler.
 *
 * The target inherits everything unchanged: descriptors, directory, signal mask and dispositions,
 * process group, terminal, limits. One thread.
 */
#ifndef ANALYZER_CMD_RUN_CHILD_H
#define ANALYZER_CMD_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cmd/run/program.h"
#include "cmd/run/witness.h"
#include "cmd/supervise/nvml_client.h"
#include "cmd/supervise/supervisor_trace.h"
#include "util/text/err.h"

struct run_child {
	pid_t pid;
	sigset_t mask; /* before run_child_prepare() */
	struct sigaction chld; /* the same */
	struct run_witness witness;
	struct run_nvml *nvml; /* polled while waiting; the caller's, or NULL */
	int code, status; /* si_code and si_status at its end */
	bool group_short; /* run_sampler_short() at its end */
	bool relayed_kill; /* a fatal signal came through us, so the end needs no verdict */
	siginfo_t early; /* a signal that came before the start; si_signo 0: none */
};

/* Block all signals and start the witness. Call it before anything that could be interrupted. */
void run_child_prepare(struct run_child *c, char **argv);

/* Keep a signal that the caller took before the start, for the target. */
void run_child_keep(struct run_child *c, const siginfo_t *si);

/* Fork and execute. Signals that came since run_child_prepare() reach the target, each once. 0;
 * negative errno of exec or fork, with err. */
int run_child_start(
    struct run_child *c, const struct run_program *program, char **argv, struct err *err);

/* Close every descriptor except stderr and those in keep[] (ended by -1), so that no reader of a
 * pipe waits for us. Call it after the start. */
void run_child_let_go(const int *keep);

/* Wait until the target has ended, and return its exit status as a shell reports it. `off` as in
 * run_sampler_new(). */
int run_child_wait(struct run_child *c, struct run_trace *trace, int dir, bool off);

/* Restore the signal mask and dispositions. */
void run_child_restore(struct run_child *c);

#endif

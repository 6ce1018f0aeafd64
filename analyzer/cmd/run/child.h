/*
 * child.h - starts the target and stays beside it until it ends: passes signals on, stops and
 * continues with it, reaps what else falls to it (as PID 1), and lets the sampler look.
 *
 * The target gets everything as we got it: descriptors, directory, signal mask and dispositions,
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
	sigset_t mask; /* as it was before us */
	struct sigaction chld; /* likewise */
	struct run_witness witness;
	struct run_nvml *nvml; /* asked while we wait; the caller's, or NULL */
	int code, status; /* si_code and si_status at its end */
	bool relayed_kill; /* a fatal signal that somebody sent: not a mystery */
	siginfo_t early; /* one that was taken before the start; si_signo 0: none */
};

/* Blocks all signals, and starts the witness. Call before anything that could be interrupted. */
void run_child_prepare(struct run_child *c, char **argv);

/* A signal that somebody took before the start, for the target. */
void run_child_keep(struct run_child *c, const siginfo_t *si);

/* Forks and executes; signals that came since run_child_prepare() reach the target, each once. 0;
 * negative errno of exec or fork, err filled. */
int run_child_start(
    struct run_child *c, const struct run_program *program, char **argv, struct err *err);

/* Closes every descriptor that is not in keep[] (ended by -1) and is not stderr, so that nobody
 * waits for the end of a pipe because of us. After the start. */
void run_child_let_go(const int *keep);

/* Returns when the target has ended: its exit status as a shell would say it. `off`: as for
 * run_sampler_new(). */
int run_child_wait(struct run_child *c, struct run_trace *trace, int dir, bool off);

/* What a shell would say. */
int run_exit_code(int code, int status);

/* Signals as they were. */
void run_child_restore(struct run_child *c);

#endif

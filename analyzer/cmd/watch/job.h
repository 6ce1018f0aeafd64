/*
 * job.h - a process beside the watcher, with a time limit: a command of the person, or the making
 * of a report. Nothing here waits. It is the leader of a process group of its own, which is killed
 * as a whole.
 */
#ifndef ANALYZER_CMD_WATCH_JOB_H
#define ANALYZER_CMD_WATCH_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed by the caller at first. */
struct job {
	pid_t pid; /* 0: none runs */
	uint64_t until_ns; /* CLOCK_MONOTONIC: killed then */
	bool late; /* that happened */
};
struct job_end {
	int status; /* as of waitpid() */
	bool late; /* it was killed at its time limit */
	double cpu_seconds; /* of it and its children that it waited for */
};

/* Run `/bin/sh -c COMMAND` with these variables ("NAME=value", ending with NULL) added to the
 * environment; no input. Its output goes to stderr, or nowhere if `quiet`. 0 or a negative errno.
 */
int job_start_command(
    struct job *j, const char *command, char *const *variables, bool quiet, double seconds);
/* Run `work(arg, result)` in a copy of this process at low priority, without its descriptors but
 * stderr and `result`, the write end of a pipe. What it returns is the exit status. 0: *told is the
 * pipe's read end; or a negative errno, and *told is unchanged. */
int job_start_work(struct job *j, int (*work)(void *arg, int result), void *arg, int *told,
    bool quiet, double seconds);
/* Read what the work wrote, once it has ended; close *told, which is -1 then. False: it wrote less
 * than `bytes`. At most PIPE_BUF bytes. */
bool job_take(int *told, void *into, size_t bytes);
/* True, once, after it has ended: the next one may start. Kills it after its time. */
bool job_ended(struct job *j, struct job_end *out);
/* Kill it and take its end. */
void job_kill(struct job *j);

#endif

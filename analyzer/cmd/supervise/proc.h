/*
 * proc.h - reads a process' levels from /proc. Each function returns how many levels it wrote; 0 if
 * the process has ended or may not be read. Only files that are read often are kept open.
 */
#ifndef ANALYZER_CMD_RUN_PROC_H
#define ANALYZER_CMD_RUN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/event.h"

/* The files of a process that are read often. They stay that process's when its pid is given to
 * another one. -1: not kept open, and opened for each reading. */
struct run_proc_files {
	pid_t pid;
	int statm, status;
};
/* `keep`: keep the files open. */
void run_proc_open(pid_t pid, bool keep, struct run_proc_files *out);
void run_proc_close(struct run_proc_files *files);

/* Reads the resident and the virtual size in bytes; takes about a microsecond. Returns false when
 * the process is gone. Both are 0 for a zombie. */
bool run_proc_sizes(const struct run_proc_files *files, uint64_t *rss, uint64_t *vsize);
/* As run_proc_status(). */
size_t run_proc_status_of(const struct run_proc_files *files, struct event_level *out, size_t max);

/* Cheap: RSS and its parts, virtual size, data, stacks, page tables, swap, threads. */
size_t run_proc_status(pid_t pid, struct event_level *out, size_t max);

/* Walks the page tables: PSS, private and shared. */
size_t run_proc_rollup(pid_t pid, struct event_level *out, size_t max);

/* Reads every mapping: VIRT_* by kind. */
size_t run_proc_maps(pid_t pid, struct event_level *out, size_t max);

/* Walks the page tables: stacks of threads but the main one, as the C library makes them, address
 * space and resident. */
size_t run_proc_threads(pid_t pid, struct event_level *out, size_t max);

/* RLIMIT_AS and RLIMIT_DATA, those that are set. */
size_t run_proc_limits(pid_t pid, struct event_level *out, size_t max);

struct run_proc_stat {
	pid_t ppid;
	char state;
	uint64_t start; /* clock ticks since boot */
};
bool run_proc_stat(pid_t pid, struct run_proc_stat *out);

/* Has the process been sent this signal, which it blocks and has not taken yet? */
bool run_proc_pending(pid_t pid, int sig);

/* Does the process map this file? For traces whose process may still run. */
bool run_proc_maps_file(pid_t pid, uint64_t device, uint64_t inode);
/* Does it map a trace of ours, its own or its parent's? 1 or 0; -EACCES: that may not be read;
 * -ESRCH: it has ended, or is about to. */
int run_proc_maps_trace(pid_t pid);

#endif

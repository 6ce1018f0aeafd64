/*
 * target.h - what /proc says of the process that is to be attached to: its state, its rights, its
 * mappings and threads. Reads only.
 */
#ifndef ANALYZER_ATTACH_TARGET_H
#define ANALYZER_ATTACH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/text/err.h"
#include "util/vec.h"

struct target_map {
	uint64_t lo, hi; /* addresses, the second one past the end */
	uint64_t offset, inode; /* of the file; 0: no file */
	bool executable;
	char *path; /* owned; "": none */
};

struct target {
	pid_t pid, leader, tracer; /* `leader` is the pid of the process that pid is a thread of */
	char state; /* as in /proc/PID/stat: R, S, D, T, t, Z, X */
	char name[64];
	uid_t uid; /* effective */
	gid_t gid;
	unsigned seccomp; /* 0 none, 1 strict, 2 a filter */
	uint64_t caught; /* bit n - 1: signal n has a handler */
	bool kernel; /* a kernel thread */
	bool other_mounts; /* it is in another mount namespace */
	VEC(struct target_map) maps; /* in the order of addresses */
};

/* Read all but the mappings. 0; -ESRCH with err: there is no such process. target_fini() is due
 * either way. */
int target_read(pid_t pid, struct target *out, struct err *err);
/* Read the mappings, again if they were read. 0; -EACCES: they may not be read; -ENOMEM. */
int target_read_maps(struct target *t);
void target_fini(struct target *t);

/* The name of a file without its directory and " (deleted)" behind it begins so. */
bool target_is_file(const struct target_map *map, const char *beginning);
/* The mapping of the file's first byte, of the first file whose name begins so; NULL: none. */
const struct target_map *target_module(const struct target *t, const char *beginning);
/* The file is libwhyoom.so, or a copy of it in memory. */
bool target_is_library(const struct target_map *map);
/* The mapping of the program's own first byte; NULL: it cannot be told. */
const struct target_map *target_program(const struct target *t);
/* The mapping at an address; NULL: none. */
const struct target_map *target_map_at(const struct target *t, uint64_t address);

/* What /proc says of one thread. */
struct target_thread {
	pid_t tid;
	pid_t own; /* its id in its own pid namespace */
	char state;
	uint64_t ran; /* clock ticks on a CPU */
	bool pending; /* a signal waits for it that it does not block */
};

/* Read one thread. 0; -ESRCH: it has ended. */
int target_read_thread(pid_t pid, pid_t tid, struct target_thread *out);

typedef VEC(struct target_thread) target_threads;
/* Read all threads: those that run now first, then those that ran most. 0; -ENOMEM; -ESRCH. */
int target_read_threads(pid_t pid, target_threads *out);

/* Read the target's memory. True: all of it. */
bool target_peek(pid_t pid, uint64_t address, void *into, size_t bytes);
bool target_poke(pid_t pid, uint64_t address, const void *from, size_t bytes);

#endif

/*
 * safe_point.h - stops one thread of a process where it may call the dynamic loader and malloc: it
 * holds no lock of theirs. Either it is asleep in a wait, and its stack shows that neither called
 * it; or it is about to enter malloc, called by neither.
 */
#ifndef ANALYZER_ATTACH_SAFE_POINT_H
#define ANALYZER_ATTACH_SAFE_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/exported.h"
#include "attach/machine.h"
#include "attach/target.h"
#include "attach/tracee.h"
#include "util/text/err.h"

#define REGIONS_MAX 64

struct region {
	uint64_t lo, hi;
};

/* What of the target's code matters. */
struct landmarks {
	struct exported libc;
	struct region loader[8]; /* ld.so's code */
	unsigned loaders;
	struct region libc_code; /* all of it */
	struct region
	    busy[REGIONS_MAX]; /* allocators, and what holds the loader's or their locks */
	unsigned busies;
	struct region copies[16]; /* functions of libc that call malloc and hold nothing */
	unsigned copy_count;
	uint64_t entries[MACHINE_WATCHES]; /* of malloc and its like */
	unsigned entry_count;
	bool foreign; /* an allocator whose code cannot be told from the program's */
	uint64_t create, detach, sleep; /* pthread_create() and the like; 0: not in libc */
	uint64_t syscall_code; /* an instruction that enters the kernel */
};

/* Find them. 0; negative errno with err. */
int landmarks_find(const struct target *target, struct landmarks *out, struct err *err);

enum safe_point_how { SAFE_POINT_ASLEEP = 1, SAFE_POINT_ENTRY };

struct safe_point {
	struct tracee tracee; /* stopped */
	struct machine saved;
	enum safe_point_how how;
	uint64_t stopped_ns; /* CLOCK_MONOTONIC, when it was stopped */
	pid_t hurried; /* a thread whose nice value is not its own; 0: none */
	int nice; /* its own */
	pid_t watched; /* a thread that stops at malloc's entry; 0: none */
};

/* Stop a thread at a safe point within `timeout_ms`. 0; -EAGAIN with err: none came there;
 * -EPERM: it may not be traced; other negative errno. On failure nothing is stopped or traced. */
int safe_point_reach(const struct target *target, const struct landmarks *marks,
    unsigned timeout_ms, struct safe_point *out, struct err *err);
/* While it is held the thread goes before others, where that is allowed: each time it is to run, it
 * would wait for a core, behind all other threads. */
void safe_point_hurry(struct safe_point *point);
void safe_point_unhurry(struct safe_point *point);
/* For another process, when the one that traced was killed: a watched thread would die at malloc's
 * entry, where nobody expects it any more, and a hurried one keep its priority. SIGCHLD is blocked.
 */
void safe_point_unwatch(struct safe_point *point);

#endif

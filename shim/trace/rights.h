/*
 * rights.h - goes on recording where the host gives up rights, after which its trace file cannot be
 * opened any more. Before such a call the file is made so large, sparse, as it may become; from
 * then on its ranges are mapped by copies of the header's mapping, which takes neither a descriptor
 * nor a path, and get their disk space by being populated. Where a kernel or a filter does not
 * allow that, there is room that was taken before, once for a process.
 *
 * A child that is forked after a change of the user wants a file of its own: for it there is a
 * directory in ours that belongs to that user, "uid.N".
 */
#ifndef SHIM_RIGHTS_H
#define SHIM_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* Before the host's call that gives up a right; `uid`: what the user will be, or -1. False: it is
 * not ours to note (a vfork child's, or nothing is recorded). */
bool rights_before(enum trace_right right, long uid);
/* After one for which rights_before() said true: it succeeded. */
void rights_given_up(enum trace_right right);

/* Before the host installs a seccomp filter: a struct sock_fprog, or NULL for the strict mode. */
struct rights_filter {
	bool noted, strict, frozen, was_unreachable;
	int number;
};
struct rights_filter rights_before_filter(const void *fprog);
/* After it; makes no system call that the filter forbids. */
void rights_after_filter(const struct rights_filter *filter, bool installed);

/* Is the file reached by mapping from now on? `error`: of opening it, negative; 0: not tried. */
bool rights_by_mapping(int error);
/* Up to here the file can be mapped, bytes. */
uint64_t rights_file_end(void);
/* A range of the file, mapped, without disk space; NULL. */
void *rights_map(uint64_t offset, uint64_t bytes);
/* Disk space for it, and pages. False: there is none. */
bool rights_populate(void *range, uint64_t bytes);
/* Gives the disk space of a range back. */
bool rights_punch(uint64_t offset, uint64_t bytes);

/* A piece of the room that was taken before, zeroed and mapped; NULL. Makes no system call. */
void *rights_room(uint64_t *offset, uint32_t bytes);

/* Is what could not be recorded to be blamed on rights that were given up? `error` as above. */
bool rights_blamed(int error);
/* So it is, and is counted; and then it goes on. */
void rights_stopped(void);
void rights_go_on(void);
/* A fork got no trace for it: counted in the header, its parent's. */
void rights_orphaned(struct trace_header *parent);

/* The name in the trace's directory of the one that is this user's, "uid.N/", into `out`. */
#define RIGHTS_PLACE "uid."

/* In the child of a fork, whose file is another. */
void rights_forked(void);

#endif

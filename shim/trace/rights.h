/*
 * rights.h - keeps recording where the host gives up rights, after which its trace file cannot be
 * opened. Before such a call the file grows, sparse, to its largest size. From then on its ranges
 * are mapped as copies of the header's mapping, which needs neither a descriptor nor a path, and
 * get their disk space by being populated. Where a kernel or a filter forbids that, there is room
 * that was reserved before, once for a process.
 *
 * A child that is forked after a change of the user needs a file of its own: the trace directory
 * gets a subdirectory for it that belongs to that user, "uid.N".
 */
#ifndef SHIM_RIGHTS_H
#define SHIM_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* Prepare for a call that gives up a right. `uid`: the user after the call, or -1. Call
 * lifecycle_forked() first in a forked child. False: not to be noted (a vfork child's call, or
 * nothing is recorded). */
bool rights_before(enum trace_right right, long uid);
/* Note that the call succeeded, if rights_before() returned true. */
void rights_given_up(enum trace_right right);

/* Prepare for a seccomp filter. `fprog`: a struct sock_fprog that is not trusted, or NULL for the
 * strict mode. Pass the result to rights_after_filter(). */
struct rights_filter {
	bool noted, strict, frozen, was_unreachable;
	int number;
};
struct rights_filter rights_before_filter(const void *fprog);
/* Note whether the filter was installed. Makes no system call that the filter forbids. */
void rights_after_filter(const struct rights_filter *filter, bool installed);

/* Is the file reached by mappings from now on? `error`: what opening it returned, negative; 0: not
 * tried. */
bool rights_by_mapping(int error);
/* Return up to where the file can be mapped, bytes. */
uint64_t rights_file_end(void);
/* Map a range of the file, without disk space; NULL: not possible. */
void *rights_map(uint64_t offset, uint64_t bytes);
/* Give a mapped range disk space and pages. False: there is none. */
bool rights_populate(void *range, uint64_t bytes);
/* Give a range's disk space back. */
bool rights_punch(uint64_t offset, uint64_t bytes);

/* Take a piece of the reserved room, zeroed and mapped; NULL: none left. Makes no system call. */
void *rights_room(uint64_t *offset, uint32_t bytes);

/* Is a loss due to rights that were given up? `error` as above. */
bool rights_blamed(int error);
/* Note in the header that recording stopped for want of rights, or that it continues. */
void rights_stopped(void);
void rights_go_on(void);
/* Count in its parent's header a forked child that got no trace. */
void rights_orphaned(struct trace_header *parent);

/* The name of a user's subdirectory, followed by its id. */
#define RIGHTS_DIRECTORY "uid."

/* In the child of a fork, whose file is another. */
void rights_forked(void);

#endif

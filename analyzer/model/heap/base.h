/*
 * base.h - what a process held when the recorder was attached to it: the memory of which no event
 * tells. The allocator's own account and the kernel's, read at the attach, say how much it was; the
 * recorder counts the blocks of that time that were freed since.
 */
#ifndef ANALYZER_MODEL_BASE_H
#define ANALYZER_MODEL_BASE_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct model;

/* All bytes. Filled by base.c, const for all others. */
struct base {
	bool attached; /* the process had begun before its recording; false: the rest is 0 */
	uint64_t ran_ns; /* by how much; 0: not recorded */
	bool known; /* its memory was read */
	uint64_t blocks; /* in use in malloc, headers included; 0 too where malloc has no account */
	uint64_t resident; /* anonymous memory beside malloc's and the main stack */
	uint64_t writable; /* the same in address space */
	uint64_t file; /* resident pages of files, and of shared memory */
	uint64_t freed, freed_count; /* of blocks, so far */
};

/* Read whether the process was attached to. Call it for an empty model. */
void base_begin(struct model *m);
/* Apply a host's event with levels. */
void base_note(struct model *m, const struct event *e);
/* Return the bytes of `blocks` that were not freed yet. */
uint64_t base_blocks_left(const struct base *b);
/* Return the bytes of `blocks` that were freed by then, as last counted: what came may only have
 * taken their place. */
uint64_t base_freed(const struct model *m, uint64_t time_ns);
/* Return what is left of all private memory: resident, or of address space. */
uint64_t base_left(const struct base *b, bool resident);

#endif

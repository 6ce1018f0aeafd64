/*
 * hook_mark.h - records marks, which come from mark.h's functions and from NVTX. Any thread, at any
 * time.
 */
#ifndef SHIM_HOOK_MARK_H
#define SHIM_HOOK_MARK_H

#include <stdint.h>

#include "shim.h"

#define MARK_NAME_BYTES 128u /* longer names are cut; with the terminating 0 */

struct mark {
	enum trace_mark phase;
	enum trace_mark_what what;
	uint64_t id;
	uint32_t name, domain; /* from mark_name(); 0: none */
	uint64_t tokens; /* of a LENGTH */
};

/* Returns the number of a name, the same in this process and its forks; 0: NULL, or there are too
 * many names. Copies the name. */
uint32_t mark_name(const char *name);

/* Returns an id that no other mark of this process has, from 2^48 on. */
uint64_t mark_next_id(void);

/* Records a mark. `caller`: the return address of the function that the program called. Keeps
 * errno.
 */
void mark_record(const void *caller, const struct mark *m, const struct stack_start *start);

/* Makes names be written again, in the child of a fork. */
void hook_mark_forked(void);

/* Used directly in an exported function or a callback, which is never inlined. */
#define RECORD_MARK(phase_, what_, id_, ...)                                                       \
	do {                                                                                       \
		struct stack_start start = STACK_START();                                          \
		struct mark m = {TRACE_MARK_##phase_, TRACE_MARK_##what_, id_, __VA_ARGS__};       \
		mark_record(__builtin_return_address(0), &m, &start);                              \
	} while (0)

#endif

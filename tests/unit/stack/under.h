/* under.h - for tests of stacks: the stack part of the shim as a separate library, with a hook
 * to call, and a reader of its definitions. */
#ifndef TESTS_STACK_UNDER_H
#define TESTS_STACK_UNDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { UNDER_NATIVE = 0, UNDER_PYTHON = 1, UNDER_CUT = 2, UNDER_END = 3 };

struct under_frame {
	unsigned type; /* as in the trace: */
	bool exact;
	uint32_t module; /* native */
	uint64_t
	    value; /* native: address in the module; Python: instruction + 1; cut, end: value */
	uint32_t code; /* Python */
};

/* Prepares everything; once. */
int under_init(void);

/* Captures as a hook does and returns the id; a reference walk starts at the caller. */
uint32_t under_hook(bool python);
uint64_t under_task(uint32_t *turn); /* of the calling thread, as the last hook saw it */
bool under_interrupted(void); /* stack_interrupted() of this thread */

/* Calls back from within a frame of the library itself. */
void under_call(void (*f)(void *), void *arg);

/* Returns the defined frames of a stack, innermost first; -1: not defined, or damaged. */
int under_frames(uint32_t id, struct under_frame *out, int room);

/* The run-time address of a native frame. */
uint64_t under_address(const struct under_frame *f);

/* The definition of a module (NULL: none), and its path. */
const char *under_module_path(uint32_t id);

uint64_t under_definition_bytes(void);
uint32_t under_definitions(void); /* of stacks */
/* Sets enum definitions_room; returns the counts so far. */
void under_room(int room);
void under_counts(uint64_t *brief, uint64_t *untold);
void under_thread_end(void);
void under_forget(void); /* the thread's earlier walk: the next one is whole */
void under_full_walks(uint64_t *count);
void under_fork_child(void);
void under_changing(void);
void under_changed(void);
uint64_t under_own_bytes(void);

/* Sets the Python frames of the next captures. */
struct python_view;
void under_python(const struct python_view *view, bool (*is_eval)(uintptr_t));

#ifdef __cplusplus
}
#endif
#endif

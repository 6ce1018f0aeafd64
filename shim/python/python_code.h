/*
 * python_code.h - gives code objects ids. A process-wide table maps the address of a code object to
 * the id of its CODE definition. Reads names and line tables at first sight, and learns when a code
 * object is freed, so that a reused address gets a new id.
 *
 * Any thread, also in signal handlers; never waits for a lock. Needs no GIL: the caller has a frame
 * that runs the code object, which keeps it alive.
 */
#ifndef SHIM_PYTHON_CODE_H
#define SHIM_PYTHON_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_abi.h"

/* Scratch memory of one thread, in our own pages; grows as needed. */
struct python_scratch {
	uint8_t *bytes;
	size_t size;
};

/*
 * Prepares the table. Call once, before the first look-up. `watch`: wrap the deallocator of code
 * objects (one pointer in PyCode_Type). Without it each look-up compares the object's contents with
 * a fingerprint.
 */
void python_code_init(const struct python_abi *abi, const void *code_type, bool watch);
bool python_code_watched(void);

/* Raised after each code object that is freed: threads must look up the ids that they keep. */
extern _Atomic uint32_t python_code_deaths;

/* Returns the id of a code object whose definition is written; 0: unknown (being freed, unreadable,
 * not a code object, no room). */
uint32_t python_code_id(uintptr_t code, struct python_scratch *scratch);

/* Starts ids afresh in the child of a fork. Pre: there is only one thread. */
void python_code_fork_child(void);

#endif

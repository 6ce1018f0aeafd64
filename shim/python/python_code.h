/*
 * python_code.h - code objects to ids. A process-wide table from the address of a code object to
 * the id of its CODE definition; reads names and line tables at first sight, and learns of code
 * objects that are freed, so that an address that is used again gets a new id.
 *
 * Any thread, signal handlers included; no lock is ever waited for. Needs no GIL: the caller has a
 * frame that runs the code object, which keeps it alive.
 */
#ifndef SHIM_PYTHON_CODE_H
#define SHIM_PYTHON_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_abi.h"

/* Scratch memory of one thread, our own pages, grown when needed. */
struct python_scratch {
	uint8_t *bytes;
	size_t size;
};

/*
 * Once, when the interpreter was found. With `watch` the deallocator of code objects is wrapped
 * (one pointer stored in PyCode_Type); without it, or where that type cannot be written, what is
 * found under an address is compared with what the table was told. The result is stored before
 * the first look-up.
 */
void python_code_init(const struct python_abi *abi, const void *code_type, bool watch);
bool python_code_watched(void);

/* Raised after each code object that was freed: ids that a thread kept must be looked up again. */
extern _Atomic uint32_t python_code_deaths;

/* The id of a code object, its definition written before; 0: unknown (torn down, not readable, not
 * a code object, no room). */
uint32_t python_code_id(uintptr_t code, struct python_scratch *scratch);

void python_code_fork_child(void); /* ids start afresh; the only thread */
size_t python_code_bytes(void);

#endif

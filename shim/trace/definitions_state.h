/*
 * definitions_state.h - the parts of definitions.c for the shim's core only.
 */
#ifndef SHIM_DEFS_STATE_H
#define SHIM_DEFS_STATE_H

#include <stddef.h>

/* INFO whose value may hold NULs. */
void definition_info_bytes(const char *key, const char *value, size_t bytes);

/* In the child of a fork: its file has no definitions yet. */
void definitions_fork_child(void);

#endif

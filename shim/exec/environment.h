/*
 * environment.h - LD_PRELOAD in the environment of a program that is about to be executed. The
 * caller's array and strings stay as they are. Allocates nothing.
 */
#ifndef SHIM_EXEC_ENV_H
#define SHIM_EXEC_ENV_H

#include <stdbool.h>
#include <stddef.h>

enum exec_change {
	EXEC_AS_IS = 0,
	/*
	 * Of a program that loads nothing: what it starts is started without a look at it. So that
	 * AddressSanitizer does not refuse, as we then come before it, ASAN_OPTIONS tells it not
	 * to.
	 */
	EXEC_LENIENT,
	EXEC_WITHOUT, /* our libraries leave it; the others stay, in their order */
	/*
	 * For musl, whose loader takes the first LD_PRELOAD of two, where glibc's takes the last:
	 * in front comes one without us. So the program runs without us, and what it starts with
	 * the environment that it has, with us; for that it is lenient, too.
	 */
	EXEC_TWICE,
	/* The sanitizer's runtime comes first, then we: see exec_env_settle(). Without us where the
	 * first library of the others' is not a runtime: then it is up to that one to complain. */
	EXEC_BEHIND,
};

/* Bytes for the array after any change, and its text; 0: LD_PRELOAD does not name us. */
size_t exec_env_bytes(char *const *environment, const char *runtime);

/* In `to`, of that many bytes, which stays in use as long as the answer is. */
char **exec_env_make(
    char *const *environment, enum exec_change change, const char *runtime, void *to);

/* The path under which LD_PRELOAD has this library, terminated, in `out`; false: it has none. */
bool exec_env_library(char *const *environment, char *out, size_t size);

/* In a process of ours: takes out again what a change has put in, so that what this one starts does
 * not get it. `sanitized`: not what a sanitizer's runtime may still have to read. */
void exec_env_settle(char **environment, bool sanitized);

#endif

/*
 * environment.h - LD_PRELOAD in the environment of a program that is about to be executed. The
 * caller's array and strings stay unchanged. Allocates nothing.
 */
#ifndef SHIM_EXEC_ENV_H
#define SHIM_EXEC_ENV_H

#include <stdbool.h>
#include <stddef.h>

enum exec_change {
	EXEC_AS_IS = 0,
	/*
	 * For a program that loads no library: the programs that it starts get us unexamined. So
	 * that AddressSanitizer accepts us before itself in them, ASAN_OPTIONS turns that check
	 * off.
	 */
	EXEC_LENIENT,
	EXEC_WITHOUT, /* our libraries leave the list; the others stay, in their order */
	/*
	 * For musl, whose loader takes the first of two LD_PRELOAD lines, where glibc's takes the
	 * last: a line without us comes first. The program runs without us and passes its
	 * environment, with us, to what it starts; that part is lenient, too.
	 */
	EXEC_TWICE,
	/* The sanitizer's runtime first, then we; environment_settle() undoes it. Without us if
	 * another library comes first that is no runtime: then the program complains about that
	 * one. */
	EXEC_BEHIND,
};

/* Return the bytes for the array and its text after any change; 0: LD_PRELOAD does not name us. */
size_t exec_env_bytes(char *const *environment, const char *runtime);

/* Build the changed environment in `to`, of environment_bytes(). It points to the caller's
 * strings. */
char **exec_env_make(
    char *const *environment, enum exec_change change, const char *runtime, void *to);

/* Write the path of this library in LD_PRELOAD, terminated, to `out`; false: none. */
bool exec_env_library(char *const *environment, char *out, size_t size);

/* Undo environment_make() in a process that it started, so that its own programs start unchanged.
 * `sanitized`: keep what a sanitizer's runtime may still have to read. */
void exec_env_settle(char **environment, bool sanitized);

#endif

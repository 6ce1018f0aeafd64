/*
 * environment.h - LD_PRELOAD in the environment of a program that is about to be executed. The
 * caller's array and strings stay unchanged. Allocates nothing.
 */
#ifndef SHIM_ENVIRONMENT_H
#define SHIM_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

enum environment_change {
	ENVIRONMENT_AS_IS = 0,
	/*
	 * For a program that loads no library: the programs that it starts get us unexamined. So
	 * that AddressSanitizer accepts us before itself in them, ASAN_OPTIONS turns that check
	 * off.
	 */
	ENVIRONMENT_LENIENT,
	ENVIRONMENT_WITHOUT, /* our libraries leave the list; the others stay, in their order */
	/*
	 * For musl, whose loader takes the first of two LD_PRELOAD lines, where glibc's takes the
	 * last: a line without us comes first. The program runs without us and passes its
	 * environment, with us, to what it starts; that part is lenient, too.
	 */
	ENVIRONMENT_TWICE,
	/* The sanitizer's runtime first, then we; environment_settle() undoes it. Without us if
	 * another library comes first that is no runtime: then the program complains about that
	 * one. */
	ENVIRONMENT_BEHIND,
};

/* Return the bytes for the array and its text after any change; 0: LD_PRELOAD does not name us. */
size_t environment_bytes(char *const *environment, const char *runtime);

/* Build the changed environment in `to`, of environment_bytes(). It points to the caller's
 * strings. */
char **environment_make(
    char *const *environment, enum environment_change change, const char *runtime, void *to);

/* Write the path of this library in LD_PRELOAD, terminated, to `out`; false: none. */
bool environment_library(char *const *environment, char *out, size_t size);

/* Undo environment_make() in a process that it started, so that its own programs start unchanged.
 * `sanitized`: keep what a sanitizer's runtime may still have to read. */
void environment_settle(char **environment, bool sanitized);

#endif

/*
 * program.h - what kind of program a file is that is about to be executed, and whether this library
 * can be loaded into it: from its ELF headers, or those of the interpreter in its first line. Makes
 * a few system calls, about 2 us for a file examined before. Any thread, also after vfork and in
 * the child of a fork; allocates nothing, takes no lock, leaves errno alone.
 */
#ifndef SHIM_PROGRAM_H
#define SHIM_PROGRAM_H

#include <stdbool.h>

enum program_kind {
	PROGRAM_PLAIN = 0, /* loads us; or is not executable, or not readable */
	PROGRAM_STATIC, /* loads nothing; passes its environment on */
	PROGRAM_MUSL, /* its loader crashes on libraries for glibc */
	PROGRAM_LOADER, /* another loader */
	PROGRAM_MACHINE, /* for another machine or 32 bit: its loader complains about us */
	PROGRAM_SANITIZED, /* contains a sanitizer's runtime, and runs with us */
	PROGRAM_SANITIZER_LIBRARY, /* needs a runtime as a library, `text`, which must come first */
	PROGRAM_SANITIZER_UNNAMED, /* the same, but LD_PRELOAD cannot hold its name */
	PROGRAM_SCRIPT, /* internal: `text` is its interpreter */
};

struct program {
	enum program_kind kind;
	bool secure; /* the kernel changes its rights: its loader ignores LD_PRELOAD */
	char text[64];
	char path[256]; /* of the file that decided, a script's interpreter; may be cut */
};

/* Examine `path`, as execveat() takes it with `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW. */
void program_examine(int directory, const char *path, int flags, struct program *out);

/* Find the file that execvp() would execute for `name` and write its path to `out`, of `size`
 * bytes; false: none. */
bool program_search(const char *name, const char *search_path, char *out, unsigned size);

/* Is that the name of a sanitizer's runtime, as in a program's needed libraries or LD_PRELOAD? */
bool program_is_runtime(const char *name, unsigned length);

#endif

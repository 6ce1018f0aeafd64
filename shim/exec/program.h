/*
 * program.h - what a file is that is about to be executed, and whether this library can be loaded
 * into it: from its ELF headers, or those of the interpreter that its first line names. Makes a few
 * system calls, about 2 us for a file that it has seen before. Any thread, after vfork and in the
 * child of a fork; allocates nothing, takes no lock, leaves errno alone.
 */
#ifndef SHIM_EXEC_LOOK_H
#define SHIM_EXEC_LOOK_H

#include <stdbool.h>

enum exec_kind {
	EXEC_PLAIN = 0, /* loads us; or there is nothing to execute, or it cannot be read */
	EXEC_STATIC, /* loads nothing; passes its environment on */
	EXEC_MUSL, /* its loader dies of libraries for glibc */
	EXEC_LOADER, /* one that is neither */
	EXEC_MACHINE, /* another machine's or 32 bit: the loader complains about us */
	EXEC_SANITIZED, /* has a sanitizer's runtime in itself, and lives with us */
	EXEC_SANITIZER_LIBRARY, /* needs one as a library, `text`, that has to come first */
	EXEC_SANITIZER_UNNAMED, /* the same, whose name LD_PRELOAD cannot hold */
	EXEC_SCRIPT, /* not an answer: `text` is its interpreter */
};

struct exec_program {
	enum exec_kind kind;
	bool secure; /* the kernel changes its rights: the loader then ignores LD_PRELOAD */
	char text[64];
	char path[256]; /* of the file that decided, the script's interpreter; may be cut */
};

/* `path` as execveat() takes it, with `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW. */
void exec_look(int directory, const char *path, int flags, struct exec_program *out);

/* The file that execvp() would find for a name, in `out` of `size` bytes; false: none. */
bool exec_search(const char *name, const char *search_path, char *out, unsigned size);

/* Is that the name of a sanitizer's runtime, as a program needs it or as LD_PRELOAD has it? */
bool exec_is_runtime(const char *name, unsigned length);

#endif

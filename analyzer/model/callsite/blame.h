/*
 * blame.h - the frame of a stack that a person would blame: the innermost one of the user's code,
 * or else of a framework; never the allocator, the C or C++ library or the interpreter. An event
 * loop's callbacks do not belong to the frame that started the loop.
 *
 * Decided by the directory of a frame's file (a language's own library, a package directory, the
 * system's libraries) and by names that the language standards reserve, not by lists of functions.
 * Only an allocator that is linked into the program is recognised by the names of its interface.
 */
#ifndef ANALYZER_MODEL_BLAME_H
#define ANALYZER_MODEL_BLAME_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/trace.h"
#include "util/vec.h"

enum owner {
	OWNER_RUNTIME, /* allocator, C and C++ library, interpreter, standard library */
	OWNER_LIBRARY, /* an installed package or system library */
	OWNER_USER, /* everything else */
};

/* Cache of traits by symbol id, for one feed. Zero before first use; vec_free() the traits. */
struct blame_memory {
	VEC(uint8_t) traits;
};

struct blame_context {
	const char *malloc_owner; /* path of the file that owns malloc, or NULL */
	const char *interpreter; /* path of the executable when it runs Python, or NULL */
	struct blame_memory *memory; /* of the feed and these two paths; NULL: no cache */
};

enum owner blame_owner(const struct blame_context *context, const struct symbol *symbol);

/* True for a Python comprehension or generator expression: part of the function around it. */
bool blame_is_comprehension(const struct symbol *symbol);

/* Return the index of the frame to blame; -1: none is better than the allocator. */
int blame_frame(const struct blame_context *context, const struct symbol *symbols, size_t count);

/* The innermost frame of each kind among a stack's outermost frames; -1: none. */
struct blame_mark {
	int user, library, python_library, python_runtime, named, importer;
	int allocator; /* its outermost frame: frames inside it do not count */
	int loop, loop_before; /* the event loop's frame; the one before `library` */
};
/* marks.items[n] is of the outermost n frames. Zero before first use; vec_free(). */
typedef VEC(struct blame_mark) blame_marks_t;

/* Extend the marks to the path that was just read, from the previous path's. 0 or -ENOMEM, after
 * which both start anew. */
int blame_follow(
    const struct blame_context *context, const struct stack_path *path, blame_marks_t *marks);
/* Return blame_frame()'s result for these frames. */
int blame_marked(const struct blame_mark *mark, const struct symbol *symbols);

/* True for the frame in which Python's event loop runs the next callback. */
bool blame_is_event_loop(const struct symbol *symbol);
/* True when loading code made the block, not running it: Python imports a module, and has called no
 * function of the user since. */
bool blame_is_import(const struct blame_mark *mark);
#define BLAME_FILES 3u /* of packages: a function, its helper, and the data of both */

/* Results of blame_part() along the path. Zero before first use; vec_free() the marks. */
struct blame_parts {
	int at; /* the frame that they belong to */
	/* marks.items[n] is of the outermost n frames, from `at` + 1 up to this number */
	size_t known;
	VEC(struct blame_part_mark {
		int part;
		uint32_t files;
		const char *file[BLAME_FILES];
	})
	marks;
};

/* Return the index of the innermost package function below frame `at` of the path that was just
 * read; -1 when the line calls only one or two functions. A line such as chain.invoke(question)
 * makes many objects that have only this line in common; the part tells them apart. Call it after
 * each read, since it reuses results from the previous read. */
int blame_part(const struct blame_context *context, const struct stack_path *path, int at,
    struct blame_parts *parts);

#endif

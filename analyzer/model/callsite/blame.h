/*
 * blame.h - which frame of a stack a person would hold responsible: the innermost one of their own
 * code, else of a framework, never the allocator, the C or C++ library, or the interpreter. What an
 * event loop runs has nothing to do with the frame that started the loop.
 *
 * Told by where a frame's file lies (a language's own library directories, a package directory, the
 * system's library directories) and by names that the language standards reserve, not by lists of
 * functions; but an allocator that is linked in is told by the names of its interface.
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

/* What was found out of a feed's symbols, by their ids. Zeroed at first; blame_memory_fini(). */
struct blame_memory {
	VEC(uint8_t) traits;
};
void blame_memory_fini(struct blame_memory *memory);

struct blame_context {
	const char *malloc_owner; /* path of the file that owns malloc, or NULL */
	const char *interpreter; /* path of the executable when it runs Python, or NULL */
	struct blame_memory *memory; /* of the feed and the two above; NULL: nothing is kept */
};

enum owner blame_owner(const struct blame_context *context, const struct symbol *symbol);

/* A comprehension or generator expression of Python: part of the function around it. */
bool blame_is_comprehension(const struct symbol *symbol);

/* Index of the frame to blame, or -1 where none is better than the allocator itself. */
int blame_frame(const struct blame_context *context, const struct symbol *symbols, size_t count);

/* What of a stack's outermost frames decides whom to blame: the innermost of each kind; -1: none.
 */
struct blame_mark {
	int user, library, python_library, python_runtime, named, importer;
	int allocator; /* the outermost of its frames: those inside it do not count */
	int loop, loop_before; /* the event loop's; of these that before `library` */
};
/* marks.items[n] is of the outermost n frames. Zeroed at first; vec_free(). */
typedef VEC(struct blame_mark) blame_marks_t;

/* The marks of the path that was just looked at, from those of the look before. 0; -ENOMEM, and
 * then both have to begin anew. */
int blame_follow(
    const struct blame_context *context, const struct stack_path *path, blame_marks_t *marks);
/* As blame_frame() of these frames. */
int blame_marked(const struct blame_mark *mark, const struct symbol *symbols);

/* The frame in which Python's event loop runs the next callback. */
bool blame_is_event_loop(const struct symbol *symbol);
/* Made by the loading of code, not by what the code does: Python imports a module, and nothing of
 * one's own was called since. */
bool blame_is_import(const struct blame_mark *mark);
#define BLAME_FILES 3u /* of packages: a function, its helper, and what they work with */

/* What blame_part() found along the path. Zeroed at first; blame_parts_fini(). */
struct blame_parts {
	int at; /* of which frame */
	size_t known; /* marks.items[n] is of the outermost n frames, from `at` + 1 to so many */
	VEC(struct blame_part_mark {
		int part;
		uint32_t files;
		const char *file[BLAME_FILES];
	})
	marks;
};
void blame_parts_fini(struct blame_parts *parts);

/* A line that has a framework run several of its parts ("chain.invoke(question)") makes many
 * things, and they have nothing in common but that line. Index of the innermost function of a
 * package below the frame `at` of the path that was just looked at, which tells them apart; -1: the
 * line calls no more than a function or two. To be asked at each look, as what was found of the
 * look before is used. */
int blame_part(const struct blame_context *context, const struct stack_path *path, int at,
    struct blame_parts *parts);

#endif

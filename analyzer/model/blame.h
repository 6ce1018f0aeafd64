/*
 * blame.h - which frame of a stack a person would hold responsible: the innermost one of their own
 * code, else of a framework, never the allocator, the C or C++ library, or the interpreter. What an
 * event loop runs has nothing to do with the frame that started the loop.
 *
 * Told by where a frame's file lies (a language's own library directories, a package directory, the
 * system's library directories) and by names that the language standards reserve, not by lists of
 * functions.
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

/* The frame in which Python's event loop runs the next callback. */
bool blame_is_event_loop(const struct symbol *symbol);
/* Made by the loading of code, not by what the code does: Python imports a module, and nothing of
 * one's own was called since. */
bool blame_is_import(
    const struct blame_context *context, const struct symbol *symbols, size_t count);
/* A line that has a framework run several of its parts ("chain.invoke(question)") makes many
 * things, and they have nothing in common but that line. Index of the innermost function of a
 * package below the frame `at`, which tells them apart; -1: the line calls no more than a function
 * or two. */
int blame_part(
    const struct blame_context *context, const struct symbol *symbols, size_t count, int at);

#endif

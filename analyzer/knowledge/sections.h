/*
 * sections.h - the text format of knowledge files: sections of `key = value` lines. Knows nothing
 * of what the sections mean. docs/explain.md describes it for those who write one.
 */
#ifndef ANALYZER_KNOWLEDGE_SECTIONS_H
#define ANALYZER_KNOWLEDGE_SECTIONS_H

#include <stddef.h>

#include "util/arena.h"
#include "util/text/err.h"
#include "util/vec.h"

struct section_line {
	const char *key, *value;
	unsigned line;
};

/* The lines before the first header are in a section of kind "". */
struct section {
	const char *kind,
	    *name; /* of "[role kv-cache]": "role" and "kv-cache"; "" without a name */
	unsigned line;
	VEC(struct section_line) lines;
};

struct sections {
	const char *path; /* for errors */
	VEC(struct section) list;
};

#define SECTIONS_FILE_MAX (1u << 20) /* bytes; a larger file is no knowledge file */

/* Reads the text of `path`, or `text` itself; strings live in the arena. A value goes on in lines
 * that begin with a blank: joined by one blank, but in a `pattern` or `each`, where blanks count,
 * by nothing. 0; negative errno with err, which names file and line. */
int sections_read(struct sections *out, const char *path, struct arena *arena, struct err *err);
int sections_parse(struct sections *out, const char *path, const char *text, size_t bytes,
    struct arena *arena, struct err *err);
void sections_free(struct sections *sections);

#endif

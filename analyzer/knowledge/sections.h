/*
 * sections.h - the text format of knowledge files: sections of `key = value` lines, whatever they
 * mean. docs/explain.md describes it for authors.
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

/* A section. The lines before the first header form one of kind "". */
struct section {
	const char *kind, *name; /* of "[role kv-cache]": "role" and "kv-cache"; name "": none */
	unsigned line;
	VEC(struct section_line) lines;
};

struct sections {
	const char *path; /* for errors */
	VEC(struct section) list;
};

#define SECTIONS_FILE_MAX (1u << 20) /* bytes; larger files are refused */

/* Read the file `path`, or `text` itself; strings live in the arena. A value continues in lines
 * that begin with a blank, joined by one blank; in a `pattern` or `each`, where blanks count, they
 * are joined directly. 0; negative errno with err, which names file and line. */
int sections_read(struct sections *out, const char *path, struct arena *arena, struct err *err);
int sections_parse(struct sections *out, const char *path, const char *text, size_t bytes,
    struct arena *arena, struct err *err);
void sections_free(struct sections *sections);

#endif

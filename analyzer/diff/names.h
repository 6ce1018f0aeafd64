/*
 * names.h - the part of a frame's name that survives a rebuild: the function without template
 * arguments, the compiler's suffixes and hashes, the base name of its file, and its module without
 * a version. No line, address or directory.
 */
#ifndef ANALYZER_DIFF_NAMES_H
#define ANALYZER_DIFF_NAMES_H

#include <stdint.h>

#include "trace/trace.h"

/* Append the function's lasting name: "f<int>(long) [clone .constprop.0]" gives "f(long)". */
void names_function(struct str *to, const char *function);
/* Append the module's: "/usr/lib/libfoo.so.1.2" gives "libfoo.so". */
void names_module(struct str *to, const char *path);

/* Hashes of a frame's lasting name. `program` is the path of the executable, whose own name does
 * not count; NULL: unknown. `scratch` is the caller's, and may be reused. */
struct names {
	uint64_t function;
	uint64_t file; /* base name; 0: unknown */
	uint64_t all; /* of both; of the module where there is no file */
};
struct names names_of(const struct symbol *symbol, const char *program, struct str *scratch);

#endif

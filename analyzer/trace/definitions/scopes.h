/*
 * scopes.h - the functions around an address by DWARF: the function itself and the calls inlined
 * into it. libdw's dwarf_getscopes() reads a whole unit for every address; this reads a unit once,
 * to index its functions, and then only the function asked for.
 */
#ifndef ANALYZER_TRACE_SCOPES_H
#define ANALYZER_TRACE_SCOPES_H

#include <elfutils/libdw.h>

#include "trace/symbols/objfile.h"
#include "util/map.h"
#include "util/vec.h"

struct scope_function {
	Dwarf_Addr start, end;
	Dwarf_Die die;
};

/* Zeroed is empty. */
struct scopes {
	struct map
	    units; /* by the place of the unit's DIE: its first function << 32 | its last + 1 */
	VEC(struct scope_function) functions; /* by start, unit by unit */
};
void scopes_fini(struct scopes *s);

/* Give the functions, innermost first, each with its source line; the innermost is at `line`.
 * Returns how many, at most OBJFILE_FRAMES_MAX; 0: the unit has no function there. Strings are
 * libdw's. */
size_t scopes_at(struct scopes *s, Dwarf_Die *unit, Dwarf_Addr address,
    const struct objfile_frame *line, struct objfile_frame *out);

#endif

/*
 * scopes.h - the functions around an address by DWARF: the one whose code it is, and those that the
 * compiler put into it. libdw's dwarf_getscopes() reads a unit from its beginning for every
 * address; here a unit is read once, for where its functions lie, and then only the function.
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

/* Innermost first, at most OBJFILE_FRAMES_MAX: each with the place that it was at, the innermost at
 * `line`. 0: the unit knows no function there. Strings are libdw's. */
size_t scopes_at(struct scopes *s, Dwarf_Die *unit, Dwarf_Addr address,
    const struct objfile_frame *line, struct objfile_frame *out);

#endif

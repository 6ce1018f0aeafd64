/* scopes.c - see scopes.h. The DWARF is not trusted: depth and length of what is read are bounded.
 */
#include "trace/definitions/scopes.h"

#include <dwarf.h>
#include <stdlib.h>

#include "util/sort.h"

#define DEPTH_MAX 64u
#define DIES_MAX 8000000u /* of one unit; the largest units have some hundred thousand */

void scopes_fini(struct scopes *s)
{
	map_free(&s->units);
	vec_free(&s->functions);
}

/* If code has several names (an assembler's), the unit's first one sorts last and is found. */
static int by_start(const void *a, const void *b)
{
	const struct scope_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->die.addr < y->die.addr) - (x->die.addr > y->die.addr);
}

/* Other DIEs that may contain functions. */
static bool is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

static int add_ranges(struct scopes *s, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		if (start < end &&
		    vec_push(&s->functions, (struct scope_function){start, end, *die}))
			return -ENOMEM;
	return 0;
}

static int add_functions(struct scopes *s, Dwarf_Die *parent, unsigned depth, uint32_t *left)
{
	Dwarf_Die die;
	int rc = dwarf_child(parent, &die) ? 1 : 0;

	for (; !rc && *left; rc = dwarf_siblingof(&die, &die) ? 1 : 0) {
		int tag = dwarf_tag(&die);

		--*left;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_entry_point)
			rc = add_ranges(s, &die);
		else if (is_scope(tag) && depth < DEPTH_MAX)
			rc = add_functions(s, &die, depth + 1, left);
		if (rc)
			return rc;
	}
	return 0;
}

/* Find the unit's functions: *first, and their count; 0: none. */
static size_t functions_of(struct scopes *s, Dwarf_Die *unit, size_t *first)
{
	uint32_t left = DIES_MAX;
	uint64_t *at;

	map_seed();
	at = map_put(&s->units, (uint64_t)(uintptr_t)unit->addr);
	if (!at)
		return 0;
	if (!*at) {
		*first = s->functions.count;
		if (add_functions(s, unit, 0, &left))
			s->functions.count = *first;
		if (s->functions.count >= UINT32_MAX)
			s->functions.count = *first;
		if (s->functions.count > *first)
			qsort(s->functions.items + *first, s->functions.count - *first,
			    sizeof(*s->functions.items), by_start);
		*at = (uint64_t)*first << 32 | (s->functions.count + 1);
	}
	*first = *at >> 32;
	return (uint32_t)*at - 1 - *first;
}

static struct scope_function *function_at(struct scopes *s, Dwarf_Die *unit, Dwarf_Addr address)
{
	size_t first = 0, count = functions_of(s, unit, &first);
	struct scope_function *functions;
	size_t n;

	if (!count)
		return NULL;
	functions = s->functions.items + first;
	n = sort_up_to(functions, count, sizeof(*functions), address);
	return n && functions[n - 1].end > address ? &functions[n - 1] : NULL;
}

/* Find the functions inlined into `die` at the address, outermost first, from chain[n] on. */
static size_t inlined_at(Dwarf_Die die, Dwarf_Addr address, Dwarf_Die *chain, size_t n)
{
	uint32_t left = DIES_MAX;

	for (unsigned depth = 0; depth < DEPTH_MAX && n < OBJFILE_FRAMES_MAX; depth++) {
		Dwarf_Die child;
		int tag = 0, rc = dwarf_child(&die, &child);

		for (; !rc && left; rc = dwarf_siblingof(&child, &child), left--) {
			tag = dwarf_tag(&child);
			if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
			    dwarf_haspc(&child, address) > 0)
				break;
		}
		if (rc || !left)
			break;
		if (tag == DW_TAG_inlined_subroutine)
			chain[n++] = child;
		die = child;
	}
	return n;
}

/* Prefer the linkage name, since it is complete; else the plain name. */
static const char *name_of(Dwarf_Die *die)
{
	static const unsigned attributes[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
	Dwarf_Attribute attribute;
	const char *name;

	for (size_t i = 0; i < 2; i++) {
		name = dwarf_formstring(dwarf_attr_integrate(die, attributes[i], &attribute));
		if (name)
			return name;
	}
	return dwarf_diename(die);
}

/* Set the caller's frame to the line where the function was inlined. */
static void call_site(Dwarf_Die *cu, Dwarf_Die *die, struct objfile_frame *frame)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word value;
	size_t count;

	frame->file = NULL;
	frame->line = 0;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value))
		frame->line = (uint32_t)value;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value) &&
	    !dwarf_getsrcfiles(cu, &files, &count) && value < count)
		frame->file = dwarf_filesrc(files, value, NULL, NULL);
}

size_t scopes_at(struct scopes *s, Dwarf_Die *unit, Dwarf_Addr address,
    const struct objfile_frame *line, struct objfile_frame *out)
{
	const struct scope_function *function = function_at(s, unit, address);
	Dwarf_Die chain[OBJFILE_FRAMES_MAX];
	struct objfile_frame place = *line;
	size_t count, n = 0;

	if (!function)
		return 0;
	chain[0] = function->die;
	count = inlined_at(function->die, address, chain, 1);
	while (count--) {
		out[n] = place;
		out[n].function = name_of(&chain[count]);
		out[n].inlined = count > 0;
		n++;
		if (count)
			call_site(unit, &chain[count], &place);
	}
	return n;
}

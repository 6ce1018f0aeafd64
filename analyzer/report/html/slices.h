/*
 * slices.h - how many bytes of each call site were born in one slice of the run and died in
 * another: so what lived at the end of any range of slices, and was born in it, is exact, however
 * many blocks there were. Constant work for a change; memory for each call site that is told apart.
 */
#ifndef ANALYZER_REPORT_SLICES_H
#define ANALYZER_REPORT_SLICES_H

#include "report/html/block.h"

#define SLICES 64u
#define SLICES_SITES 256u /* told apart; the rest is one */
#define SLICES_CELLS 150000u /* in the page: the smallest call sites are merged beyond it */

struct slice_cell {
	uint64_t bytes, count;
};
/* Of a call site: cells[born][died - born], the last one of a row for what was alive. */
struct slices_site {
	struct slice_cell cells[SLICES][SLICES + 1];
};
struct slices {
	uint64_t end_ns; /* of the last slice */
	struct slices_site *sites[SLICES_SITES + 1]; /* NULL: nothing; the last is the rest */
};

void slices_fini(struct slices *s);
/* 0 or -ENOMEM. */
int slices_acquired(
    struct slices *s, uint32_t site, uint64_t time_ns, uint64_t bytes, uint64_t count);
int slices_released(struct slices *s, uint32_t site, uint64_t birth_ns, uint64_t time_ns,
    uint64_t bytes, uint64_t count);
/* Call sites by number; the rest comes last. */
void slices_write(const struct slices *s, struct str *to);

#endif

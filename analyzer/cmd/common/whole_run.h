/*
 * whole_run.h - what a command reads of a whole run before it asks for the sums of stacks.
 */
#ifndef ANALYZER_CMD_WHOLE_RUN_H
#define ANALYZER_CMD_WHOLE_RUN_H

#include "model/model.h"
#include "model/space/temporary.h"

struct whole_run {
	struct model *all;
	struct temporary *temporary; /* NULL: not asked for */
};
/* Read all events; with `temporary` also the temporary blocks until so many seconds (0: all). 0;
 * negative errno with err. Call whole_run_fini() in both cases; *out is zero at first. */
int whole_run_read(
    struct trace *t, bool temporary, double seconds, struct whole_run *out, struct err *err);
void whole_run_fini(struct whole_run *run);

#endif

/*
 * outlook.h - for a process that was killed: how much memory was left, do its live bytes rise
 * steadily, and when would they have filled the memory?
 */
#ifndef ANALYZER_VERDICT_OUTLOOK_H
#define ANALYZER_VERDICT_OUTLOOK_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* Fill *out. `s` may be NULL: then only the process's own measurements count. */
void outlook_read(const struct model *m, const struct supervised *s, struct outlook *out);

#endif

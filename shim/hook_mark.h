/*
 * hook_mark.h - what lifecycle.c needs of hook_mark.c.
 */
#ifndef SHIM_HOOK_MARK_H
#define SHIM_HOOK_MARK_H

/* In the child of a fork: names are written anew. */
void hook_mark_forked(void);

#endif

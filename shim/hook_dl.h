/*
 * hook_dl.h - between hook_dl.c, hook_jump.c and those who must know that modules came or went.
 */
#ifndef SHIM_HOOK_DL_H
#define SHIM_HOOK_DL_H

/* Where a dlopen of this name is to jump to. */
void *hook_dlopen_before(const char *name, int mode);

/* Tells the stack and Python parts when modules came or went since the last time. Not from within
 * the loader. */
void hook_dl_poll(void);

#endif

/*
 * hook_dl.h - between hook_dl.c, hook_jump.c and those who must know that modules came or went.
 */
#ifndef SHIM_HOOK_DL_H
#define SHIM_HOOK_DL_H

/* When the program begins: what is loaded now was not loaded by any dlopen. */
void hook_dl_init(void);

/* Where a dlopen of this name, called from there, is to jump to. */
void *hook_dlopen_before(const char *name, int mode, const void *caller);

/* Tells the stack and Python parts when modules came or went since the last time. Not from within
 * the loader. */
void hook_dl_poll(void);

/* In the child of a fork: nothing was loaded since. */
void hook_dl_forked(void);

#endif

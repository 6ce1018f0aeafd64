/*
 * hook_attach.h - in a process that was already running: redirects the calls of all modules to the
 * wrappers by their slots, since the loader bound them before we came.
 */
#ifndef SHIM_HOOK_ATTACH_H
#define SHIM_HOOK_ATTACH_H

#include <link.h>
#include <stdbool.h>

/* Find the wrappers and the functions that the program calls. Returns 0; -EBUSY: the program's
 * calls of malloc lead to another interposer that put itself into the slots; -ENOSYS: there is no
 * malloc. Changes no slot yet. */
int hook_attach_prepare(void);

/* Redirect the slots of all modules but the loader's and our own, the C library's last. From now on
 * those of new modules, too. */
void hook_attach_begin(void);

/* Put back the slots that lead to us. */
void hook_attach_end(void);

/* Are slots redirected? Then modules may come that nobody announces. */
bool hook_attach_is_on(void);

/* A visitor (visit.h). */
bool hook_attach_visit(const struct dl_phdr_info *info);

#endif

/*
 * shm.h - file systems of a fixed size whose files are memory (tmpfs, hugetlbfs): how large they
 * are and what is free there. Who maps a file there, and writes to a page when none is left, dies
 * of SIGBUS, which nobody can note; so it is asked when a file is mapped, and each time levels are.
 */
#ifndef SHIM_SHM_H
#define SHIM_SHM_H

#include <stdbool.h>

#include "levels/levels.h"

#define SHM_LEVELS 5 /* the most that shm_mapped() fills in */

/* After a file was mapped shared: what is to be said of it and of its file system. 0: that is not
 * of a fixed size, or none of these. Raw system calls; signal handlers may call it. */
unsigned shm_mapped(int fd, struct level *out);

/* After space was refused to a file: is that of such a file system? It is the one that shm_read()
 * asks from then on. */
bool shm_refused(int fd);

/* The same of the file system that was told of last, for records of levels; at most 3. */
unsigned shm_read(struct level *out);

/* In the child of a fork another thread may have been at it. */
void shm_forked(void);

#endif

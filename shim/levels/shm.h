/*
 * shm.h - file systems of a fixed size whose files are memory (tmpfs, hugetlbfs): their size and
 * free space. A process that maps a file there and writes to a page when none is left dies of
 * SIGBUS, which nothing can record. So they are asked when a file is mapped, and whenever levels
 * are read.
 */
#ifndef SHIM_SHM_H
#define SHIM_SHM_H

#include <stdbool.h>

#include "levels/levels.h"

#define SHM_LEVELS 5 /* the most that shm_mapped() fills in */

/* After a file was mapped shared: describe it and its file system. Returns the number filled in; 0:
 * not such a file system. Raw system calls; signal handlers may call it. */
unsigned shm_mapped(int fd, struct level *out);

/* After a file was refused space: does it lie on such a file system? shm_read() asks that one from
 * then on. */
bool shm_refused(int fd);

/* Describe the file system that was reported last, for records of levels. Returns the number filled
 * in, at most 3. */
unsigned shm_read(struct level *out);

/* In the child of a fork: another thread may have held it. */
void shm_forked(void);

#endif

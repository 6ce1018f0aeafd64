/*
 * machine_parts.h - for the files of the architectures: what each has, and what all use.
 */
#ifndef ANALYZER_ATTACH_MACHINE_PARTS_H
#define ANALYZER_ATTACH_MACHINE_PARTS_H

#include "attach/machine.h"

/* The kernel's codes for what it does with an interrupted call; linux/errno.h. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* The register set of the vector registers, by the architecture. */
extern const int machine_vector_set;

/* The number of the system call that the thread was stopped in; negative: in none. */
long machine_stopped_in(const struct machine *m);

/* Read or write a register set; *bytes: the room, then what is there. 0; negative errno. */
int machine_regset(int request, pid_t tid, int kind, void *data, size_t *bytes);

#endif

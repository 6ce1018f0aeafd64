/*
 * machine.h - for `whyoom doctor`: what the machine, its kernel and the container offer. Each
 * function appends one check. Reads only. `root` is prefixed to every path; only tests need it,
 * and "" is this system.
 */
#ifndef ANALYZER_CMD_DOCTOR_MACHINE_H
#define ANALYZER_CMD_DOCTOR_MACHINE_H

#include <sys/types.h>

#include "report/diagnosis.h"

/* The C library: of the loader that a program names, or (NULL) of this system's usual folders. */
void doctor_libc(struct diagnosis *d, const char *root, const char *loader);
void doctor_kernel(struct diagnosis *d, const char *root);
/* The memory cgroup of a process, and its limits. */
void doctor_cgroup(struct diagnosis *d, const char *root, pid_t pid);
/* RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE of this process. */
void doctor_limits(struct diagnosis *d);
/* vm.overcommit_memory and vm.max_map_count. */
void doctor_memory(struct diagnosis *d, const char *root);
void doctor_shm(struct diagnosis *d, const char *path);
void doctor_seccomp(struct diagnosis *d, const char *root);
/* The right to trace a process that already runs. */
void doctor_attach(struct diagnosis *d, const char *root);
/* NVIDIA's driver, devices and library, and whyoom's helper for them (NULL: it is missing). */
void doctor_gpu(struct diagnosis *d, const char *root, const char *helper);

#endif

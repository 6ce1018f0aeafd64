/*
 * exported.h - finds exported functions of a module that a process has loaded, in the process's own
 * memory: no file is read, so it does not matter which file system the process sees, or whether the
 * file was replaced since. What is read is not trusted.
 */
#ifndef ANALYZER_ATTACH_EXPORTED_H
#define ANALYZER_ATTACH_EXPORTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct exported {
	pid_t pid;
	uint64_t bias; /* what the loader added to the addresses of the file */
	uint64_t table, names, name_bytes, hash; /* addresses in the process, and a size */
	uint32_t buckets, first, words; /* of DT_GNU_HASH */
};

struct exported_function {
	uint64_t address, bytes;
};

/* Read where the tables of the module are whose first byte is mapped at `base`. 0; -ENOEXEC: it is
 * no 64-bit module of this machine, or has no DT_GNU_HASH. */
int exported_open(pid_t pid, uint64_t base, struct exported *out);
/* Find a function that the module defines. */
bool exported_find(const struct exported *s, const char *name, struct exported_function *out);

#endif

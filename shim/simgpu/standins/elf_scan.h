/*
 * elf_scan.h - what a shared object on disk needs: libraries, and symbols that it does not define.
 * Reads only; a file that is no ELF object of this machine has none of both.
 */
#ifndef SIMGPU_ELF_SCAN_H
#define SIMGPU_ELF_SCAN_H

#include <stdbool.h>

struct elf_visitor {
	void *data;
	void (*needs)(void *data, const char *library);
	void (*path)(void *data, const char *runpath); /* RPATH or RUNPATH */
	/* `library` and `version`: NULL where the symbol has no version */
	void (*undefined)(void *data, const char *symbol, const char *library, const char *version);
};

/* Calls those that are not NULL. The strings live as long as the call. False: not such a file. */
bool elf_scan(const char *file, const struct elf_visitor *visitor);

#endif

/*
 * elf_scan.h - finds the libraries that a shared object on disk needs, and its undefined symbols.
 */
#ifndef SIMGPU_ELF_SCAN_H
#define SIMGPU_ELF_SCAN_H

#include <stdbool.h>

struct elf_visitor {
	void *data;
	void (*needs)(void *data, const char *library);
	void (*path)(void *data, const char *runpath); /* RPATH or RUNPATH */
	/* `library` and `version`: NULL if the symbol has no version */
	void (*undefined)(void *data, const char *symbol, const char *library, const char *version);
};

/* Calls the visitor's functions that are not NULL; strings are valid during the call. False: not an
 * ELF object of this machine. */
bool elf_scan(const char *file, const struct elf_visitor *visitor);

#endif

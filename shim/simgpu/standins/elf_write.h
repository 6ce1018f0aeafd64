/*
 * elf_write.h - makes a shared object in memory, whose functions return a constant and do nothing
 * else: what stands in for a library that is not there.
 */
#ifndef SIMGPU_ELF_WRITE_H
#define SIMGPU_ELF_WRITE_H

#include <stddef.h>
#include <stdint.h>

struct elf_function {
	const char *name, *version; /* version NULL: it has none */
	uint32_t result;
	const char *text; /* not NULL: it returns this text instead */
};

/* An object of that soname, which needs `needed` (NULL: nothing). The bytes come from heap_new(),
 * and their number is *size; NULL: no memory. */
void *elf_write(const char *soname, const char *needed, const struct elf_function *functions,
    size_t count, size_t *size);

#endif

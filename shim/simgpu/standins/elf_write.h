/*
 * elf_write.h - makes a shared object in memory whose functions only return a constant: a stand-in
 * for a library.
 */
#ifndef SIMGPU_ELF_WRITE_H
#define SIMGPU_ELF_WRITE_H

#include <stddef.h>
#include <stdint.h>

struct elf_function {
	const char *name, *version; /* version NULL: it has none */
	uint32_t result;
	const char *text; /* not NULL: the function returns this text instead */
};

/* Makes an object of that soname, which needs `needed` (NULL: nothing). Returns *size bytes, to be
 * freed by heap_free(); NULL: no memory. */
void *elf_write(const char *soname, const char *needed, const struct elf_function *functions,
    size_t count, size_t *size);

#endif

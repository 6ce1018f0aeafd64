/* elf.c - fuzz target: the file of a module that a trace names. The target looks up symbols and
 * debug information at its addresses. */
#include <stdlib.h>

#include "target.h"
#include "trace/symbols/objfile.h"

#define LOOKS 48u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct objfile_frame frames[OBJFILE_FRAMES_MAX];
	struct def_module module = {0};
	struct objfile *o;

	module.path = target_file(data, bytes);
	o = objfile_open(&module, NULL);
	if (!o)
		abort();
	/* The usual code addresses of small programs, and addresses from the file's bytes. */
	for (uint64_t i = 0; i < LOOKS; i++) {
		uint64_t address = 0x1000 + i * 11;

		if (i >= LOOKS / 2 && bytes > 8)
			address = data[(i * 37) % bytes] | (uint64_t)data[(i * 91) % bytes] << 8;
		for (size_t n = objfile_lookup(o, address, frames); n-- > 0;)
			if (frames[n].function)
				free(objfile_demangle(frames[n].function));
	}
	objfile_close(o);
	return 0;
}

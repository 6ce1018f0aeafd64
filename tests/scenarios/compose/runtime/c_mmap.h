/* c_mmap.h - a block is a mapping. */
#include "common.h"
#include <sys/mman.h>

typedef struct block {
	char *data;
	long size;
} block;

#define NONE() ((block){NULL, 0})
#define SIZE(b) ((b).size)
#define DROP(b)                                                                                    \
	do {                                                                                       \
		block gone = (b);                                                                  \
		if (gone.data)                                                                     \
			munmap(gone.data, (size_t)gone.size);                                      \
	} while (0)
#define MAKE(n)                                                                                    \
	({                                                                                         \
		long bytes = (n);                                                                  \
		char *data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,                     \
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);                                           \
		if (data == MAP_FAILED)                                                            \
			out_of_memory();                                                           \
		memset(data, 1, (size_t)bytes);                                                    \
		USED(data);                                                                        \
		(block){data, bytes};                                                              \
	})
#include "c_store.h"

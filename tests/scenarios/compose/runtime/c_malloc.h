/* c_malloc.h - a block is what one malloc() gives. */
#include "common.h"

typedef struct block {
	char *data;
	long size;
} block;

#define NONE() ((block){NULL, 0})
#define SIZE(b) ((b).size)
#define DROP(b) free((b).data)
#define MAKE(n)                                                                                    \
	({                                                                                         \
		long bytes = (n);                                                                  \
		char *data = malloc((size_t)bytes);                                                \
		if (!data)                                                                         \
			out_of_memory();                                                           \
		memset(data, 1, (size_t)bytes);                                                    \
		USED(data);                                                                        \
		(block){data, bytes};                                                              \
	})
#include "c_store.h"

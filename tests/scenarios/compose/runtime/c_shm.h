/* c_shm.h - a block is a shared memory segment in /dev/shm, mapped and closed. */
#include "common.h"
#include <fcntl.h>
#include <sys/mman.h>

typedef struct block {
	char *data;
	long size, number;
} block;

static long segments;
#define NONE() ((block){NULL, 0, 0})
#define SIZE(b) ((b).size)
static void drop_segment(block b)
{
	char name[64];

	if (!b.data)
		return;
	munmap(b.data, (size_t)b.size);
	snprintf(name, sizeof(name), "/segment.%d.%ld", getpid(), b.number);
	shm_unlink(name);
}
#define DROP(b) drop_segment(b)
#define MAKE(n)                                                                                    \
	({                                                                                         \
		block made = {NULL, (n), __atomic_add_fetch(&segments, 1, __ATOMIC_RELAXED)};      \
		char name[64];                                                                     \
		snprintf(name, sizeof(name), "/segment.%d.%ld", getpid(), made.number);            \
		int fd = shm_open(name, O_RDWR | O_CREAT, 0600);                                   \
		if (fd < 0 || ftruncate(fd, made.size))                                            \
			out_of_memory();                                                           \
		made.data =                                                                        \
		    mmap(NULL, (size_t)made.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);      \
		close(fd);                                                                         \
		if (made.data == MAP_FAILED)                                                       \
			out_of_memory();                                                           \
		memset(made.data, 1, (size_t)made.size);                                           \
		made;                                                                              \
	})
#include "c_store.h"

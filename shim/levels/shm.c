/*
 * shm.c - see shm.h. Asks only the kernel, and about each device that may lie across a network at
 * most once: fstatfs() may wait there. Disks have devices of their own and are not asked.
 */
#include "levels/shm.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/sys.h"
#include "whyoom/trace.h"

/* File systems that were asked and are not of a fixed size. Those that found no place are
 * asked again. */
#define OTHERS 16u
static uint64_t others[OTHERS];
static unsigned others_used;

/* The file system that was reported last. */
static struct {
	bool busy; /* one thread at a time; another one goes without */
	uint64_t device;
	char directory[512]; /* "": none */
} filesystem;

static bool is_other(uint64_t device)
{
	for (unsigned i = 0; i < OTHERS; i++)
		if (__atomic_load_n(&others[i], __ATOMIC_RELAXED) == device)
			return true;
	return false;
}

static bool has_size(const struct statfs *fs)
{
	/* Without a size limit it says 0, like memfd's file system and mostly that of huge
	 * pages. */
	return ((unsigned long)fs->f_type == TMPFS_MAGIC ||
		   (unsigned long)fs->f_type == HUGETLBFS_MAGIC) &&
	       fs->f_blocks;
}

/* Get a file's facts and those of its file system, if that is of a fixed size. */
static bool ask(int fd, struct stat *st, struct statfs *fs)
{
	if (sys_call(SYS_fstat, fd, (long)st, 0, 0, 0, 0) || major(st->st_dev) || !st->st_dev ||
	    is_other(st->st_dev))
		return false;
	if (!sys_call(SYS_fstatfs, fd, (long)fs, 0, 0, 0, 0) && has_size(fs))
		return true;
	__atomic_store_n(&others[__atomic_fetch_add(&others_used, 1, __ATOMIC_RELAXED) % OTHERS],
	    st->st_dev, __ATOMIC_RELAXED);
	return false;
}

/* Remember the file's directory: the file itself is often unlinked at once. */
static void remember(int fd, uint64_t device)
{
	char *slash;

	if (__atomic_load_n(&filesystem.device, __ATOMIC_RELAXED) == device ||
	    __atomic_exchange_n(&filesystem.busy, true, __ATOMIC_ACQUIRE))
		return;
	filesystem.device = 0;
	sys_fd_path(fd, filesystem.directory, sizeof(filesystem.directory));
	slash = strrchr(filesystem.directory, '/');
	if (slash && filesystem.directory[0] == '/') {
		slash[slash == filesystem.directory] = 0;
		__atomic_store_n(&filesystem.device, device, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&filesystem.busy, false, __ATOMIC_RELEASE);
}

static unsigned put(struct level *out, uint64_t device, const struct statfs *fs)
{
	uint64_t block = (uint64_t)fs->f_bsize;

	out[0] = (struct level){TRACE_LEVEL_SHM_TOTAL, fs->f_blocks * block};
	out[1] = (struct level){TRACE_LEVEL_SHM_FREE, fs->f_bavail * block};
	out[2] = (struct level){TRACE_LEVEL_SHM_DEVICE, device};
	return 3;
}

unsigned shm_mapped(int fd, struct level *out)
{
	struct statfs fs;
	struct stat st;
	unsigned n;

	if (fd < 0 || !ask(fd, &st, &fs))
		return 0;
	remember(fd, st.st_dev);
	n = put(out, st.st_dev, &fs);
	out[n++] = (struct level){TRACE_LEVEL_SHM_FILE, st.st_ino};
	out[n++] = (struct level){TRACE_LEVEL_SHM_WRITTEN, (uint64_t)st.st_blocks * 512};
	return n;
}

bool shm_refused(int fd)
{
	struct statfs fs;
	struct stat st;

	if (!ask(fd, &st, &fs))
		return false;
	remember(fd, st.st_dev);
	return true;
}

unsigned shm_read(struct level *out)
{
	struct statfs fs;
	struct stat st;
	unsigned n = 0;

	if (!__atomic_load_n(&filesystem.device, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&filesystem.busy, true, __ATOMIC_ACQUIRE))
		return 0;
	/* Another file system may be there by now. */
	if (filesystem.device &&
	    !sys_call(SYS_newfstatat, AT_FDCWD, (long)filesystem.directory, (long)&st, 0, 0, 0) &&
	    st.st_dev == filesystem.device &&
	    !sys_call(SYS_statfs, (long)filesystem.directory, (long)&fs, 0, 0, 0, 0) &&
	    has_size(&fs))
		n = put(out, st.st_dev, &fs);
	__atomic_store_n(&filesystem.busy, false, __ATOMIC_RELEASE);
	return n;
}

void shm_forked(void)
{
	filesystem.busy = false;
}

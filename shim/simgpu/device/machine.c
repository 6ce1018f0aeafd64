/*
 * machine.c - see machine.h. Pid and start time identify a process, so that a reused pid is another
 * process. The slot of a dead process (also a zombie, which has no memory any more) is freed by the
 * next process that needs memory or asks for the level.
 */
#include "simgpu/device/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

#define MAGIC 0x3170677973776f77ull
#define REAP_EVERY 20000000ull /* ns; also done whenever a request does not fit */

struct slot {
	uint64_t start_time; /* of /proc/PID/stat */
	int32_t pid; /* 0: free */
	uint32_t unused;
	uint64_t bytes[SIMGPU_DEVICES];
};

struct shared {
	uint64_t magic; /* written last, by the process that makes the file */
	uint32_t gone; /* the file is unlinked: make another */
	uint32_t size; /* of this structure */
	pthread_mutex_t lock;
	int32_t count;
	int32_t unused;
	struct device_spec devices[SIMGPU_DEVICES];
	uint64_t used[SIMGPU_DEVICES];
	uint64_t reaped; /* CLOCK_MONOTONIC, ns */
	uint64_t number;
	struct slot slots[MACHINE_PROCESSES];
};

static struct shared *shared;
static struct slot
    *process_slot; /* NULL: this process has reserved nothing yet, or there was no room */
static char path[128];
static bool file_joined;

/* Returns the process's start time from /proc/PID/stat; 0: it is dead or a zombie. */
static uint64_t start_time(int pid)
{
	char name[32], text[512], *s;
	unsigned long long ticks = 0;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	if (sys_read_file(name, text, sizeof(text)) <= 0)
		return 0;
	s = strrchr(text, ')');
	if (!s || s[1] != ' ' || s[2] == 'Z' || s[2] == 'X')
		return 0;
	for (int field = 2; s && field < 22; field++)
		s = strchr(s + 1, ' ');
	return s && sscanf(s, "%llu", &ticks) == 1 ? (uint64_t)ticks + 1 : 0;
}

static void recount(void)
{
	memset(shared->used, 0, sizeof(shared->used));
	for (int i = 0; i < MACHINE_PROCESSES; i++)
		if (shared->slots[i].pid)
			for (int d = 0; d < SIMGPU_DEVICES; d++)
				shared->used[d] += shared->slots[i].bytes[d];
}

/* Recounts if the last holder died, which may have been in the middle of a sum. */
static void lock(void)
{
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
		recount();
		pthread_mutex_consistent(&shared->lock);
	}
}

static void unlock(void)
{
	pthread_mutex_unlock(&shared->lock);
}

static void reap(void)
{
	for (int i = 0; i < MACHINE_PROCESSES; i++) {
		struct slot *slot = &shared->slots[i];

		if (slot->pid && slot != process_slot && start_time(slot->pid) != slot->start_time)
			memset(slot, 0, sizeof(*slot));
	}
	recount();
	shared->reaped = sys_clock_ns(CLOCK_MONOTONIC);
}

static struct slot *own_slot(void)
{
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < MACHINE_PROCESSES; i++) {
			struct slot *slot = &shared->slots[i];

			if (slot->pid)
				continue;
			*slot = (struct slot){
			    .start_time = start_time(sys_getpid()), .pid = sys_getpid()};
			return slot;
		}
		reap();
	}
	return NULL;
}

static void initialise(const struct config *config)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	if (file_joined)
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	shared->size = sizeof(*shared);
	shared->count = config->count;
	memcpy(shared->devices, config->devices, sizeof(shared->devices));
	__atomic_store_n(&shared->magic, MAGIC, __ATOMIC_RELEASE);
}

static struct shared *map_file(int fd)
{
	long p = sys_call(SYS_mmap, 0, sizeof(struct shared), PROT_READ | PROT_WRITE,
	    fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	return sys_failed(p) ? NULL : (struct shared *)p;
}

/* Returns 1: joined, 0: try again, -1: impossible. */
static int try_file(const struct config *config)
{
	struct stat st;
	int fd = sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600), result = -1;
	long locked;

	if (fd < 0)
		return -1;
	/* one process makes the file; the others wait here */
	do
		locked = sys_call(SYS_flock, fd, 2 /* LOCK_EX */, 0, 0, 0, 0);
	while (locked == -EINTR);
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || st.st_uid != geteuid() ||
	    !S_ISREG(st.st_mode))
		goto out;
	if (st.st_nlink == 0) {
		result = 0;
		goto out;
	}
	if (st.st_size < (off_t)sizeof(struct shared) &&
	    sys_call(SYS_ftruncate, fd, sizeof(struct shared), 0, 0, 0, 0) < 0)
		goto out;
	shared = map_file(fd);
	if (!shared)
		goto out;
	if (shared->magic != MAGIC)
		initialise(config);
	if (shared->size != sizeof(*shared))
		goto out;
	/* from here on the file stays as long as this process */
	lock();
	result = !shared->gone;
	process_slot = result ? own_slot() : NULL;
	unlock();
out:
	/* closing the descriptor would not unlock, as the mapping keeps the file open */
	sys_call(SYS_flock, fd, 8 /* LOCK_UN */, 0, 0, 0, 0);
	sys_close(fd);
	return result;
}

static void choose_path(const struct config *config)
{
	uint64_t hash = 14695981039346656037ull;

	if (config->machine[0]) {
		snprintf(path, sizeof(path), "/dev/shm/whyoom-simgpu.%u.%s", (unsigned)geteuid(),
		    config->machine);
		return;
	}
	for (size_t i = 0; i < sizeof(config->devices); i++)
		hash = (hash ^ ((const unsigned char *)config->devices)[i]) * 1099511628211ull;
	snprintf(path, sizeof(path), "/dev/shm/whyoom-simgpu.%u.%016llx", (unsigned)geteuid(),
	    (unsigned long long)hash);
}

bool machine_join(struct config *config, char why[160])
{
	int done = 0;

	why[0] = 0;
	choose_path(config);
	file_joined = true;
	for (int i = 0; i < 10 && !done; i++)
		done = try_file(config);
	if (done <= 0) {
		snprintf(
		    why, 160, "%.100s cannot be used: the simulated memory is not shared", path);
		file_joined = false;
		shared = map_file(-1);
		if (shared)
			initialise(config);
		return false;
	}
	if (memcmp(shared->devices, config->devices, sizeof(shared->devices)) ||
	    shared->count != config->count) {
		snprintf(why, 160, "the machine '%s' has other devices already: those are used",
		    config->machine);
		memcpy(config->devices, shared->devices, sizeof(shared->devices));
		config->count = shared->count;
	}
	return true;
}

/* The child joins anew: the slot is the parent's, and without a slot nothing keeps the file. */
void machine_after_fork(void)
{
	if (shared)
		sys_call(SYS_munmap, (long)shared, sizeof(*shared), 0, 0, 0, 0);
	shared = NULL;
	process_slot = NULL;
}

void machine_leave(void)
{
	bool last = true;

	if (!shared || !process_slot || process_slot->pid != sys_getpid())
		return;
	lock();
	memset(process_slot, 0, sizeof(*process_slot));
	process_slot = NULL;
	reap();
	for (int i = 0; i < MACHINE_PROCESSES; i++)
		last = last && !shared->slots[i].pid;
	/* a named machine stays, for later processes of that name */
	if (last && file_joined) {
		shared->gone = 1;
		sys_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
	}
	unlock();
}

bool machine_reserve(int device, uint64_t bytes)
{
	bool fits;

	if (!shared)
		return false;
	lock();
	if (!process_slot)
		process_slot = own_slot();
	fits = bytes <= shared->devices[device].bytes - shared->used[device];
	if (!fits) {
		reap();
		fits = bytes <= shared->devices[device].bytes - shared->used[device];
	}
	fits = fits && process_slot;
	if (fits) {
		shared->used[device] += bytes;
		process_slot->bytes[device] += bytes;
	}
	unlock();
	return fits;
}

void machine_release(int device, uint64_t bytes)
{
	if (!shared || !process_slot)
		return;
	lock();
	shared->used[device] -= bytes;
	process_slot->bytes[device] -= bytes;
	unlock();
}

void machine_level(int device, uint64_t *free, uint64_t *total)
{
	*free = *total = 0;
	if (!shared)
		return;
	lock();
	if (sys_clock_ns(CLOCK_MONOTONIC) - shared->reaped > REAP_EVERY)
		reap();
	*total = shared->devices[device].bytes;
	*free = *total - shared->used[device];
	unlock();
}

int machine_processes(int device, struct machine_process *out, int room)
{
	int n = 0;

	if (!shared)
		return 0;
	lock();
	reap();
	for (int i = 0; i < MACHINE_PROCESSES; i++) {
		const struct slot *slot = &shared->slots[i];

		if (!slot->pid || !slot->bytes[device])
			continue;
		if (n < room)
			out[n] = (struct machine_process){slot->pid, slot->bytes[device]};
		n++;
	}
	unlock();
	return n;
}

uint64_t machine_unique_number(void)
{
	return shared ? __atomic_add_fetch(&shared->number, 1, __ATOMIC_RELAXED) : 1;
}

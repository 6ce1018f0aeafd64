/*
 * disk.c - owns a directory's account, `disk.account`, and its mapping. The first process fills it
 * in: each field is set by one compare-and-exchange from zero, so it does not matter which process
 * made the file, nor whether that one was killed meanwhile. The page is reserved before it is
 * mapped, so a full disk raises no SIGBUS.
 */
#include "trace/disk.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/options.h"
#include "base/sys.h"
#include "trace/trace_file.h"
#include "whyoom/trace.h"

#define DEFAULT_MOST (16ull << 30)
#define RESERVE_MOST (1ull << 30)
/* Too little to record with, but the first process can say why. */
#define DEFAULT_LEAST (1ull << 20)
/* All processes together recount at most this often. */
#define RECOUNT_SECONDS 10u

static struct trace_disk private_account; /* counts while there is no account */
static struct trace_disk *account = &private_account;
static uint64_t bound;

static uint64_t reserve_bytes(void)
{
	return bound / 8 > RESERVE_MOST ? RESERVE_MOST : bound / 8;
}

static uint64_t limit_of(enum disk_share share)
{
	return share == DISK_LAST    ? bound
	       : share == DISK_START ? bound - reserve_bytes() / 2
				     : bound - reserve_bytes();
}

/* A tenth of the free space, within limits. */
static uint64_t default_bound(int directory)
{
	struct statfs fs;
	uint64_t bytes;

	if (sys_call(SYS_fstatfs, directory, (long)&fs, 0, 0, 0, 0) < 0 || !fs.f_blocks)
		return DEFAULT_MOST;
	bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 10;
	return bytes > DEFAULT_MOST ? DEFAULT_MOST : bytes < DEFAULT_LEAST ? DEFAULT_LEAST : bytes;
}

/* Is it an account, or can it become one? */
static bool settle(struct trace_disk *a, uint64_t wanted)
{
	uint64_t magic, none = 0;
	uint32_t version = 0;

	memcpy(&magic, TRACE_DISK_MAGIC, sizeof(magic));
	if (!__atomic_compare_exchange_n(
		&a->magic, &none, magic, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    none != magic)
		return false;
	if (!__atomic_compare_exchange_n(&a->version, &version, TRACE_DISK_VERSION, false,
		__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    version != TRACE_DISK_VERSION)
		return false;
	none = 0;
	if (!__atomic_compare_exchange_n(
		&a->bound, &none, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		wanted = none;
	if (wanted > INT64_MAX)
		return false;
	bound = wanted;
	return true;
}

static struct trace_disk *map_account(int directory)
{
	enum { ACCESS = PROT_READ | PROT_WRITE };
	struct trace_disk *a = NULL;
	struct stat st;
	long p = -1;
	int fd = (int)sys_call(SYS_openat, directory, (long)TRACE_DISK_NAME,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600, 0, 0);

	if (fd < 0)
		return NULL;
	/* one with another link, or writable for others, is not ours */
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1 && st.st_uid == (uid_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) &&
	    !(st.st_mode & 022) &&
	    (st.st_size >= TRACE_DISK_BYTES || trace_file_reserve(fd, 0, TRACE_DISK_BYTES) == 0))
		p = sys_call(
		    SYS_mmap, 0, TRACE_DISK_BYTES, ACCESS, MAP_SHARED | MAP_POPULATE, fd, 0);
	sys_close(fd);
	if (sys_failed(p))
		return NULL;
	a = (struct trace_disk *)p;
	if (settle(a, bound))
		return a;
	sys_call(SYS_munmap, p, TRACE_DISK_BYTES, 0, 0, 0, 0);
	return NULL;
}

static bool is_counted(const char *name)
{
	size_t n = strlen(name);

	return (n > 7 && !strcmp(name + n - 7, ".whyoom")) ||
	       (n > 8 && !strcmp(name + n - 8, TRACE_SMALL_SUFFIX));
}

/* Sum up the traces in the directory. *others: is anything but the account there? False: cannot be
 * told. */
static bool survey(int directory, uint64_t *bytes, bool *others)
{
	_Alignas(struct sys_entry) char buffer[4096];
	long n;
	int fd = (int)sys_call(
	    SYS_openat, directory, (long)".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);

	*bytes = 0;
	*others = false;
	if (fd < 0)
		return false;
	while ((n = sys_call(SYS_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0)
		for (long at = 0; at < n;) {
			const struct sys_entry *e = (const void *)(buffer + at);
			struct stat st;

			at += e->bytes;
			*others |= strcmp(e->name, ".") && strcmp(e->name, "..") &&
				   strcmp(e->name, TRACE_DISK_NAME);
			if (is_counted(e->name) &&
			    sys_call(SYS_newfstatat, directory, (long)e->name, (long)&st,
				AT_SYMLINK_NOFOLLOW, 0, 0) == 0)
				*bytes += (uint64_t)st.st_blocks * 512;
		}
	sys_close(fd);
	return n == 0;
}

/* Traces may have been removed: a new process without room counts again. */
static void recount(int directory)
{
	uint64_t now = sys_clock_ns(CLOCK_REALTIME) / 1000000000u, bytes;
	uint64_t last = __atomic_load_n(&account->counted_s, __ATOMIC_RELAXED);
	int64_t before;
	bool others;

	if (account == &private_account || (last <= now && now - last < RECOUNT_SECONDS) ||
	    !__atomic_compare_exchange_n(
		&account->counted_s, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	before = __atomic_load_n(&account->held, __ATOMIC_RELAXED);
	if (survey(directory, &bytes, &others))
		__atomic_fetch_add(&account->held, (int64_t)bytes - before, __ATOMIC_RELAXED);
}

void disk_open(int directory)
{
	struct trace_disk *a;

	if (account == &private_account) {
		bound = options.max_disk ? options.max_disk : default_bound(directory);
		bound = bound > INT64_MAX ? INT64_MAX : bound;
		a = map_account(directory);
		if (a)
			__atomic_store_n(&account, a, __ATOMIC_RELEASE);
	}
	if (!disk_room(DISK_START))
		recount(directory);
}

void disk_close(void)
{
	struct trace_disk *a = account;

	account = &private_account;
	memset(&private_account, 0, sizeof(private_account));
	if (a != &private_account)
		sys_call(SYS_munmap, (long)a, TRACE_DISK_BYTES, 0, 0, 0, 0);
}

uint64_t disk_bound(void)
{
	return bound;
}

uint64_t disk_room(enum disk_share share)
{
	int64_t held = __atomic_load_n(&account->held, __ATOMIC_RELAXED);
	uint64_t limit = limit_of(share);

	return held < 0 ? limit : (uint64_t)held < limit ? limit - (uint64_t)held : 0;
}

bool disk_take(uint64_t bytes, enum disk_share share)
{
	int64_t now = __atomic_add_fetch(&account->held, (int64_t)bytes, __ATOMIC_RELAXED);

	/* Added first: of several at once, some may be refused that would have fitted, but
	 * everything granted fits. */
	if (now <= (int64_t)limit_of(share))
		return true;
	__atomic_fetch_sub(&account->held, (int64_t)bytes, __ATOMIC_RELAXED);
	return false;
}

void disk_give(uint64_t bytes)
{
	__atomic_fetch_sub(&account->held, (int64_t)bytes, __ATOMIC_RELAXED);
}

uint32_t disk_small_file(void)
{
	return __atomic_load_n(&account->small, __ATOMIC_RELAXED);
}

void disk_small_next(uint32_t number)
{
	__atomic_compare_exchange_n(
	    &account->small, &number, number + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The part of an entry above its offset. */
static uint64_t base_tag(uint32_t number, uint64_t key)
{
	return (key >> 40) << 40 | (uint64_t)(uint8_t)number << 32;
}

bool disk_small_base(uint32_t number, uint64_t key, uint32_t *at)
{
	uint64_t e = __atomic_load_n(&account->bases[key % TRACE_SMALL_BASES], __ATOMIC_RELAXED);

	*at = (uint32_t)e;
	return e && e >> 32 == base_tag(number, key) >> 32;
}

void disk_small_set_base(uint32_t number, uint64_t key, uint32_t at)
{
	__atomic_store_n(
	    &account->bases[key % TRACE_SMALL_BASES], base_tag(number, key) | at, __ATOMIC_RELAXED);
}

uint64_t disk_bytes(void)
{
	return account == &private_account ? 0 : TRACE_DISK_BYTES;
}

void disk_tidy(const char *directory)
{
	int fd = sys_open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	uint64_t bytes;
	bool others;

	if (fd < 0)
		return;
	if (survey(fd, &bytes, &others) && !others)
		sys_call(SYS_unlinkat, fd, (long)TRACE_DISK_NAME, 0, 0, 0, 0);
	sys_close(fd);
}

/* maps.c - mappings as ranges: every way to make, split, replace, move and drop them. `ranges`
 * ends with the truth from /proc/self/maps on stdout, for its arena. */
#include "../oracle.h"

#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static size_t page;

static void *anon(size_t pages)
{
	void *p = o_mmap(NULL, pages * page, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void advise(void *p, size_t n, int advice)
{
	oracle_put(O_ADVISE, o_int(p), n, (uint64_t)advice, 0);
	CHECK(madvise(p, n, advice) == 0);
}

static void plain(void)
{
	char *p = anon(10);

	errno = 4711;
	CHECK(o_munmap(p + 3 * page, 2 * page) == 0); /* splits */
	CHECK(o_munmap(p, 10 * page) == 0); /* over the hole */
	CHECK(errno == 4711);
	p = mmap64(NULL, 3 * page, PROT_READ, ANON, -1, 0);
	oracle_put(O_MAP, o_int(p), 3 * page, API_MMAP, 0);
	CHECK(o_munmap(p, 3 * page) == 0);
	p = anon(8);
	char *q = o_mmap(p + 2 * page, 2 * page, PROT_READ, ANON | MAP_FIXED, -1, 0);
	CHECK(q == p + 2 * page);
	memset(p + 4 * page, 1, 2 * page);
	advise(p + 4 * page, 2 * page, MADV_DONTNEED);
	CHECK(p[4 * page] == 0);
	memset(p + 4 * page, 1, 2 * page);
	advise(p + 4 * page, 2 * page, MADV_FREE);
	CHECK(o_munmap(p, 8 * page) == 0);
	p = o_mmap(NULL, 2 * page, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(o_munmap(p, 2 * page) == 0);
}

static void moves(void)
{
	char *p = anon(6);

	p[0] = 'a';
	p = o_mremap(p, 6 * page, 200 * page, MREMAP_MAYMOVE, NULL); /* grows, may move */
	CHECK(p[0] == 'a');
	p = o_mremap(p, 200 * page, 4 * page, 0, NULL); /* shrinks in place */
	char *room = anon(64);
	char *to = room + 10 * page; /* the middle two pages go over another mapping */
	char *q = o_mremap(p + page, 2 * page, 3 * page, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(q == to && p[0] == 'a');
	CHECK(o_munmap(p, 4 * page) == 0);
	CHECK(o_munmap(room, 64 * page) == 0);
}

/* A failed mremap may have unmapped ranges; kernels differ. */
static void gone(char *p, size_t pages)
{
	unsigned char there[8];

	if (mincore(p, pages * page, there) == 0)
		return;
	oracle_put(O_UNMAP, o_int(p), pages * page, API_MREMAP, 0);
}

static void failing(void)
{
	CHECK(o_mmap(NULL, 0, PROT_READ, ANON, -1, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(o_mmap(NULL, page, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
	CHECK(
	    o_mmap(NULL, (size_t)1 << 62, PROT_READ, ANON, -1, 0) == MAP_FAILED && errno == ENOMEM);
	/* more huge pages than any machine has */
	CHECK(mmap(NULL, (size_t)1 << 46, PROT_READ, ANON | MAP_HUGETLB, -1, 0) == MAP_FAILED);
	char *p = anon(4);
	p[0] = 'a';
	CHECK(munmap(p + 1, page) == -1 && errno == EINVAL);
	size_t most = ((size_t)1 << 47) - (1 << 20);
	CHECK(mremap(p, 4 * page, most, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	oracle_put(O_FAILED, most, API_MREMAP, ENOMEM, o_int(p));
	/* no room behind it: nothing ran out */
	CHECK(mremap(p, 2 * page, 3 * page, 0) == MAP_FAILED && errno == ENOMEM);
	CHECK(mremap(p + 1, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
	CHECK(p[0] == 'a');
	CHECK(o_munmap(p, 4 * page) == 0);

	/* growing over a hole at the old place */
	char *to = anon(4);
	p = anon(4);
	CHECK(o_munmap(p + 2 * page, 2 * page) == 0);
	CHECK(mremap(p, 3 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED &&
	      errno == EFAULT);
	gone(to, 4);
	CHECK(o_munmap(to, 4 * page) == 0);
	CHECK(o_munmap(p, 2 * page) == 0);

	/* shrinking leaves two mappings that cannot be moved as one */
	to = anon(4);
	p = anon(6);
	CHECK(mprotect(p + page, page, PROT_READ) == 0);
	if (mremap(p, 6 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
		gone(to, 2);
		gone(p + 2 * page, 4);
	} else {
		oracle_put(O_UNMAP, o_int(p), 6 * page, API_MREMAP, 2);
		oracle_put(O_MAP, o_int(to), 2 * page, API_MREMAP, 2 | 8);
	}
	CHECK(o_munmap(to, 4 * page) == 0);
	CHECK(o_munmap(p, 6 * page) == 0);
}

static void brks(void)
{
	char *end = sbrk(0);
	uint64_t at = o_int(end);

	errno = 4711;
	CHECK(sbrk(5 * (intptr_t)page) == end);
	oracle_put(O_BRK, at, at + 5 * page, 0, 0);
	memset(end, 7, 5 * page);
	CHECK(sbrk(-2 * (intptr_t)page) == end + 5 * page);
	oracle_put(O_BRK, at + 5 * page, at + 3 * page, 0, 0);
	CHECK(brk(end + page) == 0);
	oracle_put(O_BRK, at + 3 * page, at + page, 0, 0);
	CHECK(errno == 4711);
	CHECK(brk(end) == 0);
	oracle_put(O_BRK, at + page, at, 0, 0);
	CHECK(sbrk(0) == end);
	CHECK(sbrk((intptr_t)1 << 46) == (void *)-1 && errno == ENOMEM);
	oracle_put(O_FAILED, 1ull << 46, API_BRK, ENOMEM, 0);
}

/* syscall(): a leak class of its own */
static void raw(void)
{
	errno = 4711;
	char *p = (char *)syscall(SYS_mmap, NULL, 5 * page, RW, ANON, -1, 0);
	CHECK(p != MAP_FAILED);
	oracle_put(O_MAP, o_int(p), 5 * page, API_MMAP, 2);
	oracle_put(O_UNMAP, o_int(p), 5 * page, API_MREMAP, 6);
	char *q = (char *)syscall(SYS_mremap, p, 5 * page, 50 * page, MREMAP_MAYMOVE, NULL);
	CHECK(q != MAP_FAILED);
	oracle_put(O_MAP, o_int(q), 50 * page, API_MREMAP, 6);
	oracle_put(O_UNMAP, o_int(q), 50 * page, API_MUNMAP, 2);
	CHECK(syscall(SYS_munmap, q, 50 * page) == 0);
	CHECK(errno == 4711);
	uint64_t end = (uint64_t)syscall(SYS_brk, 0);
	CHECK((uint64_t)syscall(SYS_brk, end + 2 * page) == end + 2 * page);
	oracle_put(O_BRK, end, end + 2 * page, 0, 0);
	CHECK((uint64_t)syscall(SYS_brk, end) == end);
	oracle_put(O_BRK, end + 2 * page, end, 0, 0);
	CHECK(syscall(SYS_mmap, NULL, (size_t)1 << 62, PROT_READ, ANON, -1, 0) == -1 &&
	      errno == ENOMEM);
	oracle_put(O_FAILED, (uint64_t)1 << 62, API_MMAP, ENOMEM, 0);
	/* other calls, six arguments and errors pass through unchanged */
	CHECK(syscall(SYS_getpid) == getpid());
	CHECK(syscall(SYS_read, -1, NULL, 0) == -1 && errno == EBADF);
	CHECK(syscall(100000) == -1 && errno == ENOSYS);
	CHECK(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &(struct timespec){0, 1000}, NULL) == 0);
}

static void shared(void)
{
	int id = shmget(IPC_PRIVATE, 3 * page, 0600 | IPC_CREAT), fd;
	char *p, *q, name[64];

	CHECK(id >= 0);
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	CHECK(p != (void *)-1);
	oracle_put(O_MAP, o_int(p), 3 * page, API_SHMAT, 16);
	p[0] = 1;
	oracle_put(O_UNMAP, o_int(p), 3 * page, API_SHMDT, 0);
	CHECK(shmdt(p) == 0);
	CHECK(shmdt(p) == -1 && errno == EINVAL);
	fd = memfd_create("whyoom-test", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 4 * (off_t)page) == 0);
	p = o_mmap(NULL, 4 * page, RW, MAP_SHARED, fd, 0);
	q = o_mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	CHECK(p != MAP_FAILED && q != MAP_FAILED);
	p[page] = 9;
	CHECK(q[0] == 9);
	CHECK(o_munmap(p, 4 * page) == 0 && o_munmap(q, page) == 0);
	close(fd);
	snprintf(name, sizeof name, "/whyoom-test.%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 2 * (off_t)page) == 0);
	p = o_mmap(NULL, 2 * page, RW, MAP_SHARED, fd, 0);
	shm_unlink(name);
	CHECK(p != MAP_FAILED && o_munmap(p, 2 * page) == 0);
	close(fd);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	p = o_mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && o_munmap(p, page) == 0);
	close(fd);
}

static uint32_t seed = 12345;
static uint32_t below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Random operations in an arena; then the kernel's mappings there, as `range A B`. */
static void ranges(void)
{
	const size_t pages = 512;
	char *arena = mmap(NULL, pages * page, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	char line[512];

	CHECK(arena != MAP_FAILED);
	for (int i = 0; i < 3000; i++) {
		size_t n = 1 + below(31);
		char *p = arena + below(pages - 32) * page, *to = arena + below(pages - 32) * page;
		void *r;

		switch (below(5)) {
		case 0:
		case 1:
			CHECK(mmap(p, n * page, RW, ANON | MAP_FIXED, -1, 0) == p);
			break;
		case 2:
			CHECK(munmap(p, n * page) == 0);
			break;
		case 3: /* shrinks */
			CHECK(mmap(p, n * page, RW, ANON | MAP_FIXED, -1, 0) == p);
			r = mremap(p, n * page, (n + 1) / 2 * page, 0);
			CHECK(r == p);
			break;
		case 4: /* moves within the arena, over any mapping there */
			if (to + n * page > p && p + n * page > to)
				break;
			CHECK(mmap(p, n * page, RW, ANON | MAP_FIXED, -1, 0) == p);
			r = mremap(p, n * page, n * page, MREMAP_MAYMOVE | MREMAP_FIXED, to);
			CHECK(r == to);
			break;
		}
	}
	FILE *f = fopen("/proc/self/maps", "re");
	printf("arena %lx %lx\n", (long)arena, (long)(arena + pages * page));
	while (fgets(line, sizeof line, f)) {
		unsigned long a, b;
		CHECK(sscanf(line, "%lx-%lx", &a, &b) == 2);
		if (b > (unsigned long)arena && a < (unsigned long)(arena + pages * page))
			printf("range %lx %lx\n", a, b);
	}
	fclose(f);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	page = (size_t)sysconf(_SC_PAGESIZE);
	oracle_open();
	oracle_begin();
	if (!strcmp(what, "plain"))
		plain();
	else if (!strcmp(what, "moves"))
		moves();
	else if (!strcmp(what, "failing"))
		failing();
	else if (!strcmp(what, "brk"))
		brks();
	else if (!strcmp(what, "raw"))
		raw();
	else if (!strcmp(what, "shared"))
		shared();
	else if (!strcmp(what, "ranges"))
		ranges();
	else
		return 96;
	oracle_end();
	return 0;
}

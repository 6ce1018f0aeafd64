/* calls.c - every hooked function of the malloc family: success, failure and edge cases. The
 * oracle logs each call. */
#include "../oracle.h"

#include <sys/resource.h>

/* The call itself must leave errno unchanged on success. */
static void *same_errno(void *p)
{
	CHECK(errno == 4711);
	return p;
}

static void successes(void)
{
	void *p, *q;

	errno = 4711;
	for (size_t n = 0; n < 3000; n += 7) {
		p = same_errno(o_malloc(n));
		CHECK(p && malloc_usable_size(p) >= n);
		memset(p, 0xa5, n);
		p = same_errno(o_realloc(p, n * 2 + 1));
		CHECK(n == 0 || ((unsigned char *)p)[n - 1] == 0xa5);
		o_free(p);
		CHECK(errno == 4711);
	}
	p = same_errno(o_calloc(13, 17));
	for (int i = 0; i < 13 * 17; i++)
		CHECK(((char *)p)[i] == 0);
	q = same_errno(o_reallocarray(p, 100, 33));
	q = same_errno(o_reallocarray(q, 100, 34000));
	o_free(q);
	p = same_errno(o_realloc(NULL, 55));
	o_free(p);
	p = same_errno(o_reallocarray(NULL, 5, 11));
	p = o_realloc(p, 0); /* releases, returns NULL */
	CHECK(p == NULL);
	p = o_malloc(0);
	CHECK(p != NULL);
	o_free(p);
	p = realloc(NULL, 0); /* a block of no bytes */
	CHECK(p != NULL);
	oracle_put(O_ALLOC, o_int(p), 0, API_REALLOC, 0);
	o_free(p);
	o_free(NULL);
	p = o_calloc(0, 12);
	o_free(p);
	errno = 4711;
	for (size_t align = 16; align <= 65536; align *= 2) {
		void *r = NULL;

		p = same_errno(o_aligned_alloc(align, align * 3));
		CHECK(o_int(p) % align == 0);
		q = same_errno(o_memalign(align, 100));
		CHECK(o_int(q) % align == 0);
		CHECK(o_posix_memalign(&r, align, 777) == 0 && o_int(r) % align == 0);
		CHECK(errno == 4711);
		o_free(p);
		r = o_realloc(r, 1234);
		o_free(r);
		o_free(q);
	}
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	p = o_got(valloc(100), 100, API_ALIGNED, page);
	CHECK(o_int(p) % page == 0);
	o_free(p);
	p = o_got(pvalloc(100), 100, API_ALIGNED, page);
	CHECK(malloc_usable_size(p) >= page);
	o_free(p);
	for (size_t n = 1000; n < 300u << 20; n *= 3)
		o_free(o_malloc(n));
}

/* p survives a call that failed, with its contents */
static void kept(char *p, void *result)
{
	CHECK(result == NULL && errno == ENOMEM);
	CHECK(p[99] == 'x');
	errno = 0;
}

static void failures(void)
{
	const volatile size_t huge = (size_t)PTRDIFF_MAX - 65536, over = SIZE_MAX / 2 + 2;
	void *r = (void *)0x123;

	CHECK(!o_malloc(huge) && errno == ENOMEM);
	CHECK(!o_malloc(SIZE_MAX) && errno == ENOMEM);
	errno = 0;
	CHECK(!o_calloc(1, huge) && errno == ENOMEM);
	CHECK(!o_aligned_alloc(64, huge) && errno == ENOMEM);
	CHECK(!o_memalign(4096, huge) && errno == ENOMEM);
	CHECK(o_posix_memalign(&r, 64, huge) == ENOMEM && r == (void *)0x123);
	/* not out of memory: a wrong argument */
	CHECK(o_posix_memalign(&r, 3, 100) == EINVAL && r == (void *)0x123);
	CHECK(o_posix_memalign(&r, 0, 100) == EINVAL);
	char *p = o_malloc(100);
	p[99] = 'x';
	kept(p, o_realloc(p, huge));
	kept(p, o_reallocarray(p, over, 2));
	kept(p, o_reallocarray(p, huge / 16, 16));
	CHECK(!o_reallocarray(NULL, over, 3) && errno == ENOMEM);
	p = o_realloc(p, 5000);
	CHECK(p[99] == 'x');
	o_free(p);
}

/* free() keeps errno, whatever the unmapping inside does. */
static void free_errno(void)
{
	void *p = o_malloc(64 << 20);

	errno = 4711;
	o_free(p);
	CHECK(errno == 4711);
	o_free(NULL);
	CHECK(errno == 4711);
}

/* RLIMIT_AS ends the memory: prints how many MiB there were. */
static int blocks;
static void exhaust(void)
{
	struct rlimit l = {400u << 20, 400u << 20};
	static void *got[4096];
	int n = 0;

	CHECK(setrlimit(RLIMIT_AS, &l) == 0);
	while (n < 4096 && (got[n] = o_malloc(1 << 20)))
		n++;
	CHECK(errno == ENOMEM);
	blocks = n;
	CHECK(!o_malloc(5 << 20) && errno == ENOMEM);
	CHECK(!o_realloc(NULL, 6 << 20));
	void *m = o_mmap(NULL, 256 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m == MAP_FAILED && errno == ENOMEM);
	for (int i = 0; i < n; i++)
		o_free(got[i]);
	void *p = o_malloc(5 << 20);
	CHECK(p);
	o_free(p);
}

/* The product wraps to a small number: must fail, and be recorded. */
static void overflow(void)
{
	volatile size_t n = SIZE_MAX / 2 + 9;
	void *volatile p = calloc(n, 2);

	CHECK(!p && errno == ENOMEM);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	oracle_open();
	oracle_begin();
	if (!strcmp(what, "successes"))
		successes();
	else if (!strcmp(what, "failures"))
		failures();
	else if (!strcmp(what, "free-errno"))
		free_errno();
	else if (!strcmp(what, "exhaust"))
		exhaust();
	else if (!strcmp(what, "overflow"))
		overflow();
	else
		return 96;
	oracle_end();
	printf("%d\n", blocks);
	return 0;
}

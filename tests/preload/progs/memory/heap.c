/*
 * heap.c - a heap with many holes; then a call of malloc fails: in main, in a signal handler, in
 * the child of a fork. Prints the allocator's own account at that moment. Or the heap grows, and
 * the program kills itself.
 *
 * 	heap account|handler|fork|grow
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 20000

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
extern int MallocExtension_GetNumericProperty(const char *, size_t *) __attribute__((weak));

static void *blocks[BLOCKS], *large[4], *volatile kept;

static size_t stat_of(const char *name)
{
	size_t value = 0, bytes = sizeof(value);

	mallctl(name, &value, &bytes, NULL, 0);
	return value;
}

static void print_account(void)
{
	char text[200];
	int n;

	if (mallctl) {
		uint64_t epoch = 1;
		size_t bytes = sizeof(epoch), held, used;

		mallctl("epoch", &epoch, &bytes, &epoch, sizeof(epoch));
		held = stat_of("stats.mapped") + stat_of("stats.retained");
		used = stat_of("stats.allocated") + stat_of("stats.metadata");
		n = snprintf(text, sizeof(text), "%zu 0 %zu %zu\n", held, used, held - used);
	} else if (MallocExtension_GetNumericProperty) {
		size_t held = 0, used = 0;

		MallocExtension_GetNumericProperty("generic.heap_size", &held);
		MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &used);
		n = snprintf(text, sizeof(text), "%zu 0 %zu %zu\n", held, used, held - used);
	} else {
		struct mallinfo2 m = mallinfo2();

		n = snprintf(text, sizeof(text), "%zu %zu %zu %zu\n", m.arena, m.hblkhd, m.uordblks,
		    m.fordblks);
	}
	write(1, text, (size_t)n);
}

static void limit(void)
{
	unsigned long pages = 0;
	struct rlimit l;
	char text[64] = "";
	FILE *f = fopen("/proc/self/statm", "r");

	fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	sscanf(text, "%lu", &pages);
	l.rlim_cur = l.rlim_max = pages * (size_t)getpagesize() + (1 << 20);
	setrlimit(RLIMIT_AS, &l);
}

static void fail(void)
{
	kept = malloc(1ul << 30);
	if (kept || errno != ENOMEM)
		_exit(3);
}

static void handler(int number)
{
	fail();
}

/* 48 MiB in 1.2 s, every second block released at once. */
static void grow(void)
{
	struct timespec pause = {.tv_nsec = 25000000};

	for (int i = 0; i < 48; i++) {
		for (int k = 0; k < 1024; k++) {
			void *hole = malloc(1000);

			memset(kept = malloc(1000), 1, 1000);
			memset(hole, 1, 1000);
			free(hole);
		}
		nanosleep(&pause, NULL);
	}
	kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	for (int i = 0; i < BLOCKS; i++)
		memset(blocks[i] = malloc(1000), 1, 1000);
	for (int i = 0; i < 4; i++)
		memset(large[i] = malloc(3 << 20), 1, 3 << 20);
	for (int i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
	if (!strcmp(what, "grow"))
		grow();
	limit();
	if (!strcmp(what, "handler")) {
		signal(SIGUSR1, handler);
		raise(SIGUSR1);
	} else if (!strcmp(what, "fork")) {
		if (!fork()) {
			fail();
			_exit(0);
		}
		wait(NULL);
	}
	fail();
	print_account();
	return 0;
}

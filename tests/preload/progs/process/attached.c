/*
 * attached.c - starts without the library, works in threads, opens it by dlopen and calls
 * whyoom_attach() itself; counts what it asks of malloc from then on.
 *
 *	attached LIBRARY SETTINGS THREADS WHAT [ARGUMENT]
 *
 * WHAT: load; rounds (attach and detach ten times); fork; exec; failed-exec; plugin; before.
 *Settings are separated by blanks. Prints "counted ALLOCATIONS BYTES" and other facts on stdout.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 64
#define KEPT 64

static int (*attach)(const char *, size_t);
static int (*detach)(void);
static char settings[4096];
static size_t settings_bytes;
static const char *library;

static struct {
	_Alignas(64) atomic_ulong calls, bytes;
} counts[THREADS_MAX];
static atomic_bool counting, stop;
static int threads;

/* A table of pointers in data, as CPython's allocators are. */
static struct {
	void *(*allocate)(size_t);
	void (*release)(void *);
} table = {malloc, free};

static void *work(void *argument)
{
	unsigned me = (unsigned)(uintptr_t)argument, random = me * 2654435761u + 1;
	void *kept[KEPT] = {0};

	while (!stop) {
		unsigned i = (random = random * 1103515245u + 12345) >> 16 & (KEPT - 1);
		size_t size = 16 + (random >> 8 & 1023);
		bool now = counting;

		if (random & 1 << 28) {
			table.release(kept[i]);
			kept[i] = table.allocate(size);
		} else {
			kept[i] = realloc(kept[i], size);
		}
		memset(kept[i], 1, size);
		if (now && counting) {
			counts[me].calls++;
			counts[me].bytes += size;
		}
		if (!(random >> 20 & 63))
			usleep(100);
	}
	for (int i = 0; i < KEPT; i++)
		free(kept[i]);
	return NULL;
}

static void open_library(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	attach = (int (*)(const char *, size_t))dlsym(handle, "whyoom_attach");
	detach = (int (*)(void))dlsym(handle, "whyoom_detach");
}

static void begin(void)
{
	int rc = attach(settings, settings_bytes);

	if (rc) {
		printf("attach %d %s\n", rc, strerror(-rc));
		fflush(stdout);
		_exit(3);
	}
}

static void end(void)
{
	int rc = detach();

	if (rc)
		printf("detach %d %s\n", rc, strerror(-rc));
}

static void show_counts(void)
{
	unsigned long calls = 0, bytes = 0;

	for (int i = 0; i < THREADS_MAX; i++) {
		calls += atomic_exchange(&counts[i].calls, 0);
		bytes += atomic_exchange(&counts[i].bytes, 0);
	}
	printf("counted %lu %lu\n", calls, bytes);
	fflush(stdout);
}

static void load_for(unsigned us)
{
	counting = true;
	usleep(us);
	counting = false;
}

/* Blocks from before: 100 of 1000 bytes freed, one of 5000 reallocated to 77777, one realloc
 * refused. */
static void before(void **blocks, void *grown, void *refused)
{
	size_t usable = malloc_usable_size(grown) + malloc_usable_size(refused);
	void *p;

	for (int i = 0; i < 100; i++) {
		usable += malloc_usable_size(blocks[i]);
		free(blocks[i]);
	}
	p = realloc(grown, 77777);
	if (realloc(refused, SIZE_MAX / 2))
		abort();
	printf("before %zu\n", usable);
	free(p);
	free(refused);
}

static void usurp(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW);

	((void (*)(void))dlsym(handle, "plugin_usurp"))();
}

static void plugin(const char *path)
{
	void *(*get)(size_t), *handle = dlopen(path, RTLD_NOW);
	void *p;

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	get = (void *(*)(size_t))dlsym(handle, "plugin_work");
	p = get(424242);
	printf("plugin %p\n", p);
}

int main(int argc, char **argv)
{
	pthread_t ids[THREADS_MAX];
	void *blocks[100], *grown = malloc(5000), *refused = malloc(6000);
	const char *what;

	if (argc < 5)
		return 2;
	library = argv[1];
	threads = atoi(argv[3]);
	what = argv[4];
	for (char *s = strtok(argv[2], " "); s; s = strtok(NULL, " ")) {
		memcpy(settings + settings_bytes, s, strlen(s) + 1);
		settings_bytes += strlen(s) + 1;
	}
	for (int i = 0; i < 100; i++)
		memset(blocks[i] = malloc(1000), 1, 1000);
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i);
	usleep(100000);
	if (!strcmp(what, "usurp"))
		usurp(argv[5]);
	open_library();
	printf("pid %d\n", getpid());
	fflush(stdout);
	if (!strcmp(what, "idle")) {
		usleep(200000);
	} else if (!strcmp(what, "rounds")) {
		for (int i = 0; i < 10; i++) {
			begin();
			load_for(100000);
			end();
			show_counts();
			usleep(20000);
		}
	} else {
		begin();
		if (threads)
			load_for(500000);
		show_counts();
		if (!strcmp(what, "before"))
			before(blocks, grown, refused);
		if (!strcmp(what, "plugin"))
			plugin(argv[5]);
		if (!strcmp(what, "fork")) {
			pid_t child = fork();

			if (!child) {
				void *p = malloc(333333);

				memset(p, 1, 333333);
				printf("child %d %p\n", getpid(), p);
				fflush(stdout);
				free(blocks[5]);
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
		if (!strcmp(what, "failed-exec"))
			execl("/nonexistent/program", "program", (char *)NULL);
		if (!strcmp(what, "exec"))
			execl("/bin/true", "true", (char *)NULL);
		if (!strcmp(what, "detach"))
			end();
	}
	stop = true;
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

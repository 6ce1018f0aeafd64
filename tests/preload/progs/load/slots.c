/*
 * slots.c - loads libraries whose calls of another allocator only their slots show, and has each
 * ask for the given number of bytes:
 *
 *   slots modes            7001 ... 7004: RTLD_LAZY, RTLD_NOW, RTLD_GLOBAL, writable slots
 *   slots again ROUNDS     7011 and 7012: two in turn, at the same address
 *   slots unseen           7021 and 7022: before and after the C library itself unloads it and
 *                          loads it again; prints whether the address is the same
 *   slots two              7051 and 7052: of two allocators with the same names; prints the number
 *                          of calls of each
 *   slots constructor      7031 and 7032: from another's constructor, and that other one
 *   slots threads ROUNDS   7041: while other threads load large ones, which ask for 7042 and 7043;
 *                          prints how often these were loaded
 *   slots beside BIG N DIR loads BIG ("-": nothing), then DIR/1 to DIR/N; prints the CPU time that
 *                          these took (ns)
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char directory[3500];

static void *load(const char *name, int mode)
{
	char path[4096];
	void *handle;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	handle = dlopen(path, mode);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return handle;
}

static void *use(void *handle, size_t size)
{
	void (*take)(size_t) = (void (*)(size_t))dlsym(handle, "take");

	if (!take)
		exit(3);
	take(size);
	return handle;
}

static void try_modes(void)
{
	dlclose(use(load("libslots_a.so", RTLD_LAZY), 7001));
	dlclose(use(load("libslots_a.so", RTLD_NOW), 7002));
	use(load("libslots_b.so", RTLD_LAZY | RTLD_GLOBAL), 7003);
	use(load("libslots_open.so", RTLD_LAZY), 7004);
}

static void try_again(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		dlclose(use(load("libslots_a.so", RTLD_LAZY), 7011));
		dlclose(use(load("libslots_b.so", RTLD_LAZY), 7012));
	}
}

static void *of_libc(const char *name)
{
	void *function = NULL, *libc = dlopen("libc.so.6", RTLD_NOW);
	void *libdl = dlopen("libdl.so.2", RTLD_NOW); /* of older ones */

	if (libc)
		function = dlsym(libc, name);
	return function || !libdl ? function : dlsym(libdl, name);
}

static int try_unseen(void)
{
	void *(*open)(const char *, int) = (void *(*)(const char *, int))of_libc("dlopen");
	int (*close)(void *) = (int (*)(void *))of_libc("dlclose");
	void *handle = use(load("libslots_a.so", RTLD_LAZY), 7021);
	ElfW(Addr) before = ((struct link_map *)handle)->l_addr;
	char path[4096];

	if (!open || !close)
		return 4;
	snprintf(path, sizeof path, "%s/libslots_a.so", directory);
	close(handle);
	handle = open(path, RTLD_LAZY);
	load("libslots_b.so", RTLD_LAZY);
	use(handle, 7022);
	printf("%d\n", ((struct link_map *)handle)->l_addr == before);
	return 0;
}

struct large {
	const char *name;
	size_t size;
	int times;
};

static void try_two(void)
{
	void *one = use(load("libslots_a.so", RTLD_LAZY), 7051);
	void *other = use(use(load("libslots_other.so", RTLD_LAZY), 7052), 7052);

	printf("%d %d\n", *(int *)dlsym(one, "slots_calls"), *(int *)dlsym(other, "slots_calls"));
}

static int done;

static void *load_large(void *arg)
{
	struct large *l = arg;

	for (; !l->times || !__atomic_load_n(&done, __ATOMIC_RELAXED); l->times++)
		dlclose(use(load(l->name, RTLD_NOW), l->size));
	return NULL;
}

static void try_threads(int rounds)
{
	struct large large[2] = {{"libmany.so", 7042, 0}, {"libmany_open.so", 7043, 0}};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, load_large, &large[i]);
	for (int i = 0; i < rounds; i++)
		dlclose(use(load("libslots_a.so", RTLD_LAZY), 7041));
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d %d\n", large[0].times, large[1].times);
}

static int beside(const char *big, int count, const char *where)
{
	struct timespec from, to;
	char path[4096];

	if (strcmp(big, "-") != 0 && !dlopen(big, RTLD_LAZY))
		return 2;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (int i = 1; i <= count; i++) {
		snprintf(path, sizeof path, "%s/%d", where, i);
		if (!dlopen(path, RTLD_LAZY))
			return 2;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *slash = strrchr(argv[0], '/');

	snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - argv[0]) : 0, argv[0]);
	for (int i = 0; i < 200; i++) /* enough for a trace that is kept */
		free(malloc(1000));
	if (!strcmp(what, "modes"))
		try_modes();
	else if (!strcmp(what, "again") && argc == 3)
		try_again(atoi(argv[2]));
	else if (!strcmp(what, "unseen"))
		return try_unseen();
	else if (!strcmp(what, "two"))
		try_two();
	else if (!strcmp(what, "constructor"))
		use(load("libslots_outer.so", RTLD_LAZY), 7032);
	else if (!strcmp(what, "threads") && argc == 3)
		try_threads(atoi(argv[2]));
	else if (!strcmp(what, "beside") && argc == 5)
		return beside(argv[2], atoi(argv[3]), argv[4]);
	else
		return 1;
	return 0;
}

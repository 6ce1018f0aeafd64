/*
 * plugins.c - loads and unloads two libraries in turn, which allocate 5001 and 5002 bytes.
 *
 *   plugins ROUNDS          by path, RTLD_LOCAL
 *   plugins threads ROUNDS  the same, while three threads allocate 4001 bytes and a fourth loads
 *   plugins deep ROUNDS     with RTLD_DEEPBIND: the plugin acquires, the program releases (5001,
 *                           5002), and the other way round (6001)
 *   plugins names           by name, through the program's RUNPATH and then the plugin's own
 *   plugins errors          dlopen's message for a missing library
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int use(const char *path, size_t n)
{
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	void *(*work)(size_t) = (void *(*)(size_t))dlsym(h, "plugin_work");
	void *p = work ? work(n) : NULL;
	free(p);
	return dlclose(h) != 0 || !p;
}

static int use_deep(const char *path, int mode, size_t n)
{
	void *h = dlopen(path, mode | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	void *(*work)(size_t) = (void *(*)(size_t))dlsym(h, "plugin_work");
	void (*drop)(void *) = (void (*)(void *))dlsym(h, "plugin_drop");
	if (!work || !drop)
		return 1;
	free(work(n));
	drop(malloc(6001));
	return dlclose(h);
}

static _Atomic int done;
static char a[4096], b[4096];

__attribute__((noinline)) static void *allocate(void *arg)
{
	long n = 0;

	for (; !done || n < 1000; n++) {
		void *volatile p = malloc(4001);
		free(p);
	}
	return arg;
}

static void *load_too(void *arg)
{
	while (!done)
		if (use(b, 5002))
			exit(3);
	return arg;
}

static int with_threads(int rounds)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, i ? allocate : load_too, NULL) != 0)
			return 2;
	for (int i = rounds; i > 0; i--)
		if (use(a, 5001))
			return 1;
	done = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *slash = strrchr(argv[0], '/');
	int dir = slash ? (int)(slash - argv[0]) : 0;

	if (!strcmp(what, "names")) {
		for (int i = 0; i < 200; i++) /* enough for a trace that is kept */
			free(malloc(1000));
		return use("libplugin_outer.so", 5003);
	}
	if (!strcmp(what, "errors")) {
		printf("%d ", dlopen("libdoesnotexist.so", RTLD_NOW) == NULL);
		printf("%s\n", dlerror());
		printf("%d\n", dlerror() == NULL);
		printf("%d\n", dlopen(NULL, RTLD_NOW) != NULL);
		printf("%d\n", dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD) != NULL);
		printf("%d\n", dlsym(RTLD_DEFAULT, "no_such_thing") == NULL);
		printf("%d\n", strstr(dlerror(), "no_such_thing") != NULL);
		return 0;
	}
	snprintf(a, sizeof a, "%.*s/libplugin_a.so", dir, argv[0]);
	snprintf(b, sizeof b, "%.*s/libplugin_b.so", dir, argv[0]);
	if (!strcmp(what, "threads"))
		return with_threads(argc > 2 ? atoi(argv[2]) : 1);
	if (!strcmp(what, "deep")) {
		for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--)
			if (use_deep(a, RTLD_NOW, 5001) || use_deep(b, RTLD_LAZY, 5002))
				return 1;
		return 0;
	}
	for (int i = atoi(what); i > 0; i--)
		if (use(a, 5001) || use(b, 5002))
			return 1;
	return 0;
}

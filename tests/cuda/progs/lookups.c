/*
 * lookups.c - looks functions up in every way: `lookups CASE`. Not linked with CUDA.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/cuda_abi.h"

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

typedef gpu_result alloc_function(gpu_ptr *, size_t);
typedef gpu_result async_function(gpu_ptr *, size_t, gpu_stream);

static void *open_driver(const char *name, int scope)
{
	void *handle = dlopen(name, RTLD_NOW | scope);
	gpu_result (*init)(unsigned);
	gpu_result (*set)(gpu_context);

	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	init = (gpu_result(*)(unsigned))dlsym(handle, "cuInit");
	set = (gpu_result(*)(gpu_context))dlsym(handle, "cuCtxSetCurrent");
	CHECK(init && set && !init(0) && !set((gpu_context)(uintptr_t)0xc0de));
	return handle;
}

static void *driver(void)
{
	return open_driver("libcuda.so.1", RTLD_LOCAL);
}

static bool in_driver(void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) && strstr(info.dli_fname, "libcuda.so");
}

static void take(void *function, size_t size)
{
	gpu_ptr p;

	CHECK(function && !((alloc_function *)function)(&p, size));
}

static void by_dlsym(void)
{
	void *handle = driver(), *again;

	errno = 4242;
	take(dlsym(handle, "cuMemAlloc_v2"), 1001);
	again = dlsym(handle, "cuMemAlloc_v2");
	CHECK(again == dlsym(handle, "cuMemAlloc_v2") && errno == 4242);
	take(again, 2002);
	CHECK(!dlsym(handle, "cuMemAlloc_v9")); /* an error that nobody has read yet */
	CHECK(strstr(dlerror(), "cuMemAlloc_v9") && !dlerror());
	CHECK(!dlsym(handle, "cuMemAlloc_v9") && dlsym(handle, "cuMemFree_v2") && !dlerror());
	CHECK(!dlvsym(handle, "cuMemAlloc_v2", "NO_SUCH") && dlerror() && !dlerror());
}

/* A driver whose symbols have versions. */
static void by_dlvsym(void)
{
	void *handle = open_driver("libcuda.so.535.0", RTLD_LOCAL);

	take(dlvsym(handle, "cuMemAlloc_v2", "STAND_1"), 1001);
	CHECK(!dlvsym(handle, "cuMemAlloc_v2", "STAND_2"));
	CHECK(strstr(dlerror(), "STAND_2") && !dlerror());
}

/* By the global scope, once the driver was loaded into it. */
static void by_default(void)
{
	void *handle = driver(), *function;

	CHECK(!dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	printf("%s\n", dlerror());
	open_driver("libcuda.so.1", RTLD_GLOBAL);
	errno = 4242;
	CHECK(!dlsym(handle, "cuMemAlloc_v9")); /* an error that nobody has read yet */
	function = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	CHECK(!dlerror() && errno == 4242);
	take(function, 1001);
	CHECK(function == dlsym(handle, "cuMemAlloc_v2"));
	CHECK(in_driver(dlsym(RTLD_DEFAULT, "cuGetExportTable")));
	CHECK(!dlsym(RTLD_DEFAULT, "cuMemAlloc_v9") && strstr(dlerror(), "cuMemAlloc_v9"));
	/* only the real dlsym knows the caller's "next" */
	CHECK(in_driver(dlsym(RTLD_NEXT, "cuMemAlloc_v2")) && !dlerror());
}

typedef gpu_result get4(const char *, void **, int, uint64_t);
typedef gpu_result get5(const char *, void **, int, uint64_t, int *);

static void by_lookup(void)
{
	void *handle = driver(), *plain, *twin, *other, *export;
	get4 *four = (get4 *)dlsym(handle, "cuGetProcAddress"), *four_again;
	get5 *five = (get5 *)dlsym(handle, "cuGetProcAddress_v2"), *five_again;
	get5 *per_thread = (get5 *)dlsym(handle, "cuGetProcAddress_v2_ptsz");
	get4 *per_thread4 = (get4 *)dlsym(handle, "cuGetProcAddress_ptsz");
	gpu_result (*advise)(gpu_ptr, size_t, int, gpu_device);
	gpu_result (*advise2)(gpu_ptr, size_t, int, struct gpu_location);
	gpu_result (*advise9)(gpu_ptr, size_t, int, struct gpu_location, uint64_t, uint64_t);
	int status = 77;
	gpu_ptr p;

	CHECK(!four("cuMemAlloc", &plain, 11030, 0));
	take(plain, 1001);
	CHECK(!five("cuMemAlloc", &plain, 12000, 1, &status) && status == 0);
	take(plain, 1002);
	CHECK(!five("cuMemAlloc", &plain, 12000, 0, NULL));
	take(plain, 1003);
	/* looks itself up: four arguments up to 11.x, five from 12 on */
	CHECK(!five("cuGetProcAddress", (void **)&five_again, 12000, 0, NULL));
	CHECK(!five_again("cuMemAlloc", &plain, 12000, 0, &status));
	take(plain, 1004);
	CHECK(!five("cuGetProcAddress", (void **)&four_again, 11030, 0, NULL));
	CHECK(!four_again("cuMemAlloc", &plain, 11030, 0));
	take(plain, 1005);
	/* the flags and the twins */
	CHECK(!five("cuMemAllocAsync", &plain, 12000, 0, NULL) &&
	      !five("cuMemAllocAsync", &twin, 12000, 2, NULL) && plain != twin);
	CHECK(!((async_function *)plain)(&p, 1006, NULL) &&
	      !((async_function *)twin)(&p, 1007, NULL));
	CHECK(!per_thread("cuMemAllocAsync", &other, 12000, 0, NULL) && other == twin);
	CHECK(!per_thread("cuMemAllocAsync", &other, 12000, 1, NULL) && other == plain);
	CHECK(!((async_function *)other)(&p, 1008, NULL));
	CHECK(!four("cuMemAllocAsync", &other, 11030, 0) && other == plain);
	CHECK(!four("cuMemAllocAsync", &other, 11030, 1) && other == plain);
	CHECK(!four("cuMemAllocAsync", &other, 11030, 2) && other == twin);
	CHECK(!per_thread4("cuMemAllocAsync", &other, 11030, 0) && other == twin);
	CHECK(!per_thread4("cuMemAllocAsync", &other, 11030, 1) && other == plain);
	/* two prototypes of one name: the version decides */
	CHECK(!five("cuMemAdvise", (void **)&advise, 11000, 0, NULL) && !advise(4096, 1, 2, 1));
	CHECK(!five("cuMemAdvise", (void **)&advise2, 12020, 0, NULL) &&
	      !advise2(4096, 1, 2, (struct gpu_location){1, 1}));
	/* future versions: wraps only functions that are certain to be the same */
	CHECK(!five("cuMemAdvise", (void **)&advise9, 99000, 0, NULL) && in_driver(advise9) &&
	      !advise9(4096, 1, 2, (struct gpu_location){1, 1}, 5, 6));
	CHECK(!five("cuMemCreate", &plain, 99000, 0, NULL) && !in_driver(plain));
	/* the 32-bit function, which has no wrapper */
	CHECK(!five("cuMemAlloc", &plain, 2000, 0, NULL) && plain == dlsym(handle, "cuMemAlloc"));
	/* missing functions, and functions without a wrapper */
	CHECK(
	    five("cuNoSuch", &plain, 12000, 0, &status) == GPU_ERROR_NOT_FOUND && !plain && status);
	CHECK(five(NULL, &plain, 12000, 0, NULL) && five("cuMemAlloc", NULL, 12000, 0, NULL));
	CHECK(!five("", &plain, 0, 0, NULL) && !plain);
	export = dlsym(handle, "cuGetExportTable");
	CHECK(!five("cuGetExportTable", &plain, 12000, 0, NULL) && plain == export);
	CHECK(in_driver(export));
}

/* Without CUDA, results are as without us. */
static void absent(void)
{
	static const char *const names[] = {
	    "cuInit", "cuMemAlloc_v2", "cudaMalloc", "cuGetProcAddress_v2", "cuMemCreate"};
	void *plain = dlopen(getenv("PLAIN"), RTLD_NOW);
	int (*weak)(void);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CHECK(!dlsym(RTLD_DEFAULT, names[i]));
		printf("%s\n", dlerror());
		CHECK(!dlsym(RTLD_NEXT, names[i]));
		printf("%s\n", dlerror());
		CHECK(!dlsym(dlopen(NULL, RTLD_NOW), names[i]));
		printf("%s\n", dlerror());
	}
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW));
	printf("%s\n", dlerror());
	CHECK(plain && (weak = (int (*)(void))dlsym(plain, "weak_names")) && weak() == 0);
	CHECK(dlsym(RTLD_DEFAULT, "malloc") && dlsym(RTLD_NEXT, "strlen") &&
	      dlvsym(RTLD_DEFAULT, "strlen", "GLIBC_2.2.5"
#if defined(__aarch64__)
		  ) == NULL);
#else
		  ));
#endif
}

static int use_plugin(const char *name, int mode)
{
	void *handle = dlopen(name, mode);
	int (*use)(void);

	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	use = (int (*)(void))dlsym(handle, "use");
	CHECK(use);
	return use();
}

static void plugins(char **names, int mode)
{
	for (; *names; names++)
		printf("runtime %d\n", use_plugin(*names, mode));
}

/* UCX and CUPTI look functions up to patch them or to bypass other tools: `fetch` is in a library
 * of such a name. */
static void excluded(const char *library)
{
	void *handle = driver(), *plugin = dlopen(library, RTLD_NOW), *function;
	void *(*fetch)(void *, const char *);

	CHECK(plugin);
	fetch = (void *(*)(void *, const char *))dlsym(plugin, "fetch");
	CHECK(fetch);
	function = fetch(handle, "cuMemAlloc_v2");
	CHECK(in_driver(function));
	CHECK(!in_driver(dlsym(handle, "cuMemAlloc_v2")) || !getenv("WHYOOM_DIR"));
	open_driver("libcuda.so.1", RTLD_GLOBAL);
	CHECK(in_driver(fetch(RTLD_DEFAULT, "cuMemAlloc_v2")));
	take(function, 1001);
}

/* The driver itself. */
static void own(void)
{
	void *handle = driver();
	void *(*fetch)(const char *) = (void *(*)(const char *))dlsym(handle, "stand_own");

	CHECK(fetch && in_driver(fetch("cuMemAlloc_v2")));
	take(fetch("cuMemAlloc_v2"), 1001);
}

/* A function of such a name outside libcuda. */
static void foreign(const char *library)
{
	void *plugin = dlopen(library, RTLD_NOW | RTLD_GLOBAL), *handle = driver();
	gpu_result (*function)(gpu_ptr *, size_t, unsigned) =
	    (gpu_result(*)(gpu_ptr *, size_t, unsigned))dlsym(plugin, "cuMemAllocManaged");
	gpu_ptr p;

	open_driver("libcuda.so.1", RTLD_GLOBAL);
	CHECK(function && function(&p, 1001, 0) == 4242);
	CHECK(dlsym(RTLD_DEFAULT, "cuMemAllocManaged") == (void *)function);
	CHECK(dlsym(handle, "cuMemAllocManaged") != (void *)function);
	take(dlsym(handle, "cuMemAlloc_v2"), 1002);
}

/* RTLD_DEFAULT of a library that was loaded with RTLD_DEEPBIND: its own scope comes first. */
static void own_scope(const char *library)
{
	void *handle = open_driver("libcuda.so.1", RTLD_GLOBAL);
	void *plugin = dlopen(library, RTLD_NOW | RTLD_DEEPBIND);
	void *(*fetch)(void *, const char *);

	CHECK(plugin);
	fetch = (void *(*)(void *, const char *))dlsym(plugin, "fetch");
	CHECK(fetch(RTLD_DEFAULT, "cuMemAllocManaged") == dlsym(plugin, "cuMemAllocManaged"));
	take(fetch(handle, "cuMemAlloc_v2"), 1001);
}

static volatile bool ended;

static void *allocate(void *unused)
{
	while (!ended) {
		void *volatile p = malloc(100);

		free(p);
	}
	return NULL;
}

/* Another thread allocates, so that modules are visited ten times a second, in whatever state;
 * dlopen by name, so that the shim does not wait for it. */
static void loading(const char *name)
{
	time_t end = time(NULL) + 3;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, allocate, NULL));
	while (time(NULL) < end) {
		void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

		CHECK(handle && !dlclose(handle));
	}
	ended = true;
	CHECK(!pthread_join(thread, NULL));
}

/* A real runtime refuses the stand-in, after it has looked up all its functions. */
static void real_runtime(const char *path, const char *function)
{
	void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL), *p;
	gpu_result (*start)(void **, size_t);
	char *volatile much = malloc(1 << 20); /* a trace that is worth keeping */

	if (!runtime)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(runtime && much);
	start = (gpu_result(*)(void **, size_t))dlsym(runtime, function);
	CHECK(start);
	printf("%d\n", start(&p, 4096));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"dlsym", by_dlsym}, {"dlvsym", by_dlvsym}, {"default", by_default},
	    {"lookup", by_lookup}, {"absent", absent}, {"own", own}};

	if (argc < 2)
		return 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(), 0;
	if (!strcmp(argv[1], "plugins"))
		plugins(argv + 2, RTLD_NOW | RTLD_LOCAL);
	else if (!strcmp(argv[1], "deepbind"))
		plugins(argv + 2, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	else if (!strcmp(argv[1], "deepbind-lazy"))
		plugins(argv + 2, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
	else if (!strcmp(argv[1], "real"))
		real_runtime(argv[2], argv[3]);
	else if (!strcmp(argv[1], "loading"))
		loading(argv[2]);
	else if (!strcmp(argv[1], "foreign"))
		foreign(argv[2]);
	else if (!strcmp(argv[1], "own-scope"))
		own_scope(argv[2]);
	else if (!strcmp(argv[1], "excluded"))
		excluded(argv[2]);
	else
		return 2;
	return 0;
}

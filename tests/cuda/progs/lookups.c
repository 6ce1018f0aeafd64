/*
 * lookups.c - fetches functions in every way there is: `lookups CASE`. Not linked with CUDA.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_abi.h"

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

typedef gpu_result alloc_function(gpu_ptr *, size_t);
typedef gpu_result async_function(gpu_ptr *, size_t, gpu_stream);

static void *driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
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

typedef gpu_result get4(const char *, void **, int, uint64_t);
typedef gpu_result get5(const char *, void **, int, uint64_t, int *);

static void by_lookup(void)
{
	void *handle = driver(), *plain, *twin, *other, *export;
	get4 *four = (get4 *)dlsym(handle, "cuGetProcAddress"), *four_again;
	get5 *five = (get5 *)dlsym(handle, "cuGetProcAddress_v2"), *five_again;
	get5 *per_thread = (get5 *)dlsym(handle, "cuGetProcAddress_v2_ptsz");
	gpu_result (*advise)(gpu_ptr, size_t, int, gpu_device);
	gpu_result (*advise2)(gpu_ptr, size_t, int, struct gpu_location);
	int status = 77;
	gpu_ptr p;

	CHECK(!four("cuMemAlloc", &plain, 11030, 0));
	take(plain, 1001);
	CHECK(!five("cuMemAlloc", &plain, 12000, 1, &status) && status == 0);
	take(plain, 1002);
	CHECK(!five("cuMemAlloc", &plain, 12000, 0, NULL));
	take(plain, 1003);
	/* asked for itself: four arguments up to 11.x, five from 12 on */
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
	/* two shapes of one name: the version says which */
	CHECK(!five("cuMemAdvise", (void **)&advise, 11000, 0, NULL) && !advise(4096, 1, 2, 1));
	CHECK(!five("cuMemAdvise", (void **)&advise2, 12020, 0, NULL) &&
	      !advise2(4096, 1, 2, (struct gpu_location){1, 1}));
	/* one of 32 bits, which is none of ours */
	CHECK(!five("cuMemAlloc", &plain, 2000, 0, NULL) && plain == dlsym(handle, "cuMemAlloc"));
	/* what is not there, and what is to be left alone */
	CHECK(
	    five("cuNoSuch", &plain, 12000, 0, &status) == GPU_ERROR_NOT_FOUND && !plain && status);
	CHECK(five(NULL, &plain, 12000, 0, NULL) && five("cuMemAlloc", NULL, 12000, 0, NULL));
	CHECK(!five("", &plain, 0, 0, NULL) && !plain);
	export = dlsym(handle, "cuGetExportTable");
	CHECK(!five("cuGetExportTable", &plain, 12000, 0, NULL) && plain == export);
}

/* Nothing of CUDA is there: answers are as they would be without us. */
static void absent(void)
{
	static const char *const names[] = {
	    "cuInit", "cuMemAlloc_v2", "cudaMalloc", "cuGetProcAddress_v2", "cuMemCreate"};

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
	CHECK(dlsym(RTLD_DEFAULT, "malloc") && dlsym(RTLD_NEXT, "strlen") &&
	      dlvsym(RTLD_DEFAULT, "strlen", "GLIBC_2.2.5"
#if defined(__aarch64__)
		  ) == NULL);
#else
		  ));
#endif
}

static int use_plugin(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	int (*use)(void);

	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	use = (int (*)(void))dlsym(handle, "use");
	CHECK(use);
	return use();
}

static void plugins(char **names)
{
	for (; *names; names++)
		printf("runtime %d\n", use_plugin(*names));
}

/* UCX and CUPTI look functions up to patch them, or to call past everybody: `fetch` is in a library
 * of such a name. */
static void excluded(const char *library)
{
	void *handle = driver(), *plugin = dlopen(library, RTLD_NOW);
	void *(*fetch)(void *, const char *);
	Dl_info info;

	CHECK(plugin);
	fetch = (void *(*)(void *, const char *))dlsym(plugin, "fetch");
	CHECK(fetch && dladdr(fetch(handle, "cuMemAlloc_v2"), &info));
	CHECK(strstr(info.dli_fname, "libcuda.so"));
	CHECK(!dladdr(dlsym(handle, "cuMemAlloc_v2"), &info) ||
	      !strstr(info.dli_fname, "libcuda.so") || !getenv("WHYOOM_DIR"));
	take(fetch(handle, "cuMemAlloc_v2"), 1001);
}

/* A real runtime refuses the stand-in, after it has asked for all that it wants. */
static void real_runtime(const char *path)
{
	void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL), *p;
	gpu_result (*take_some)(void **, size_t);
	char *volatile much = malloc(1 << 20); /* a trace that is worth keeping */

	if (!runtime)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(runtime && much);
	take_some = (gpu_result(*)(void **, size_t))dlsym(runtime, "cudaMalloc");
	CHECK(take_some);
	printf("%d\n", take_some(&p, 4096));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "dlsym"))
		by_dlsym();
	else if (!strcmp(argv[1], "lookup"))
		by_lookup();
	else if (!strcmp(argv[1], "absent"))
		absent();
	else if (!strcmp(argv[1], "plugins"))
		plugins(argv + 2);
	else if (!strcmp(argv[1], "real"))
		real_runtime(argv[2]);
	else if (!strcmp(argv[1], "excluded"))
		excluded(argv[2]);
	else
		return 2;
	return 0;
}

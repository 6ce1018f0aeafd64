/* Look-ups of entry points by name, version and kind of default stream. */
#include <dlfcn.h>

#include "check.h"

int cudaGetDeviceCount(int *count);

static void *look(const char *name, int version, uint64_t flags, int expect, int status_expect)
{
	void *out = (void *)1;
	int status = 99;

	SAME(cuGetProcAddress_v2(name, &out, version, flags, &status), expect);
	SAME(status, status_expect);
	SAME(cuGetProcAddress_v2(name, &out, version, flags, NULL), expect);
	return out;
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found, *runtime;
	int (*count)(int *), n = 0, status = 9;

	/* before cuInit, as a runtime does */
	CHECK(driver);
	CHECK(look("cuMemAlloc", 3020, 0, 0, 0) == dlsym(driver, "cuMemAlloc_v2"));
	CHECK(look("cuMemAlloc", 12000, 0, 0, 0) == dlsym(driver, "cuMemAlloc_v2"));
	CHECK(!look("cuMemAlloc", 2000, 0, 500, 2));
	CHECK(!look("cuNoSuchThing", 12000, 0, 500, 1));
	CHECK(!look("", 0, 0, 500, 1));
	CHECK(look("cuMemAllocAsync", 11020, 0, 0, 0) == dlsym(driver, "cuMemAllocAsync"));
	CHECK(look("cuMemAllocAsync", 11020, 2, 0, 0) == dlsym(driver, "cuMemAllocAsync_ptsz"));
	CHECK(look("cuMemAlloc", 12000, 2, 0, 0) == dlsym(driver, "cuMemAlloc_v2"));
	CHECK(look("cuCtxCreate", 11030, 0, 0, 0) == dlsym(driver, "cuCtxCreate_v2"));
	CHECK(look("cuCtxCreate", 12000, 0, 0, 0) == dlsym(driver, "cuCtxCreate_v3"));
	CHECK(look("cuCtxCreate", 13000, 0, 0, 0) == dlsym(driver, "cuCtxCreate_v4"));
	CHECK(look("cuGetProcAddress", 11030, 0, 0, 0) == dlsym(driver, "cuGetProcAddress"));
	CHECK(look("cuGetProcAddress", 12000, 0, 0, 0) == dlsym(driver, "cuGetProcAddress_v2"));
	SAME(cuGetProcAddress_v2("cuInit", &found, 12000, 9, NULL), 1);
	SAME(cuGetProcAddress_v2(NULL, &found, 12000, 0, NULL), 1);
	SAME(cuGetExportTable((const void **)&found, NULL), 500);

	/* functions without code exist and return "not supported" */
	CHECK(look("cuMulticastCreate", 12010, 0, 0, 0));
	SAME(cuMulticastCreate(NULL, NULL), 801);

	SAME(cudaGetDriverEntryPointByVersion("cuMemCreate", &found, 12000, 0, &status), 0);
	SAME(status, 0);
	CHECK(found == dlsym(driver, "cuMemCreate"));
	SAME(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &found, 12000, 0, &status), 0);
	SAME(status, 1);
	CHECK(!found);

	/* a runtime of any major version can be opened by its name */
	for (int major = 11; major <= 13; major++) {
		char name[32];

		snprintf(name, sizeof(name), "libcudart.so.%d%s", major, major == 11 ? ".0" : "");
		runtime = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		CHECK(runtime);
		count = runtime ? (int (*)(int *))dlsym(runtime, "cudaGetDeviceCount") : NULL;
		CHECK(count == cudaGetDeviceCount);
		n = 0;
		SAME(count ? count(&n) : -1, 0);
		SAME(n, 1);
	}
	CHECK(dlopen("libnvidia-ml.so.1", RTLD_NOW));
	CHECK(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD));
	/* other libraries are not touched, and errors are the loader's */
	CHECK(!dlopen("libno-such-thing.so.5", RTLD_NOW));
	CHECK(strstr(dlerror(), "libno-such-thing"));
	CHECK(dlopen(NULL, RTLD_NOW));
	return done();
}

/* share.c COMMAND - one of several processes on a machine. hold MIB: allocates and waits for the
 * end of its input. level: prints free memory. processes: prints the users of the first device from
 * NVML. devices: names and sizes. export MIB: like hold, and prints a handle; import HANDLE: prints
 * its size, free memory, and the first byte. */
#include <unistd.h>

#include "check.h"

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, void *out);

struct process {
	unsigned pid;
	unsigned long long bytes;
	unsigned instance, compute;
};

static void exporting(size_t size)
{
	struct gpu_ipc_handle handle;
	char byte = 7;
	gpu_ptr p;

	if (cuMemAlloc_v2(&p, size) || cuMemcpyHtoD_v2(p, &byte, 1) ||
	    cuIpcGetMemHandle(&handle, p))
		return;
	for (size_t i = 0; i < sizeof(handle); i++)
		printf("%02x", handle.reserved[i]);
	printf("\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

static void importing(const char *text)
{
	struct gpu_ipc_handle handle;
	size_t size = 0, available = 0, total;
	unsigned char byte = 1;
	gpu_ptr p, base;

	for (size_t i = 0; i < sizeof(handle); i++) {
		unsigned value = 0;

		sscanf(text + 2 * i, "%2x", &value);
		handle.reserved[i] = (unsigned char)value;
	}
	if (cuIpcOpenMemHandle_v2(&p, handle, 1) || cuMemGetAddressRange_v2(&base, &size, p) ||
	    base != p || cuMemcpyDtoH_v2(&byte, p, 1) || cuMemGetInfo_v2(&available, &total))
		return;
	printf("%zu %zu %u ", size >> 20, available >> 20, byte);
	printf("%d ", cuIpcCloseMemHandle(p));
	printf("%d\n", cuIpcCloseMemHandle(p));
}

int main(int argc, char **argv)
{
	struct process list[64];
	unsigned count = 64;
	size_t available = 0, total = 0;
	gpu_context context;
	gpu_ptr p;
	void *handle;
	int rc = cuInit(0), devices = 0;

	if (argc > 1 && !strcmp(argv[1], "devices")) {
		printf("%d", rc);
		for (int i = 0; !rc && !cuDeviceGetCount(&devices) && i < devices; i++) {
			char name[64];

			cuDeviceGetName(name, sizeof(name), i);
			cuDeviceTotalMem_v2(&total, i);
			printf(" %s=%zu", name, total);
		}
		printf("\n");
		return 0;
	}
	if (rc || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 3;
	if (argc > 2 && !strcmp(argv[1], "hold")) {
		rc = cuMemAlloc_v2(&p, (size_t)atoi(argv[2]) * MIB);
		printf("%d\n", rc);
		fflush(stdout);
		while (read(0, &rc, 1) > 0)
			;
	} else if (argc > 2 && !strcmp(argv[1], "export")) {
		exporting((size_t)atoi(argv[2]) * MIB);
	} else if (argc > 2 && !strcmp(argv[1], "import")) {
		importing(argv[2]);
	} else if (argc > 1 && !strcmp(argv[1], "level")) {
		cuMemGetInfo_v2(&available, &total);
		printf("%zu %zu\n", available >> 20, total >> 20);
	} else if (argc > 2 && !strcmp(argv[1], "fail")) {
		/* sizes in MiB; the result of each */
		for (int i = 2; i < argc; i++)
			printf("%d ", cuMemAlloc_v2(&p, (size_t)atoi(argv[i]) * MIB));
		printf("%d\n", cuMemHostAlloc((void **)&p, 4096, 0));
	} else if (argc > 1 && !strcmp(argv[1], "processes")) {
		if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &handle) ||
		    nvmlDeviceGetComputeRunningProcesses_v3(handle, &count, list))
			return 4;
		for (unsigned i = 0; i < count; i++)
			printf("%u=%llu ", list[i].pid, list[i].bytes / MIB);
		printf("\n");
	} else if (argc > 1 && !strcmp(argv[1], "write")) {
		/* writes 4 MiB and prints how much is kept */
		unsigned char *out = calloc(1, 4 * MIB);
		size_t kept = 0;

		memset(out, 7, 4 * MIB);
		if (cuMemAlloc_v2(&p, 4 * MIB) || cuMemcpyHtoD_v2(p, out, 4 * MIB) ||
		    cuMemcpyDtoH_v2(out, p, 4 * MIB))
			return 5;
		for (size_t i = 0; i < 4 * MIB; i++)
			kept += out[i] == 7;
		printf("%zu\n", kept);
	}
	return 0;
}

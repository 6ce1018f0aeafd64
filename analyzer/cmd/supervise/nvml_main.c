/*
 * nvml_main.c - whyoom-nvml LIBRARY: asks NVIDIA's management library, whenever the supervisor at
 * the other end of standard input sends a byte, how full each device is and who uses it. A process
 * of its own, since the library may be slow, hang or crash, and since the supervisor may be linked
 * statically. Ends when its standard input does.
 *
 * Made to run on older systems than the one that it was built on: util/old_libc.h.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cmd/supervise/nvml.h"
#include "util/clock_ns.h"

/* NVML's own numbers and structures; its documentation is public. */
#define OK 0
#define NOT_AVAILABLE UINT64_MAX

struct memory {
	unsigned long long total, free, used;
};
/* As of the second and third shape of the call; in the first, two fields. */
struct process {
	unsigned pid;
	unsigned long long bytes;
	unsigned instance, compute;
};
struct process_v1 {
	unsigned pid;
	unsigned long long bytes;
};

static struct {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*handle)(unsigned, void **);
	int (*memory)(void *, struct memory *);
	int (*uuid)(void *, char *, unsigned);
	int (*name)(void *, char *, unsigned);
	int (*processes)(void *, unsigned *, void *);
	bool old; /* `processes` is of the first shape */
} nvml;

static struct nvml_answer answer;

static bool load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	nvml.init = (int (*)(void))dlsym(library, "nvmlInit_v2");
	nvml.count = (int (*)(unsigned *))dlsym(library, "nvmlDeviceGetCount_v2");
	nvml.handle = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	nvml.memory = (int (*)(void *, struct memory *))dlsym(library, "nvmlDeviceGetMemoryInfo");
	nvml.uuid = (int (*)(void *, char *, unsigned))dlsym(library, "nvmlDeviceGetUUID");
	nvml.name = (int (*)(void *, char *, unsigned))dlsym(library, "nvmlDeviceGetName");
	for (int version = 3; version > 0 && !nvml.processes; version--) {
		static const char *const names[] = {"nvmlDeviceGetComputeRunningProcesses",
		    "nvmlDeviceGetComputeRunningProcesses_v2",
		    "nvmlDeviceGetComputeRunningProcesses_v3"};

		nvml.processes =
		    (int (*)(void *, unsigned *, void *))dlsym(library, names[version - 1]);
		nvml.old = version == 1;
	}
	return nvml.init && nvml.count && nvml.handle && nvml.memory && nvml.init() == OK;
}

static void ask_processes(void *handle, struct nvml_device *d)
{
	static struct process list[NVML_PROCESSES];
	unsigned n = NVML_PROCESSES;

	if (!nvml.processes || nvml.processes(handle, &n, list) != OK || n > NVML_PROCESSES)
		return;
	d->named = true;
	for (unsigned i = 0; i < n; i++) {
		const struct process_v1 *old = &((const struct process_v1 *)list)[i];
		struct nvml_process *to = &d->processes[d->process_count];

		to->pid = nvml.old ? old->pid : list[i].pid;
		to->bytes = nvml.old ? old->bytes : list[i].bytes;
		/* Where the system's own driver model keeps the account, nobody knows. */
		if (to->bytes != NOT_AVAILABLE)
			d->process_count++;
	}
}

static void ask_device(unsigned index, struct nvml_device *d)
{
	struct memory memory;
	void *handle;

	memset(d, 0, sizeof(*d));
	if (nvml.handle(index, &handle) != OK)
		return;
	if (nvml.memory(handle, &memory) == OK) {
		d->free = memory.free;
		d->total = memory.total;
	}
	if (nvml.uuid && nvml.uuid(handle, d->uuid, sizeof(d->uuid)) != OK)
		d->uuid[0] = 0;
	if (nvml.name && nvml.name(handle, d->name, sizeof(d->name)) != OK)
		d->name[0] = 0;
	ask_processes(handle, d);
}

static void ask(void)
{
	uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	unsigned count = 0;

	answer.asked_ns = clock_ns(CLOCK_MONOTONIC);
	if (nvml.count(&count) != OK)
		count = 0;
	answer.count = count < NVML_DEVICES ? count : NVML_DEVICES;
	for (unsigned i = 0; i < answer.count; i++)
		ask_device(i, &answer.devices[i]);
	answer.cost_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
}

int main(int argc, char **argv)
{
	char byte;

	if (argc != 2 || !load(argv[1]))
		return 1;
	while (recv(STDIN_FILENO, &byte, 1, 0) == 1) {
		ask();
		if (send(STDIN_FILENO, &answer,
			offsetof(struct nvml_answer, devices) +
			    answer.count * sizeof(*answer.devices),
			MSG_NOSIGNAL) < 0)
			break;
	}
	return 0; /* through exit(): the simulated device is left in order */
}

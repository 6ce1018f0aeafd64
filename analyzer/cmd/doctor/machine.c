/* machine.c - see machine.h. Every file may be missing, and may hold anything. */
#include "cmd/doctor/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cmd/supervise/cgroup.h"
#include "util/text/fmt.h"

#define GLIBC_LEAST 28u /* 2.28, what libwhyoom.so imports at most: tests/lint/symbols.py */
#define DOCKER_SHM (UINT64_C(64) << 20) /* the default of container runtimes */
#define MAP_COUNT 65530u /* the kernel's default of vm.max_map_count */
#define CAP_SYS_PTRACE_BIT 19u

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#define MUSL "ld-musl-x86_64.so.1"
#else
#define TRIPLET "aarch64-linux-gnu"
#define MUSL "ld-musl-aarch64.so.1"
#endif

/* Read the first line of a file, without its end. False: there is none. */
static bool read_line(const char *root, const char *name, char *line, size_t room)
{
	char path[PATH_MAX];
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, (int)room, f) != NULL;
	fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* Find "name:" in a file of such lines, as /proc/self/status is one; a number in that base. */
static bool read_named(
    const char *root, const char *file, const char *name, int base, uint64_t *out)
{
	char path[PATH_MAX], line[256];
	size_t n = strlen(name);
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, file);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n) && line[n] == ':') {
			*out = strtoull(line + n + 1, NULL, base);
			found = true;
		}
	if (f)
		fclose(f);
	return found;
}

static bool there(const char *root, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", root, name);
	return !access(path, F_OK);
}

/* The version that the library says of itself: "GNU C Library (...) stable release version 2.36."
 * False: that file is not glibc. */
static bool banner(const char *path, char *version, size_t room)
{
	static const char name[] = "GNU C Library (", word[] = " version ";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const char *all, *at, *end;
	bool found = false;
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size) {
		close(fd);
		return false;
	}
	all = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (all == MAP_FAILED)
		return false;
	end = all + st.st_size;
	at = memmem(all, (size_t)st.st_size, name, strlen(name));
	at =
	    at ? memmem(at, (size_t)(end - at) < 200 ? (size_t)(end - at) : 200, word, strlen(word))
	       : NULL;
	if (at) {
		size_t n = 0;

		for (at += strlen(word);
		     at < end && n + 1 < room && (isdigit((unsigned char)*at) || *at == '.'); at++)
			version[n++] = *at;
		while (n && version[n - 1] == '.')
			n--;
		version[n] = '\0';
		found = n > 0;
	}
	munmap((void *)(uintptr_t)all, (size_t)st.st_size);
	return found;
}

void doctor_libc(struct diagnosis *d, const char *root, const char *loader)
{
	static const char *const folders[] = {
	    "/lib/" TRIPLET, "/usr/lib/" TRIPLET, "/lib64", "/usr/lib64", "/lib", "/usr/lib"};
	char path[PATH_MAX + 64], folder[PATH_MAX], version[32] = "";
	unsigned major = 0, minor = 0;

	snprintf(path, sizeof(path), "%s%s", root, loader ? loader : "");
	if (loader && realpath(path, folder)) {
		*strrchr(folder, '/') = '\0';
		snprintf(path, sizeof(path), "%s/libc.so.6", folder);
		if (!banner(path, version, sizeof(version)))
			version[0] = '\0';
	}
	for (size_t i = 0; !*version && i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, sizeof(path), "%s%s/libc.so.6", root, folders[i]);
		if (!banner(path, version, sizeof(version)))
			version[0] = '\0';
	}
	if (!*version) {
		if (there(root, "/lib/" MUSL)) {
			diagnosis_add(d, "libc", DIAGNOSIS_FAIL,
			    "this system has musl and no glibc, which libwhyoom.so is made for");
			diagnosis_way_out(d, "use an image on glibc: python:3.12-slim in place of "
					     "python:3.12-alpine");
		} else {
			diagnosis_add(d, "libc", DIAGNOSIS_FAIL, "there is no glibc here");
			diagnosis_way_out(d, "statically linked programs cannot be recorded; use "
					     "an image with glibc 2.28 or newer");
		}
		return;
	}
	if (sscanf(version, "%u.%u", &major, &minor) == 2 &&
	    (major < 2 || (major == 2 && minor < GLIBC_LEAST))) {
		diagnosis_add(d, "libc", DIAGNOSIS_FAIL,
		    "glibc %s is older than 2.%u, the oldest that libwhyoom.so loads with", version,
		    GLIBC_LEAST);
		diagnosis_way_out(d, "use Debian 10, Ubuntu 20.04, RHEL 8 or later");
		return;
	}
	diagnosis_add(d, "libc", DIAGNOSIS_OK, "glibc %s", version);
}

void doctor_kernel(struct diagnosis *d, const char *root)
{
	bool pressure = there(root, "/proc/pressure/memory");
	char release[128];

	if (!there(root, "/proc/self/status")) {
		diagnosis_add(d, "kernel", DIAGNOSIS_WARN,
		    "/proc is not mounted, so resident memory, limits and modules are unknown");
		diagnosis_way_out(d, "mount -t proc proc /proc");
		return;
	}
	if (!read_line(root, "/proc/sys/kernel/osrelease", release, sizeof(release)))
		snprintf(release, sizeof(release), "of an unknown release");
	diagnosis_add(d, "kernel", DIAGNOSIS_OK, "Linux %s%s", release,
	    pressure ? "" : ", without the files of memory pressure (PSI)");
}

static const char *size_or_none(
    struct fmt *f, const struct event_level *levels, size_t n, uint32_t key)
{
	for (size_t i = 0; i < n; i++)
		if (levels[i].key == key)
			return fmt_size(f, levels[i].value);
	return "none";
}

void doctor_cgroup(struct diagnosis *d, const char *root, pid_t pid)
{
	struct event_level levels[64];
	struct run_cgroup cgroup;
	struct fmt max, high, swap;
	char group[16] = "0";
	size_t n;

	run_cgroup_find(root, pid, &cgroup);
	if (!cgroup.version) {
		diagnosis_add(d, "cgroup", DIAGNOSIS_WARN,
		    "no memory cgroup can be seen, so a kill at its limit cannot be told from "
		    "another");
		diagnosis_way_out(d, "mount /sys/fs/cgroup in the container, read-only is enough");
		return;
	}
	n = run_cgroup_levels(&cgroup, levels, sizeof(levels) / sizeof(*levels));
	if (cgroup.version == 1) {
		diagnosis_add(d, "cgroup", DIAGNOSIS_OK, "version 1, %.256s, limit: %s",
		    cgroup.path, size_or_none(&max, levels, n, TRACE_LEVEL_CG_MAX));
		return;
	}
	read_line(cgroup.dir, "/memory.oom.group", group, sizeof(group));
	diagnosis_add(d, "cgroup", DIAGNOSIS_OK,
	    "version 2, %.256s, memory.max: %s, memory.high: %s, memory.swap.max: %s, "
	    "memory.oom.group: %s",
	    cgroup.path, size_or_none(&max, levels, n, TRACE_LEVEL_CG_MAX),
	    size_or_none(&high, levels, n, TRACE_LEVEL_CG_HIGH),
	    size_or_none(&swap, levels, n, TRACE_LEVEL_CG_SWAP_MAX), group);
	if (group[0] == '1')
		diagnosis_way_out(d,
		    "without CAP_SYS_RESOURCE a kill by the kernel takes `whyoom run` along: the "
		    "next start in the same directory, or `whyoom report DIR`, says why");
}

void doctor_limits(struct diagnosis *d)
{
	static const struct {
		const char *name;
		__rlimit_resource_t which;
	} all[] = {
	    {"RLIMIT_AS", RLIMIT_AS}, {"RLIMIT_DATA", RLIMIT_DATA}, {"RLIMIT_FSIZE", RLIMIT_FSIZE}};
	enum diagnosis_status status = DIAGNOSIS_OK;
	char text[200] = "";
	struct rlimit limit;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct fmt f;

		if (getrlimit(all[i].which, &limit) || limit.rlim_cur == RLIM_INFINITY)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s: %s", n ? ", " : "",
		    all[i].name, fmt_size(&f, limit.rlim_cur));
		if (all[i].which == RLIMIT_FSIZE)
			status = DIAGNOSIS_WARN;
	}
	diagnosis_add(d, "limits", status, "%s",
	    n ? text : "none on address space, data or the size of files");
	if (status == DIAGNOSIS_WARN)
		diagnosis_way_out(
		    d, "a trace ends at RLIMIT_FSIZE: raise it with `ulimit -f unlimited`");
}

void doctor_memory(struct diagnosis *d, const char *root)
{
	char mode[16] = "", count[32] = "";
	uint64_t limit = 0, committed = 0;
	struct fmt a, b;

	if (!read_line(root, "/proc/sys/vm/overcommit_memory", mode, sizeof(mode)) ||
	    !read_line(root, "/proc/sys/vm/max_map_count", count, sizeof(count))) {
		diagnosis_add(d, "memory", DIAGNOSIS_WARN,
		    "vm.overcommit_memory and vm.max_map_count cannot be read, so these limits "
		    "have no name");
		diagnosis_way_out(d, "mount /proc");
		return;
	}
	if (strcmp(mode, "2")) {
		diagnosis_add(d, "memory",
		    strtoul(count, NULL, 10) < MAP_COUNT ? DIAGNOSIS_WARN : DIAGNOSIS_OK,
		    "vm.overcommit_memory: %s, vm.max_map_count: %s", mode, count);
	} else {
		read_named(root, "/proc/meminfo", "CommitLimit", 10, &limit);
		read_named(root, "/proc/meminfo", "Committed_AS", 10, &committed);
		diagnosis_add(d, "memory",
		    strtoul(count, NULL, 10) < MAP_COUNT ? DIAGNOSIS_WARN : DIAGNOSIS_OK,
		    "vm.overcommit_memory: 2, so the kernel refuses beyond CommitLimit of %s, of "
		    "which %s are promised; vm.max_map_count: %s",
		    fmt_size(&a, limit * 1024), fmt_size(&b, committed * 1024), count);
	}
	if (strtoul(count, NULL, 10) < MAP_COUNT)
		diagnosis_way_out(d, "whyoom needs some mappings of its own: sysctl "
				     "vm.max_map_count=65530 or more");
}

void doctor_shm(struct diagnosis *d, const char *path)
{
	struct statvfs fs;
	struct fmt all, left;
	uint64_t size;

	if (statvfs(path, &fs)) {
		diagnosis_add(d, "shm", DIAGNOSIS_OK, "there is no %s", path);
		return;
	}
	size = (uint64_t)fs.f_blocks * fs.f_frsize;
	diagnosis_add(d, "shm", DIAGNOSIS_OK, "%s: %s, of which %s are free", path,
	    fmt_size(&all, size), fmt_size(&left, (uint64_t)fs.f_bavail * fs.f_frsize));
	if (size && size <= DOCKER_SHM)
		diagnosis_way_out(d,
		    "PyTorch's loaders and NCCL fill that soon: docker run --shm-size, or an "
		    "emptyDir of medium Memory at /dev/shm");
}

void doctor_seccomp(struct diagnosis *d, const char *root)
{
	uint64_t mode = 0, no_new = 0;

	if (!read_named(root, "/proc/self/status", "Seccomp", 10, &mode)) {
		diagnosis_add(d, "seccomp", DIAGNOSIS_OK, "not known");
		return;
	}
	read_named(root, "/proc/self/status", "NoNewPrivs", 10, &no_new);
	if (mode)
		diagnosis_add(d, "seccomp", DIAGNOSIS_OK,
		    "a filter is in force%s; the trial below ran under it",
		    no_new ? ", and no new rights can be gained (NoNewPrivs)" : "");
	else
		diagnosis_add(d, "seccomp", DIAGNOSIS_OK, "no filter%s",
		    no_new ? "; no new rights can be gained (NoNewPrivs)" : "");
}

void doctor_attach(struct diagnosis *d, const char *root)
{
	static const char none[] = "`whyoom run` and `whyoom watch` need no right to trace";
	uint64_t effective = 0;
	char scope[16] = "0";
	bool can;

	read_line(root, "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	read_named(root, "/proc/self/status", "CapEff", 16, &effective);
	can = effective >> CAP_SYS_PTRACE_BIT & 1;
	if (scope[0] == '3')
		diagnosis_add(d, "attach", DIAGNOSIS_OK,
		    "%s; nobody can trace here (kernel.yama.ptrace_scope 3)", none);
	else if (can)
		diagnosis_add(
		    d, "attach", DIAGNOSIS_OK, "%s; CAP_SYS_PTRACE is there: every process", none);
	else if (scope[0] == '0')
		diagnosis_add(d, "attach", DIAGNOSIS_OK,
		    "%s; a running process of the same user can be traced", none);
	else
		diagnosis_add(d, "attach", DIAGNOSIS_OK,
		    "%s; running processes cannot be traced (kernel.yama.ptrace_scope %s, no "
		    "CAP_SYS_PTRACE)",
		    none, scope);
}

/* Count /dev/nvidia0 and on. */
static unsigned count_devices(const char *root)
{
	char path[PATH_MAX];
	unsigned count = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/dev", root);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		count += !strncmp(e->d_name, "nvidia", 6) && isdigit((unsigned char)e->d_name[6]);
	if (dir)
		closedir(dir);
	return count;
}

static bool find_driver_library(const char *root, char path[PATH_MAX])
{
	static const char *const folders[] = {"/usr/lib/" TRIPLET, "/lib/" TRIPLET, "/usr/lib64",
	    "/usr/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib",
	    "/usr/local/cuda/compat"};
	const char *list = *root ? NULL : getenv("LD_LIBRARY_PATH");

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, PATH_MAX, "%s%s/libcuda.so.1", root, folders[i]);
		if (!access(path, R_OK))
			return true;
	}
	while (list && *list) {
		size_t n = strcspn(list, ":");

		snprintf(path, PATH_MAX, "%.*s/libcuda.so.1", (int)n, list);
		if (n && !access(path, R_OK))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  ...": the first word of digits and
 * dots. */
static bool driver_version(const char *root, char version[32])
{
	char line[256];

	if (!read_line(root, "/proc/driver/nvidia/version", line, sizeof(line)))
		return false;
	for (char *save, *w = strtok_r(line, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
		if (strchr(w, '.') && strspn(w, "0123456789.") == strlen(w)) {
			snprintf(version, 32, "%.31s", w);
			return true;
		}
	snprintf(version, 32, "of an unknown version");
	return true;
}

void doctor_gpu(struct diagnosis *d, const char *root, const char *helper)
{
	unsigned devices = count_devices(root);
	bool control = there(root, "/dev/nvidiactl") || there(root, "/dev/dxg");
	char version[32] = "of an unknown version", path[PATH_MAX];
	bool driver = driver_version(root, version);
	bool library = find_driver_library(root, path);

	if (!driver && !control && !devices) {
		diagnosis_add(d, "gpu", DIAGNOSIS_OK,
		    library ? "no NVIDIA device, though %s is there: host memory alone is recorded"
			    : "no NVIDIA driver%s: host memory alone is recorded",
		    library ? path : "");
		return;
	}
	if (!control && !devices) {
		diagnosis_add(d, "gpu", DIAGNOSIS_WARN,
		    "NVIDIA driver %s, but no /dev/nvidia* in this container", version);
		diagnosis_way_out(d, "docker run --gpus all, or resources.limits nvidia.com/gpu");
	} else if (!library) {
		diagnosis_add(d, "gpu", DIAGNOSIS_WARN,
		    "NVIDIA driver %s and %u device%s, but no libcuda.so.1: CUDA will not start",
		    version, devices, devices == 1 ? "" : "s");
		diagnosis_way_out(d, "start the container by NVIDIA's runtime, with "
				     "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
	} else if (!helper) {
		diagnosis_add(d, "gpu", DIAGNOSIS_WARN,
		    "NVIDIA driver %s, %u device%s, %s; whyoom-nvml is not beside libwhyoom.so, so "
		    "what others hold of a device is not known",
		    version, devices, devices == 1 ? "" : "s", path);
		diagnosis_way_out(d, "install all files of whyoom's lib folder");
	} else {
		diagnosis_add(d, "gpu", DIAGNOSIS_OK, "NVIDIA driver %s, %u device%s, %s", version,
		    devices, devices == 1 ? "" : "s", path);
	}
}

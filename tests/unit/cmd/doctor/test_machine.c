#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/doctor/machine.h"

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#define MUSL "ld-musl-x86_64.so.1"
#else
#define TRIPLET "aarch64-linux-gnu"
#define MUSL "ld-musl-aarch64.so.1"
#endif

static struct diagnosis d;

/* scratch() has sixteen buffers, and these tests write more files. */
static const char *top(void)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s", scratch(""));
	return path;
}

/* The last check: its status, and a part of its fact and of its way out ("": it has none). */
static void expect(enum diagnosis_status status, const char *fact, const char *way_out)
{
	const struct diagnosis_check *c = &d.checks[d.count - 1];

	if (c->status != status || !strstr(c->fact, fact) || !strstr(c->way_out, way_out) ||
	    (!*way_out && *c->way_out))
		fail_msg(
		    "%s: %s: %s > %s", c->name, diagnosis_word(c->status), c->fact, c->way_out);
}

static void libc(void **state)
{
	const char *root = top();

	doctor_libc(&d, root, NULL);
	expect(DIAGNOSIS_FAIL, "no glibc", "image with glibc");
	scratch_file("lib/" MUSL, "x");
	doctor_libc(&d, root, NULL);
	expect(DIAGNOSIS_FAIL, "musl", "slim");
	scratch_file("usr/lib64/libc.so.6", "no banner in here");
	doctor_libc(&d, root, NULL);
	expect(DIAGNOSIS_FAIL, "musl", "slim");
	scratch_file("usr/lib64/libc.so.6",
	    "xxGNU C Library (GNU libc) stable release version 2.28.\nCopyright");
	doctor_libc(&d, root, NULL);
	expect(DIAGNOSIS_OK, "glibc 2.28", "");
	/* Debian's folder comes first, and its own version is not mistaken for glibc's. */
	scratch_file("lib/" TRIPLET "/libc.so.6",
	    "GNU C Library (Debian GLIBC 2.24-11+deb9u4) stable release version 2.24, by");
	doctor_libc(&d, root, NULL);
	expect(DIAGNOSIS_FAIL, "glibc 2.24 is older than 2.28", "Debian 10");
	/* The loader that a program names decides. */
	scratch_file("nix/lib/ld-linux.so.2", "x");
	scratch_file("nix/lib/libc.so.6", "GNU C Library (GNU libc) stable release version 2.40.");
	doctor_libc(&d, root, "/nix/lib/ld-linux.so.2");
	expect(DIAGNOSIS_OK, "glibc 2.40", "");
	/* cut off in the middle of the banner */
	scratch_file("nix/lib/libc.so.6", "GNU C Library (GNU libc) stable release ver");
	doctor_libc(&d, root, "/nix/lib/ld-linux.so.2");
	expect(DIAGNOSIS_FAIL, "2.24", "Debian 10");
}

static void kernel(void **state)
{
	const char *root = top();

	doctor_kernel(&d, root);
	expect(DIAGNOSIS_WARN, "/proc is not mounted", "mount");
	scratch_file("proc/self/status", "Name:\tx\n");
	scratch_file("proc/sys/kernel/osrelease", "5.10.0-8\n");
	doctor_kernel(&d, root);
	expect(DIAGNOSIS_OK, "Linux 5.10.0-8, without", "");
	scratch_file("proc/pressure/memory", "some\n");
	doctor_kernel(&d, root);
	expect(DIAGNOSIS_OK, "Linux 5.10.0-8", "");
	assert_null(strstr(d.checks[d.count - 1].fact, "without"));
}

static void cgroup(void **state)
{
	const char *root = top();

	doctor_cgroup(&d, root, 7);
	expect(DIAGNOSIS_WARN, "no memory cgroup", "/sys/fs/cgroup");
	scratch_file("proc/7/cgroup", "0::/pod/app\n");
	scratch_file("proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
	scratch_file("sys/fs/cgroup/pod/app/memory.max", "104857600\n");
	scratch_file("sys/fs/cgroup/pod/app/memory.high", "max\n");
	scratch_file("sys/fs/cgroup/pod/app/memory.oom.group", "0\n");
	doctor_cgroup(&d, root, 7);
	expect(DIAGNOSIS_OK,
	    "version 2, /pod/app, memory.max: 100 MiB, memory.high: none, memory.swap.max: none, "
	    "memory.oom.group: 0",
	    "");
	scratch_file("sys/fs/cgroup/pod/app/memory.high", "52428800\n");
	scratch_file("sys/fs/cgroup/pod/app/memory.oom.group", "1\n");
	doctor_cgroup(&d, root, 7);
	expect(DIAGNOSIS_OK, "memory.high: 50.0 MiB", "takes `whyoom run` along");
	scratch_file("proc/7/cgroup", "4:memory:/job\n0::/\n");
	scratch_file("proc/self/mountinfo",
	    "1 2 0:3 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	scratch_file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n");
	doctor_cgroup(&d, root, 7);
	expect(DIAGNOSIS_OK, "version 1, /job, limit: 1.00 MiB", "");
}

static void memory(void **state)
{
	const char *root = top();

	doctor_memory(&d, root);
	expect(DIAGNOSIS_WARN, "cannot be read", "/proc");
	scratch_file("proc/sys/vm/overcommit_memory", "0\n");
	scratch_file("proc/sys/vm/max_map_count", "65530\n");
	doctor_memory(&d, root);
	expect(DIAGNOSIS_OK, "vm.overcommit_memory: 0, vm.max_map_count: 65530", "");
	scratch_file("proc/sys/vm/overcommit_memory", "2\n");
	scratch_file("proc/meminfo", "CommitLimit:  1048576 kB\nCommitted_AS:  524288 kB\n");
	doctor_memory(&d, root);
	expect(DIAGNOSIS_OK, "CommitLimit of 1.00 GiB, of which 512 MiB", "");
	scratch_file("proc/sys/vm/max_map_count", "1000\n");
	doctor_memory(&d, root);
	expect(DIAGNOSIS_WARN, "vm.max_map_count: 1000", "sysctl");
}

static void rights(void **state)
{
	const char *root = top();

	doctor_seccomp(&d, root);
	expect(DIAGNOSIS_OK, "not known", "");
	scratch_file(
	    "proc/self/status", "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
	doctor_seccomp(&d, root);
	expect(DIAGNOSIS_OK, "a filter is in force, and no new rights", "");
	doctor_attach(&d, root);
	expect(DIAGNOSIS_OK, "of the same user can be traced", "");
	scratch_file("proc/sys/kernel/yama/ptrace_scope", "1\n");
	doctor_attach(&d, root);
	expect(DIAGNOSIS_OK, "cannot be traced (kernel.yama.ptrace_scope 1", "");
	scratch_file("proc/self/status", "CapEff:\t0000000000080000\nSeccomp:\t0\n");
	doctor_attach(&d, root);
	expect(DIAGNOSIS_OK, "CAP_SYS_PTRACE is there", "");
	doctor_seccomp(&d, root);
	expect(DIAGNOSIS_OK, "no filter", "");
	scratch_file("proc/sys/kernel/yama/ptrace_scope", "3\n");
	doctor_attach(&d, root);
	expect(DIAGNOSIS_OK, "nobody can trace", "");
}

static void gpu(void **state)
{
	const char *root = top();

	doctor_gpu(&d, root, "/lib/whyoom-nvml");
	expect(DIAGNOSIS_OK, "no NVIDIA driver", "");
	scratch_file("proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n");
	doctor_gpu(&d, root, "/lib/whyoom-nvml");
	expect(DIAGNOSIS_WARN, "driver 550.54.15, but no /dev/nvidia*", "--gpus all");
	scratch_file("dev/nvidiactl", "");
	scratch_file("dev/nvidia0", "");
	scratch_file("dev/nvidia1", "");
	scratch_file("dev/nvidia-uvm", "");
	doctor_gpu(&d, root, "/lib/whyoom-nvml");
	expect(DIAGNOSIS_WARN, "2 devices, but no libcuda.so.1", "NVIDIA_DRIVER_CAPABILITIES");
	scratch_file("usr/lib/" TRIPLET "/libcuda.so.1", "x");
	doctor_gpu(&d, root, "/lib/whyoom-nvml");
	expect(DIAGNOSIS_OK, "550.54.15, 2 devices", "");
	doctor_gpu(&d, root, NULL);
	expect(DIAGNOSIS_WARN, "whyoom-nvml is not beside", "install");
	scratch_file("proc/driver/nvidia/version", "\xff\xfe no digits\n");
	doctor_gpu(&d, root, "/lib/whyoom-nvml");
	expect(DIAGNOSIS_OK, "of an unknown version", "");
}

static void full(void **state)
{
	struct diagnosis all = {.count = 0};

	for (int i = 0; i < 100; i++)
		diagnosis_add(&all, "x", i == 99 ? DIAGNOSIS_FAIL : DIAGNOSIS_OK, "%d", i);
	assert_int_equal(all.count, sizeof(all.checks) / sizeof(*all.checks));
	assert_int_equal(diagnosis_worst(&all), DIAGNOSIS_FAIL);
	assert_string_equal(all.checks[all.count - 1].fact, "99");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(libc),
	    scratch_test(kernel),
	    scratch_test(cgroup),
	    scratch_test(memory),
	    scratch_test(rights),
	    scratch_test(gpu),
	    scratch_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * lifecycle.c - starts the recording, moves it to forked children, ends it; composes all folders of
 * the shim. Owns the state `shim` and two variables in the host's environment: WHYOOM_DIR, so that
 * programs started from this one find the directory, and WHYOOM_TREE, so that they know who started
 * them.
 */
#include "lifecycle.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/reserve.h"
#include "base/sys.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/live_blocks.h"
#include "cuda/cuda_call.h"
#include "cuda/cuda_find.h"
#include "exec/environment.h"
#include "hooks/hook_attach.h"
#include "hooks/hook_dl.h"
#include "hooks/hook_mark.h"
#include "hooks/hook_torch.h"
#include "levels/before.h"
#include "levels/levels.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "python/python.h"
#include "sampling/control.h"
#include "sampling/rate.h"
#include "sampling/sampler.h"
#include "shim.h"
#include "thread/chunk_writer.h"
#include "thread/thread.h"
#include "trace/definitions.h"
#include "trace/rights.h"
#include "trace/trace_file.h"

/* musl's loader must not miss these if it is told to load us: there the shim does
 * nothing. */
#pragma weak gnu_get_libc_version
#pragma weak on_exit

struct shim_state shim __attribute__((visibility("hidden"))) = {.can_wipe = true};

const struct thread_lifecycle thread_lifecycle = {lifecycle_start, lifecycle_forked};

static char dir_variable[4096 + 16] = "WHYOOM_DIR=";
static char tree_variable[40] = TRACE_FILE_TREE "=";
static bool asked_for_quiet;
static bool prepared; /* a dlopen brought us into a running process: an attach may follow */
static bool attached; /* the recording began by one */

/* Variables that decide how memory is used. */
static const char *const memory_variables[] = {
    "LD_PRELOAD",
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_MAX_",
    "MALLOC_CONF",
    "PYTHONMALLOC",
    "PYTHONMALLOCSTATS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "VLLM_USE_V1",
    "VLLM_ATTENTION_BACKEND",
    "VLLM_CPU_KVCACHE_SPACE",
    "GOMEMLIMIT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
};

static void info_number(const char *key, uint64_t v)
{
	char digits[24];

	text_append_number(digits, digits + sizeof(digits), v);
	definitions_info(key, digits);
}

static void info_link(const char *key, const char *link)
{
	static char path[4096];
	long n = sys_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, sizeof(path) - 1, 0, 0);

	path[n > 0 ? n : 0] = 0;
	if (n > 0)
		definitions_info(key, path);
}

static void info_cmdline(void)
{
	enum { LONGEST = 32768 };
	char *text = sys_pages(LONGEST);
	long n;

	if (!text)
		return;
	n = sys_read_file("/proc/self/cmdline", text, LONGEST);
	/* Each argument ends with a NUL, the record separates them: the last argument may be
	 * empty. */
	if (n > 0)
		definitions_info_bytes("cmdline", text, (size_t)(text[n - 1] ? n : n - 1));
	sys_pages_free(text, LONGEST);
}

static bool module_is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2", 6);
}

/* Once: the child of a fork must not walk the loader's list. */
static void find_owner(struct symbols_module *m)
{
	if (symbols_module_of(&shim, m)) {
		shim.own_low = m->low;
		shim.own_high = m->high;
	}
	m->path[0] = 0;
	if (!symbols_module_of((void *)real.malloc, m))
		return;
	shim.owner_low = m->low;
	shim.owner_high = m->high;
	shim.owner_is_libc = module_is_libc(m->path);
}

static void info_owner(void)
{
	static struct symbols_module owner;

	if (!shim.own_high)
		find_owner(&owner);
	if (!owner.path[0])
		return;
	definitions_info("malloc.owner", owner.path);
	if (symbols_program_owns)
		definitions_info(
		    "malloc.partial", "the program's own calls of its own malloc are not seen");
}

/* How blocks are recorded from the start on. */
static void info_mode(void)
{
	if (!sampler.generation)
		sampler_set(
		    !strcmp(options.mode, "sampled"), options.sample_every, options.exact_from);
	trace_file_set_mode(sampler.on ? TRACE_MODE_SAMPLED : TRACE_MODE_FULL);
	control_publish();
	if (!sampler.on) {
		if (options.max_rate)
			sys_say("WHYOOM_MAX_RATE does nothing in mode full");
		return;
	}
	if (options.max_rate)
		info_number("sampled.max_rate", options.max_rate);
	info_number("sampled.every", sampler.mean);
	info_number("sampled.exact_from", sampler.exact_from);
}

/* What the environment contained at the start: "NAME=VALUE" of each of memory_variables[] that
 * fits, and the options. The child of a fork writes it again from here: its first event may come
 * from within setenv(), which has just freed the array that `environ` still points to. */
static char start_variables[2048], start_options[1024], start_labels[1024];
static size_t start_variables_bytes;

/* Labels that Kubernetes' downward API gives by these variables, where none of the name is given.
 */
static const struct {
	const char *variable, *label;
} pod_labels[] = {
    {"POD_NAME", "pod"},
    {"POD_NAMESPACE", "namespace"},
    {"NODE_NAME", "node"},
};

/* Does "a=1,b=2" have a value of that name? */
static bool has_label(const char *labels, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = labels; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (!strncmp(p, name, n) && p[n] == '=')
			return true;
	}
	return false;
}

/* A label that does not fit is left out whole. */
static void remember_labels(char *const *environment)
{
	const char *end = start_labels + sizeof(start_labels);
	char *p;

	start_labels[0] = 0;
	if (strlen(options.label) >= sizeof(start_labels))
		sys_say("WHYOOM_LABEL is longer than 1023 bytes; the labels are left out");
	else
		text_append(start_labels, end, options.label);
	p = start_labels + strlen(start_labels);
	for (size_t i = 0; i < sizeof(pod_labels) / sizeof(pod_labels[0]); i++) {
		const char *value = options_variable(environment, pod_labels[i].variable);

		if (!value || !*value || strchr(value, ',') ||
		    has_label(start_labels, pod_labels[i].label) ||
		    strlen(value) + strlen(pod_labels[i].label) + 2 >= (size_t)(end - p))
			continue;
		p = text_append(p, end, p > start_labels ? "," : "");
		p = text_append(text_append(p, end, pod_labels[i].label), end, "=");
		p = text_append(p, end, value);
	}
}

static void remember_environment(char *const *environment, char *const *settings)
{
	start_variables_bytes = 0;
	for (size_t i = 0; i < sizeof(memory_variables) / sizeof(memory_variables[0]); i++) {
		const char *value = options_variable(environment, memory_variables[i]);
		size_t name = strlen(memory_variables[i]) + 1,
		       bytes = value ? name + strlen(value) + 1 : 0;

		if (!value || bytes > sizeof(start_variables) - start_variables_bytes)
			continue;
		/* the value follows the name and "=" in the environment */
		memcpy(start_variables + start_variables_bytes, value - name, bytes);
		start_variables_bytes += bytes;
	}
	options_text(settings, start_options, sizeof(start_options));
	remember_labels(environment);
}

static void write_environment(void)
{
	char key[64] = "env.";

	for (const char *line = start_variables; line < start_variables + start_variables_bytes;
	     line += strlen(line) + 1) {
		const char *value = strchr(line, '=') + 1;
		size_t name = (size_t)(value - line) - 1;

		memcpy(key + 4, line, name);
		key[4 + name] = 0;
		definitions_info(key, value);
	}
	if (start_options[0])
		definitions_info("options", start_options);
	if (start_labels[0])
		definitions_info("labels", start_labels);
}

/* Write the facts about the process; again in the child of a fork, whose file stands alone. */
static void write_facts(void)
{
	struct utsname kernel;
	uint64_t cpus[16];
	long n;

	definitions_info("whyoom.version", WHYOOM_VERSION);
	info_link("exe", "/proc/self/exe");
	info_link("cwd", "/proc/self/cwd");
	if (options.cmdline)
		info_cmdline();
	write_environment();
	info_number("page.size", shim.page_size);
	n = sys_call(SYS_sched_getaffinity, 0, sizeof(cpus), (long)cpus, 0, 0, 0);
	if (n > 0) {
		uint64_t count = 0;

		for (long i = 0; i < n / 8; i++)
			count += (uint64_t)__builtin_popcountll(cpus[i]);
		info_number("cpus", count);
	}
	if (sys_call(SYS_uname, (long)&kernel, 0, 0, 0, 0, 0) == 0) {
		definitions_info("kernel", kernel.release);
		definitions_info("host", kernel.nodename);
	}
	if (gnu_get_libc_version)
		definitions_info("libc", gnu_get_libc_version());
	info_owner();
	info_mode();
	levels_init();
}

/* Put a line into the host's environment, in an array of our own. setenv() accepts that: it never
 * frees an array that it did not allocate. */
static void put_into_environment(char *line)
{
	char **old = environ, **fresh;
	size_t n = 0, name = (size_t)(strchr(line, '=') + 1 - line);

	for (; old[n]; n++)
		if (!strncmp(old[n], line, name)) {
			old[n] = line;
			return;
		}
	fresh = sys_pages((n + 2) * sizeof(*fresh));
	if (!fresh)
		return;
	memcpy(fresh, old, n * sizeof(*fresh));
	fresh[n] = line;
	environ = fresh;
}

static void pass_directory_on(void)
{
	strncat(
	    dir_variable, trace_file_directory(), sizeof(dir_variable) - strlen(dir_variable) - 1);
	put_into_environment(dir_variable);
}

static void pass_tree_on(uint64_t pid)
{
	text_append_number(
	    tree_variable + sizeof(TRACE_FILE_TREE), tree_variable + sizeof(tree_variable), pid);
	put_into_environment(tree_variable);
}

static void refuse(const char *why, int error)
{
	char line[240];

	line[0] = 0;
	strncat(line, why, 200);
	if (error == -ENOSPC)
		strncat(line, " (disk full)", 20);
	else if (error == -EACCES || error == -EROFS)
		strncat(line, " (not writable)", 20);
	else if (error == -EFBIG)
		strncat(line, " (file size limit)", 20);
	strncat(line, "; not recording", 20);
	sys_say(line);
	shim.mode = SHIM_DORMANT;
}

/* Refuse to record from the start. Other programs may read this one's stderr: a descendant is
 * silent unless asked, and counted in the trace of the tree's first process or of its parent. With
 * WHYOOM_VERBOSE one descendant speaks: the first that is counted; where none can be counted,
 * WHYOOM_TREE tells its own descendants that it has spoken. */
static void refuse_start(bool descendant, const char *why, int error)
{
	long before = descendant ? trace_file_orphaned_by_exec() : -1;

	if (!descendant || trace_file_started_by_run(environ) ||
	    (options.verbose &&
		(before == 0 || (before < 0 && !trace_file_tree_has_spoken(environ)))))
		sys_say_init(asked_for_quiet);
	if (before < 0)
		pass_tree_on(0);
	refuse(why, error);
}

/* For kernels that do not zero memory at a fork (before Linux 4.14, and emulators that ignore the
 * advice silently): libc's fork calls this in the child. */
static void child_of_fork(void)
{
	if (thread_self)
		thread_wipe();
	*shim.alive = ALIVE_COPY;
}

static void watch_forks(void)
{
	int (*watch)(void (*)(void), void (*)(void), void (*)(void), void *) =
	    symbols_find("__register_atfork");

	if (watch)
		watch(NULL, NULL, child_of_fork, NULL);
}

/* Read the options. Returns whether a recorded process has started this one. */
static bool read_environment(void)
{
	const char *quiet = options_variable(environ, "WHYOOM_QUIET");
	bool descendant = trace_file_is_descendant(environ);

	asked_for_quiet = quiet && quiet[0] == '1';
	/* each descendant would repeat the complaint */
	sys_say_init(asked_for_quiet || descendant);
	options_read(environ, sys_say);
	return descendant;
}

/* Say why nothing is recorded, unless a recorded process started this one: that one has
 * told. */
static void say_dormant(void)
{
	read_environment();
	if (options.off || (trace_file_in_tree(environ) && !options.verbose))
		return;
	sys_say_init(asked_for_quiet);
	sys_say(symbols_sanitized
		    ? "built with a sanitizer, which replaces malloc itself; not recording"
		    : "linked with another C library than glibc; not recording");
}

bool lifecycle_start(void)
{
	int expected = SHIM_UNSTARTED, rc;
	const char *why;
	bool descendant;

	if (!environ) /* too early: libc itself has not started */
		return false;
	if (!__atomic_compare_exchange_n(
		&shim.mode, &expected, SHIM_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return shim.mode == SHIM_RECORDING;
	symbols_all();
	if (getauxval(AT_SECURE) || symbols_sanitized || symbols_foreign() || !symbols_in_front()) {
		shim.mode = SHIM_DORMANT;
		return false;
	}
	descendant = read_environment();
	if (options.off) {
		shim.mode = SHIM_DORMANT;
		return false;
	}
	clock_init();
	shim.pid = sys_getpid();
	shim.page_size = getauxval(AT_PAGESZ);
	shim.alive = thread_wiped_pages(4096);
	rc = trace_file_create(options.dir, false, &why);
	if (!shim.alive || rc < 0) {
		refuse_start(descendant, shim.alive ? why : "no memory", rc);
		return false;
	}
	*shim.alive = ALIVE;
	reserve_init();
	if (!options.dir[0] || options.dir[0] != '/')
		pass_directory_on();
	if (!descendant && !trace_file_is_root())
		pass_tree_on((uint64_t)shim.pid);
	watch_forks();
	stack_init();
	remember_environment(environ, environ);
	write_facts();
	thread_init();
	note_poll_with(hook_dl_poll);
	__atomic_store_n(&shim.mode, SHIM_RECORDING, __ATOMIC_RELEASE);
	return true;
}

bool lifecycle_forked(struct thread *self)
{
	const char *why;
	uint32_t expected = ALIVE_COPY;
	int rc;

	if (shim.sandboxed) {
		if (shim.mode != SHIM_DORMANT) /* the header is still the parent's */
			rights_orphaned(trace_file_header);
		shim.mode = SHIM_DORMANT;
		thread_self = NULL;
		return false;
	}
	if (shim.mode == SHIM_DORMANT)
		return false;
	if (!__atomic_compare_exchange_n(
		shim.alive, &expected, ALIVE_SETTLING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		/* another thread came first: one created by this one, or forked together with it */
		while (__atomic_load_n(shim.alive, __ATOMIC_ACQUIRE) == ALIVE_SETTLING)
			sys_yield();
		return self && shim.mode == SHIM_RECORDING && thread_forked_late(self);
	}
	shim.pid = sys_getpid();
	shim.budget = shim.budget_shared = false;
	shim.threads_started = 0;
	loader_forked();
	trace_file_forget();
	definitions_forked();
	chunk_writer_forked();
	note_forked();
	control_forked();
	rate_forked();
	sampler_forked();
	before_forked();
	cuda_forked();
	rc = trace_file_create(trace_file_directory(), true, &why);
	if (rc < 0) {
		shim.mode = SHIM_DORMANT;
		if (trace_file_orphaned(rc))
			refuse(why, rc);
		thread_self = NULL;
		__atomic_store_n(shim.alive, ALIVE, __ATOMIC_RELEASE);
		return false;
	}
	checkpoint_forked(trace_file_header->start_ticks);
	write_facts();
	python_write_info();
	cuda_find_forked();
	hook_dl_forked();
	hook_torch_forked();
	hook_mark_forked();
	thread_forked(self);
	__atomic_store_n(shim.alive, ALIVE, __ATOMIC_RELEASE);
	return self && self->serial;
}

/* The next program of a preloaded process says that the former has ended; nobody does after an
 * attach. */
static bool ends_by_exec(void)
{
	return attached && shim.mode == SHIM_RECORDING && !shim_is_copy() && !shim.sandboxed &&
	       sys_getpid() == shim.pid;
}

void lifecycle_exec_begins(void)
{
	if (ends_by_exec())
		trace_file_set_end(
		    trace_file_header, TRACE_END_EXEC, 0, sys_clock_ns(CLOCK_MONOTONIC));
}

void lifecycle_exec_failed(void)
{
	if (ends_by_exec() && trace_file_header->end_how == TRACE_END_EXEC)
		trace_file_take_back_end(trace_file_header);
}

void lifecycle_end(int how, int status)
{
	if (shim.mode != SHIM_RECORDING || shim_is_copy())
		return; /* a copy that recorded nothing */
	if (shim.sandboxed) {
		if (thread_self && thread_self->vfork)
			return;
		shim.ending = how != TRACE_END_EXEC;
		note_end(how, status);
		trace_file_set_end(trace_file_header, (uint32_t)how, (uint32_t)status, 0);
		return;
	}
	if (sys_getpid() != shim.pid)
		return; /* a vfork child */
	shim.ending = how != TRACE_END_EXEC;
	note_end(how, status);
	trace_file_set_end(
	    trace_file_header, (uint32_t)how, (uint32_t)status, sys_clock_ns(CLOCK_MONOTONIC));
	if (how == TRACE_END_EXIT)
		trace_file_clean_up(sampler.on ? sampler_counted() : 0);
}

static void at_exit(int status, void *unused)
{
	lifecycle_end(TRACE_END_EXIT, status & 0xff);
}

/* --- attach: the process runs already --- */

static int attached_pid; /* of the first attach; 0: none */

/* The environment as it was at the program's start: now another thread may be in setenv(). */
static void remember_start(char *const *settings)
{
	enum { BYTES = 1 << 20, LINES = 4096 };
	char *text = sys_pages(BYTES), **lines = sys_pages(LINES * sizeof(*lines)), *p = text;
	long n = text ? sys_read_file("/proc/self/environ", text, BYTES) : 0;

	for (size_t i = 0; lines && i < LINES - 1 && n > 0 && p < text + n; i++) {
		lines[i] = p;
		p += strlen(p) + 1;
	}
	if (lines)
		remember_environment(lines, settings);
	sys_pages_free(lines, LINES * sizeof(*lines));
	sys_pages_free(text, BYTES);
}

/* For how long the process has been running, ns; by field 22 of its stat, in ticks since boot. */
static uint64_t ran_ns(void)
{
	enum { START_TIME = 20 }; /* counted from behind the name */
	uint64_t now = sys_clock_ns(CLOCK_BOOTTIME), ticks = 0;
	char text[1024], *p;

	if (sys_read_file("/proc/self/stat", text, sizeof(text)) <= 0 || !(p = strrchr(text, ')')))
		return 0;
	for (int field = 0; p && field < START_TIME; field++)
		p = strchr(p + 1, ' ');
	for (p = p ? p + 1 : text; *p >= '0' && *p <= '9'; p++)
		ticks = ticks * 10 + (uint64_t)(*p - '0');
	ticks *= 1000000000u / getauxval(AT_CLKTCK);
	return now > ticks ? now - ticks : 0;
}

/* Forget what belongs to the trace of an earlier attach. False: a thread is still writing it. */
static bool forget_earlier(void)
{
	if (!thread_attach() || !hook_dl_is_idle())
		return false;
	definitions_forked();
	chunk_writer_forked();
	stack_fork_child(NULL);
	python_fork_child(NULL);
	note_forked();
	rate_forked();
	cuda_attach();
	hook_mark_forked();
	live_blocks_clear();
	return true;
}

static void write_attached(void)
{
	write_facts();
	info_number("attached", ran_ns());
	thread_define_all();
}

/* What of a process's own beginning an attach makes up for, once. */
static void prepare_process(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	reserve_init();
	watch_forks();
	stack_init();
	thread_init();
	note_poll_with(hook_dl_poll);
	if (on_exit)
		on_exit(at_exit, NULL);
}

static bool may_attach(int *error)
{
	*error = shim.mode == SHIM_RECORDING ? -EALREADY : -EOPNOTSUPP;
	if (!prepared || shim.mode != SHIM_DORMANT)
		return false;
	/* The state of the forking thread was zeroed with its recording. */
	*error = attached_pid && attached_pid != sys_getpid() ? -EOPNOTSUPP : -ESHUTDOWN;
	return attached_pid && attached_pid != sys_getpid() ? false : !shim.ending;
}

static bool wrong_settings;

static void refuse_setting(const char *line)
{
	wrong_settings = true;
}

int lifecycle_attach(char *const *settings)
{
	bool again = attached_pid;
	const char *why;
	int rc;

	if (!may_attach(&rc))
		return rc;
	wrong_settings = false;
	options_read(settings, refuse_setting);
	if (options.off || wrong_settings)
		return -EINVAL;
	rc = hook_attach_prepare();
	if (rc < 0)
		return rc;
	if (again && !forget_earlier())
		return -EAGAIN;
	if (!again)
		clock_init();
	shim.pid = attached_pid = sys_getpid();
	shim.page_size = getauxval(AT_PAGESZ);
	shim.budget = shim.budget_shared = false;
	if (!shim.alive)
		shim.alive = thread_wiped_pages(4096);
	if (!shim.alive)
		return -ENOMEM;
	sys_say_init(true);
	trace_file_attach();
	rc = trace_file_create(options.dir, false, &why);
	if (rc < 0)
		return rc;
	*shim.alive = ALIVE;
	prepare_process();
	checkpoint_forked(trace_file_header->start_ticks);
	control_attach();
	sampler_attach(!strcmp(options.mode, "sampled"), options.sample_every, options.exact_from);
	remember_start(settings);
	write_attached();
	if (sampler.before)
		before_begin();
	/* Until all slots are redirected nothing is recorded: no release of a recorded block may
	 * pass by another slot. */
	hook_dl_init();
	cuda_find_attach();
	if (again) { /* what the visitors wrote when they found it */
		hook_torch_forked();
		python_write_info();
		cuda_find_forked();
	}
	hook_attach_begin();
	note_attach();
	attached = true;
	__atomic_store_n(&shim.mode, SHIM_RECORDING, __ATOMIC_SEQ_CST);
	note_base();
	return 0;
}

int lifecycle_detach(void)
{
	bool closed;

	if (!attached || shim.mode != SHIM_RECORDING)
		return -EINVAL;
	if (shim_is_unsettled() || sys_getpid() != shim.pid)
		return -EOPNOTSUPP;
	if (shim.sandboxed)
		return -EPERM;
	note_end(TRACE_END_DETACHED, 0);
	attached = false;
	sampler_detach();
	__atomic_store_n(&shim.mode, SHIM_DORMANT, __ATOMIC_SEQ_CST);
	closed = thread_detach();
	hook_attach_end();
	trace_file_set_end(trace_file_header, TRACE_END_DETACHED, 0, sys_clock_ns(CLOCK_MONOTONIC));
	return closed ? 0 : -EBUSY;
}

/* Libraries' destructors run now, in any order: a function that is called may be gone. */
static __attribute__((destructor)) void lifecycle_unload(void)
{
	shim.ending = true;
}

/*
 * Recording may have begun long before, at the first allocation of a library that is initialised
 * earlier. Registered before the program starts, the exit handler runs after all others and after
 * the destructors of all libraries.
 */
static __attribute__((constructor)) void lifecycle_load(void)
{
	if (shim.mode == SHIM_UNSTARTED)
		thread_make();
	if (!symbols_foreign() && !symbols_in_front()) {
		/* whose calls do not come here */
		prepared = !symbols_sanitized && !getauxval(AT_SECURE);
		return;
	}
	environment_settle(environ, symbols_sanitized);
	if ((symbols_sanitized || symbols_foreign()) && !getauxval(AT_SECURE))
		say_dormant(); /* a sanitizer's runtime is ready by now */
	if (shim.mode != SHIM_RECORDING)
		return;
	if (on_exit)
		on_exit(at_exit, NULL);
	hook_dl_init();
}

/* test_stack.c - ids, definitions, modules and the merge with Python frames, through the
 * interface that the hooks use, in one thread. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "python/python.h"
#include "python/python_task.h"
#include "trace/definitions.h"
#include "under.h"

#define ROOM 10000
static struct under_frame frames[ROOM], others[ROOM];
static const char *libraries = ".";

#define AFTER() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) uint32_t here(void)
{
	uint32_t id = under_hook(false);

	AFTER();
	return id;
}

static __attribute__((noinline)) uint32_t below(int depth)
{
	uint32_t id = depth ? below(depth - 1) : here();

	AFTER();
	return id;
}

static void test_same_id(void **state)
{
	uint32_t ids[3];
	volatile int three = 3; /* keeps the loops from being unrolled: all calls are one */
	uint32_t defined;

	for (int i = 0; i < three; i++)
		ids[i] = below(5);
	defined = under_definitions();
	assert_int_not_equal(ids[0], 0);
	assert_int_equal(ids[0], ids[1]);
	assert_int_equal(ids[1], ids[2]);
	for (int i = 0; i < three; i++)
		ids[i] = below(5 + i);
	assert_int_not_equal(ids[0], ids[1]);
	assert_int_not_equal(ids[1], ids[2]);
	assert_true(under_definitions() > defined);
	/* a stack is defined once, even with other captures in between */
	defined = under_definitions();
	for (int i = 0; i < 10 * three; i++) {
		uint32_t id;

		if (i % 5 == 0)
			under_forget();
		id = below(5 + i % 3);
		if (i >= 3)
			assert_int_equal(id, ids[i % 3]);
		ids[i % 3] = id;
	}
	assert_int_equal(under_definitions(), defined + 3); /* for this loop's call site */
}

static __attribute__((noinline)) uint32_t one_way(void)
{
	uint32_t id = here();

	AFTER();
	return id;
}

static __attribute__((noinline)) uint32_t other_way(void)
{
	uint32_t id = below(1);

	AFTER();
	return id;
}

/* Calls a function from code without unwind information, where the walk ends. */
uint32_t undescribed(uint32_t (*way)(void));
#if defined(__x86_64__)
__asm__(".text\nundescribed:\n\tsub $8, %rsp\n\tcall *%rdi\n\tadd $8, %rsp\n\tret\n");
#else
__asm__(".text\nundescribed:\n\tstp x29, x30, [sp, -16]!\n\tblr x0\n"
	"\tldp x29, x30, [sp], 16\n\tret\n");
#endif

/* The frame that is met again is the outermost: no outer word may be read. */
static void test_met_at_the_end(void **state)
{
	int n, m;

	static uint32_t (*const ways[])(void) = {one_way, other_way};
	uint32_t ids[6];
	for (volatile int i = 0; i < 6; i++)
		ids[i] = undescribed(ways[i % 2]);
	for (int i = 0; i < 6; i++) {
		assert_int_not_equal(ids[i], 0);
		assert_int_equal(ids[i], ids[i % 2]);
	}
	assert_int_not_equal(ids[0], ids[1]);
	n = under_frames(ids[0], frames, ROOM);
	m = under_frames(ids[1], others, ROOM);
	assert_int_equal(m, n + 2);
	assert_int_equal(frames[n - 1].type, UNDER_END);
	assert_int_equal(others[m - 1].type, UNDER_END);
}

static void test_cut(void **state)
{
	uint32_t deeper, whole, cut;
	int root, n;

	whole = below(4000);
	cut = below(6000);
	n = under_frames(whole, frames, ROOM);
	assert_in_range(n, 4001, 4095);
	root = n - 4001;
	n = under_frames(cut, frames, ROOM);
	assert_int_equal(n, 4097);
	assert_int_equal(frames[2048].type, UNDER_CUT);
	assert_int_equal(frames[2048].value, 6001 + root - 4096);
	/* one frame deeper: inner and outer frames stay, one more is cut */
	deeper = below(6001);
	assert_int_not_equal(deeper, cut);
	n = under_frames(deeper, others, ROOM);
	assert_int_equal(n, 4097);
	assert_int_equal(others[2048].value, frames[2048].value + 1);
	assert_memory_equal(&others[2049], &frames[2049], 2000 * sizeof(others[0]));
	assert_int_equal(under_frames(below(6000), others, ROOM), 4097);
}

static __attribute__((noinline)) uint32_t elsewhere(void)
{
	uint32_t id = under_hook(false);

	AFTER();
	return id;
}

static __attribute__((noinline)) uint32_t above(int depth)
{
	uint32_t id = depth ? above(depth - 1) : elsewhere();

	AFTER();
	return id;
}

/* When definitions have no room, a new stack is abbreviated to its ends. */
static void test_brief(void **state)
{
	int n;

	enum {
		WHOLE,
		BRIEF,
		KNOWN,
		DEEPER,
		NO_ROOM,
		STILL_KNOWN,
		AGAIN,
		WHOLE_AGAIN,
		BRIEFEST,
		STEPS_HERE
	};
	static const struct {
		int depth, room;
	} steps[] = {{30, DEFINITIONS_AMPLE}, {31, DEFINITIONS_BRIEF}, {30, DEFINITIONS_BRIEF},
	    {33, DEFINITIONS_BRIEF}, {40, DEFINITIONS_NONE}, {30, DEFINITIONS_NONE},
	    {41, DEFINITIONS_AMPLE}, {42, DEFINITIONS_AMPLE}, {50, DEFINITIONS_BRIEFEST}};
	volatile int count = STEPS_HERE; /* one call site calls */
	uint32_t id[STEPS_HERE];
	uint64_t brief, untold;
	for (int i = 0; i < count; i++) {
		under_room(steps[i].room);
		id[i] = below(steps[i].depth);
	}
	n = under_frames(id[WHOLE], frames, ROOM);
	assert_int_not_equal(id[BRIEF], 0);
	assert_int_equal(under_frames(id[BRIEF], others, ROOM), 17);
	assert_memory_equal(others, frames, 12 * sizeof(frames[0]));
	assert_int_equal(others[12].type, UNDER_CUT);
	assert_int_equal(others[12].value, 0);
	assert_memory_equal(&others[13], &frames[n - 4], 4 * sizeof(frames[0]));
	/* a known stack keeps its id; stacks that differ only in the middle become one */
	assert_int_equal(id[KNOWN], id[WHOLE]);
	assert_int_equal(id[STILL_KNOWN], id[WHOLE]);
	assert_int_equal(id[DEEPER], id[BRIEF]);
	assert_int_equal(id[NO_ROOM], id[BRIEF]);
	under_counts(&brief, &untold);
	assert_int_equal(brief, 1);
	assert_int_equal(untold, 0);
	/* later definitions do not share frames with an abbreviated one */
	assert_int_equal(under_frames(id[WHOLE_AGAIN], others, ROOM), n + 12);
	assert_memory_equal(others, frames, 20 * sizeof(frames[0]));
	assert_memory_equal(&others[n + 8], &frames[n - 4], 4 * sizeof(frames[0]));
	/* an abbreviated stack is found even when new ones are abbreviated further */
	assert_int_equal(id[BRIEFEST], id[BRIEF]);
	for (int i = 0; i < count; i++) {
		under_room(i < 2   ? DEFINITIONS_NONE
			   : i < 3 ? DEFINITIONS_BRIEFEST
				   : DEFINITIONS_NONE);
		id[i] = above(30 + i);
	}
	assert_int_equal(id[0], 0);
	assert_int_equal(id[1], 0);
	assert_int_equal(under_frames(id[2], others, ROOM), 9);
	assert_int_equal(others[6].type, UNDER_CUT);
	assert_memory_equal(&others[7], &frames[n - 2], 2 * sizeof(frames[0]));
	assert_int_equal(id[3], id[2]);
	under_counts(&brief, &untold);
	assert_int_equal(brief, 2);
	assert_int_equal(untold, 2);
	under_room(DEFINITIONS_AMPLE);
	assert_int_not_equal(elsewhere(), 0);
}

/* Far deeper than frames are kept for reuse: still right, still bounded. */
static __attribute__((noinline)) uint32_t far_below(long depth)
{
	uint32_t id = depth ? far_below(depth - 1) : here();

	AFTER();
	return id;
}

static void test_very_deep(void **state)
{
	uint32_t id;
	int n;

	/* a frame takes 16 bytes and the return address: this fits in 8 MiB */
	id = far_below(100000);
	n = under_frames(id, frames, ROOM);
	assert_int_equal(n, 4097);
	assert_in_range(frames[2048].value, 100001 - 4096, 100100 - 4096);
	assert_int_equal(far_below(3) != 0, 1);
}

/* --- frame pointers --- */

/* Saves the frame pointer and overwrites it; then captures, or only returns its frame. */
static uintptr_t saver_at;
static bool saver_captures;

static __attribute__((noinline)) uint32_t saver(void)
{
	volatile char local = 0;
	uint32_t id = 0;

	saver_at = (uintptr_t)&local;
#if defined(__x86_64__)
	__asm__ volatile("xorl %%ebp, %%ebp" ::: "rbp");
#endif
	if (saver_captures)
		id = here();
	AFTER();
	return id;
}

/* The step out of this frame depends on the frame pointer. */
static __attribute__((noinline)) uint32_t hanging(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);
	uint32_t id;

	__asm__ volatile("" ::"r"(room));
	id = saver();
	AFTER();
	return id;
}

static __attribute__((noinline)) uint32_t near_by(size_t bytes)
{
	uint32_t id = hanging(bytes);

	AFTER();
	return id;
}

static __attribute__((noinline)) uint32_t far_off(size_t bytes)
{
	volatile char between[512]; /* never written: the words of an earlier call stay here */
	uint32_t id;

	__asm__ volatile("" ::"r"(between));
	id = hanging(bytes);
	AFTER();
	return id;
}

/*
 * The same inner frames at the same addresses, except for the word that the innermost saved; all
 * words of the earlier walk are still in the stack. One call site makes all calls.
 */
static void test_saved_frame_pointer(void **state)
{
	uint32_t (*volatile way)(size_t) = near_by;
	size_t bytes = 2048;
	uint32_t first = 0, reusing = 0, whole = 0, id;
	uintptr_t at = 0;
	saver_captures = true;
	for (;;) {
		id = way(bytes);
		if (way == near_by) {
			first = id;
			at = saver_at;
			way = far_off;
			bytes = 16;
			saver_captures = false;
		} else if (!saver_captures) {
			if (saver_at == at)
				saver_captures = true;
			else if ((bytes += 16) > 4096)
				break;
		} else if (!reusing) {
			reusing = id;
			under_forget();
		} else {
			whole = id;
			break;
		}
	}
	assert_int_not_equal(whole, 0);
	assert_int_not_equal(first, 0);
	assert_int_not_equal(first, whole);
	assert_int_equal(reusing, whole);
}

/* --- libraries --- */

typedef uint64_t (*enter_function)(int, void (*)(void *), void *);

static void from_library(void *arg)
{
	*(uint32_t *)arg = here();
}

static __attribute__((noinline)) uint32_t through(void *handle)
{
	enter_function enter = (enter_function)dlsym(handle, "agree_lib_enter");
	uint32_t id = 0;

	assert_non_null(enter);
	enter(2, from_library, &id);
	return id;
}

static void *open_library(const char *name)
{
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s", libraries, name);
	under_changing();
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	under_changed();
	if (!handle)
		fail_msg("%s", dlerror());
	return handle;
}

static void close_library(void *handle)
{
	under_changing();
	dlclose(handle);
	under_changed();
}

static uint32_t module_of(uint32_t id, const char *name)
{
	int n = under_frames(id, frames, ROOM);

	for (int i = 0; i < n; i++) {
		const char *path = under_module_path(frames[i].module);

		if (path && strstr(path, name))
			return frames[i].module;
	}
	return 0;
}

static void *base_of(void *handle)
{
	Dl_info info;

	return dladdr(dlsym(handle, "agree_lib_enter"), &info) ? info.dli_fbase : NULL;
}

static void test_library_replaced(void **state)
{
	int n, m;
	uint32_t second, first, module;
	void *two, *one, *place;

	one = open_library("libagree1.so");
	place = base_of(one);
	first = through(one);
	module = module_of(first, "libagree1.so");
	assert_int_not_equal(module, 0);
	close_library(one);

	two = open_library("libagree2.so");
	if (base_of(two) != place)
		print_message("the loader did not use the same address: only ids are tested\n");
	second = through(two);
	assert_int_not_equal(second, first);
	assert_int_equal(module_of(second, "libagree1.so"), 0);
	assert_int_not_equal(module_of(second, "libagree2.so"), 0);
	assert_int_not_equal(module_of(second, "libagree2.so"), module);
	n = under_frames(second, frames, ROOM);
	m = under_frames(first, others, ROOM);
	assert_int_equal(n, m); /* the same depth, walked through frames of another size */
	close_library(two);

	/* loaded again: the same identity, so the same ids */
	one = open_library("libagree1.so");
	if (base_of(one) == place)
		assert_int_equal(module_of(through(one), "libagree1.so"), module);
	close_library(one);
}

static void copy_file(const char *from, const char *to)
{
	static char buffer[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof(buffer), in)))
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* Equal code at the same address from another file is another module. */
static void test_library_copied(void **state)
{
	char from[4096], to[4096];
	uint32_t id;
	void *two, *one, *place;

	snprintf(from, sizeof(from), "%s/libagree1.so", libraries);
	snprintf(to, sizeof(to), "%s/libagree_copy.so", libraries);
	copy_file(from, to);
	one = open_library("libagree1.so");
	place = base_of(one);
	for (volatile int i = 0; i < 2; i++)
		assert_int_not_equal(module_of(through(one), "libagree1.so"), 0);
	close_library(one);
	two = open_library("libagree_copy.so");
	unlink(to);
	if (base_of(two) != place)
		print_message("the loader did not use the same address: only ids are tested\n");
	id = through(two);
	assert_int_equal(module_of(id, "libagree1.so"), 0);
	assert_int_not_equal(module_of(id, "libagree_copy.so"), 0);
	close_library(two);
}

static void test_change_heard_late(void **state)
{
	void *handle;
	char path[4096];

	/* a library without an announcement is found when a walk meets its code */
	snprintf(path, sizeof(path), "%s/libagree2.so", libraries);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handle);
	assert_int_not_equal(module_of(through(handle), "libagree2.so"), 0);
	dlclose(handle);
	under_changed();
}

/* --- Python --- */

static uintptr_t anchors[4];
static struct python_frame python_frames[8];
static struct python_run runs[4];
static struct python_view view;
static struct python_task at_work;

static __attribute__((noinline)) uint32_t with_python(void)
{
	uint32_t id = under_hook(true);

	AFTER();
	return id;
}

/* Stands in for the interpreter: the anchor is one of its locals. */
static __attribute__((noinline)) uint32_t interpreter(int level, int levels)
{
	volatile char local = 0;
	uint32_t id;

	anchors[level] = (uintptr_t)&local;
	id = level + 1 < levels ? interpreter(level + 1, levels) : with_python();
	AFTER();
	return id + (uint32_t)local;
}

static bool is_interpreter(uintptr_t pc)
{
	return pc >= (uintptr_t)interpreter && pc < (uintptr_t)interpreter + 200;
}

/* Types from the innermost: N native, P Python with its code id as a digit. */
static const char *shape(uint32_t id)
{
	static char text[ROOM];
	int n = under_frames(id, frames, ROOM), k = 0;

	for (int i = 0; i < n; i++) {
		if (frames[i].type == UNDER_PYTHON)
			text[k++] = (char)('0' + frames[i].code);
		else
			text[k++] = is_interpreter(under_address(&frames[i])) ? 'I'
				    : frames[i].type			      ? 'E'
									      : 'n';
	}
	text[k] = 0;
	return text;
}

static void set_runs(unsigned n, bool anchored)
{
	memset(runs, 0, sizeof(runs));
	for (unsigned i = 0; i < 8; i++)
		python_frames[i] = (struct python_frame){i + 1, (int32_t)(i * 2) - 1};
	for (unsigned i = 0; i < n; i++)
		runs[i] = (struct python_run){anchored ? anchors[i] : 0, i * 2, 2};
	view = (struct python_view){.frames = python_frames,
	    .count = n * 2,
	    .runs = runs,
	    .run_count = n,
	    .task = &at_work};
}

enum { NOTHING, FIRST, INNER_MOVED, UNCHANGED, BACK, NO_PYTHON, AGAIN, STEPS };

static void prepare(int step)
{
	under_python(&view, NULL);
	switch (step) {
	case NOTHING:
	case NO_PYTHON:
		under_python(NULL, NULL);
		break;
	case FIRST:
		set_runs(3, true);
		break;
	case INNER_MOVED: /* by an instruction */
		view.same = 4;
		view.same_runs = 2;
		python_frames[5].lasti += 2;
		break;
	case UNCHANGED:
		view.same = 6;
		view.same_runs = 3;
		break;
	case BACK:
		view.same = 5;
		view.same_runs = 2;
		python_frames[5].lasti -= 2;
		break;
	case AGAIN:
		view.same = 6;
		view.same_runs = 3;
		break;
	}
}

static void test_merge(void **state)
{
	uint32_t id[STEPS];
	volatile int steps = STEPS;

	for (int i = 0; i < steps; i++) {
		prepare(i);
		id[i] = interpreter(0, 3);
	}
	assert_true(!strncmp(shape(id[NOTHING]), "nIIIn", 5));
	assert_true(!strncmp(shape(id[FIRST]), "n65I43I21In", 11));
	assert_int_equal(frames[1].value, 10); /* instruction 9, plus one */
	assert_true(!strncmp(shape(id[INNER_MOVED]), "n65I43I21In", 11));
	assert_int_equal(frames[1].value, 12);
	assert_int_not_equal(id[INNER_MOVED], id[FIRST]);
	assert_int_equal(id[UNCHANGED], id[INNER_MOVED]);
	assert_int_equal(id[BACK], id[FIRST]);
	assert_int_equal(id[NO_PYTHON], id[NOTHING]);
	assert_int_equal(id[AGAIN], id[FIRST]);
	under_python(NULL, NULL);
}

static void test_merge_without_anchors(void **state)
{
	const char *s;

	set_runs(3, false);
	under_python(&view, is_interpreter);
	assert_true(!strncmp(shape(interpreter(0, 3)), "n65I43I21In", 11));
	/* fewer runs than native frames, more runs, or a run in no frame: all Python frames come
	 * first, then all native ones */
	view.same = view.same_runs = 0;
	s = shape(interpreter(0, 4));
	assert_true(!strncmp(s, "nIIIIn", 6));
	assert_true(!strcmp(s + strlen(s) - 6, "654321"));
	view.same = view.same_runs = 0;
	s = shape(interpreter(1, 3));
	assert_true(!strncmp(s, "nIIn", 4));
	assert_true(strlen(s) > 6 && !strcmp(s + strlen(s) - 6, "654321"));
	set_runs(2, true);
	runs[0].anchor = 8;
	under_python(&view, NULL);
	s = shape(interpreter(0, 2));
	assert_true(!strncmp(s, "nIIn", 4));
	assert_true(!strcmp(s + strlen(s) - 4, "4321"));
	under_python(NULL, NULL);
}

/* The turn changes with the task, and when Python ends. */
static void test_task(void **state)
{
	uint32_t first, turn;

	set_runs(2, true);
	at_work = (struct python_task){.turn = 7, .key = 0x1000};
	under_python(&view, NULL);
	interpreter(0, 2);
	assert_int_equal(under_task(&first), 0x1000);
	interpreter(0, 2);
	under_task(&turn);
	assert_int_equal(turn, first);
	under_hook(false); /* not asked */
	assert_int_equal(under_task(&turn), 0x1000);
	at_work.turn = 8; /* the same key, another's */
	interpreter(0, 2);
	assert_int_equal(under_task(&turn), 0x1000);
	assert_int_not_equal(turn, first);
	under_python(NULL, NULL);
	under_hook(true);
	assert_int_equal(under_task(&first), 0);
	assert_int_not_equal(turn, first);
	under_python(&view, NULL);
	interpreter(0, 2);
	assert_int_equal(under_task(&turn), 0x1000);
	assert_int_not_equal(turn, first);
	under_python(NULL, NULL);
	at_work = (struct python_task){0};
}

/* --- signals --- */

static volatile bool seen_in_handler;

static void on_signal(int number)
{
	(void)number;
	seen_in_handler = below(3) && under_interrupted();
}

static void test_interrupted(void **state)
{
	assert_int_not_equal(below(3), 0);
	assert_false(under_interrupted());
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	assert_true(seen_in_handler);
	assert_int_not_equal(below(4), 0);
	assert_false(under_interrupted());
	signal(SIGUSR1, SIG_DFL);
}

/* --- fork --- */

static void test_fork(void **state)
{
	int status;
	pid_t child;
	uint32_t id;

	id = below(7);
	assert_int_not_equal(id, 0);
	child = fork();
	if (!child) {
		uint32_t mine, again;
		int n;

		under_fork_child();
		mine = below(7);
		n = under_frames(mine, frames, ROOM);
		again = below(7);
		_exit(
		    mine == 1 && n > 8 && again && under_frames(again, frames, ROOM) == n ? 0 : 1);
	}
	status = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same_id),
	    cmocka_unit_test(test_met_at_the_end),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_brief),
	    cmocka_unit_test(test_very_deep),
	    cmocka_unit_test(test_saved_frame_pointer),
	    cmocka_unit_test(test_library_replaced),
	    cmocka_unit_test(test_library_copied),
	    cmocka_unit_test(test_change_heard_late),
	    cmocka_unit_test(test_merge),
	    cmocka_unit_test(test_merge_without_anchors),
	    cmocka_unit_test(test_task),
	    cmocka_unit_test(test_interrupted),
	    cmocka_unit_test(test_fork),
	};

	if (argc > 1)
		libraries = argv[1];
	if (under_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Plans performed: the live blocks are the plan's, a limit refuses, allocators are told apart,
 * and ThreadSanitizer finds no race. */
#include "model/unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cmd/supervise/cgroup.h"
#include "replay/plan/plan_file.h"
#include "replay/play.h"
#include "replay/read_plan.h"

enum { THREADS = 4, BLOCKS = 300, STEPS = 30000, SAMPLES = 64 };

static const struct play_allocator any = {"any", "", {NULL}};

struct world {
	struct plan_file file;
	FILE *out;
	struct player player;
	uint64_t live[SAMPLES]; /* as it must be */
	uint32_t samples;
};

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->out = tmpfile();
	assert_non_null(w->out);
	assert_int_equal(fseek(w->out, 4096, SEEK_SET), 0);
	assert_int_equal(plan_file_init(&w->file, w->out), 0);
}

static void sample(struct world *w, uint64_t live)
{
	w->live[w->samples] = live;
	assert_int_equal(plan_file_alone(&w->file, 0, plan_op(PLAN_SAMPLE, w->samples++, 0)), 0);
}

static void finish(struct world *w, const char *program)
{
	struct err err = {""};
	struct plan plan;

	assert_int_equal(plan_file_finish(&w->file, w->samples, &err), 0);
	plan_read(w->out, &plan); /* it keeps the rules */
	plan_forget(&plan);
	assert_int_equal(player_open(&w->player, program, fileno(w->out), w->samples, &err), 0);
	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		w->player.play->touch.share[k] = 256;
}

static void run(struct world *w, const struct play_allocator *allocator)
{
	struct err err = {""};
	int rc = player_run(&w->player, allocator, NULL, &err);

	if (rc)
		print_message("%s\n", err.text);
	assert_int_equal(rc, 0);
}

static void done(struct world *w)
{
	player_close(&w->player);
	plan_file_fini(&w->file);
	fclose(w->out);
}

/* Threads that acquire, resize and release each other's blocks, come and go. */
static void make_traffic(struct world *w)
{
	uint32_t slots[BLOCKS], count = 0, threads[THREADS] = {0};
	uint64_t sizes[BLOCKS], live = 0, seed = 99;

	for (int i = 1; i < THREADS; i++)
		assert_int_equal(plan_file_spawn(&w->file, (uint32_t)i - 1, &threads[i]), 0);
	for (int step = 0; step < STEPS; step++) {
		uint32_t t = threads[dice(&seed, THREADS)], i = (uint32_t)dice(&seed, BLOCKS);
		uint64_t size = dice(&seed, 100) ? dice(&seed, 3000) : dice(&seed, 300 * KiB);

		if (i >= count && count < BLOCKS) {
			enum plan_what what = dice(&seed, 3) ? PLAN_MALLOC : PLAN_CALLOC;

			assert_int_equal(plan_file_take(&w->file, t, &slots[count]), 0);
			assert_int_equal(plan_file_add(&w->file, t,
					     plan_op(what, slots[count], size), (int64_t)size),
			    0);
			sizes[count++] = size;
			live += size;
		} else if (count && dice(&seed, 3)) {
			i = (uint32_t)dice(&seed, count);
			assert_int_equal(plan_file_add(&w->file, t, plan_op(PLAN_FREE, slots[i], 0),
					     -(int64_t)sizes[i]),
			    0);
			assert_int_equal(plan_file_leave(&w->file, slots[i]), 0);
			live -= sizes[i];
			count--;
			slots[i] = slots[count];
			sizes[i] = sizes[count];
		} else if (count) {
			i = (uint32_t)dice(&seed, count);
			assert_int_equal(
			    plan_file_add(&w->file, t, plan_op(PLAN_REALLOC, slots[i], size),
				(int64_t)(size - sizes[i])),
			    0);
			live += size - sizes[i];
			sizes[i] = size;
		}
		if (step % (STEPS / (SAMPLES - 1)) == 0)
			sample(w, live);
		/* One ends, and another begins in its place. */
		if (step % 5000 == 4999) {
			assert_int_equal(plan_file_exit(&w->file, threads[THREADS - 1]), 0);
			assert_int_equal(plan_file_spawn(&w->file, 0, &threads[THREADS - 1]), 0);
		}
	}
}

static bool can_populate(void)
{
	void *p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool can = !madvise(p, 4096, 23);

	munmap(p, 1);
	return can;
}

static void check_traffic(const char *program, const struct play_allocator *allocator)
{
	struct world w;

	begin(&w);
	make_traffic(&w);
	finish(&w, program);
	run(&w, allocator);
	assert_int_equal(w.player.play->state, PLAY_DONE);
	for (uint32_t i = 0; i < w.samples; i++) {
		const struct play_sample *s = &w.player.play->samples[i];

		assert_int_equal(s->live, w.live[i]);
		assert_int_equal(s->touched, w.live[i]);
		assert_true(s->size >= s->resident);
	}
	done(&w);
}

static void test_traffic(void **state)
{
	check_traffic(getenv("PLAYER"), play_allocator("glibc"));
	(void)state;
}

/* A thread that runs on after its recorded end does not delay threads that wait for that end. */
static void test_ends(void **state)
{
	struct world w;

	begin(&w);
	for (int i = 0; i < 200; i++) {
		uint32_t ends, next[2];

		assert_int_equal(plan_file_spawn(&w.file, 0, &ends), 0);
		assert_int_equal(plan_file_exit(&w.file, ends), 0);
		assert_int_equal(plan_file_spawn(&w.file, ends, &next[0]), 0);
		assert_int_equal(plan_file_spawn(&w.file, 0, &next[1]), 0);
		for (int k = 0; k < 2; k++)
			assert_int_equal(plan_file_exit(&w.file, next[k]), 0);
	}
	finish(&w, getenv("PLAYER"));
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_DONE);
	done(&w);
	(void)state;
}

/* A player under ThreadSanitizer ends at the first race, and reports it on stderr. */
static void test_no_races(void **state)
{
	const char *program = getenv("PLAYER_TSAN");
	char command[4096];

	if (!program || !*program)
		skip();
	/* With an address layout that the sanitizer cannot bear, it cannot run at all. */
	snprintf(command, sizeof(command), "'%s' >/dev/null 2>&1", program);
	if (WEXITSTATUS(system(command)) != 1)
		skip();
	setenv("TSAN_OPTIONS", "halt_on_error=1:exitcode=66:report_thread_leaks=0", 1);
	check_traffic(program, &any);
	unsetenv("TSAN_OPTIONS");
	(void)state;
}

/* Blocks of 1 MiB under a limit of the address space. */
static void make_growth(struct world *w, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t slot;

		assert_int_equal(plan_file_take(&w->file, 0, &slot), 0);
		assert_int_equal(
		    plan_file_add(&w->file, 0, plan_op(PLAN_MALLOC, slot, MiB), MiB), 0);
	}
}

static void test_limit(void **state)
{
	struct plan_op last = plan_op(PLAN_MALLOC, 0, GiB);
	uint64_t free_bytes;
	struct world w;

	last.what |= PLAN_REFUSED | PLAN_LAST;
	begin(&w);
	sample(&w, 0);
	make_growth(&w, 100);
	assert_int_equal(plan_file_alone(&w.file, 0, last), 0);
	finish(&w, getenv("PLAYER"));
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_DONE);
	assert_int_equal(w.player.play->granted_last, 1);
	/* Its own bytes, those beside it, and 300 MiB: the last one is refused. */
	free_bytes = w.player.play->samples[0].size;
	w.player.play->samples[0].beside = 200 * MiB;
	w.player.play->limit_kind = PLAY_LIMIT_AS;
	w.player.play->limit = free_bytes + 200 * MiB + 300 * MiB;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_REFUSED_LAST);
	assert_int_equal(w.player.play->requested, GiB);
	/* With 50 MiB an earlier one is. */
	w.player.play->limit = free_bytes + 200 * MiB + 50 * MiB;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_REFUSED);
	assert_int_equal(w.player.play->requested, MiB);
	assert_true(w.player.play->op > 30 && w.player.play->op < 60);
	done(&w);
	(void)state;
}

/* The program's own limit came later. */
static void test_limit_from_a_sample_on(void **state)
{
	struct world w;

	begin(&w);
	sample(&w, 0);
	make_growth(&w, 100);
	sample(&w, 100 * MiB);
	make_growth(&w, 100);
	finish(&w, getenv("PLAYER"));
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_DONE);
	w.player.play->limit_kind = PLAY_LIMIT_AS;
	w.player.play->limit = w.player.play->samples[0].size + 10 * MiB;
	w.player.play->samples[1].limit = w.player.play->samples[1].size + 50 * MiB;
	w.player.play->samples[0].limit = UINT64_MAX;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_REFUSED);
	assert_true(w.player.play->op > 130 && w.player.play->op < 160);
	done(&w);
	(void)state;
}

/* The record's granted blocks may go a little above the limit, so that the last request is
 * reached; the limit refuses that one. */
static void test_lent(void **state)
{
	struct plan_op last = plan_op(PLAN_MALLOC, 0, MiB);
	struct world w;

	last.what |= PLAN_REFUSED | PLAN_LAST;
	begin(&w);
	sample(&w, 0);
	make_growth(&w, 100);
	sample(&w, 100 * MiB);
	assert_int_equal(plan_file_alone(&w.file, 0, last), 0);
	finish(&w, getenv("PLAYER"));
	w.player.play->in_turn = 1;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_DONE);
	w.player.play->limit_kind = PLAY_LIMIT_AS;
	w.player.play->limit = w.player.play->samples[1].size - 3 * MiB;
	for (unsigned mib = 0; mib < 9; mib += mib ? 6 : 2) {
		w.player.play->lend = mib * MiB;
		run(&w, play_allocator("glibc"));
		if (mib < 8) {
			assert_int_equal(w.player.play->state, PLAY_REFUSED);
			assert_in_range(w.player.play->lent, 0, mib * MiB);
		} else {
			assert_int_equal(w.player.play->state, PLAY_REFUSED_LAST);
			assert_in_range(w.player.play->lent, 3 * MiB, 8 * MiB);
		}
	}
	done(&w);
	(void)state;
}

/* An event is waited for until it is due. */
/* A part of large blocks is written to; short-lived ones cost no page fault. */
static void test_touch(void **state)
{
	enum { BIG = 40 << 20, TIMES = 50, LEFT = 8, SIZE = 1 << 20, FAULTS = 20000 };
	struct rusage before, after;
	uint32_t slot, left;
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(plan_file_take(&w.file, 0, &slot), 0);
	for (int i = 0; i < TIMES; i++) {
		assert_int_equal(
		    plan_file_add(&w.file, 0, plan_op(PLAN_MALLOC, slot, BIG), BIG), 0);
		assert_int_equal(plan_file_add(&w.file, 0, plan_op(PLAN_FREE, slot, 0), -BIG), 0);
	}
	sample(&w, 0);
	for (int i = 0; i < LEFT; i++) {
		assert_int_equal(plan_file_take(&w.file, 0, &left), 0);
		assert_int_equal(
		    plan_file_add(&w.file, 0, plan_op(PLAN_MALLOC, left, SIZE), SIZE), 0);
	}
	sample(&w, LEFT * SIZE);
	finish(&w, getenv("PLAYER"));
	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		w.player.play->touch.share[k] = 128;
	getrusage(RUSAGE_CHILDREN, &before);
	run(&w, play_allocator("glibc"));
	getrusage(RUSAGE_CHILDREN, &after);
	assert_int_equal(w.player.play->samples[1].touched, LEFT * SIZE / 2);
	assert_in_range(w.player.play->samples[1].resident - w.player.play->samples[0].resident,
	    LEFT * SIZE / 2, LEFT * SIZE * 3 / 4);
	/* Kernels before Linux 5.14 cannot write to pages by the dozen. */
	if (can_populate())
		assert_true(after.ru_minflt - before.ru_minflt < FAULTS);
	done(&w);
}

static void test_due(void **state)
{
	struct world w;

	begin(&w);
	sample(&w, 0);
	make_growth(&w, 10);
	sample(&w, 10 * MiB);
	finish(&w, getenv("PLAYER"));
	w.player.play->samples[1].due_ns = 300000000;
	for (int n = 0; n < 2; n++) {
		struct timespec from, to;
		int64_t ms;

		clock_gettime(CLOCK_MONOTONIC, &from);
		run(&w, play_allocator("glibc"));
		clock_gettime(CLOCK_MONOTONIC, &to);
		ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
		assert_int_equal(w.player.play->state, PLAY_DONE);
		assert_true(ms >= 300);
		assert_true(w.player.play->ns < 300000000); /* waiting is no speed */
	}
	done(&w);
	(void)state;
}

/* Many small pieces fit into an allocator's free memory: a resized one is no exception. */
static void test_last_pieces(void **state)
{
	for (int resized = 0; resized < 2; resized++) {
		struct plan_op last;
		struct world w;
		uint32_t slot;

		begin(&w);
		sample(&w, 0);
		assert_int_equal(plan_file_take(&w.file, 0, &slot), 0);
		assert_int_equal(
		    plan_file_add(&w.file, 0, plan_op(PLAN_MALLOC, slot, 100), 100), 0);
		last = plan_op(resized ? PLAN_REALLOC : PLAN_MALLOC, slot, 3000);
		last.what |= PLAN_REFUSED | PLAN_LAST;
		assert_int_equal(plan_file_alone(&w.file, 0, last), 0);
		sample(&w, 100);
		finish(&w, getenv("PLAYER"));
		w.player.play->in_turn = 1;
		run(&w, play_allocator("glibc"));
		assert_int_equal(w.player.play->granted_last, 1);
		w.player.play->limit_kind = PLAY_LIMIT_AS;
		w.player.play->limit = w.player.play->samples[0].size + 4 * MiB;
		w.player.play->near = 16 * MiB;
		run(&w, play_allocator("glibc"));
		assert_int_equal(w.player.play->state, PLAY_REFUSED_LAST);
		assert_in_range(w.player.play->later, MiB, 16 * MiB);
		/* But not any number. */
		w.player.play->near = MiB;
		run(&w, play_allocator("glibc"));
		assert_int_equal(w.player.play->state, PLAY_DONE);
		assert_int_equal(w.player.play->granted_last, 1);
		assert_int_equal(w.player.play->samples[1].live, 100);
		done(&w);
	}
	(void)state;
}

static void test_resident_limit(void **state)
{
	struct world w;

	begin(&w);
	for (int i = 0; i < 20; i++) {
		make_growth(&w, 10);
		sample(&w, (uint64_t)(i + 1) * 10 * MiB);
	}
	finish(&w, getenv("PLAYER"));
	for (int i = 0; i < 20; i++)
		w.player.play->samples[i].beside = 50 * MiB;
	w.player.play->limit_kind = PLAY_LIMIT_RESIDENT;
	w.player.play->limit = 150 * MiB;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_KILLED);
	/* 100 MiB of its own, give or take a sample. */
	assert_in_range(w.player.play->sample, 8, 9);
	/* Nothing is written to: nothing is resident. */
	w.player.play->touch.none = 1;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_DONE);
	done(&w);
	(void)state;
}

/* The same by the kernel, if a cgroup can be made. */
static void test_group(void **state)
{
	static const struct group_parent nowhere = {.version = 2, .dir = "/nonexistent"};
	struct run_cgroup cgroup;
	struct err err = {""};
	struct group trial;
	struct world w;

	assert_true(group_make(&nowhere, &trial, &err) < 0);
	assert_non_null(strstr(err.text, "/nonexistent"));
	run_cgroup_find("", getpid(), &cgroup);
	begin(&w);
	for (int i = 0; i < 20; i++) {
		sample(&w, (uint64_t)i * 10 * MiB);
		make_growth(&w, 10);
	}
	finish(&w, getenv("PLAYER"));
	w.player.parent = (struct group_parent){.version = cgroup.version, .dir = cgroup.dir};
	if (group_make(&w.player.parent, &trial, &err)) {
		print_message("no cgroup can be made here: %s\n", err.text);
		done(&w);
		skip();
	}
	group_remove(&trial);
	assert_int_not_equal(access(trial.dir, F_OK), 0);
	for (int i = 0; i < 20; i++)
		w.player.play->samples[i].beside = 50 * MiB;
	w.player.play->limit_kind = PLAY_LIMIT_GROUP;
	w.player.play->limit = 155 * MiB;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_KILLED);
	assert_int_equal(w.player.play->by_kernel, 1);
	assert_int_equal(w.player.play->sample, 10);
	assert_int_not_equal(access(trial.dir, F_OK), 0);
	/* Growth beside it leaves less. */
	for (int i = 5; i < 20; i++)
		w.player.play->samples[i].beside = 120 * MiB;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_KILLED);
	assert_int_equal(w.player.play->sample, 5);
	w.player.play->limit = 400 * MiB;
	run(&w, play_allocator("glibc"));
	assert_int_equal(w.player.play->state, PLAY_DONE);
	done(&w);
	(void)state;
}

static void test_allocators(void **state)
{
	static const char *const names[] = {"jemalloc", "tcmalloc", "mimalloc"};
	struct world w;

	assert_null(play_allocator("dlmalloc"));
	assert_string_equal(play_allocator_of("/lib/x86_64-linux-gnu/libc.so.6")->name, "glibc");
	assert_string_equal(play_allocator_of("/opt/libjemalloc.so.2")->name, "jemalloc");
	assert_null(play_allocator_of("/opt/libsomething.so"));
	begin(&w);
	make_growth(&w, 20);
	sample(&w, 20 * MiB);
	finish(&w, getenv("PLAYER"));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct err err = {""};
		int rc = player_run(&w.player, play_allocator(names[i]), NULL, &err);

		/* It is there and performs the plan, or its absence is reported. */
		if (rc == -ENOENT) {
			assert_non_null(strstr(err.text, names[i]));
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(w.player.play->state, PLAY_DONE);
		assert_non_null(strstr(w.player.play->allocator, names[i]));
		assert_int_equal(w.player.play->samples[0].live, 20 * MiB);
		assert_true(w.player.play->samples[0].held >= 20 * MiB);
	}
	done(&w);
	(void)state;
}

static void test_no_player(void **state)
{
	struct err err = {""};
	struct world w;

	begin(&w);
	finish(&w, "/nonexistent/whyoom-player");
	assert_int_equal(player_run(&w.player, play_allocator("glibc"), NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/whyoom-player"));
	done(&w);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_traffic),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_no_races),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_limit_from_a_sample_on),
	    cmocka_unit_test(test_lent),
	    cmocka_unit_test(test_touch),
	    cmocka_unit_test(test_due),
	    cmocka_unit_test(test_last_pieces),
	    cmocka_unit_test(test_resident_limit),
	    cmocka_unit_test(test_group),
	    cmocka_unit_test(test_allocators),
	    cmocka_unit_test(test_no_player),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

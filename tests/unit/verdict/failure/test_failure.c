/* Which limit struck, which kind of failure it was, and what is no failure. */
#include "verdict/judged.h"

static struct script *leaking(uint64_t bytes)
{
	struct script *s = script_new();
	uint32_t leak = script_stack(s, "main;leak"), work = script_stack(s, "main;work");

	for (uint64_t i = 0; i < bytes / (100 * KiB); i++) {
		script_alloc(s, leak, 100 * KiB);
		if (i < bytes / (200 * KiB))
			script_release(s, script_alloc(s, work, 100 * KiB));
	}
	return s;
}

static void end(struct script *s, struct verdict_result *r)
{
	verdict_fini(r);
	script_free(s);
}

static void test_which_limit(void **state)
{
	static const struct {
		uint64_t as, data, vsize, used_data, total, request;
		enum limit_kind expect;
	} of[] = {
	    {200 * MiB, 0, 190 * MiB, 150 * MiB, 0, 20 * MiB, LIMIT_AS},
	    {0, 160 * MiB, 190 * MiB, 150 * MiB, 0, 20 * MiB, LIMIT_DATA},
	    {900 * MiB, 160 * MiB, 190 * MiB, 150 * MiB, 0, 20 * MiB, LIMIT_DATA},
	    {200 * MiB, 900 * MiB, 190 * MiB, 150 * MiB, 0, 20 * MiB, LIMIT_AS},
	    {0, 0, 190 * MiB, 150 * MiB, 8 * GiB, 64 * GiB, LIMIT_OVERCOMMIT},
	    {0, 0, 190 * MiB, 150 * MiB, 8 * GiB, 1ull << 62, LIMIT_ADDRESS},
	    {0, 0, 190 * MiB, 150 * MiB, 8 * GiB, 20 * MiB, LIMIT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct script *s = leaking(100 * MiB);
		struct verdict_result r;

		script_set(s, TRACE_LEVEL_VSIZE, of[i].vsize);
		script_set(s, TRACE_LEVEL_DATA, of[i].used_data);
		if (of[i].as)
			script_set(s, TRACE_LEVEL_LIMIT_AS, of[i].as);
		if (of[i].data)
			script_set(s, TRACE_LEVEL_LIMIT_DATA, of[i].data);
		if (of[i].total)
			script_set(s, TRACE_LEVEL_SYS_TOTAL, of[i].total);
		script_failed(s, script_stack(s, "main;leak"), of[i].request);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		assert_int_equal(r.failure.limit, of[i].expect);
		assert_int_equal(r.failure.kind, FAILURE_HOST_ALLOC);
		end(s, &r);
	}
	(void)state;
}

/* malloc keeps the blocks of the high-water mark after their release. A later sample finds
 * another block: the kernel's count stands, not the sum of both. */
static void test_peak_before_the_look(void **state)
{
	struct script *s = script_new();
	uint32_t stack = script_stack(s, "main;serve");
	uint64_t p, q;
	struct verdict_result r;

	q = script_alloc(s, stack, 20 * MiB);
	p = script_alloc(s, stack, 400 * MiB);
	script_release(s, p);
	script_wait(s, 100000000);
	script_set(s, TRACE_LEVEL_RSS, 410 * MiB);
	script_set(s, TRACE_LEVEL_RSS_PEAK, 428 * MiB);
	script_sample(s);
	script_release(s, q);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	assert_int_equal(r.ledger.limit_bytes, 428 * MiB);
	end(s, &r);
	(void)state;
}

static void test_mappings(void **state)
{
	static const struct {
		uint64_t mappings;
		enum limit_kind expect;
	} of[] = {{65532, LIMIT_MAPPINGS}, {65527, LIMIT_MAPPINGS}, {60000, LIMIT_UNKNOWN}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct script *s = leaking(100 * MiB);
		struct verdict_result r;

		script_set(s, TRACE_LEVEL_VSIZE, 190 * MiB);
		script_set(s, TRACE_LEVEL_MAPPINGS, of[i].mappings);
		script_set(s, TRACE_LEVEL_LIMIT_MAPPINGS, 65530);
		script_failed(s, script_stack(s, "main;leak"), 4096);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		assert_int_equal(r.failure.limit, of[i].expect);
		assert_int_equal(r.failure.limit_bytes, 190 * MiB);
		if (of[i].expect == LIMIT_MAPPINGS) {
			assert_int_equal(r.failure.mappings, of[i].mappings);
			assert_non_null(strstr(r.verdict.summary, "vm.max_map_count"));
			assert_non_null(strstr(
			    r.verdict.fixes[r.verdict.fix_count - 1].text, "vm.max_map_count"));
		}
		end(s, &r);
	}
	(void)state;
}

static void test_limit_from_the_start(void **state)
{
	struct script *s = leaking(100 * MiB);
	struct verdict_result r;

	script_info(s, "limit.as", "209715200");
	script_set(s, TRACE_LEVEL_VSIZE, 200 * MiB);
	script_failed(s, script_stack(s, "main;leak"), MiB);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.limit, LIMIT_AS);
	assert_int_equal(r.failure.limit_bytes, 200 * MiB);
	end(s, &r);
	(void)state;
}

static void test_python(void **state)
{
	struct script *s = leaking(100 * MiB);
	struct verdict_result r;

	script_set(s, TRACE_LEVEL_VSIZE, 200 * MiB);
	script_failed(s, script_stack(s, "main;turn@/app/a.py:3;malloc@/lib/libc.so.6"), MiB);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.kind, FAILURE_PYTHON_MEMORYERROR);
	end(s, &r);
	(void)state;
}

/* Seen from outside: killed while the cgroup's count of kills rose. */
static void killed_in_group(
    struct script *s, struct supervised *outside, uint64_t max, uint64_t used)
{
	memset(outside, 0, sizeof(*outside));
	outside->ended = true;
	outside->how = TRACE_END_SIGNAL;
	outside->code = 9;
	levels_set(&outside->first, TRACE_LEVEL_CG_OOM_KILL, 2, 0);
	levels_set(&outside->last, TRACE_LEVEL_CG_OOM_KILL, 3, script_now(s));
	levels_set(&outside->last, TRACE_LEVEL_CG_MAX, max, script_now(s));
	levels_set(&outside->last, TRACE_LEVEL_CG_CURRENT, used, script_now(s));
}

/* A kill: by counter, by nearness to the limit, by growth; and one unrelated to memory. */
static void test_kills(void **state)
{
	static struct supervised outside;
	struct verdict_result r;
	struct script *s = leaking(100 * MiB);

	killed_in_group(s, &outside, 120 * MiB, 90 * MiB);
	judge_script(s, &outside, &r);
	assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
	assert_int_equal(r.failure.limit, LIMIT_CGROUP);
	assert_int_equal(r.verdict.cause, CAUSE_LEAK);
	end(s, &r);

	s = leaking(100 * MiB);
	levels_set(&outside.last, TRACE_LEVEL_CG_OOM_KILL, 2, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_CG_CURRENT, 118 * MiB, script_now(s));
	judge_script(s, &outside, &r);
	assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
	assert_non_null(r.failure.kill_evidence);
	end(s, &r);

	/* An OOM killer does not send SIGTERM. */
	s = leaking(100 * MiB);
	outside.code = 15;
	judge_script(s, &outside, &r);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	end(s, &r);

	/* SIGKILL long after memory fell. */
	s = leaking(1 * MiB);
	script_release(s, script_alloc(s, script_stack(s, "main;once"), 100 * MiB));
	for (int i = 0; i < 1000; i++)
		script_release(s, script_alloc(s, script_stack(s, "main;work"), 1000));
	script_killed(s, 9);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	end(s, &r);
	(void)state;
}

/* Imports, then exits with that status with that much of the address space in use. */
static void starting(uint64_t used, uint32_t status, struct script **s, struct verdict_result *r)
{
	uint32_t stack;

	*s = script_new();
	stack = script_stack(*s, "<module>@/app/main.py:3;load@<frozen importlib._bootstrap>:9;"
				 "<module>@/usr/lib/python3/dist-packages/big/a.py:7");
	script_alloc(*s, script_stack(*s, "<module>@/app/main.py:1"), 1000);
	for (int i = 0; i < 300; i++)
		script_alloc(*s, stack, 100 * KiB);
	script_set(*s, TRACE_LEVEL_LIMIT_AS, 100 * MiB);
	script_set(*s, TRACE_LEVEL_VSIZE, used - 20 * MiB);
	script_set(*s, TRACE_LEVEL_VSIZE_PEAK, used);
	script_sample(*s);
	script_exit(*s, status);
	judge_script(*s, NULL, r);
}

/* Nobody saw the loader's refusal: nearness to the limit tells. */
static void test_unseen(void **state)
{
	struct script *s;
	struct verdict_result r;

	starting(99 * MiB, 1, &s, &r);
	assert_true(r.kill.at_limit);
	assert_int_equal(r.failure.kind, FAILURE_HOST_ALLOC);
	assert_int_equal(r.failure.limit, LIMIT_AS);
	assert_int_equal(r.failure.usage_bytes, 99 * MiB);
	assert_int_equal(r.verdict.cause, CAUSE_EXTERNAL);
	assert_non_null(strstr(r.verdict.summary, "only 1.00 MiB of"));
	end(s, &r);
	starting(99 * MiB, 0, &s, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	end(s, &r);
	starting(80 * MiB, 1, &s, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	end(s, &r);

	/* Interrupted near its limit, and past its start: by a person. */
	s = script_new();
	script_alloc(s, script_stack(s, "main;table"), MiB);
	script_set(s, TRACE_LEVEL_LIMIT_AS, 100 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, 99 * MiB);
	script_sample(s);
	script_killed(s, 2);
	judge_script(s, NULL, &r);
	assert_false(r.kill.at_limit);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	end(s, &r);

	/* There is no shape; that does not make it healthy. */
	s = script_new();
	script_alloc(s, script_stack(s, "main;table"), MiB);
	for (int i = 0; i < 500; i++)
		script_release(s, script_alloc(s, script_stack(s, "main;work"), MiB));
	script_set(s, TRACE_LEVEL_LIMIT_AS, 100 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, 99 * MiB);
	script_sample(s);
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(r.verdict.summary, "no refused request was recorded"));
	end(s, &r);
	(void)state;
}

/* It has its table, and works without leaving anything. */
static void steady(struct script *s)
{
	script_alloc(s, script_stack(s, "main;table"), 20 * MiB);
	for (int i = 0; i < 500; i++)
		script_release(s, script_alloc(s, script_stack(s, "main;work"), 5 * MiB));
}

/* Others' memory fills the cgroup, some of it shared. */
static void test_neighbours(void **state)
{
	static struct supervised outside;
	struct script *s = script_new();
	struct verdict_result r;

	steady(s);
	killed_in_group(s, &outside, 400 * MiB, 399 * MiB);
	levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 125 * MiB, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_CG_SHMEM, 270 * MiB, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_RSS, 29 * MiB, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_RSS_ANON, 25 * MiB, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_RSS_SHMEM, 2 * MiB, script_now(s));
	judge_script(s, &outside, &r);
	assert_int_equal(r.verdict.cause, CAUSE_EXTERNAL);
	assert_int_equal(r.ranking.list[0].finding.other_bytes, 368 * MiB);
	end(s, &r);
	(void)state;
}

/* Files that nobody has mapped, and that were written while hardly anybody else was in the cgroup,
 * are the program's. Not where another process is there, nor what lay there before. */
static void test_files_written(void **state)
{
	static const struct {
		uint64_t others, before; /* MiB */
		enum cause expect;
	} of[] = {{1, 0, CAUSE_LEAK}, {10, 0, CAUSE_EXTERNAL}, {1, 360, CAUSE_EXTERNAL}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		static struct supervised outside;
		struct script *s = script_new();
		struct verdict_result r;

		steady(s);
		killed_in_group(s, &outside, 400 * MiB, 399 * MiB);
		levels_set(&outside.first, TRACE_LEVEL_CG_SHMEM, of[i].before * MiB, 0);
		levels_set(
		    &outside.last, TRACE_LEVEL_CG_ANON, (25 + of[i].others) * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_CG_SHMEM, 360 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_RSS, 25 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_RSS_ANON, 25 * MiB, script_now(s));
		judge_script(s, &outside, &r);
		assert_int_equal(r.verdict.cause, of[i].expect);
		if (of[i].expect == CAUSE_LEAK)
			assert_int_equal(r.ranking.list[0].finding.form, FORM_FILES);
		end(s, &r);
	}
	(void)state;
}

/* The last sample came some time before the kill. Others are charged what they were seen to gain
 * since, as far as the limit had room. */
static void test_others_grew(void **state)
{
	static const struct {
		uint64_t shmem, anonymous, grown; /* seen afterwards, or in between */
		uint64_t expect_shmem, expect_others;
	} of[] = {{0, 0, 0, 100, 40}, {250, 0, 0, 250, 40}, {300, 0, 0, 270, 40},
	    {0, 150, 0, 100, 150}, {0, 0, 60, 100, 100}, {0, 50, 60, 100, 100},
	    {200, 350, 0, 200, 110}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		static struct supervised outside;
		struct script *s = script_new();
		struct verdict_result r;

		steady(s);
		killed_in_group(s, &outside, 335 * MiB, 165 * MiB);
		levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 65 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_CG_SHMEM, 100 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_RSS, 25 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_RSS_ANON, 25 * MiB, script_now(s));
		if (of[i].shmem)
			levels_set(&outside.after, TRACE_LEVEL_CG_SHMEM, of[i].shmem * MiB, 0);
		if (of[i].anonymous)
			levels_set(&outside.after, TRACE_LEVEL_CG_ANON, of[i].anonymous * MiB, 0);
		outside.others_grown = of[i].grown * MiB;
		judge_script(s, &outside, &r);
		assert_int_equal(row_of(&r.ledger, "shared memory"), of[i].expect_shmem * MiB);
		assert_int_equal(row_of(&r.ledger, "other processes"), of[i].expect_others * MiB);
		assert_int_equal(r.ledger.unaccounted,
		    (int64_t)((335 - 25 - of[i].expect_shmem - of[i].expect_others) * MiB));
		end(s, &r);
	}
	(void)state;
}

/* With vm.overcommit_memory=2 the kernel refuses what it has promised to others; a little below, it
 * keeps some back for the administrator. */
static void test_promises(void **state)
{
	static const struct {
		uint64_t limit, committed;
		enum limit_kind expect;
	} of[] = {{GiB, 1000 * MiB, LIMIT_COMMIT}, {GiB, 990 * MiB, LIMIT_COMMIT},
	    {GiB, 700 * MiB, LIMIT_UNKNOWN}, {0, 1000 * MiB, LIMIT_UNKNOWN}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct script *s = leaking(100 * MiB);
		struct verdict_result r;

		script_set(s, TRACE_LEVEL_VSIZE, 190 * MiB);
		script_set(s, TRACE_LEVEL_SYS_TOTAL, 8 * GiB);
		if (of[i].limit)
			script_set(s, TRACE_LEVEL_SYS_COMMIT_LIMIT, of[i].limit);
		script_set(s, TRACE_LEVEL_SYS_COMMITTED, of[i].committed);
		script_failed(s, script_stack(s, "main;leak"), 20 * MiB);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		assert_int_equal(r.failure.limit, of[i].expect);
		if (of[i].expect == LIMIT_COMMIT) {
			assert_int_equal(r.failure.limit_bytes, GiB);
			assert_int_equal(r.failure.usage_bytes, of[i].committed);
			assert_non_null(strstr(r.verdict.summary, "CommitLimit"));
		}
		end(s, &r);
	}
	(void)state;
}

/* The kernel swaps out before it kills, so memory and swap are full together: as much swap as the
 * group may have, or as the machine has. */
static void test_swap(void **state)
{
	static const struct {
		uint64_t own, free, expect; /* own 0: no limit */
	} of[] = {{50, 2000, 50}, {0, 3, 48}, {400, 15, 60}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		static struct supervised outside;
		struct script *s = leaking(140 * MiB);
		struct verdict_result r;
		char words[64];

		killed_in_group(s, &outside, 100 * MiB, 99 * MiB);
		levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 98 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_RSS, 98 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_RSS_ANON, 98 * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_CG_SWAP, 45 * MiB, script_now(s));
		if (of[i].own)
			levels_set(&outside.last, TRACE_LEVEL_CG_SWAP_MAX, of[i].own * MiB, 0);
		levels_set(&outside.last, TRACE_LEVEL_SYS_SWAP_FREE, of[i].free * MiB, 0);
		judge_script(s, &outside, &r);
		assert_int_equal(r.failure.limit, LIMIT_CGROUP);
		assert_int_equal(r.failure.limit_bytes, (100 + of[i].expect) * MiB);
		assert_int_equal(r.failure.usage_bytes, (100 + of[i].expect) * MiB);
		assert_int_equal(r.failure.swap_bytes, of[i].expect * MiB);
		assert_int_equal(row_of(&r.ledger, "swap"), of[i].expect * MiB);
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		snprintf(words, sizeof(words),
		    "100 MiB of memory (cgroup memory.max) and %u.0 MiB of swap",
		    (unsigned)of[i].expect);
		assert_non_null(strstr(r.verdict.summary, words));
		end(s, &r);
	}
	(void)state;
}

/* A group of version 2 counts the kills of the machine's killer as well, but an OOM event only
 * where its own limit was met. */
static void test_machine_kills(void **state)
{
	/* 2: the machine has plenty left, so it was a group above what can be seen. */
	for (int own = 0; own < 3; own++) {
		static struct supervised outside;
		struct script *s = leaking(100 * MiB);
		struct verdict_result r;

		killed_in_group(s, &outside, 2 * GiB, 110 * MiB);
		levels_set(&outside.last, TRACE_LEVEL_SYS_TOTAL, 4 * GiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_SYS_AVAILABLE, own == 2 ? 3 * GiB : 300 * MiB,
		    script_now(s));
		levels_set(&outside.first, TRACE_LEVEL_CG_OOM, 6, 0);
		levels_set(&outside.last, TRACE_LEVEL_CG_OOM, own == 1 ? 7 : 6, script_now(s));
		judge_script(s, &outside, &r);
		assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
		if (own == 2) {
			assert_int_equal(r.failure.limit, LIMIT_NONE);
			end(s, &r);
			continue;
		}
		assert_int_equal(r.failure.limit, own ? LIMIT_CGROUP : LIMIT_SYSTEM);
		assert_int_equal(r.failure.limit_bytes, own ? 2 * GiB : 4 * GiB);
		assert_int_equal(r.failure.usage_bytes, r.failure.limit_bytes);
		end(s, &r);
	}
	(void)state;
}

/* At memory.high the kernel makes a process wait, again and again. A burst over it is no stall, nor
 * is a group full of pages that can be dropped, nor a program that ends well. */
static void test_stalled(void **state)
{
	static const struct {
		uint64_t first, last, anonymous;
		int status; /* of a signal; 0: it exits well */
		bool stalled;
	} of[] = {{5, 105, 119, 15, true}, {5, 104, 119, 15, false}, {5, 900, 100, 15, false},
	    {5, 900, 119, 0, false}, {0, 900, 125, 15, true}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		static struct supervised outside;
		struct script *s = leaking(100 * MiB);
		struct verdict_result r;

		memset(&outside, 0, sizeof(outside));
		outside.ended = true;
		outside.how = of[i].status ? TRACE_END_SIGNAL : TRACE_END_EXIT;
		outside.code = (uint32_t)of[i].status;
		levels_set(&outside.first, TRACE_LEVEL_CG_HIGH_COUNT, of[i].first, 0);
		levels_set(&outside.last, TRACE_LEVEL_CG_HIGH_COUNT, of[i].last, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_CG_HIGH, 120 * MiB, script_now(s));
		levels_set(
		    &outside.last, TRACE_LEVEL_CG_ANON, of[i].anonymous * MiB, script_now(s));
		levels_set(&outside.last, TRACE_LEVEL_CG_CURRENT, 120 * MiB, script_now(s));
		judge_script(s, &outside, &r);
		assert_int_equal(r.failure.kind, of[i].stalled ? FAILURE_STALLED : FAILURE_NONE);
		assert_int_equal(r.verdict.cause, of[i].stalled ? CAUSE_LEAK : CAUSE_HEALTHY);
		if (of[i].stalled) {
			assert_int_equal(r.failure.limit, LIMIT_CGROUP_HIGH);
			assert_int_equal(r.failure.limit_bytes, 120 * MiB);
			assert_true(r.failure.usage_bytes <= 120 * MiB);
			assert_int_equal(r.failure.held_back, of[i].last - of[i].first);
			assert_non_null(strstr(r.verdict.summary, "cgroup memory.high"));
		}
		end(s, &r);
	}
	(void)state;
}

/* The kernel drops clean pages of files before it refuses: they are room. */
static void test_clean_cache(void **state)
{
	struct room rooms[FAILURE_ROOMS];
	struct verdict_result r;
	struct script *s = leaking(10 * MiB);

	script_set(s, TRACE_LEVEL_CG_MAX, 200 * MiB);
	script_set(s, TRACE_LEVEL_CG_CURRENT, 190 * MiB);
	script_set(s, TRACE_LEVEL_CG_INACTIVE_FILE, 90 * MiB);
	script_sample(s);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	assert_int_equal(r.failure.limit, LIMIT_CGROUP);
	assert_int_equal(r.failure.usage_bytes, 100 * MiB);
	assert_int_equal(failure_rooms(r.model, NULL, rooms), 1);
	assert_int_equal(rooms[0].left, 100 * MiB);
	end(s, &r);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_which_limit),
	    cmocka_unit_test(test_peak_before_the_look),
	    cmocka_unit_test(test_mappings),
	    cmocka_unit_test(test_limit_from_the_start),
	    cmocka_unit_test(test_python),
	    cmocka_unit_test(test_kills),
	    cmocka_unit_test(test_unseen),
	    cmocka_unit_test(test_neighbours),
	    cmocka_unit_test(test_files_written),
	    cmocka_unit_test(test_others_grew),
	    cmocka_unit_test(test_promises),
	    cmocka_unit_test(test_swap),
	    cmocka_unit_test(test_machine_kills),
	    cmocka_unit_test(test_stalled),
	    cmocka_unit_test(test_clean_cache),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rows under each kind of limit, from levels that add up and from levels that do not. */
#include "verdict/judged.h"

#include "verdict/failure/failure.h"

static void end(struct script *s, struct verdict_result *r)
{
	verdict_fini(r);
	script_free(s);
}

static struct script *leaking(uint64_t count)
{
	struct script *s = script_new();
	uint32_t leak = script_stack(s, "main;leak"), work = script_stack(s, "main;work");

	for (uint64_t i = 0; i < count; i++) {
		script_alloc(s, leak, 100 * KiB);
		if (i < count / 2)
			script_release(s, script_alloc(s, work, 100 * KiB));
	}
	return s;
}

#define LEVELS(...)                                                                                \
	(const struct event_level[])                                                               \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			0, 0                                                                       \
		}                                                                                  \
	}

static void set_all(struct script *s, const struct event_level *levels)
{
	for (; levels->key; levels++)
		script_set(s, levels->key, levels->value);
}

/* The leaking call site is refused 10 MiB, at these levels, and the process ends. */
static void refused(struct script *s, const struct event_level *levels, struct verdict_result *r)
{
	set_all(s, levels);
	script_failed(s, script_stack(s, "main;leak"), 10 * MiB);
	script_exit(s, 1);
	judge_script(s, NULL, r);
}

/* Nothing is refused. */
static void sampled(struct script *s, const struct event_level *levels, struct verdict_result *r)
{
	set_all(s, levels);
	script_sample(s);
	script_exit(s, 0);
	judge_script(s, NULL, r);
}

/* Killed, with the last samples of it and of its group. */
static void killed(struct supervised *outside, const struct event_level *levels, uint64_t now)
{
	memset(outside, 0, sizeof(*outside));
	outside->ended = true;
	outside->how = TRACE_END_SIGNAL;
	outside->code = 9;
	for (; levels->key; levels++)
		levels_set(&outside->last, levels->key, levels->value, now);
}

static void test_address_space(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	script_map_at(s, script_stack(s, "main;thread"), 1ull << 32, 8 * MiB, TRACE_MAP_STACK);
	script_map_at(s, script_stack(s, "main;pages"), 1ull << 33, 5 * MiB, 0);
	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 160 * MiB}, {TRACE_LEVEL_VSIZE, 155 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_VIRT_SHARED, 3 * MiB},
		{TRACE_LEVEL_VIRT_STACKS, 1 * MiB}),
	    &r);
	assert_int_equal(l->limit_bytes, 160 * MiB);
	assert_int_equal(row_of(l, "leaked"), 1000 * 100 * KiB);
	assert_int_equal(row_of(l, "stacks"), 9 * MiB);
	assert_int_equal(row_of(l, "anonymous mappings"), 5 * MiB);
	assert_int_equal(row_of(l, "file mappings"), 20 * MiB);
	assert_int_equal(row_of(l, "whyoom"), 3 * MiB); /* the trace: nothing else mapped shared */
	assert_int_equal(row_of(l, "free"), 5 * MiB);
	assert_int_equal(row_of(l, "allocator overhead and free"),
	    155 * MiB - 24 * MiB - 13 * MiB - 1000 * 100 * KiB);
	assert_int_equal(l->unaccounted, 0);
	end(s, &r);
	(void)state;
}

/* RLIMIT_AS charges mapped files, in the sample or since; large ones to the call site that
 * mapped them, unseen ones to libraries. */
static void test_mapped_files(void **state)
{
	for (int i = 0; i < 4; i++) {
		bool shared = i & 1, later = i & 2;
		struct script *s = leaking(100);
		struct verdict_result r;
		const struct ledger *l = &r.ledger;
		uint32_t load = script_stack(s, "main;load");
		uint32_t flags = shared ? TRACE_MAP_SHARED : 0;

		if (!later)
			script_map(s, load, 120 * MiB, flags, TRACE_BACKING_FILE);
		script_wait(s, 1000000);
		script_level(s, TRACE_LEVEL_VIRT_FILE, (later || shared ? 20 : 140) * MiB);
		script_level(s, TRACE_LEVEL_VIRT_SHARED, (later || !shared ? 3 : 123) * MiB);
		script_level(s, TRACE_LEVEL_VIRT_STACKS, 1 * MiB);
		script_wait(s, 100000000);
		if (later)
			script_map(s, load, 120 * MiB, flags, TRACE_BACKING_FILE);
		refused(s,
		    LEVELS({TRACE_LEVEL_LIMIT_AS, 160 * MiB}, {TRACE_LEVEL_VSIZE, 155 * MiB},
			{TRACE_LEVEL_DATA, 11 * MiB}),
		    &r);
		assert_int_equal(r.callsites->file_bytes, 120 * MiB);
		assert_int_equal(row_of(l, "file mappings"), 20 * MiB);
		assert_int_equal(
		    row_of(l, "weights") + row_of(l, "one-off intermediates") + row_of(l, "leaked"),
		    120 * MiB + 100 * 100 * KiB);
		assert_int_equal(row_of(l, "shared memory"), 0);
		assert_int_equal(row_of(l, "whyoom"), 3 * MiB);
		assert_int_equal(row_of(l, "anonymous mappings"), 0);
		assert_int_equal(l->unaccounted, 0);
		end(s, &r);
	}
	(void)state;
}

/* RLIMIT_DATA charges the private and writable ones: PyTorch maps checkpoints so. */
static void test_mapped_data(void **state)
{
	static const struct {
		uint32_t flags;
		bool read_only;
		uint64_t charged;
	} tries[] = {{0, false, 60 * MiB}, {0, true, 0}, {TRACE_MAP_SHARED, false, 0}};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct script *s = leaking(100);
		struct verdict_result r;

		script_map(
		    s, script_stack(s, "main;load"), 60 * MiB, tries[i].flags, TRACE_BACKING_FILE);
		if (tries[i].read_only)
			script_read_only(s);
		refused(s, LEVELS({TRACE_LEVEL_LIMIT_DATA, 80 * MiB}, {TRACE_LEVEL_DATA, 75 * MiB}),
		    &r);
		assert_int_equal(r.callsites->file_bytes, tries[i].charged);
		assert_int_equal(row_of(&r.ledger, "allocator overhead and free"),
		    75 * MiB - tries[i].charged - 100 * 100 * KiB);
		assert_int_equal(r.ledger.unaccounted, 0);
		end(s, &r);
	}
	(void)state;
}

/* malloc's own account: bytes that it does not hold and that no call mapped are not accounted
 * for. */
static void test_mallocs_own_account(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 160 * MiB}, {TRACE_LEVEL_VSIZE, 155 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_MALLOC_ARENA, 80 * MiB},
		{TRACE_LEVEL_MALLOC_MMAP, 25 * MiB}, {TRACE_LEVEL_MALLOC_FREE, 4 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "allocator overhead"), 101 * MiB - 1000 * 100 * KiB);
	assert_int_equal(row_of(l, "allocator free lists"), 4 * MiB);
	assert_int_equal(row_of(l, "allocator overhead and free"), 0);
	assert_int_equal(l->unaccounted, 30 * MiB);
	end(s, &r);
	(void)state;
}

/* Address space without write permission is malloc's reserve for its arenas. */
static void test_kept_address_space(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 260 * MiB}, {TRACE_LEVEL_VSIZE, 255 * MiB},
		{TRACE_LEVEL_DATA, 107 * MiB}, {TRACE_LEVEL_VIRT_FILE, 20 * MiB},
		{TRACE_LEVEL_MALLOC_ARENA, 105 * MiB}, {TRACE_LEVEL_MALLOC_FREE, 5 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "kept to grow into"), 255 * MiB - 20 * MiB - 107 * MiB);
	assert_int_equal(l->unaccounted, 2 * MiB);
	end(s, &r);
	(void)state;
}

/* An older account moves on with the heap; of memory that appeared since, malloc's part is what
 * was acquired. */
static void test_earlier_account(void **state)
{
	for (int grown = 0; grown < 2; grown++) {
		struct script *s = leaking(1000);
		struct verdict_result r;
		const struct ledger *l = &r.ledger;
		uint64_t heap = 1000 * 100 * KiB, more = grown ? heap / 2 : heap / 100;

		script_space_level(s, TRACE_SPACE_HOST, TRACE_LEVEL_MALLOC_FREE, 4 * MiB,
		    TRACE_LEVEL_MALLOC_ARENA, heap + 14 * MiB);
		script_level(s, TRACE_LEVEL_LIMIT_AS, 260 * MiB);
		script_level(s, TRACE_LEVEL_VSIZE, 255 * MiB);
		script_level(s, TRACE_LEVEL_VIRT_FILE, 20 * MiB);
		script_wait(s, 5000000000);
		for (uint64_t left = more; left; left -= 100 * KiB)
			script_alloc(s, script_stack(s, "main;leak"), 100 * KiB);
		script_wait(s, 5000000000);
		script_failed(s, script_stack(s, "main;leak"), 10 * MiB);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		/* Overhead grows with the blocks; the blocks first fill the free bytes. */
		assert_in_range(row_of(l, "allocator overhead"), 10 * MiB, 16 * MiB);
		assert_in_range(row_of(l, "allocator free lists"), grown ? more - MiB : 3 * MiB,
		    grown ? more + MiB : 5 * MiB);
		assert_true(l->unaccounted > 0);
		end(s, &r);
	}
	(void)state;
}

/* An allocator that tells only its total. */
static void test_account_of_the_whole(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 160 * MiB}, {TRACE_LEVEL_VSIZE, 155 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_MALLOC_ARENA, 120 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "allocator overhead and free"), 120 * MiB - 1000 * 100 * KiB);
	assert_int_equal(l->unaccounted, 15 * MiB);
	end(s, &r);
	(void)state;
}

/* Stacks that the C library maps by itself, address space or resident. */
static void test_threads(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 260 * MiB}, {TRACE_LEVEL_VSIZE, 255 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_VIRT_THREADS, 80 * MiB},
		{TRACE_LEVEL_VIRT_STACKS, 1 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "stacks"), 81 * MiB);
	end(s, &r);
	/* Not measured: one a thread, of the usual size. */
	s = leaking(1000);
	script_info(s, "limit.stack", "8388608");
	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 260 * MiB}, {TRACE_LEVEL_VSIZE, 255 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_THREADS, 5},
		{TRACE_LEVEL_VIRT_STACKS, 1 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "stacks"), 33 * MiB);
	end(s, &r);
	/* A sample that found none proves nothing. */
	s = leaking(1000);
	script_info(s, "limit.stack", "8388608");
	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 260 * MiB}, {TRACE_LEVEL_VSIZE, 255 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_THREADS, 2},
		{TRACE_LEVEL_VIRT_THREADS, 0}, {TRACE_LEVEL_VIRT_STACKS, 1 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "stacks"), 9 * MiB);
	end(s, &r);
	/* More stacks than threads, and than glibc keeps: ended threads left them. */
	s = leaking(1000);
	script_info(s, "limit.stack", "8388608");
	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 260 * MiB}, {TRACE_LEVEL_VSIZE, 255 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_THREADS, 2},
		{TRACE_LEVEL_THREADS_STARTED, 12}, {TRACE_LEVEL_VIRT_THREADS, 88 * MiB},
		{TRACE_LEVEL_VIRT_STACKS, 1 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "stacks"), 9 * MiB);
	assert_int_equal(row_of(l, "stacks of ended threads"), 80 * MiB);
	end(s, &r);
	s = leaking(1000);
	sampled(s,
	    LEVELS({TRACE_LEVEL_RSS, 110 * MiB}, {TRACE_LEVEL_RSS_ANON, 110 * MiB},
		{TRACE_LEVEL_STACKS, 132 * KiB}, {TRACE_LEVEL_RSS_THREADS, 3 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "stacks"), 3 * MiB + 132 * KiB);
	end(s, &r);
	(void)state;
}

/* RLIMIT_DATA counts what libraries can write to, which malloc's account lacks. */
static void test_module_data(void **state)
{
	static const struct {
		uint64_t data, row;
	} tries[] = {{7 * MiB, 7 * MiB}, {50 * MiB, 10 * MiB}};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct script *s = leaking(1000);
		struct verdict_result r;
		const struct ledger *l = &r.ledger;

		script_facts(s)->module_data = tries[i].data;
		refused(s,
		    LEVELS({TRACE_LEVEL_LIMIT_DATA, 160 * MiB}, {TRACE_LEVEL_DATA, 115 * MiB},
			{TRACE_LEVEL_MALLOC_ARENA, 101 * MiB}, {TRACE_LEVEL_MALLOC_FREE, 2 * MiB},
			{TRACE_LEVEL_WHYOOM, 4 * MiB}, {TRACE_LEVEL_WHYOOM_TRACE, 0},
			{TRACE_LEVEL_WHYOOM_ANON, 4 * MiB}),
		    &r);
		assert_int_equal(row_of(l, "file mappings"), tries[i].row);
		assert_int_equal(row_of(l, "allocator free lists"), 2 * MiB);
		assert_int_equal(l->unaccounted, 10 * MiB - tries[i].row);
		end(s, &r);
	}
	(void)state;
}

/* The recorder's own part: all of it where address space is charged, its memory where memory is. */
static void test_whyoom_itself(void **state)
{
	static const struct {
		uint32_t limit;
		uint64_t row, room;
	} tries[] = {
	    {TRACE_LEVEL_LIMIT_AS, 9 * MiB, 0},
	    {TRACE_LEVEL_LIMIT_DATA, 3 * MiB, 0},
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct script *s = leaking(1000);
		struct verdict_result r;
		const struct ledger *l = &r.ledger;

		refused(s,
		    LEVELS({tries[i].limit, 160 * MiB}, {TRACE_LEVEL_VSIZE, 155 * MiB},
			{TRACE_LEVEL_DATA,
			    tries[i].limit == TRACE_LEVEL_LIMIT_AS ? 120 * MiB : 155 * MiB},
			{TRACE_LEVEL_STACKS, 1 * MiB}, {TRACE_LEVEL_WHYOOM, 9 * MiB},
			{TRACE_LEVEL_WHYOOM_TRACE, 2 * MiB}, {TRACE_LEVEL_WHYOOM_ANON, 3 * MiB}),
		    &r);
		assert_int_equal(row_of(l, "whyoom"), tries[i].row);
		/* Mappings were not sampled: writable bytes count, the recorder's are subtracted
		 * once. */
		assert_int_equal(row_of(l, "allocator overhead and free"),
		    (i ? 155 : 120) * MiB - 3 * MiB - 1000 * 100 * KiB);
		assert_int_equal(
		    row_of(l, "file mappings"), i ? 0 : 155 * MiB - 117 * MiB - 1 * MiB - 9 * MiB);
		assert_int_equal(l->unaccounted, 0);
		end(s, &r);
	}
	(void)state;
}

/* Private writable bytes were sampled before the blocks came: they are no file mappings. */
static void test_data_read_before(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 160 * MiB}, {TRACE_LEVEL_VSIZE, 155 * MiB},
		{TRACE_LEVEL_DATA, 10 * MiB}, {TRACE_LEVEL_STACKS, 1 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "file mappings"), 154 * MiB - 1000 * 100 * KiB);
	assert_int_equal(row_of(l, "allocator overhead and free"), 0);
	assert_int_equal(l->unaccounted, 0);
	end(s, &r);
	(void)state;
}

static void test_whyoom_resident(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	sampled(s,
	    LEVELS({TRACE_LEVEL_RSS, 120 * MiB}, {TRACE_LEVEL_RSS_ANON, 110 * MiB},
		{TRACE_LEVEL_RSS_FILE, 10 * MiB}, {TRACE_LEVEL_WHYOOM, 90 * MiB},
		{TRACE_LEVEL_WHYOOM_TRACE, 2 * MiB}, {TRACE_LEVEL_WHYOOM_ANON, 3 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "whyoom"), 5 * MiB);
	assert_int_equal(row_of(l, "file mappings"), 8 * MiB);
	assert_int_equal(row_of(l, "allocator overhead and free"), 107 * MiB - 1000 * 100 * KiB);
	assert_int_equal(l->unaccounted, 0);
	end(s, &r);
	(void)state;
}

static void test_cgroup(void **state)
{
	struct script *s = leaking(1000);
	static struct supervised outside;
	struct verdict_result r;
	const struct ledger *l = &r.ledger;
	uint64_t now = script_now(s);

	killed(&outside,
	    LEVELS({TRACE_LEVEL_CG_MAX, 200 * MiB}, {TRACE_LEVEL_CG_CURRENT, 198 * MiB},
		{TRACE_LEVEL_CG_ANON, 140 * MiB}, {TRACE_LEVEL_CG_FILE, 40 * MiB},
		{TRACE_LEVEL_CG_SHMEM, 4 * MiB}, {TRACE_LEVEL_CG_KERNEL, 8 * MiB},
		{TRACE_LEVEL_RSS, 120 * MiB}, {TRACE_LEVEL_RSS_ANON, 110 * MiB},
		{TRACE_LEVEL_WHYOOM, 6 * MiB}),
	    now);
	judge_script(s, &outside, &r);
	assert_int_equal(l->limit, LIMIT_CGROUP);
	assert_int_equal(row_of(l, "leaked"), 1000 * 100 * KiB);
	assert_int_equal(row_of(l, "allocator overhead and free"), 110 * MiB - 1000 * 100 * KiB);
	assert_int_equal(row_of(l, "other processes"), 30 * MiB);
	assert_int_equal(row_of(l, "shared memory"), 4 * MiB);
	assert_int_equal(row_of(l, "whyoom"), 6 * MiB);
	assert_int_equal(row_of(l, "file cache"), 30 * MiB);
	assert_int_equal(row_of(l, "kernel"), 8 * MiB);
	assert_int_equal(row_of(l, "free"), 2 * MiB);
	assert_int_equal(l->unaccounted, 10 * MiB);
	assert_int_equal(l->age_ns, 0);
	end(s, &r);
	/* The group's parts come from an earlier sample: the report tells its age. */
	s = leaking(1000);
	levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 140 * MiB, now / 2);
	judge_script(s, &outside, &r);
	assert_in_range(l->age_ns, now / 2 - now / 10, now / 2 + now / 10);
	end(s, &r);
	(void)state;
}

static void killed_in_a_group(struct supervised *outside, uint64_t now)
{
	killed(outside,
	    LEVELS({TRACE_LEVEL_CG_MAX, 150 * MiB}, {TRACE_LEVEL_CG_CURRENT, 149 * MiB},
		{TRACE_LEVEL_RSS, 100 * MiB}, {TRACE_LEVEL_RSS_ANON, 100 * MiB}),
	    now);
}

/* The group's sample is older than the process's own, or came after its exit: the others keep
 * what they had. */
static void test_cgroup_other_moments(void **state)
{
	static struct supervised outside;
	struct script *s = script_new();
	uint32_t leak = script_stack(s, "main;leak");
	struct verdict_result r;
	uint64_t half = 0;

	script_step(s, 1000000);
	for (uint64_t i = 0; i < 1000; i++) {
		script_alloc(s, leak, 100 * KiB);
		if (i == 499)
			half = script_now(s);
	}
	killed_in_a_group(&outside, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 90 * MiB, half);
	judge_script(s, &outside, &r);
	assert_int_equal(r.ledger.limit, LIMIT_CGROUP);
	assert_in_range(row_of(&r.ledger, "other processes"), 37 * MiB, 43 * MiB);
	assert_true(r.ledger.age_ns > 0);
	verdict_fini(&r);
	levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 40 * MiB, script_now(s) + 1000);
	judge_script(s, &outside, &r);
	assert_int_equal(row_of(&r.ledger, "other processes"), 40 * MiB);
	verdict_fini(&r);
	/* The process's own sample is later: it had not exited, however little it did. */
	levels_set(&outside.last, TRACE_LEVEL_RSS_ANON, outside.last.value[TRACE_LEVEL_RSS_ANON],
	    script_now(s) + 2000);
	judge_script(s, &outside, &r);
	assert_int_equal(row_of(&r.ledger, "other processes"), 0);
	end(s, &r);
	(void)state;
}

/* Processes that recorded acquisitions since the sample hold them, as far as the limit has room. */
static void test_cgroup_siblings(void **state)
{
	static struct supervised outside;
	struct script *s = leaking(1000);
	struct verdict_result r;
	struct levels levels;
	struct ledger_input in = {.r = &r, .levels = &levels, .at = "failure"};
	struct ledger l;
	uint64_t age, others;

	killed_in_a_group(&outside, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 110 * MiB, script_now(s));
	judge_script(s, &outside, &r);
	failure_levels(r.model, &outside, LEVELS_AT_END, r.callsites->moment_ns, &levels, &age);
	assert_int_equal(ledger_make(&in, &l), 0);
	others = row_of(&l, "other processes");
	assert_in_range(others, 9 * MiB, 11 * MiB);
	r.tree.siblings_live = 30 * MiB;
	assert_int_equal(ledger_make(&in, &l), 0);
	assert_int_equal(row_of(&l, "other processes"), 30 * MiB);
	r.tree.siblings_live = 300 * MiB;
	assert_int_equal(ledger_make(&in, &l), 0);
	assert_in_range(row_of(&l, "other processes"), 48 * MiB, 50 * MiB);
	assert_int_equal(l.unaccounted, 0);
	r.tree.siblings_live = others / 2;
	assert_int_equal(ledger_make(&in, &l), 0);
	assert_int_equal(row_of(&l, "other processes"), others);
	end(s, &r);
	(void)state;
}

/* Acquisitions since the sample are charged as far as the limit has room; cache beyond that was
 * reclaimed. */
static void test_cgroup_bounds(void **state)
{
	static struct supervised outside;
	struct script *s = leaking(1000);
	uint64_t then = script_now(s);
	struct verdict_result r;

	script_wait(s, 1000000000);
	script_alloc(s, script_stack(s, "main;late"), 90 * MiB);
	script_wait(s, 1000000000);
	killed_in_a_group(&outside, then);
	levels_set(&outside.last, TRACE_LEVEL_CG_ANON, 110 * MiB, then);
	levels_set(&outside.last, TRACE_LEVEL_CG_FILE, 60 * MiB, then);
	levels_set(&outside.last, TRACE_LEVEL_CG_KERNEL, 2 * MiB, then);
	judge_script(s, &outside, &r);
	assert_int_equal(r.ledger.limit, LIMIT_CGROUP);
	assert_in_range(row_of(&r.ledger, "other processes"), 9 * MiB, 11 * MiB);
	assert_int_equal(row_of(&r.ledger, "file cache"), 0);
	assert_int_equal(row_of(&r.ledger, "kernel"), 2 * MiB);
	assert_int_equal(r.ledger.unaccounted, 0);
	end(s, &r);
	(void)state;
}

/* Requests whose own blocks are released: half of what share() keeps. */
static void work(struct script *s, int count)
{
	for (int i = 0; i < count; i++)
		script_release(s, script_alloc(s, script_stack(s, "main;work"), 5 * MiB));
}

/* Maps `count` segments of shared memory at the leaking call site. */
static void share(struct script *s, int count)
{
	for (int i = 0; i < count; i++)
		script_map(
		    s, script_stack(s, "main;leak"), 10 * MiB, TRACE_MAP_SHARED, TRACE_BACKING_SHM);
}

/* Kept shared memory is told by its cause; a part without a known maker has a row of its own.
 * RLIMIT_DATA does not charge it, even when set half-way. */
static void test_shared(void **state)
{
	struct script *s = leaking(100);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	share(s, 12);
	work(s, 12);
	refused(s,
	    LEVELS({TRACE_LEVEL_LIMIT_AS, 180 * MiB}, {TRACE_LEVEL_VSIZE, 175 * MiB},
		{TRACE_LEVEL_VIRT_FILE, 20 * MiB}, {TRACE_LEVEL_VIRT_SHARED, 127 * MiB},
		{TRACE_LEVEL_WHYOOM, 3 * MiB}, {TRACE_LEVEL_WHYOOM_TRACE, 3 * MiB}),
	    &r);
	assert_int_equal(row_of(l, "leaked"), 100 * 100 * KiB + 120 * MiB);
	assert_int_equal(row_of(l, "shared memory"), 4 * MiB);
	assert_int_equal(row_of(l, "whyoom"), 3 * MiB);
	assert_int_equal(l->unaccounted, 0);
	end(s, &r);
	s = leaking(1000);
	share(s, 12);
	refused(s, LEVELS({TRACE_LEVEL_LIMIT_DATA, 110 * MiB}, {TRACE_LEVEL_DATA, 109 * MiB}), &r);
	assert_int_equal(r.failure.limit, LIMIT_DATA);
	assert_int_equal(row_of(l, "leaked"), 1000 * 100 * KiB);
	assert_int_equal(row_of(l, "shared memory"), 0);
	assert_int_equal(l->unaccounted, 0);
	end(s, &r);
	(void)state;
}

/* The same for a group: as much of its shared memory as the process keeps, whoever wrote it.
 * Acquisitions after the sample are carried on like private memory, each with its own part. */
static void test_cgroup_shared(void **state)
{
	struct script *s = leaking(100);
	static struct supervised outside;
	struct verdict_result r;
	const struct ledger *l = &r.ledger;
	uint64_t now;

	share(s, 12);
	work(s, 12);
	now = script_now(s);
	killed(&outside,
	    LEVELS({TRACE_LEVEL_CG_MAX, 200 * MiB}, {TRACE_LEVEL_CG_CURRENT, 170 * MiB},
		{TRACE_LEVEL_CG_ANON, 20 * MiB}, {TRACE_LEVEL_CG_SHMEM, 150 * MiB},
		{TRACE_LEVEL_RSS, 80 * MiB}, {TRACE_LEVEL_RSS_ANON, 20 * MiB},
		{TRACE_LEVEL_RSS_SHMEM, 60 * MiB}),
	    now);
	script_wait(s, 100000000);
	share(s, 2);
	judge_script(s, &outside, &r);
	assert_int_equal(l->limit, LIMIT_CGROUP);
	/* Half of the segments was resident, so half of the new ones is. */
	assert_int_equal(r.failure.usage_bytes, 180 * MiB);
	assert_int_equal(row_of(l, "leaked"), 100 * 100 * KiB + 140 * MiB);
	assert_int_equal(row_of(l, "shared memory"), 10 * MiB);
	assert_int_equal(row_of(l, "allocator overhead and free"), 20 * MiB - 100 * 100 * KiB);
	assert_int_equal(row_of(l, "other processes"), 0);
	end(s, &r);
	(void)state;
}

/* Twice as much lives as is resident: half of each is charged. */
static void test_untouched(void **state)
{
	struct script *s = leaking(1000);
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	sampled(s, LEVELS({TRACE_LEVEL_RSS, 50 * MiB}, {TRACE_LEVEL_RSS_ANON, 50 * MiB}), &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	assert_int_equal(row_of(l, "retained state"), 50 * MiB);
	assert_int_equal(l->unaccounted, 0);
	end(s, &r);
	(void)state;
}

/* Rows and the rest add up at any levels; judge_script() asserts it. */
static void test_absurd_levels(void **state)
{
	static const uint32_t keys[] = {TRACE_LEVEL_VSIZE, TRACE_LEVEL_LIMIT_AS, TRACE_LEVEL_DATA,
	    TRACE_LEVEL_VIRT_FILE, TRACE_LEVEL_VIRT_SHARED, TRACE_LEVEL_VIRT_STACKS,
	    TRACE_LEVEL_WHYOOM, TRACE_LEVEL_WHYOOM_TRACE, TRACE_LEVEL_WHYOOM_ANON,
	    TRACE_LEVEL_MALLOC_ARENA, TRACE_LEVEL_MALLOC_FREE, TRACE_LEVEL_DATA, TRACE_LEVEL_RSS,
	    TRACE_LEVEL_RSS_ANON, TRACE_LEVEL_CG_MAX, TRACE_LEVEL_CG_CURRENT, TRACE_LEVEL_STACKS,
	    TRACE_LEVEL_RSS_FILE, TRACE_LEVEL_RSS_SHMEM, TRACE_LEVEL_VIRT_THREADS,
	    TRACE_LEVEL_RSS_THREADS, TRACE_LEVEL_MALLOC_MMAP, TRACE_LEVEL_LIMIT_DATA,
	    TRACE_LEVEL_CG_ANON, TRACE_LEVEL_CG_FILE, TRACE_LEVEL_CG_KERNEL, TRACE_LEVEL_CG_SHMEM,
	    TRACE_LEVEL_SYS_TOTAL, TRACE_LEVEL_SYS_AVAILABLE};
	uint64_t seed = 77;

	for (int i = 0; i < 1000; i++) {
		struct script *s = leaking(dice(&seed, 100));
		struct supervised outside = {.ended = true, .how = TRACE_END_SIGNAL, .code = 9};
		struct verdict_result r;

		script_map_at(s, script_stack(s, "main;pages"), 1ull << 33, MiB,
		    dice(&seed, 2) ? TRACE_MAP_STACK : 0);
		share(s, (int)dice(&seed, 4));

		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			if (dice(&seed, 3))
				script_set(s, keys[k],
				    dice(&seed, 5) ? dice(&seed, GiB)
						   : UINT64_MAX - dice(&seed, 9));
		if (i % 2)
			script_failed(
			    s, script_stack(s, "main;leak"), dice(&seed, 2) ? MiB : UINT64_MAX);
		else
			script_sample(s);
		if (i % 3)
			script_exit(s, 1);
		else
			script_killed(s, 9);
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			if (dice(&seed, 2))
				levels_set(&outside.last, keys[k], dice(&seed, GiB),
				    dice(&seed, script_now(s) + 1));
		judge_script(s, i % 2 ? &outside : NULL, &r);
		end(s, &r);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_address_space),
	    cmocka_unit_test(test_mapped_files),
	    cmocka_unit_test(test_mapped_data),
	    cmocka_unit_test(test_mallocs_own_account),
	    cmocka_unit_test(test_kept_address_space),
	    cmocka_unit_test(test_earlier_account),
	    cmocka_unit_test(test_account_of_the_whole),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_module_data),
	    cmocka_unit_test(test_whyoom_itself),
	    cmocka_unit_test(test_data_read_before),
	    cmocka_unit_test(test_whyoom_resident),
	    cmocka_unit_test(test_cgroup),
	    cmocka_unit_test(test_cgroup_other_moments),
	    cmocka_unit_test(test_cgroup_siblings),
	    cmocka_unit_test(test_cgroup_bounds),
	    cmocka_unit_test(test_shared),
	    cmocka_unit_test(test_cgroup_shared),
	    cmocka_unit_test(test_untouched),
	    cmocka_unit_test(test_absurd_levels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

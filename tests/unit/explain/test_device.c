/* The arithmetic of PyTorch's message: gap against request, others, the process's own cap,
 * memory that cannot be served, and rows that add up. */
#include "../util/unit.h"

#include "explain/device.h"
#include "known.h"

struct numbers {
	const char *requested, *total, *free, *procs, *allowed, *live, *gap;
};

static struct explanation explain(const struct knowledge *k, struct numbers n)
{
	char log[1024];

	snprintf(log, sizeof(log),
	    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU 0 has a total "
	    "capacity of %s of which %s is free. %s%s%sOf the allocated memory %s is allocated by "
	    "PyTorch, and %s is reserved by PyTorch but unallocated.",
	    n.requested, n.total, n.free, n.procs ? n.procs : "", n.allowed ? n.allowed : "",
	    n.allowed ? " allowed; " : "", n.live, n.gap);
	return known_explain(k, log);
}

struct expected {
	enum cause first, second; /* likeliest first; CAUSE_UNKNOWN: not asked */
	double least, most; /* confidence of the first */
};

static void votes(struct numbers n, struct expected x)
{
	struct knowledge *k = known_shipped();
	struct explanation e = explain(k, n);
	struct votes v = {0};
	struct str words = {0};

	assert_int_equal(e.count, 1);
	assert_true(device_vote(&e.messages[0], &v, &words));
	votes_sort(&v);
	assert_true(words.length > 20);
	if (!x.first) {
		assert_int_equal(v.count, 0);
	} else {
		assert_int_equal(v.list[0].cause, x.first);
		if (v.list[0].confidence < x.least || v.list[0].confidence > x.most)
			fail_msg("%s at %f", cause_name(x.first), v.list[0].confidence);
	}
	if (x.second)
		assert_int_equal(v.list[1].cause, x.second);
	str_free(&words);
	explain_fini(&e);
	knowledge_free(k);
}

#define SELF(size) "Including non-PyTorch memory, this process has " size " memory in use. "
#define OTHER(size) "Process 4711 has " size " memory in use. "

/* Small holes would just have served the request; what is full by others is not fragmented. */
static void test_full_by_others(void **state)
{
	votes((struct numbers){"22.00 MiB", "60.97 GiB", "19.79 MiB", NULL, NULL, "10.24 GiB",
		  "420.00 MiB"},
	    (struct expected){CAUSE_EXTERNAL, CAUSE_UNKNOWN, 0.5, 0.7});
	votes((struct numbers){"22.00 MiB", "60.97 GiB", "19.79 MiB",
		  SELF("11.20 GiB") OTHER("49.70 GiB"), NULL, "10.24 GiB", "420.00 MiB"},
	    (struct expected){CAUSE_EXTERNAL, CAUSE_UNKNOWN, 0.8, 0.95});
	(void)state;
}

static void test_fragmentation(void **state)
{
	votes((struct numbers){"3.00 GiB", "23.65 GiB", "1.66 GiB", SELF("20.81 GiB"), NULL,
		  "12.09 GiB", "4.84 GiB"},
	    (struct expected){CAUSE_FRAGMENTATION, CAUSE_UNKNOWN, 0.8, 1});
	/* Neither the gap nor the free bytes are enough, but both together are. */
	votes((struct numbers){"3.00 GiB", "23.65 GiB", "1.66 GiB", SELF("20.81 GiB"), NULL,
		  "12.09 GiB", "2.00 GiB"},
	    (struct expected){CAUSE_FRAGMENTATION, CAUSE_UNKNOWN, 0.4, 0.7});
	/* Completely full: any rest is larger than a tiny request. */
	votes((struct numbers){"2.00 MiB", "23.65 GiB", "1.00 MiB", SELF("23.60 GiB"), NULL,
		  "23.00 GiB", "90.00 MiB"},
	    (struct expected){CAUSE_OVERSIZED_MODEL, CAUSE_UNKNOWN, 0, 0.49});
	(void)state;
}

static void test_others(void **state)
{
	votes((struct numbers){"2.00 GiB", "23.65 GiB", "1.00 GiB",
		  OTHER("15.00 GiB") SELF("7.00 GiB"), NULL, "6.00 GiB", "100.00 MiB"},
	    (struct expected){CAUSE_EXTERNAL, CAUSE_UNKNOWN, 0.8, 1});
	/* Even without the other it would not have fitted. */
	votes((struct numbers){"9.00 GiB", "23.65 GiB", "1.00 GiB",
		  OTHER("500.00 MiB") SELF("22.00 GiB"), NULL, "21.00 GiB", "100.00 MiB"},
	    (struct expected){CAUSE_OVERSIZED_INTERMEDIATE, CAUSE_PROMPT_GROWTH, 0.3, 0.7});
	/* In use, without a known owner. */
	votes((struct numbers){"2.00 GiB", "23.65 GiB", "1.00 GiB", NULL, NULL, "4.00 GiB",
		  "100.00 MiB"},
	    (struct expected){CAUSE_EXTERNAL, CAUSE_UNKNOWN, 0.5, 0.7});
	/* A container does not see its own process id: the listed one is this process. */
	votes((struct numbers){"1.74 GiB", "23.57 GiB", "605.88 MiB", OTHER("22.97 GiB"), NULL,
		  "20.21 GiB", "185.98 MiB"},
	    (struct expected){CAUSE_OVERSIZED_MODEL, CAUSE_PROMPT_GROWTH, 0, 0.49});
	(void)state;
}

static void test_limits(void **state)
{
	votes((struct numbers){"55.57 GiB", "12.00 GiB", "9.02 GiB", NULL, NULL, "984.52 MiB",
		  "463.48 MiB"},
	    (struct expected){CAUSE_OVERSIZED_INTERMEDIATE, CAUSE_PROMPT_GROWTH, 0.7, 0.9});
	votes((struct numbers){"2.00 GiB", "23.65 GiB", "15.00 GiB", SELF("8.00 GiB"), "9.00 GiB",
		  "7.50 GiB", "100.00 MiB"},
	    (struct expected){CAUSE_EXTERNAL, CAUSE_UNKNOWN, 0.5, 0.7});
	/* Free, and refused all the same. */
	votes((struct numbers){"2.00 GiB", "23.65 GiB", "15.00 GiB", SELF("8.00 GiB"), NULL,
		  "7.50 GiB", "100.00 MiB"},
	    (struct expected){CAUSE_UNKNOWN, CAUSE_UNKNOWN, 0, 0});
	/* Nothing is in use at all. */
	votes((struct numbers){"2.00 MiB", "11.33 GiB", "11.33 GiB", NULL, NULL, "0 bytes",
		  "0 bytes"},
	    (struct expected){CAUSE_UNKNOWN, CAUSE_UNKNOWN, 0, 0});
	/* Full to the brim with tensors: what small holes there are do not matter. */
	votes((struct numbers){"2.00 MiB", "44.53 GiB", "512.00 KiB", SELF("44.52 GiB"), NULL,
		  "43.60 GiB", "152.30 MiB"},
	    (struct expected){CAUSE_OVERSIZED_MODEL, CAUSE_PROMPT_GROWTH, 0, 0.4});
	(void)state;
}

/* A cap within the rounding of the printed sizes; its advice takes the place of the framework's. */
static void test_own_cap(void **state)
{
	struct knowledge *k = known_shipped();
	struct explanation e = explain(k, (struct numbers){"20.00 MiB", "63.98 GiB", "57.20 GiB",
					      NULL, "6.40 GiB", "6.21 GiB", "180.00 MiB"});

	assert_int_equal(e.verdict.cause, CAUSE_EXTERNAL);
	assert_int_equal(e.verdict.fix_count, 1);
	assert_non_null(strstr(e.verdict.fixes[0].text, "set_per_process_memory_fraction"));
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* Some devices do not say how much is free. */
static void test_free_not_said(void **state)
{
	static const struct {
		const char *requested, *live, *words;
	} cases[] = {
	    {"4.00 GiB", "0 bytes", "limits the size of one allocation"},
	    {"1.00 GiB", "1.00 GiB", "another process holds the rest"},
	    {"4.00 GiB", "13.00 GiB", "All of it was needed"},
	    {"64.00 GiB", "0 bytes", "more than the 15.1 GiB there are"},
	};
	struct knowledge *k = known_shipped();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct explanation e;
		struct explain_ledger l;
		char log[512];

		snprintf(log, sizeof(log),
		    "XPU out of memory. Tried to allocate %s. GPU 0 has a total capacity of 15.11 "
		    "GiB. Of the allocated memory %s is allocated by PyTorch, and 0 bytes is "
		    "reserved by PyTorch but unallocated.",
		    cases[i].requested, cases[i].live);
		e = known_explain(k, log);
		assert_int_equal(e.count, 1);
		if (!strstr(e.verdict.summary, cases[i].words))
			fail_msg("%s", e.verdict.summary);
		/* What may be free is not told as free. */
		assert_true(device_ledger(&e.messages[0], &l));
		for (size_t row = 0; row < l.row_count; row++)
			assert_string_not_equal(l.rows[row].name, "free");
		explain_fini(&e);
	}
	knowledge_free(k);
	(void)state;
}

/* The plan of a compiled program: weights, or what it computes. */
static void test_plan(void **state)
{
	static const struct {
		const char *program, *arguments;
		enum cause cause;
	} cases[] = {
	    {"21.95G", "0B", CAUSE_OVERSIZED_INTERMEDIATE},
	    {"3.90G", "20.20G", CAUSE_OVERSIZED_MODEL},
	};
	struct knowledge *k = known_shipped();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct explanation e;
		char log[512];

		snprintf(log, sizeof(log),
		    "Ran out of memory in memory space hbm. Used 24.10G of 15.75G hbm. Exceeded "
		    "hbm "
		    "capacity by 8.35G.\n\nTotal hbm usage >= 24.61G:\n    reserved   520.00M\n"
		    "    program   %s\n    arguments   %s\n",
		    cases[i].program, cases[i].arguments);
		e = known_explain(k, log);
		assert_int_equal(e.verdict.cause, cases[i].cause);
		explain_fini(&e);
	}
	knowledge_free(k);
	(void)state;
}

static void test_ledger(void **state)
{
	struct knowledge *k = known_shipped();
	struct explanation e =
	    explain(k, (struct numbers){"3.00 GiB", "23.65 GiB", "1.66 GiB",
			   OTHER("1.00 GiB") SELF("20.00 GiB"), NULL, "12.09 GiB", "4.84 GiB"});
	struct explain_ledger l;
	uint64_t sum = 0, value = 0;

	assert_true(device_ledger(&e.messages[0], &l));
	assert_string_equal(l.device, "GPU 0");
	assert_int_equal(l.row_count, 5);
	for (size_t i = 0; i < l.row_count; i++)
		sum += l.rows[i].bytes;
	assert_true((int64_t)l.total == (int64_t)sum + l.unaccounted);
	assert_string_equal(l.rows[3].name, "other processes");
	assert_int_equal(l.rows[3].bytes, 1 << 30);
	assert_true(fields_bytes(&e.messages[0].fields, "reserved_bytes", &value));
	assert_true(value > 16ull << 30 && value < 17ull << 30);
	assert_true(fields_bytes(&e.messages[0].fields, "other_processes_bytes", &value));
	assert_int_equal(value, 1 << 30);
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* Numbers that contradict each other, as a log may hold. */
static void test_nonsense(void **state)
{
	static const struct numbers wild[] = {
	    {"0 bytes", "0 bytes", "0 bytes", NULL, NULL, "0 bytes", "0 bytes"},
	    {"1.00 GiB", "1.00 GiB", "999999.00 GiB", SELF("7777.00 GiB"), "0 bytes", "5.00 GiB",
		"9.00 GiB"},
	    {"1.00 GiB", "1.00 GiB", "0 bytes", OTHER("7777.00 GiB"), NULL, "5.00 GiB", "9.00 GiB"},
	};
	struct knowledge *k = known_shipped();

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		struct explanation e = explain(k, wild[i]);

		assert_int_equal(e.count, 1);
		assert_non_null(e.verdict.summary);
		explain_fini(&e);
	}
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fragmentation),
	    cmocka_unit_test(test_full_by_others),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_own_cap),
	    cmocka_unit_test(test_free_not_said),
	    cmocka_unit_test(test_plan),
	    cmocka_unit_test(test_ledger),
	    cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

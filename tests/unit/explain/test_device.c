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
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_ledger),
	    cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

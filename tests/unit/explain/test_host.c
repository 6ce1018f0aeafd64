/* A message about the host: one request, by its size. */
#include "../util/unit.h"

#include "explain/host.h"
#include "known.h"

static void first(const char *log, enum cause cause, double least)
{
	struct knowledge *k = known_shipped();
	struct explanation e = known_explain(k, log);
	struct votes v = {0};
	struct str words = {0};

	assert_int_equal(e.count, 1);
	host_vote(&e.messages[0], &v, &words);
	assert_true(words.length > 10);
	if (cause) {
		assert_int_equal(v.list[0].cause, cause);
		assert_true(v.list[0].confidence >= least);
	} else {
		assert_int_equal(v.count, 0);
	}
	str_free(&words);
	explain_fini(&e);
	knowledge_free(k);
}

static void test_one_request(void **state)
{
	first(
	    "MemoryError: Unable to allocate 29.8 GiB for an array with shape (1000000, 4000) and "
	    "data type float64\n",
	    CAUSE_OVERSIZED_INTERMEDIATE, 0.6);
	first("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4398046511104 "
	      "bytes\n",
	    CAUSE_OVERSIZED_INTERMEDIATE, 0.8);
	first("memory allocation of 4096 bytes failed\n", CAUSE_UNKNOWN, 0);
	(void)state;
}

/* More than a process can address: no request failed for its size, the size is wrong. */
static void test_impossible(void **state)
{
	struct knowledge *k = known_shipped();
	struct explanation e =
	    known_explain(k, "Failed to allocate memory for requested buffer of size "
			     "9223372036854775807\n");

	assert_int_equal(e.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(e.verdict.summary, "computed wrongly"));
	assert_int_equal(e.verdict.fix_count, 1);
	assert_non_null(strstr(e.verdict.fixes[0].text, "an overflow"));
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* A pool that was full before: the message's own words count, not the size of the request. */
static void test_named_pool(void **state)
{
#define MPS                                                                                        \
	"MPS backend out of memory (MPS allocated: 16.42 GB, other allocations: 1.50 GB, max "     \
	"allowed: 18.13 GB). Tried to allocate "
	struct knowledge *k = known_shipped();
	struct explanation e = known_explain(k, MPS "1.25 GB on private pool.");

	assert_int_equal(e.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(e.verdict.summary, "at most 18.1 GiB together"));
	explain_fini(&e);
	e = known_explain(k, MPS "9.00 GB on private pool.");
	assert_int_equal(e.verdict.cause, CAUSE_OVERSIZED_INTERMEDIATE);
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* A table without a kill names the largest process, and blames none. */
static void test_no_kill(void **state)
{
	static const struct {
		const char *log, *words;
	} cases[] = {
	    {"[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
	     "[   4711]     0  4711   400000   100000  3500000        0             0 indexer\n"
	     "[   4712]     0  4712   200000   120000  1500000        0           500 python\n",
		"python (pid 4712) had the most memory of the listed processes: 469 MiB of 859 "
		"MiB."},
	};
	struct knowledge *k = known_shipped();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct explanation e = known_explain(k, cases[i].log);

		assert_int_equal(e.verdict.cause, CAUSE_UNKNOWN);
		if (!strstr(e.verdict.summary, cases[i].words))
			fail_msg("%s", e.verdict.summary);
		explain_fini(&e);
	}
	knowledge_free(k);
	(void)state;
}

/* The kernel reaps only what it killed for memory: where the kill's own line is cut off, this
 * one tells of it, and its zero is what was left, not what the process had. */
static void test_reaped(void **state)
{
	struct knowledge *k = known_shipped();
	struct explanation e = known_explain(k,
	    "oom_reaper: reaped process 4712 (python), now anon-rss:0kB, file-rss:0kB, "
	    "shmem-rss:0kB\n");

	assert_int_equal(e.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(e.verdict.summary, "The kernel killed python (pid 4712). "));
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* A process was killed for memory that another one held. */
static void test_kill(void **state)
{
	static const char *const logs[] = {
	    "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
	    "[   4711]     0  4711   400000   380000  3500000        0             0 indexer\n"
	    "[   4712]     0  4712   200000   120000  1500000        0           500 python\n"
	    "Memory cgroup out of memory: Killed process 4712 (python) total-vm:800000kB, "
	    "anon-rss:470000kB, file-rss:10000kB, shmem-rss:0kB\n",
	    "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
	    "[   4711]     0  4711   400000    80000  3500000        0             0 indexer\n"
	    "[   4712]     0  4712   200000   120000  1500000        0           500 python\n"
	    "Memory cgroup out of memory: Killed process 4712 (python) total-vm:800000kB, "
	    "anon-rss:470000kB, file-rss:10000kB, shmem-rss:0kB\n",
	};
	struct knowledge *k = known_shipped();

	for (size_t i = 0; i < 2; i++) {
		struct explanation e = known_explain(k, logs[i]);
		struct votes v = {0};
		struct str words = {0};

		assert_int_equal(e.count, 2);
		host_vote_of_kill(&e.messages[1], &e.messages[0], NULL, &v, &words);
		assert_int_equal(v.count, i == 0);
		if (i == 0) {
			assert_int_equal(v.list[0].cause, CAUSE_EXTERNAL);
			assert_non_null(strstr(str_text(&words), "indexer alone 1.45 GiB"));
		}
		str_free(&words);
		explain_fini(&e);
	}
	knowledge_free(k);
	(void)state;
}

#define TABLE                                                                                      \
	"[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"     \
	"[   4711]     0  4711   400000   100000  3500000        0             0 worker\n"         \
	"[   4712]     0  4712   400000    90000  3500000        0             0 worker\n"         \
	"[   4713]     0  4713   400000    80000  3500000        0             0 worker\n"         \
	"[   4714]     0  4714    40000    20000   500000        0             0 proxy\n"
#define KILL                                                                                       \
	"Memory cgroup out of memory: Killed process 4711 (worker) total-vm:1600000kB, "           \
	"anon-rss:400000kB, file-rss:1000kB, shmem-rss:0kB\n"

/* A pool of equals; unless most of the memory belonged to no process. */
static void test_pool(void **state)
{
	static const char *const logs[] = {TABLE KILL,
	    "Memory cgroup stats for /docker/a: cache:0KB rss:1160000KB shmem:9000000KB "
	    "mapped_file:0KB\n" TABLE KILL};
	struct knowledge *k = known_shipped();

	for (size_t i = 0; i < 2; i++) {
		struct explanation e = known_explain(k, logs[i]);

		assert_int_equal(e.verdict.cause, i ? CAUSE_EXTERNAL : CAUSE_CONCURRENCY);
		assert_non_null(strstr(e.verdict.summary,
		    i ? "8.58 GiB are shared memory" : "3 of worker had about as much each"));
		explain_fini(&e);
	}
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_request),
	    cmocka_unit_test(test_impossible),
	    cmocka_unit_test(test_named_pool),
	    cmocka_unit_test(test_no_kill),
	    cmocka_unit_test(test_reaped),
	    cmocka_unit_test(test_kill),
	    cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

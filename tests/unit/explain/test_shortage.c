/* What a claim's numbers and the lines around it mean. */
#include "../util/unit.h"

#include <string.h>

#include "known.h"

static struct knowledge *shipped;

static void judged(const char *log, enum cause cause, const char *words)
{
	struct explanation e = known_explain(shipped, log);

	assert_int_equal(e.count, 1);
	if (e.verdict.cause != cause || !strstr(e.verdict.summary, words))
		fail_msg("%s: %s: %s", log, cause_name(e.verdict.cause), e.verdict.summary);
	assert_true(e.verdict.fix_count > 0);
	explain_fini(&e);
}

static void test_arithmetic(void **state)
{
	judged("acme: failed to allocate 300 TiB\n", CAUSE_UNKNOWN, "computed wrongly");
	judged("acme: failed to allocate 3 TiB\n", CAUSE_OVERSIZED_INTERMEDIATE, "a machine has");
	judged("acme: memory limit of 2 GiB exceeded, requested 3 GiB\n",
	    CAUSE_OVERSIZED_INTERMEDIATE, "fits at no time");
	judged("acme: memory limit exceeded: 1 KiB requested, 2 GiB used, limit 2 GiB\n",
	    CAUSE_UNKNOWN, "full before");
	judged("acme: failed to allocate 1 GiB of memory, 5 GiB are free\n", CAUSE_UNKNOWN,
	    "in one piece it was not");
	(void)state;
}

static void test_activity(void **state)
{
	judged("Loading model x\nacme: CUDA out of memory here\n", CAUSE_OVERSIZED_MODEL,
	    "It was loading then");
	judged("warming up\nacme: GPU: out of memory\n", CAUSE_BATCH_PREALLOC, "starting");
	judged("epoch 2\nacme: GPU: out of memory\n", CAUSE_UNKNOWN, "training");
	(void)state;
}

static void test_pieces(void **state)
{
	judged("RESOURCE_EXHAUSTED: Attempting to reserve 6.00G at the bottom of memory. That was "
	       "not possible. There are 7.00G free, 0B reserved, and 3.00G reservable.\n",
	    CAUSE_FRAGMENTATION, "in one piece: fragmentation");
	(void)state;
}

/* A size that nothing can have, in a message that is known. */
static void test_known_size(void **state)
{
	judged(
	    "eheap_alloc: Cannot allocate 1125316227743680 bytes of memory (of type \"heap\").\n",
	    CAUSE_UNKNOWN, "computed wrongly");
	(void)state;
}

/* A request that is a large part of a limit is a cause by itself; a small one is none. */
static void test_part(void **state)
{
	judged("Out of Memory Error: failed to allocate data of size 256.0 MiB (258.9 MiB/476.8 "
	       "MiB used)\n",
	    CAUSE_OVERSIZED_INTERMEDIATE, "a large part of 477 MiB");
	judged("Out of Memory Error: failed to allocate data of size 16.0 MiB (9.9 GiB/10.0 GiB "
	       "used)\n",
	    CAUSE_UNKNOWN, "its own memory_limit");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arithmetic),
	    cmocka_unit_test(test_activity),
	    cmocka_unit_test(test_pieces),
	    cmocka_unit_test(test_known_size),
	    cmocka_unit_test(test_part),
	};
	int failed;

	shipped = known_shipped();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	knowledge_free(shipped);
	return failed;
}

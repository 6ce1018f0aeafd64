/* Lines that no rule understands: a failure beside a word of memory, and what is none. */
#include "../../util/unit.h"

#include <string.h>

#include "explain/claim/claim.h"

static void is(enum claim_kind kind, const char *line)
{
	struct claim claim;

	claim_read(line, strlen(line), &claim);
	if (claim.kind != kind)
		fail_msg("%s: '%s', not '%s'", line, claim_name(claim.kind), claim_name(kind));
}

static void test_unsure(void **state)
{
	is(CLAIM_UNSURE, "ring_create: cannot allocate rings");
	is(CLAIM_UNSURE, "Fatal error in collector: too many heap blocks");
	is(CLAIM_UNSURE, "npm ERR! code ENOMEM");
	is(CLAIM_UNSURE_DEVICE, "GPU budget: VRAM 12.4/11.9 GB");
	assert_true(claim_is_unsure(CLAIM_UNSURE));
	assert_true(claim_is_unsure(CLAIM_UNSURE_DEVICE));
	assert_false(claim_is_unsure(CLAIM_HOST));
	(void)state;
}

/* A number is a code only beside the name of whose it is. */
static void test_codes(void **state)
{
	is(CLAIM_UNSURE_DEVICE, "clCreateBuffer failed with error -4");
	is(CLAIM_UNSURE, "ioctl failed, ret: -12");
	is(CLAIM_NONE, "ioctl failed, ret: -22");
	is(CLAIM_NONE, "12 errors, 3 warnings");
	is(CLAIM_NONE, "the script failed with error 2");
	(void)state;
}

/* It is looked at, given back, set; it is damaged; a statistic, a column, a file's name. */
static void test_no_evidence(void **state)
{
	is(CLAIM_NONE, "failed to free memory at 0x7fff");
	is(CLAIM_NONE, "could not parse the memory limit");
	is(CLAIM_NONE, "ERROR: config value memory_limit must be an integer");
	is(CLAIM_NONE, "error: the heap is corrupted");
	is(CLAIM_NONE, "Error count: 0, memory.peak = 1.4G");
	is(CLAIM_NONE, "ok   17  shm   x0.5   full 0.98");
	is(CLAIM_NONE, "Compiling C object heap_host_failure.c.o");
	is(CLAIM_NONE, "[ERROR] memory limit of 8 GiB not exceeded");
	is(CLAIM_NONE, "unable to start the memory profiler");
	is(CLAIM_NONE, "");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unsure),
	    cmocka_unit_test(test_codes),
	    cmocka_unit_test(test_no_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

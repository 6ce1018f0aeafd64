/* `whyoom sites`: the moment, the process, the number of rows. */
#include <unistd.h>

#include "cmd/cmd.h"
#include "recorded.h"

#define SITES(...)                                                                                 \
	({                                                                                         \
		char *argv_[] = {"sites", "--format=json", "-o", PATH("out"), __VA_ARGS__, NULL};  \
		cmd_sites.main((int)(sizeof(argv_) / sizeof(*argv_)) - 1, argv_);                  \
	})
#define PATH(name) ((char *)scratch(name))
/* The n-th number of that name in the output. */
#define NUMBER(name, n) number("\"" name "\": ", n)

static unsigned long long number(const char *key, unsigned n)
{
	const char *at = scratch_read(scratch("out"));
	unsigned long long value = 0;

	for (; n > 0; n--) {
		at = strstr(at, key);
		assert_non_null(at);
		at += strlen(key);
	}
	assert_int_equal(sscanf(at, "%llu", &value), 1);
	return value;
}

static bool says(const char *text)
{
	return strstr(scratch_read(scratch("out")), text);
}

static void moments(void **state)
{
	recorded_process("d/1.0.whyoom", 1, 1000, true);
	assert_int_equal(SITES(PATH("d")), CMD_DONE);
	assert_true(says("\"at\": \"failure\""));
	assert_int_equal(NUMBER("live_bytes", 1), 1000 * RECORDED_BLOCK);
	assert_int_equal(NUMBER("live_blocks", 1), 1000);
	assert_int_equal(SITES("--at", "peak", PATH("d")), CMD_DONE);
	/* The last block of the other call site lived beside all of them. */
	assert_int_equal(NUMBER("live_bytes", 1), 1000 * RECORDED_BLOCK + 5000);
	/* Three microseconds a round: half of them lived after 1.5 ms. */
	assert_int_equal(SITES("--at", "0.0015", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("live_bytes", 1), 500 * RECORDED_BLOCK);
	assert_int_equal(SITES("--at", "0", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("live_bytes", 1), 0);
	assert_int_equal(SITES("--at", "1e9", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("live_bytes", 1), 1000 * RECORDED_BLOCK);
}

static void order_and_count(void **state)
{
	recorded_process("d/1.0.whyoom", 1, 1000, false);
	assert_int_equal(SITES("--by", "total", "--limit", "1", PATH("d")), CMD_DONE);
	assert_true(says("\"by\": \"total\""));
	assert_true(says("\"at\": \"peak\"")); /* nothing failed */
	assert_int_equal(NUMBER("total_bytes", 1), 1000 * RECORDED_BLOCK);
	assert_int_equal(NUMBER("total_blocks", 1), 1000);
	assert_int_equal(NUMBER("largest_bytes", 1), RECORDED_BLOCK);
	assert_null(
	    strstr(strstr(scratch_read(scratch("out")), "\"total_bytes\"") + 1, "\"total_bytes\""));
	assert_int_equal(SITES("--by", "total", "-n", "0", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("total_bytes", 2), 1000 * 5000);
}

static void which_process(void **state)
{
	recorded_process("d/1.0.whyoom", 1, 300, false);
	recorded_process("d/2.0.whyoom", 2, 1000, true);
	recorded_process("d/3.0.whyoom", 3, 500, false);
	assert_int_equal(SITES("--at=end", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("live_bytes", 1), 1000 * RECORDED_BLOCK); /* that failed */
	assert_int_equal(SITES("--at=end", "--pid=3", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("live_bytes", 1), 500 * RECORDED_BLOCK);
	assert_int_equal(SITES("--at=end", "--pid", "1", PATH("d")), CMD_DONE);
	assert_int_equal(NUMBER("live_bytes", 1), 300 * RECORDED_BLOCK);
}

static void errors(void **state)
{
	static char *const wrong[] = {"--at=soon", "--at=-1", "--at=nan", "--at=inf", "--at=1e10",
	    "--at=", "--at=1m", "--at=s", "--by=size", "--by=", "--format=xml", "--pid=0",
	    "--pid=x", "--pid=-3", "--limit=x", "--limit=-1", "--nosuch", "-x"};
	int kept = dup(2);

	recorded_process("d/1.0.whyoom", 1, 100, false);
	assert_non_null(freopen("/dev/null", "w", stderr));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (SITES(wrong[i], PATH("d")) != CMD_USAGE)
			fail_msg("%s", wrong[i]);
	assert_int_equal(SITES("--at"), CMD_USAGE);
	assert_int_equal(SITES("--verbose"), CMD_USAGE); /* no trace */
	assert_int_equal(SITES("--at=failure", PATH("d")), CMD_ERROR);
	assert_int_equal(SITES("--pid=77", PATH("d")), CMD_ERROR);
	assert_int_equal(SITES(PATH("none")), CMD_ERROR);
	fflush(stderr);
	dup2(kept, 2);
	close(kept);
	assert_false(scratch_has("out"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(moments),
	    scratch_test(order_and_count),
	    scratch_test(which_process),
	    scratch_test(errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

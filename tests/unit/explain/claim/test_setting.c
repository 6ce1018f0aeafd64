/* The settings that a message itself says to change. */
#include "../../util/unit.h"

#include <string.h>

#include "explain/claim/setting.h"

static void names(const char *text, enum setting_change change, const char *name)
{
	struct setting found[SETTINGS_MAX];
	size_t count = settings_read(text, strlen(text), found);

	if (!name) {
		if (count)
			fail_msg("%s: %.*s", text, (int)found[0].bytes, found[0].name);
		return;
	}
	if (count != 1 || found[0].change != change || found[0].bytes != strlen(name) ||
	    memcmp(found[0].name, name, found[0].bytes) != 0)
		fail_msg("%s: %zu settings, %.*s", text, count, count ? (int)found[0].bytes : 0,
		    count ? found[0].name : "");
}

static void test_directions(void **state)
{
	names("Please try to increase --mem-fraction-static.", SETTING_RAISE,
	    "--mem-fraction-static");
	names("set a smaller number for `--max-running-requests`", SETTING_LOWER,
	    "--max-running-requests");
	names("you need to decrease \"max_batch_size\", sorry", SETTING_LOWER, "max_batch_size");
	names("acme.memory.total.max threshold reached", SETTING_RAISE, "acme.memory.total.max");
	names("consider setting maxHeapSize", SETTING_CHANGE, "maxHeapSize");
	names(
	    "more RAM; increasing -memory.allowedPercent", SETTING_RAISE, "-memory.allowedPercent");
	names("by using '-Xmx'", SETTING_CHANGE, "-Xmx");
	names("engine: cache-max-memory-size exceeded: (7/6)", SETTING_RAISE,
	    "cache-max-memory-size");
	names("adjusted by setting 'org.gradle.jvmargs' in a file", SETTING_CHANGE,
	    "org.gradle.jvmargs");
	(void)state;
}

/* Code, files, errors, and names that nothing is said about. */
static void test_no_settings(void **state)
{
	names("increase the memory of the machine", SETTING_RAISE, NULL);
	names("failed in set_memory_limit(4096)", SETTING_RAISE, NULL);
	names("raise acme/memory_pool.py line 3", SETTING_RAISE, NULL);
	names("set by MEMORY_LIMIT_EXCEEDED", SETTING_RAISE, NULL);
	names("the value of max_batch_size is 4", SETTING_RAISE, NULL);
	names("reduce it. See max_batch_size there", SETTING_RAISE, NULL);
	names("use acme::memory_limit", SETTING_RAISE, NULL);
	names("realloc_buffer: tried to grow the heap", SETTING_RAISE, NULL);
	names("it must be larger than block_size", SETTING_RAISE, NULL);
	names("", SETTING_RAISE, NULL);
	(void)state;
}

static void test_many(void **state)
{
	static const char text[] = "raise max_mem_1, max_mem_2, max_mem_2, max_mem_3, raise "
				   "max_mem_4, raise max_mem_5";
	struct setting found[SETTINGS_MAX];

	assert_int_equal(settings_read(text, strlen(text), found), SETTINGS_MAX);
	assert_memory_equal(found[2].name, "max_mem_3", 9);
	(void)state;
}

static enum setting_of of(const char *name)
{
	return setting_of(name, strlen(name));
}

static void test_what_it_bounds(void **state)
{
	assert_int_equal(of("--max-num-seqs"), SETTING_OF_WORKERS);
	assert_int_equal(of("--gpu-memory-utilization"), SETTING_OF_SHARE);
	assert_int_equal(of("--max-model-len"), SETTING_OF_LENGTH);
	assert_int_equal(of("per_device_train_batch_size"), SETTING_OF_BATCH);
	assert_int_equal(of("max_memory_usage"), SETTING_OF_LIMIT);
	assert_int_equal(of("spill_dir"), SETTING_OF_UNKNOWN);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_directions),
	    cmocka_unit_test(test_no_settings),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_what_it_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

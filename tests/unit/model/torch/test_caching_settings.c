/* PyTorch's settings from their text, and the sizes that requests are rounded to. */
#include "model/unit.h"

#include "model/torch/caching_settings.h"

static struct caching_settings parsed(const char *text, bool understood)
{
	struct caching_settings s;

	caching_settings_init(&s);
	assert_int_equal(caching_settings_parse(&s, text, NULL), understood);
	return s;
}

static void test_defaults(void **state)
{
	struct caching_settings s = parsed(NULL, true);

	assert_int_equal(s.large_segment, 20 * MiB);
	assert_int_equal(s.max_split, UINT64_MAX);
	assert_int_equal(s.max_rounding, 20 * MiB);
	assert_false(s.expandable);
	assert_true(s.gc_threshold == 0 && s.memory_fraction == 0);
	s = parsed("", true);
	assert_int_equal(s.max_split, UINT64_MAX);
	(void)state;
}

static void test_settings(void **state)
{
	struct caching_settings s =
	    parsed("max_split_size_mb:128, garbage_collection_threshold:0.8,"
		   "expandable_segments:True,per_process_memory_fraction:0.5,"
		   "max_non_split_rounding_mb:40,large_segment_size_mb:64,backend:native,"
		   "pinned_use_background_threads:True",
		true);

	assert_int_equal(s.max_split, 128 * MiB);
	assert_true(s.gc_threshold == 0.8 && s.memory_fraction == 0.5);
	assert_true(s.expandable);
	assert_int_equal(s.max_rounding, 40 * MiB);
	assert_int_equal(s.large_segment, 64 * MiB);
	assert_false(s.foreign_backend);
	assert_true(parsed("backend:cudaMallocAsync", true).foreign_backend);
	assert_false(parsed("expandable_segments:True,expandable_segments:False", true).expandable);
	(void)state;
}

/* Unknown settings are reported, known ones are kept. */
static void test_damage(void **state)
{
	static const char *const broken[] = {"max_split_size_mb",
	    "max_split_size_mb:", "max_split_size_mb:19", "max_split_size_mb:-1",
	    "max_split_size_mb:1x", "expandable_segments:Perhaps", "garbage_collection_threshold:2",
	    "garbage_collection_threshold:nan", "roundup_power2_divisions:3",
	    "roundup_power2_divisions:[3:4]", "roundup_power2_divisions:[256:3]",
	    "roundup_power2_divisions:[256:4", "roundup_power2_divisions:[256]", "new_setting:7",
	    "new_setting:[1:2]", ":", ",", "a:b]", "[", "max_split_size_mb:[1:2]"};
	char large[512];

	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
		parsed(broken[i], false);
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	parsed(large, false);
	assert_int_equal(parsed("new_setting:7,max_split_size_mb:32", false).max_split, 32 * MiB);
	(void)state;
}

/* The first error, its position, and the known names. */
static void test_complaints(void **state)
{
	struct caching_settings s;
	struct err err = {""};

	caching_settings_init(&s);
	assert_false(caching_settings_parse(
	    &s, "backend:native,max_split_size_mb:3,expandable_segments:1", &err));
	assert_string_equal(err.text,
	    "'max_split_size_mb:3', at character 16: max_split_size_mb takes a number of MiB from "
	    "20 on");
	assert_false(caching_settings_parse(&s, "max_split:3", &err));
	assert_non_null(strstr(err.text, "'max_split:3', at character 1: no setting"));
	assert_non_null(strstr(err.text, "garbage_collection_threshold"));
	assert_false(caching_settings_parse(&s, "expandable_segments", &err));
	assert_non_null(strstr(err.text, "takes True or False"));
	(void)state;
}

static void test_round(void **state)
{
	struct caching_settings s = parsed(NULL, true);

	assert_int_equal(caching_round(&s, 1), 512);
	assert_int_equal(caching_round(&s, 512), 512);
	assert_int_equal(caching_round(&s, 513), 1024);
	assert_int_equal(caching_round(&s, 5 * MiB + 1), 5 * MiB + 512);

	/* Four steps between a power of two and the next. */
	s = parsed("roundup_power2_divisions:4", true);
	assert_int_equal(caching_round(&s, 1200), 1536); /* 512 * 4 is not exceeded */
	assert_int_equal(caching_round(&s, 5000), 5120);
	assert_int_equal(caching_round(&s, 8192), 8192);
	assert_int_equal(caching_round(&s, 65 * MiB), 80 * MiB);
	assert_int_equal(caching_round(&s, 80 * MiB), 80 * MiB);
	(void)state;
}

static void test_round_by_interval(void **state)
{
	struct caching_settings s = parsed("roundup_power2_divisions:[64:8,256:4,>:1]", true);

	assert_int_equal(caching_round(&s, 65 * MiB), 72 * MiB); /* 64 to 128: eight steps */
	assert_int_equal(caching_round(&s, 3 * MiB), 3 * MiB); /* below the first: as the first */
	assert_int_equal(caching_round(&s, 3 * MiB + 1), 3 * MiB + 256 * KiB);
	assert_int_equal(caching_round(&s, 129 * MiB), 129 * MiB); /* between: not set */
	assert_int_equal(caching_round(&s, 257 * MiB), 320 * MiB);
	assert_int_equal(caching_round(&s, 513 * MiB), 513 * MiB);
	assert_int_equal(caching_round(&s, 1000 * GiB + 1), 1000 * GiB + 512);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_settings),
	    cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_complaints),
	    cmocka_unit_test(test_round),
	    cmocka_unit_test(test_round_by_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>

#include "../unit.h"
#include "util/text/json.h"

static void nesting_and_commas(void **state)
{
	struct str out = {0};
	struct json j = {.out = &out};

	json_object(&j, NULL);
	json_u64(&j, "n", UINT64_MAX);
	json_array(&j, "list");
	json_i64(&j, NULL, -1);
	json_object(&j, NULL);
	json_object_end(&j);
	json_array(&j, NULL);
	json_array_end(&j);
	json_bool(&j, NULL, true);
	json_array_end(&j);
	json_real(&j, "x", 1.5, 2);
	json_real(&j, "nan", NAN, 2);
	json_string(&j, "s", "a\"b");
	json_string(&j, "none", NULL);
	json_null(&j, "also");
	json_object_end(&j);
	assert_string_equal(str_text(&out), "{\"n\": 18446744073709551615, \"list\": [-1, {}, [], "
					    "true], \"x\": 1.50, \"nan\": null, "
					    "\"s\": \"a\\\"b\", \"none\": null, \"also\": null}");
	str_free(&out);
}

static void pretty(void **state)
{
	struct str out = {0};
	struct json j = {.out = &out, .pretty = true};

	json_object(&j, NULL);
	json_array(&j, "a");
	json_u64(&j, NULL, 1);
	json_u64(&j, NULL, 2);
	json_array_end(&j);
	json_array(&j, "b");
	json_array_end(&j);
	json_object_end(&j);
	assert_string_equal(str_text(&out), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
	str_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nesting_and_commas),
	    cmocka_unit_test(pretty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a program was doing: by the message's own line first, then by the nearest. */
#include "../../util/unit.h"

#include <stdio.h>
#include <string.h>

#include "explain/claim/activity.h"

static void does(enum activity activity, const char *before, const char *line, const char *behind)
{
	char text[1024];
	size_t begin = strlen(before), end = begin + strlen(line);

	snprintf(text, sizeof(text), "%s%s%s", before, line, behind);
	assert_int_equal(activity_read(text, begin, end, strlen(text)), activity);
}

static void test_nearest(void **state)
{
	does(ACTIVITY_LOAD, "Loading model llama\n", "out of memory", "\n");
	does(ACTIVITY_START, "Loading model llama\n", "warmup: out of memory", "\n");
	does(ACTIVITY_START, "Loading model\nwarming up\n", "out of memory", "\n");
	does(ACTIVITY_LOAD, "", "out of memory", "\nfailed to load model 'x'\n");
	does(ACTIVITY_TRAIN, "epoch 3, loss 0.1\n", "out of memory", "");
	does(ACTIVITY_LOAD, "in DefaultModelLoader\n", "out of memory", "");
	does(ACTIVITY_LOAD, "in _load_weight\n", "out of memory", "");
	does(ACTIVITY_UNKNOWN, "in download_model\n", "out of memory", "");
	does(ACTIVITY_UNKNOWN, "hello\n", "out of memory", "\nbye\n");
	(void)state;
}

static void test_far(void **state)
{
	does(ACTIVITY_UNKNOWN, "Loading model\n\n\n\n\n\n\n\n\n", "out of memory", "");
	does(ACTIVITY_UNKNOWN, "", "", "");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nearest),
	    cmocka_unit_test(test_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

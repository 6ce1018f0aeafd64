/* Each cause has its advice, which names the blamed function; a framework's own comes first. */
#include "model/unit.h"

#include "verdict/fixes.h"

static void hook(void *arg, const char *cause, const struct stack_view *stack, struct fix *fixes,
    size_t *count, struct arena *arena)
{
	(void)arena;
	assert_string_equal(cause, "leak");
	assert_int_equal(stack->count, 0);
	fixes[(*count)++] = (struct fix){"crewai", arg};
}

static void test_fixes(void **state)
{
	static struct verdict_result r;
	struct fix fixes[FIXES_MAX];
	size_t count;

	r.verdict.blame.function = "remember";
	for (const char *const *cause =
		 (const char *const[]){"prompt-growth", "leak", "oversized-intermediate", NULL};
	     *cause; cause++) {
		fixes_for(&r, *cause, NULL, NULL, fixes, &count, &r.arena);
		assert_true(count >= 2);
		assert_non_null(strstr(fixes[0].text, "remember"));
		assert_string_equal(fixes[0].for_, "any");
	}
	fixes_for(&r, "leak", hook, "reuse the crew", fixes, &count, &r.arena);
	assert_string_equal(fixes[0].for_, "crewai");
	assert_true(count >= 3);
	fixes_for(&r, "healthy", NULL, NULL, fixes, &count, &r.arena);
	assert_int_equal(count, 0);
	arena_free(&r.arena);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

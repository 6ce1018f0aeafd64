/* Whose code a frame is, by its file and the knowledge of frameworks. */
#include "model/unit.h"

#include "verdict/framework/frame_role.h"

static void test_roles(void **state)
{
	static const struct blame_context none;
	struct symbol own = {.function = "f", .file = "/srv/app.py", .line = 3, .python = true};
	struct symbol package = {.function = "f",
	    .file = "/usr/lib/python3/dist-packages/torch/nn/linear.py",
	    .line = 3,
	    .python = true};
	struct symbol cut = {.function = "...", .cut = true};

	assert_int_equal(frame_role(&none, NULL, &own), FRAME_OWN);
	assert_int_equal(frame_role(&none, NULL, &package), FRAME_LIBRARY);
	assert_int_equal(frame_role(&none, NULL, &cut), FRAME_RUNTIME);
	assert_string_equal(frame_role_name(FRAME_RUNTIME), "runtime");
	assert_string_equal(frame_role_words(FRAME_OWN), "your code");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_roles)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_store.c - fleet/store.c: names of functions that are the same in another build. The rest is
 * tested by tests/fleet/test_fleet.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fleet/store.h"

static void names(void **state)
{
	static const char *const rows[][2] = {
	    {"serve", "serve"},
	    {"Model.forward", "Model.forward"},
	    {"std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"},
	    {"std::map<a<b>, c>::operator[]", "std::map::operator[]"},
	    {"operator<", "operator<"},
	    {"operator<<", "operator<<"},
	    {"f(int, char const*)", "f"},
	    {"f.isra.0", "f"},
	    {"f.part.12.constprop.3", "f"},
	    {"f.cold", "f"},
	    {"f [clone .isra.0]", "f"},
	    {"<lambda>", "<lambda>"},
	    {"Cache.<locals>.<listcomp>", "Cache.<locals>.<listcomp>"},
	    {"(anonymous namespace)::run(int)", "(anonymous namespace)::run"},
	    {"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct str name = {0};

		fleet_frame_name(rows[i][0], &name);
		assert_string_equal(str_text(&name), rows[i][1]);
		str_free(&name);
	}
}

/* Each question's first line is its title, which the list shows. */
static void titles(void **state)
{
	(void)state;
	for (const struct fleet_question *q = fleet_questions; q->name; q++) {
		const char *line = strchr(q->sql, '\n');

		assert_true(!strncmp(q->sql, "-- ", 3) && line && line[-1] == '?');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(titles)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

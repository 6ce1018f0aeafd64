/* What the view shows: order, filter, and what stays selected from look to look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "watch/view/list.h"

static struct watched one, two;
static const struct watched *const both[] = {&one, &two};

static void add(
    struct watched *w, const char *function, uint64_t bytes, uint64_t count, double rate)
{
	w->sites[w->seen++] = (struct watched_site){.function = function,
	    .file = "/srv/Server.py",
	    .line = (uint32_t)w->seen,
	    .live_bytes = bytes,
	    .live_count = count,
	    .rate = rate};
}

static int set_up(void **state)
{
	static struct list l;

	one = (struct watched){.pid = 7, .running = true, .command = "a\033[31mb"};
	two = (struct watched){.pid = 9, .running = true};
	add(&one, "grows", 100, 3, 50);
	add(&one, "big", 900, 1, 0);
	add(&one, "many", 500, 900, 0);
	add(&two, "other", 5, 1, 0);
	assert_int_equal(list_init(&l), 0);
	assert_int_equal(list_take(&l, both, 2, 0, true), 0);
	*state = &l;
	return 0;
}

static int tear_down(void **state)
{
	list_fini(*state);
	return 0;
}

static void assert_order(const struct list *l, const char *names)
{
	char got[200] = "";

	for (size_t i = 0; i < l->shown.count; i++) {
		strcat(got, i ? " " : "");
		strcat(got, list_process(l)->sites[l->shown.items[i]].name);
	}
	assert_string_equal(got, names);
}

static void test_sorts(void **state)
{
	static const char *const expected[] = {
	    "grows big many", "big many grows", "many grows big", "big grows many"};
	struct list *l = *state;

	for (l->sort = LIST_BY_GROWTH; l->sort < LIST_SORTS; l->sort++) {
		assert_int_equal(list_arrange(l), 0);
		assert_order(l, expected[l->sort]);
		assert_string_equal(list_site(l)->name, "grows"); /* it stays selected */
	}
}

static void test_filters(void **state)
{
	struct list *l = *state;

	strcpy(l->filter, "G");
	assert_int_equal(list_arrange(l), 0);
	assert_order(l, "grows big");
	strcpy(l->filter, "server.PY:3");
	assert_int_equal(list_arrange(l), 0);
	assert_order(l, "many");
	strcpy(l->filter, "none");
	assert_int_equal(list_arrange(l), 0);
	assert_order(l, "");
	assert_null(list_site(l));
	list_move(l, 1);
	assert_null(list_site(l));
	l->filter[0] = '\0';
	assert_int_equal(list_arrange(l), 0);
	assert_order(l, "grows big many");
}

static void test_selection_follows(void **state)
{
	struct list *l = *state;

	list_move(l, 1);
	assert_string_equal(list_site(l)->name, "big");
	one.sites[2].rate = 70; /* "many" comes first now */
	assert_int_equal(list_take(l, both, 2, 2, true), 0);
	assert_order(l, "many grows big");
	assert_string_equal(list_site(l)->name, "big");
	list_move(l, 9);
	assert_int_equal(l->site, 2);
	list_move(l, -9);
	assert_int_equal(l->site, 0);
	assert_int_equal(list_select(l, 1), 0);
	assert_order(l, "other");
	assert_int_equal(list_select(l, 2), 0); /* there is none */
	assert_int_equal(list_process(l)->facts.pid, 9);
	/* The first one ends: the second stays selected. */
	assert_int_equal(list_take(l, both + 1, 1, 4, true), 0);
	assert_int_equal(list_process(l)->facts.pid, 9);
	assert_int_equal(list_take(l, both, 0, 6, true), 0);
	assert_null(list_process(l));
	assert_null(list_site(l));
}

static void test_the_most_urgent_is_selected(void **state)
{
	struct list *l = *state;

	assert_int_equal(l->process, 0);
	two.space_count = 1;
	two.spaces[0].forecast = (struct forecast){.state = FORECAST_GROWS, .seconds = 50};
	assert_int_equal(list_take(l, both, 2, 2, true), 0);
	assert_int_equal(list_process(l)->facts.pid, 9);
	assert_order(l, "other");
	assert_int_equal(list_select(l, 0), 0);
	assert_int_equal(list_take(l, both, 2, 4, true), 0);
	assert_int_equal(list_process(l)->facts.pid, 7); /* as the person said */
}

static void test_stands_still(void **state)
{
	struct list *l = *state;

	for (unsigned i = 0; i < 3; i++) {
		one.sites[0].live_bytes += 1000;
		assert_int_equal(list_take(l, both, 2, 2 + 2 * i, false), 0);
	}
	assert_int_equal(list_site(l)->live_bytes, 100);
	assert_int_equal(list_take(l, both, 2, 8, true), 0);
	/* The looks in between count. */
	assert_int_equal(list_site(l)->live_bytes, 3100);
	assert_int_equal(list_site(l)->change, 3000);
	assert_true(l->seconds == 8);
	assert_int_equal(list_site(l)->spark[LIST_SPARK - 5], 1);
	assert_int_equal(list_site(l)->spark[LIST_SPARK - 1], HISTORY_LEVELS);
}

static void test_is_safe(void **state)
{
	struct list *l = *state;

	assert_string_equal(list_process(l)->command, "a\\x1b[31mb");
	one.sites[0].function = "f\r\n";
	one.sites[0].file = "\x9b"
			    "2J.py";
	assert_int_equal(list_take(l, both, 1, 2, true), 0);
	assert_string_equal(list_process(l)->sites[0].name, "f\\x0d\\x0a");
	assert_string_equal(list_process(l)->sites[0].line_name, "\\x9b2J.py:1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_sorts, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_filters, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_selection_follows, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_the_most_urgent_is_selected, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_stands_still, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_is_safe, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

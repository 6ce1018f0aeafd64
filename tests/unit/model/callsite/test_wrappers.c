/* The call site to blame for memory that a helper handed out. */
#include "model/unit.h"

#include "model/callsite/wrappers.h"
#include "model/script.h"

struct row {
	const char *stack;
	uint64_t bytes, count;
	const char *expect;
	uint64_t largest; /* 0: all other blocks are small */
};

/* The last answer on each. */
static void see(
    void *arg, size_t item, const struct stack_path *path, const blame_marks_t *marks, int frame)
{
	int *seen = arg;

	assert_int_equal(marks->count, path->count + 1);
	assert_true(frame < (int)path->count);
	seen[item] = frame;
}

static void check(const struct row *rows, size_t n)
{
	struct script *s = script_new();
	struct feed feed = script_feed(s);
	struct blame_context context = {.malloc_owner = "/lib/libc.so.6"};
	struct wrapper_input in[16];
	int seen[16];
	const struct symbol *symbols;

	for (size_t i = 0; i < n; i++) {
		in[i] = (struct wrapper_input){.stack = script_stack(s, rows[i].stack),
		    .total_bytes = rows[i].bytes,
		    .total_count = rows[i].count,
		    .largest = rows[i].largest ? rows[i].largest : rows[i].bytes,
		    .frame = 99};
		seen[i] = -2;
	}
	assert_int_equal(
	    wrappers_step_out(&feed, &context, in, n, (struct wrapper_witness){seen, see}), 0);
	for (size_t i = 0; i < n; i++) {
		feed.symbols(feed.self, in[i].stack, &symbols);
		assert_string_equal(symbols[in[i].frame].function, rows[i].expect);
		assert_int_equal(seen[i], in[i].frame);
	}
	script_free(s);
}

static void test_xmalloc(void **state)
{
	static const struct row rows[] = {
	    {"main;remember;xmalloc", 1000000, 100, "remember", 0},
	    {"main;prompt;xmalloc", 50000000, 100, "prompt", 0},
	    {"main;reply;xstrdup;xmalloc", 2000, 100, "reply", 0},
	    {"main;reply2;xstrdup;xmalloc", 900000, 100, "reply2", 0},
	    {"main;reply3;xstrdup;xmalloc", 2000, 100, "reply3", 0},
	};
	check(rows, 5);
	(void)state;
}

/* A helper that behaves alike for all its callers is its own cause. */
static void test_not_a_wrapper(void **state)
{
	static const struct row alike[] = {
	    {"main;ask;message", 100000, 100, "message", 0},
	    {"main;answer;message", 130000, 100, "message", 0},
	    {"main;tool;message", 90000, 80, "message", 0},
	};
	static const struct row alone[] = {
	    {"main;turn;message", 100000, 100, "message", 0},
	    {"main;turn;prompt", 9000000, 100, "prompt", 0},
	};
	/* Two callers, and most is made elsewhere. */
	static const struct row part[] = {
	    {"main;turn;message", 100000, 100, "message", 0},
	    {"main;probe;message", 100000, 100, "message", 0},
	    {"main;turn;prompt", 9000000, 100, "prompt", 0},
	};
	/* The same for both, whatever becomes of it. */
	static const struct row loader[] = {
	    {"main;serve;load", 1000000, 1000, "load", 0},
	    {"main;load", 9000000, 9000, "load", 0},
	};
	check(loader, 2);
	check(alike, 3);
	check(alone, 2);
	check(part, 3);
	(void)state;
}

/* Each caller passes the same size each time; if one caller's sizes vary, the callers' have to
 * be far apart. */
static void test_own_sizes(void **state)
{
	static const struct row own[] = {
	    {"main;load;need", 36000, 12, "load", 3000},
	    {"main;open;need", 120000, 10, "open", 12000},
	};
	static const struct row once[] = {
	    {"main;load;need", 36000, 12, "need", 3000},
	    {"main;open;need", 12000, 1, "need", 12000},
	};
	static const struct row vary[] = {
	    {"main;load;need", 36000, 12, "need", 3000},
	    {"main;open;need", 120000, 10, "need", 16000},
	};
	check(own, 2);
	check(once, 2);
	check(vary, 2);
	(void)state;
}

static void test_recursion_and_roots(void **state)
{
	static const struct row rows[] = {
	    {"main;walk;walk;walk;node", 5000, 50, "node", 0},
	    {"xmalloc", 5000, 50, "xmalloc", 0}, /* no user's code calls it */
	    {"main;a;xmalloc", 5000, 50, "a", 0},
	    {"main;b;xmalloc;xmalloc", 5000000, 50, "b", 0},
	};
	check(rows, 4);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_xmalloc),
	    cmocka_unit_test(test_not_a_wrapper),
	    cmocka_unit_test(test_own_sizes),
	    cmocka_unit_test(test_recursion_and_roots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

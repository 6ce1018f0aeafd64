/* The stacks of threads: who starts them, what each takes of the address space, and how many live
 * when. */
#include "model/unit.h"

#include "model/script.h"
#include "verdict/forecast/thread_stacks.h"

#define STACK (8 * MiB)
#define TABLE 288u
#define HEAP (64 * MiB) /* that malloc reserves for a thread */
#define TURN_NS 1000000u

struct told {
	struct script *script;
	struct model *model;
	struct callsites *all;
	struct thread_stacks stacks;
};

/* Start `count` threads by that function; every `ends`-th one ends at once, 0: none does. The first
 * four reserve a heap each. */
static struct told start(const char *function, unsigned count, unsigned ends)
{
	struct told t = {.script = script_new()};
	uint32_t starts, keeps;
	uint64_t used = 16 * MiB;
	struct err err = {""};
	char text[64];

	snprintf(text, sizeof(text), "main;accept;%s@/usr/include/c++/12/thread:1", function);
	starts = script_stack(t.script, text);
	keeps = script_stack(t.script, "main;accept;remember");
	script_set(t.script, TRACE_LEVEL_VSIZE, used);
	script_sample(t.script);
	for (unsigned i = 0; i < count; i++) {
		uint64_t table = script_alloc(t.script, starts, TABLE);

		script_alloc(t.script, keeps, MiB);
		used += MiB + (i < 4 ? HEAP : 0);
		if (ends && i % ends == 0)
			script_release(t.script, table);
		else
			used += STACK;
		script_set(t.script, TRACE_LEVEL_VSIZE, used);
		script_sample(t.script);
		script_wait(t.script, TURN_NS);
	}
	assert_int_equal(
	    feed_until_model(script_feed(t.script), UINT64_MAX, UINT64_MAX, &t.model, &err), 0);
	assert_int_equal(callsites_new(t.model, AT_END, &t.all, &err), 0);
	t.stacks = thread_stacks_read(t.model, t.all);
	return t;
}

static void done(struct told *t)
{
	callsites_free(t->all);
	model_free(t->model);
	script_free(t->script);
}

static void near(double value, double wanted)
{
	assert_true(value > wanted * 0.95 && value < wanted * 1.05);
}

static void test_stay(void **state)
{
	struct told t = start("__pthread_create_2_1", 100, 0);
	uint64_t now = t.model->run.last_ns;

	assert_non_null(t.stacks.tables);
	assert_string_equal(t.all->list[t.stacks.callsite].function, "accept");
	near(t.stacks.each, STACK);
	near(thread_stacks_until(&t.stacks, now), 100.0 * STACK);
	near(thread_stacks_until(&t.stacks, now / 2), 50.0 * STACK);
	done(&t);
	(void)state;
}

/* Half of them end, and leave nothing. */
static void test_end(void **state)
{
	struct told t = start("pthread_create@@GLIBC_2.34", 200, 2);

	near(t.stacks.each, STACK);
	near(thread_stacks_until(&t.stacks, t.model->run.last_ns), 100.0 * STACK);
	done(&t);
	(void)state;
}

/* Few threads are a pool, blocks of other calls are no threads, and tables without address space of
 * their own are no stacks. */
static void test_none(void **state)
{
	struct told t = start("pthread_create", 12, 0);

	assert_null(t.stacks.tables);
	assert_int_equal(t.stacks.callsite, CALLSITE_NONE);
	assert_true(thread_stacks_until(&t.stacks, t.model->run.last_ns) == 0);
	done(&t);

	t = start("connection_create", 100, 0);
	assert_null(t.stacks.tables);
	done(&t);

	t = start("pthread_create", 100, 0);
	for (uint32_t i = 0; i < t.model->measured.address.count; i++)
		t.model->measured.address.at[i].bytes = 16 * MiB;
	t.stacks = thread_stacks_read(t.model, t.all);
	assert_null(t.stacks.tables);
	t.model->measured.address.count = 0; /* never measured */
	t.stacks = thread_stacks_read(t.model, t.all);
	assert_null(t.stacks.tables);
	done(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stay), cmocka_unit_test(test_end), cmocka_unit_test(test_none)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table that holds a call site's kept blocks: the one that was enlarged as they multiplied. */
#include "model/unit.h"

#include "model/callsite/callsite.h"
#include "model/script.h"

#define LIB "@/usr/lib/libpython3.so"
#define SERVE "<module>@/app/main.py:20;serve@/app/main.py:9;call" LIB ";"
#define MAKER SERVE "lib+0x1100" LIB ";vectorcall" LIB ";page@/app/main.py:4;concat" LIB
#define FILLER SERVE "lib+0x1140" LIB ";lib+0x9000" LIB ";lib+0x9900" LIB

struct growth {
	const char *stack;
	uint64_t first; /* bytes of its first block */
	double factor; /* from one to the next */
	uint64_t each; /* bytes for an entry: full when so many are there */
	uint64_t until; /* entries: not enlarged after that; 0: to the end */
};

/* Keeps `count` blocks of `maker` while the tables grow; or `count` arrays whose entries lie in
 * arenas, except that each of the last `small` entries is a block. Returns the maker's call
 * site. */
static struct callsite keep_more(
    const char *maker, int count, int small, const struct growth *tables, size_t table_count)
{
	struct script *s = script_new();
	uint64_t table[4] = {0}, size[4] = {0};
	struct feed feed = script_feed(s);
	struct callsites *p;
	struct model *m;
	struct callsite out;
	struct event e;
	struct err err;

	for (int i = 0; i < count; i++) {
		script_alloc(s, script_stack(s, maker), 100000);
		if (small && i < count - 4)
			script_map(s, script_stack(s, maker), 1 * MiB, 0, 0);
		else
			for (int k = 0; k < small; k++)
				script_alloc(s, script_stack(s, MAKER ";float" LIB), 24);
		for (size_t t = 0; t < table_count; t++) {
			const struct growth *g = &tables[t];
			uint64_t now = table[t];

			if ((now && size[t] > (uint64_t)i * g->each) ||
			    (g->until && (uint64_t)i > g->until))
				continue;
			size[t] = now ? (uint64_t)((double)size[t] * g->factor) : g->first;
			table[t] = script_alloc(s, script_stack(s, g->stack), size[t]);
			if (now)
				script_release(s, now);
		}
		script_release(s, script_alloc(s, script_stack(s, "<module>@/app/main.py:21"), 64));
		script_wait(s, 10000000);
	}
	assert_int_equal(model_new(feed, &m, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	assert_int_equal(callsites_new(m, AT_END, &p, &err), 0);
	out = p->list[callsites_of_stack(
	    p, small ? STACK_STATS_MAP : STACK_STATS_HEAP, script_stack(s, maker))];
	for (uint32_t i = 0; i < out.holders.table_count; i++) /* by their order, from 1 */
		for (size_t t = 0; t < table_count; t++)
			if (out.holders.tables[i] == script_stack(s, tables[t].stack))
				out.holders.tables[i] = (uint32_t)t + 1;
	callsites_free(p);
	model_free(m);
	script_free(s);
	return out;
}

static struct callsite keep(
    const char *maker, int count, const struct growth *tables, size_t table_count)
{
	return keep_more(maker, count, 0, tables, table_count);
}

static void test_remembers(void **state)
{
	struct growth table = {FILLER, 640, 2, 20, 0};
	struct callsite p = keep(MAKER, 700, &table, 1);

	assert_int_equal(p.holders.table_count, 1);
	assert_true(p.holders.remembered);
	/* Another function of the runtime fills it. */
	table.stack = SERVE "lib+0x8140" LIB ";lib+0x9900" LIB;
	p = keep(MAKER, 700, &table, 1);
	assert_int_equal(p.holders.table_count, 1);
	assert_false(p.holders.remembered);
	/* A list belongs to the code that made it. */
	table = (struct growth){FILLER, 640, 1.125, 8, 0};
	assert_false(keep(MAKER, 700, &table, 1).holders.remembered);
	/* The program's own table, beside the one of its callee. */
	table =
	    (struct growth){"<module>@/app/main.py:20;serve@/app/main.py:9;set" LIB, 640, 2, 20, 0};
	p = keep("<module>@/app/main.py:20;serve@/app/main.py:9;page@/app/main.py:4;concat" LIB,
	    700, &table, 1);
	assert_int_equal(p.holders.table_count, 1);
	assert_false(p.holders.remembered);
	(void)state;
}

static void test_whose(void **state)
{
	struct growth tables[] = {
	    {"<module>@/app/main.py:20;put@/app/store.py:7;set" LIB, 640, 2, 20, 0},
	    {"<module>@/app/main.py:20;log@/app/log.py:3;append" LIB, 640, 2, 20, 60}};
	struct callsite p = keep(MAKER, 700, tables, 2);

	/* A table that was large enough long before holds something else. */
	assert_int_equal(p.holders.table_count, 1);
	assert_int_equal(p.holders.tables[0], 1);
	/* Two that grow along: either may be it. */
	tables[1].until = 0;
	assert_int_equal(keep(MAKER, 700, tables, 2).holders.table_count, 2);
	/* Enlarged at another pace. */
	tables[0].each = 1;
	tables[0].factor = 16;
	p = keep(MAKER, 700, tables, 2);
	assert_int_equal(p.holders.table_count, 1);
	assert_int_equal(p.holders.tables[0], 2);
	(void)state;
}

/* Once the interpreter gets no more arenas, its objects are single blocks. The table does not
 * grow for those: it holds the arrays that they belong to, never them. */
static void test_arenas_at_an_end(void **state)
{
	struct growth table = {
	    "<module>@/app/main.py:20;embed@/app/e.py:7;append" LIB, 640, 1.125, 8, 0};

	for (int small = 1; small <= 1000; small *= 10)
		assert_int_equal(keep_more(MAKER, 300, small, &table, 1).holders.table_count, 1);
	(void)state;
}

/* The allocator's list of its system memory stores no blocks of the program. */
static void test_allocators_own(void **state)
{
	struct growth table = {SERVE "page@/app/main.py:4;lib+0x5100" LIB, 640, 2, 20, 0};
	struct callsite p =
	    keep(SERVE "page@/app/main.py:4;lib+0x5000" LIB ";lib+0x7000" LIB, 700, &table, 1);

	assert_int_equal(p.holders.table_count, 0);
	assert_false(p.holders.remembered);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_remembers),
	    cmocka_unit_test(test_whose),
	    cmocka_unit_test(test_arenas_at_an_end),
	    cmocka_unit_test(test_allocators_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

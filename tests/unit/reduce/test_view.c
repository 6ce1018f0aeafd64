/* A record without some of its units: levels are as if those had never been acquired. */
#include "model/unit.h"

#include "model/script.h"
#include "reduce/view.h"
#include "verdict/verdict.h"

#define MIB (1ull << 20)
#define LIMIT (100 * MIB)

struct fixture {
	struct script *script;
	struct verdict_result verdict;
	struct record record;
	uint8_t *kept;
	struct view view;
	uint32_t keep, scratch, grow;
	uint64_t size; /* as measured */
};

static void measure(struct fixture *f, int64_t more)
{
	f->size = (uint64_t)((int64_t)f->size + more);
	script_set(f->script, TRACE_LEVEL_VSIZE, f->size);
	script_set(f->script, TRACE_LEVEL_DATA, f->size - 5 * MIB);
	script_set(f->script, TRACE_LEVEL_RSS, f->size / 2);
	script_set(f->script, TRACE_LEVEL_RSS_ANON, f->size / 2);
	script_sample(f->script);
}

/* 40 blocks of 2 MiB are kept, beside blocks that are released and one that grows by realloc;
 * the next is refused at 100 MiB. */
static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct script *s = f->script = script_new();
	uint64_t text, p;

	f->keep = script_stack(s, "main@/app/m.c:1;serve@/app/m.c:9;keep@/app/m.c:20");
	f->scratch = script_stack(s, "main@/app/m.c:1;serve@/app/m.c:9;work@/app/m.c:30");
	f->grow = script_stack(s, "main@/app/m.c:1;serve@/app/m.c:9;join@/app/m.c:40");
	script_set(s, TRACE_LEVEL_LIMIT_AS, LIMIT);
	measure(f, 10 * MIB);
	text = script_alloc(s, f->grow, 64 << 10);
	for (int i = 0; i < 40; i++) {
		p = script_alloc(s, f->scratch, 1 * MIB);
		script_alloc(s, f->keep, 2 * MIB);
		measure(f, 3 * MIB);
		script_release(s, p);
		text = script_realloc(s, text, f->grow, (uint64_t)(64 + 8 * i) << 10);
		measure(f, -(int64_t)MIB);
		script_wait(s, 1000000);
	}
	measure(f, 9 * MIB);
	script_failed(s, f->keep, 2 * MIB);
	script_exit(s, 1);
	assert_int_equal(verdict_of_feed(script_feed(s), NULL, &f->verdict, NULL), 0);
	assert_int_equal(f->verdict.failure.limit, LIMIT_AS);
	assert_int_equal(record_load(&(struct trace_set){0}, &f->verdict, &f->record, NULL), 0);
	f->kept = malloc(f->record.units.count);
	memset(f->kept, 1, f->record.units.count);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	view_fini(&f->view);
	free(f->kept);
	record_fini(&f->record);
	verdict_fini(&f->verdict);
	script_free(f->script);
	free(f);
	return 0;
}

static void leave_out(struct fixture *f, uint32_t stack, uint32_t each)
{
	uint32_t n = 0;

	for (size_t i = 1; i < f->record.units.count; i++)
		if (f->record.units.items[i].kind == UNIT_BLOCK &&
		    f->record.units.items[i].stack == stack && n++ % each == 0)
			f->kept[i] = 0;
	assert_int_equal(view_make(&f->record, f->kept, &f->view), 0);
}

static bool alike(const struct event *a, const struct event *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->address == b->address &&
	       (a->kind == EV_FREE || a->size == b->size) && a->stack == b->stack &&
	       a->time_ns == b->time_ns && a->level_count == b->level_count && !a->old == !b->old &&
	       !a->block == !b->block &&
	       (!a->block || (a->block->birth_ns == b->block->birth_ns &&
				 a->block->serial == b->block->serial));
}

static void test_all_of_it(void **state)
{
	struct fixture *f = *state;
	struct feed whole = script_feed(f->script), left;
	struct event a, b;
	size_t n = 0;

	leave_out(f, UINT32_MAX, 1);
	left = view_feed(&f->view);
	whole.rewind(whole.self, NULL);
	left.rewind(left.self, NULL);
	while (whole.next(whole.self, &a, NULL) == 1) {
		assert_int_equal(left.next(left.self, &b, NULL), 1);
		assert_true(alike(&a, &b));
		for (uint32_t i = 0; i < a.level_count; i++)
			assert_int_equal(a.levels[i].value, b.levels[i].value);
		n++;
	}
	assert_int_equal(left.next(left.self, &b, NULL), 0);
	assert_int_equal(n, f->record.events.count);
}

static uint64_t level(const struct event *e, uint32_t key)
{
	uint64_t value = 0;

	event_level(e, key, &value);
	return value;
}

/* Every second kept block is left out: 40 MiB less at the end and in the limit. */
static void test_levels(void **state)
{
	struct fixture *f = *state;
	struct feed left;
	struct event e;
	uint64_t live = 0, at_failure = 0;

	leave_out(f, f->keep, 2);
	left = view_feed(&f->view);
	left.rewind(left.self, NULL);
	while (left.next(left.self, &e, NULL) == 1) {
		if (e.kind == EV_ALLOC && e.stack == f->keep)
			live++;
		if (e.kind != EV_LEVEL && e.kind != EV_FAILED)
			continue;
		/* As many bytes are always left of the limit as before. */
		assert_int_equal(level(&e, TRACE_LEVEL_LIMIT_AS), LIMIT - 40 * MIB);
		assert_true(level(&e, TRACE_LEVEL_VSIZE) <= LIMIT - 40 * MIB);
		assert_true(level(&e, TRACE_LEVEL_RSS) <= level(&e, TRACE_LEVEL_VSIZE));
		if (e.kind == EV_FAILED)
			at_failure = level(&e, TRACE_LEVEL_VSIZE);
	}
	assert_int_equal(live, 20);
	assert_int_equal(at_failure, f->size - 40 * MIB);
}

/* A block goes with every realloc of it. */
static void test_chains(void **state)
{
	struct fixture *f = *state;
	struct feed left;
	struct event e;

	leave_out(f, f->grow, 1);
	left = view_feed(&f->view);
	left.rewind(left.self, NULL);
	while (left.next(left.self, &e, NULL) == 1) {
		assert_int_not_equal(e.flags & EVENT_REALLOC, EVENT_REALLOC);
		assert_true(e.stack != f->grow);
	}
}

/* Each event of a block is of a live one, and no two blocks overlap; returns the number of
 * resized ones, and where the resized one ended. */
static unsigned follow(struct view *view, uint64_t *size, uint64_t *at_failure)
{
	uint64_t live[200][2], text = 0;
	struct feed left = view_feed(view);
	unsigned count = 0, steps = 0;
	struct event e;

	left.rewind(left.self, NULL);
	while (left.next(left.self, &e, NULL) == 1) {
		unsigned i = 0;

		if (e.kind == EV_FAILED)
			*at_failure = level(&e, TRACE_LEVEL_VSIZE);
		while (i < count && live[i][0] != e.address)
			i++;
		if (e.kind == EV_ALLOC) {
			assert_int_equal(i, count);
			if (e.old) {
				assert_int_equal(e.old->size, *size);
				assert_int_equal(e.old->address, text);
				*size = e.size;
				text = e.address;
				steps++;
			} else if (!text) {
				*size = e.size;
				text = e.address;
			}
			live[count][0] = e.address;
			live[count++][1] = e.size;
		} else if (e.kind == EV_FREE) {
			assert_true(i < count);
			assert_int_equal(e.block->address, e.address);
			assert_int_equal(e.block->size, live[i][1]);
			memcpy(live[i], live[--count], sizeof(live[i]));
		}
	}
	return steps;
}

/* Each realloc but the last goes by itself: the block keeps its size until the next. */
static void test_steps(void **state)
{
	struct fixture *f = *state;
	uint64_t size = 0, at_failure = 0, before = f->record.events.count;
	unsigned steps = 0;
	struct view again;

	for (size_t i = 1; i < f->record.units.count; i++) {
		const struct record_unit *u = &f->record.units.items[i];

		if (u->kind != UNIT_STEP)
			continue;
		assert_int_equal(u->events, 2);
		f->kept[i] = !u->leaves || steps % 3 == 0;
		assert_true(u->leaves == (steps < 39));
		steps++;
	}
	assert_int_equal(steps, 40);
	leave_out(f, UINT32_MAX, 1);
	assert_int_equal(follow(&f->view, &size, &at_failure), 14);
	assert_int_equal(size, (64 + 8 * 39) << 10);
	assert_int_equal(at_failure, f->size);
	assert_int_equal(f->view.order.count, before - 2 * 26);
	assert_int_equal(view_settle(&f->view, &f->record), 0);
	/* And of the remaining ones, all but the last. */
	for (size_t i = 1; i < f->record.units.count; i++)
		if (f->record.units.items[i].kind == UNIT_STEP && f->record.units.items[i].leaves)
			f->kept[i] = 0;
	size = 0;
	assert_int_equal(view_make(&f->record, f->kept, &again), 0);
	assert_int_equal(follow(&again, &size, &at_failure), 1);
	assert_int_equal(size, (64 + 8 * 39) << 10);
	assert_int_equal(at_failure, f->size);
	view_fini(&again);
}

/* The copy that lasts equals the view. */
static void test_settled(void **state)
{
	struct fixture *f = *state;
	struct view again;
	struct feed left;
	struct event e;
	uint64_t events, count = 0, live = 0;

	leave_out(f, f->scratch, 1);
	events = f->view.order.count;
	assert_int_equal(view_settle(&f->view, &f->record), 0);
	assert_int_equal(f->record.events.count, events);
	assert_int_equal(f->record.events.items[f->record.moment].kind, EV_FAILED);
	assert_int_equal(view_make(&f->record, f->kept, &again), 0);
	left = view_feed(&again);
	left.rewind(left.self, NULL);
	while (left.next(left.self, &e, NULL) == 1) {
		count++;
		if (e.kind == EV_ALLOC)
			live++;
		if (e.kind == EV_FREE) {
			assert_non_null(e.block);
			assert_int_equal(e.block->address, e.address);
			assert_true(e.block->size > 0);
		}
		/* No part of it lived then. */
		if (e.kind == EV_FAILED)
			assert_int_equal(level(&e, TRACE_LEVEL_VSIZE), f->size);
	}
	assert_int_equal(count, events);
	assert_int_equal(live, 81);
	view_fini(&again);
}

/* The verdict on the rest is the same. */
static void test_verdict(void **state)
{
	struct fixture *f = *state;
	struct verdict_result v;

	leave_out(f, f->keep, 2);
	assert_int_equal(verdict_again(&f->verdict, view_feed(&f->view), NULL, &v, NULL), 0);
	assert_int_equal(v.verdict.cause, f->verdict.verdict.cause);
	assert_int_equal(v.failure.limit_bytes, LIMIT - 40 * MIB);
	assert_int_equal(v.failure.requested_bytes, 2 * MIB);
	assert_int_equal(v.ledger.unaccounted, f->verdict.ledger.unaccounted);
	verdict_fini(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_all_of_it, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_levels, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_chains, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_settled, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_verdict, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

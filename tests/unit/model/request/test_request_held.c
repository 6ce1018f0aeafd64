/* Bytes that requests in flight held, by call site. Leftovers of finished requests, blocks that a
 * worker keeps over rounds, and call sites of one request alone do not count. */
#include "model/unit.h"

#include "model/request/request_held.h"
#include "model/script.h"

struct read {
	struct model *m;
	struct callsites *p;
	struct requests *r;
	struct requests_held h;
};

static void read_all(struct script *s, struct read *x)
{
	struct feed feed = script_feed(s);
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &x->m, &err), 0);
	x->r = requests_new(NULL, NULL);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1) {
		assert_int_equal(model_apply(x->m, &e, &err), 0);
		assert_int_equal(requests_apply(x->r, &e), 0);
	}
	model_finish(x->m);
	assert_int_equal(callsites_new(x->m, AT_END, &x->p, &err), 0);
	assert_int_equal(requests_held_read(x->r, x->m, x->p, feed.each_live, feed.self, &x->h), 0);
}

static const struct held_callsite *at(const struct read *x, const char *function)
{
	for (uint32_t i = 0; i < x->p->count; i++)
		if (strcmp(x->p->list[i].function, function) == 0)
			return &x->h.callsites[i];
	fail();
	return NULL;
}

static void done(struct script *s, struct read *x)
{
	requests_held_fini(&x->h);
	requests_free(x->r);
	callsites_free(x->p);
	model_free(x->m);
	script_free(s);
}

static void test_threads(void **state)
{
	struct script *s = script_new();
	uint32_t load = script_stack(s, "main;load"), work = script_stack(s, "thread;work");
	struct read x;

	script_alloc(s, load, 1000000);
	for (uint32_t i = 0; i < 10; i++) {
		script_thread(s, 2 + i, 0);
		script_alloc(s, work, 5000);
		script_alloc(s, work, i == 9 ? 7000 : 5000);
		if (i < 4)
			script_event(s, EV_THREAD_EXIT, 0);
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "work")->bytes, 5 * 10000 + 12000);
	assert_int_equal(at(&x, "work")->largest, 12000);
	assert_int_equal(at(&x, "work")->alike, 6);
	assert_int_equal(at(&x, "load")->alike, 1);
	assert_int_equal(x.h.sum, 62000);
	assert_int_equal(x.h.largest, 12000);
	assert_int_equal(x.h.alike, 6);
	assert_int_equal(x.h.finished, 4);
	assert_true(x.h.left == 1);
	done(s, &x);
	(void)state;
}

/* What ended work left in a bounded cache is no leftover. */
static void test_bounded(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;work"), keep = script_stack(s, "thread;keep");
	uint64_t kept[60] = {0}, block;
	struct read x;

	for (uint32_t i = 0; i < 40; i++) {
		script_thread(s, 2 + i, 0);
		block = script_alloc(s, work, 5000);
		kept[i] = script_alloc(s, keep, 1000);
		if (i >= 10)
			script_release(s, kept[i - 10]);
		if (i >= 36)
			continue;
		script_release(s, block);
		script_event(s, EV_THREAD_EXIT, 0);
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "work")->alike, 4);
	assert_int_equal(x.h.finished, 36);
	assert_true(x.h.left < 0.1);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(x.h.list[i].since_ns > 0);
	done(s, &x);
	(void)state;
}

/* A worker that keeps something at each round holds only the last round, and its set-up from
 * before the first. */
static void test_rounds(void **state)
{
	struct script *s = script_new();
	uint32_t setup = script_stack(s, "pool;setup"), keep = script_stack(s, "pool;keep"),
		 work = script_stack(s, "pool;work");
	struct read x;

	for (uint32_t i = 0; i < 2; i++) {
		script_thread(s, 2 + i, 0);
		script_alloc(s, setup, 3000);
		for (int k = 0; k < 100; k++) {
			uint64_t a = script_alloc(s, work, 5000);

			script_alloc(s, keep, 100);
			script_release(s, a);
		}
		script_alloc(s, work, 5000);
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "work")->bytes, 10000);
	assert_int_equal(at(&x, "setup")->bytes, 6000);
	assert_true(at(&x, "keep")->bytes <= 4 * 100);
	done(s, &x);
	(void)state;
}

/* Rounds before a checkpoint were not seen: blocks older than its last period belong to no
 * request, younger ones may. */
static void test_rounds_unseen(void **state)
{
	struct script *s = script_new();
	uint32_t keep = script_stack(s, "pool;keep");
	struct replaced past = {.count = 1};
	struct read x;

	script_step(s, 1000);
	for (uint32_t i = 0; i < 2; i++) {
		script_thread(s, 2 + i, 0);
		for (int k = 0; k < 100; k++)
			script_alloc(s, keep, 100);
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "keep")->bytes, 20000);
	assert_int_equal(at(&x, "keep")->alike, 2);
	past.periods[0].begin_ns = x.p->moment_ns - 50 * 1000;
	x.p->replaced = &past;
	requests_held_fini(&x.h);
	assert_int_equal(
	    requests_held_read(x.r, x.m, x.p, x.m->feed.each_live, x.m->feed.self, &x.h), 0);
	assert_in_range(at(&x, "keep")->bytes, 4800, 5200);
	assert_int_equal(at(&x, "keep")->alike, 1);
	done(s, &x);
	(void)state;
}

/* Lanes that end leave nothing: the others' blocks are all in hand, rounds or not. */
static void test_those_like_it(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;work");
	struct read x;

	for (uint32_t i = 0; i < 5; i++) {
		uint64_t held[20];

		script_thread(s, 2 + i, 0);
		for (int k = 0; k < 20; k++) {
			uint64_t a = script_alloc(s, work, 9000);

			held[k] = script_alloc(s, work, 1000);
			script_release(s, a);
		}
		for (int k = 0; k < 20 && i < 3; k++)
			script_release(s, held[k]);
		if (i < 3)
			script_event(s, EV_THREAD_EXIT, 0);
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "work")->bytes, 2 * 20 * 1000);
	assert_int_equal(x.h.finished, 3);
	assert_true(x.h.left == 0);
	done(s, &x);
	(void)state;
}

/* Threads were never seen to end a round, since they keep more than they release at a time. If
 * as many blocks came and went at that stack since, its blocks are done with; if other stacks
 * released, all may be in hand. */
static void unended(uint64_t drops, bool same, uint64_t held)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;work"), drop = script_stack(s, "thread;drop");
	struct read x;

	for (uint32_t round = 0; round < 20; round++)
		for (uint32_t i = 0; i < 2; i++) {
			script_thread(s, 2 + i, 0);
			if (!round)
				script_alloc(s, script_stack(s, "thread;cache"), 50000);
			for (uint64_t k = 0; k < drops; k++)
				script_release(s, script_alloc(s, same ? work : drop, 100));
			script_alloc(s, work, 1000);
		}
	read_all(s, &x);
	assert_int_equal(at(&x, "work")->alike, 2);
	assert_in_range(at(&x, "work")->bytes, held, held + 1000);
	done(s, &x);
}

static void test_turnover(void **state)
{
	unended(4, false, 40000);
	unended(4, true, 6000);
	(void)state;
}

/* Each keeps forty blocks: with a release before each; with a few releases; in one go, after
 * others.
 */
static void test_in_one_go(void **state)
{
	static const uint32_t releases[] = {40, 3, 0};
	struct script *s = script_new();
	uint32_t keep = script_stack(s, "thread;keep"), work = script_stack(s, "thread;work");
	struct read x;

	for (uint32_t i = 0; i < 3; i++) {
		script_thread(s, 2 + i, 0);
		script_alloc(s, script_stack(s, "thread;cache"), 50000);
		for (uint32_t k = 0; k < 20; k++)
			script_release(s, script_alloc(s, work, 100));
		for (uint32_t k = 0; k < 40; k++) {
			script_alloc(s, keep, 1000);
			if (k < releases[i])
				script_release(s, script_alloc(s, work, 100));
		}
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "keep")->requests, 3);
	assert_int_equal(at(&x, "keep")->in_one_go, 2);
	done(s, &x);
	(void)state;
}

/* A refused request that ended did not leave its blocks behind: its error may keep them alive. */
static void test_refused(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;work");
	struct read x;

	for (uint32_t i = 0; i < 4; i++) {
		script_thread(s, 2 + i, 0);
		script_alloc(s, work, 5000);
		if (i == 1)
			script_failed(s, work, 5000);
		if (i < 2)
			script_event(s, EV_THREAD_EXIT, 0);
	}
	read_all(s, &x);
	assert_int_equal(at(&x, "work")->bytes, 3 * 5000);
	assert_int_equal(x.h.finished, 1);
	done(s, &x);
	(void)state;
}

/* A marked request owns its blocks on all lanes that worked for it; nothing from between
 * requests. */
static void test_marked(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "loop;work");
	struct read x;

	for (uint32_t i = 1; i <= 3; i++) {
		struct event *e;

		for (uint32_t k = 0; k < 2; k++) {
			script_thread(s, 1, 10 * i + k);
			e = script_event(s, EV_MARK, 0);
			e->u.mark.phase = k ? TRACE_MARK_ENTER : TRACE_MARK_BEGIN;
			e->u.mark.what = TRACE_MARK_REQUEST;
			e->u.mark.id = i;
			script_alloc(s, work, 1000 * i);
		}
		if (i == 1) {
			e = script_event(s, EV_MARK, 0);
			e->u.mark.phase = TRACE_MARK_END;
			e->u.mark.id = i;
			script_alloc(s, work, 50);
		}
	}
	read_all(s, &x);
	assert_int_equal(x.h.count, 2);
	assert_int_equal(x.h.sum, 2 * 2000 + 2 * 3000);
	assert_int_equal(x.h.largest, 6000);
	assert_int_equal(x.h.list[0].request->id, 3);
	assert_int_equal(x.h.finished, 1);
	assert_true(x.h.left == 1);
	done(s, &x);
	(void)state;
}

/* A request's last blocks may be released after its end was seen; the others are left behind. */
static double left_behind(bool late)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "loop;work");
	struct read x;
	double left;

	for (uint32_t i = 1; i <= 6; i++) {
		struct event *e;
		uint64_t block;

		script_thread(s, 1 + i, 0);
		e = script_event(s, EV_MARK, 0);
		e->u.mark.phase = TRACE_MARK_BEGIN;
		e->u.mark.what = TRACE_MARK_REQUEST;
		e->u.mark.id = i;
		block = script_alloc(s, work, 1000);
		if (i > 3)
			continue;
		e = script_event(s, EV_MARK, 0);
		e->u.mark.phase = TRACE_MARK_END;
		e->u.mark.what = TRACE_MARK_REQUEST;
		e->u.mark.id = i;
		if (late)
			script_release(s, block);
	}
	read_all(s, &x);
	assert_int_equal(x.h.alike, 3);
	assert_int_equal(x.h.finished, 3);
	left = x.h.left;
	done(s, &x);
	return left;
}

static void test_late_release(void **state)
{
	assert_true(left_behind(true) == 0);
	assert_true(left_behind(false) == 1);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_bounded), cmocka_unit_test(test_rounds),
	    cmocka_unit_test(test_rounds_unseen), cmocka_unit_test(test_those_like_it),
	    cmocka_unit_test(test_refused), cmocka_unit_test(test_turnover),
	    cmocka_unit_test(test_in_one_go), cmocka_unit_test(test_marked),
	    cmocka_unit_test(test_late_release)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Loading, first request and serving, from memory's rise and fall and the times of requests. */
#include "model/unit.h"

#include "model/model.h"
#include "model/request/phase.h"
#include "model/script.h"

#define MS 1000000u

struct served {
	struct script *s;
	struct model *m;
	struct requests *r;
	struct phases p;
	uint32_t in;
};

static bool inside(void *arg, uint32_t stack)
{
	return stack == ((struct served *)arg)->in;
}

static void read_all(struct served *v, bool frames)
{
	struct feed feed = script_feed(v->s);
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &v->m, &err), 0);
	v->r = requests_new(frames ? inside : NULL, v);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1) {
		assert_int_equal(model_apply(v->m, &e, &err), 0);
		assert_int_equal(requests_apply(v->r, &e), 0);
	}
	phases_read(&v->m->timeline, v->m->run.first_ns, v->m->run.last_ns, v->r, false, &v->p);
}

static void done(struct served *v)
{
	requests_free(v->r);
	model_free(v->m);
	script_free(v->s);
}

/* A hundred tensors, each copied by way of a buffer that is released; then work. */
static void load_and_serve(struct served *v, uint32_t rounds)
{
	uint32_t load = script_stack(v->s, "main;load"), out = script_stack(v->s, "main;idle");

	v->in = script_stack(v->s, "main;answer");
	for (int i = 0; i < 100; i++) {
		uint64_t copy = script_alloc(v->s, load, 1000000);

		script_wait(v->s, 10 * MS);
		script_alloc(v->s, load, 1000000);
		script_release(v->s, copy);
	}
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t at = script_alloc(v->s, v->in, 2000000);

		script_wait(v->s, 10 * MS);
		script_release(v->s, at);
		script_alloc(v->s, out, 16);
	}
}

static void test_memory(void **state)
{
	struct served v = {.s = script_new()};

	load_and_serve(&v, 300);
	read_all(&v, false);
	assert_int_equal(v.p.count, 2);
	assert_string_equal(v.p.list[0].name, "loading");
	assert_true(v.p.list[0].end_ns > 900 * MS && v.p.list[0].end_ns < 1100 * MS);
	assert_true(v.p.list[0].live_bytes > 90000000);
	assert_string_equal(v.p.list[1].name, "serving");
	assert_int_equal(v.p.list[1].start_ns, v.p.list[0].end_ns);
	assert_int_equal(v.p.list[1].end_ns, v.m->run.last_ns);
	done(&v);
	(void)state;
}

static void test_requests(void **state)
{
	struct served v = {.s = script_new()};

	load_and_serve(&v, 300);
	read_all(&v, true);
	assert_int_equal(v.p.count, 3);
	assert_string_equal(v.p.list[1].name, "first-request");
	assert_true(v.p.list[1].end_ns - v.p.list[1].start_ns > 9 * MS);
	assert_true(v.p.list[1].end_ns - v.p.list[1].start_ns < 12 * MS);
	assert_string_equal(v.p.list[2].name, "serving");
	done(&v);
	(void)state;
}

/* It never got beyond. */
static void test_loading_only(void **state)
{
	struct served v = {.s = script_new()};

	load_and_serve(&v, 0);
	read_all(&v, true);
	assert_int_equal(v.p.count, 0);
	done(&v);
	(void)state;
}

static void test_marked(void **state)
{
	struct served v = {.s = script_new()};

	for (uint32_t i = 0; i < 2; i++) {
		struct event *e = script_event(v.s, EV_MARK, 0);

		e->u.mark.phase = TRACE_MARK_BEGIN;
		e->u.mark.what = TRACE_MARK_PHASE;
		e->u.mark.id = i + 1;
		e->u.mark.name = i ? "serving" : "compiling";
		script_wait(v.s, 5 * MS);
		if (i)
			continue;
		e = script_event(v.s, EV_MARK, 0);
		e->u.mark.phase = TRACE_MARK_END;
		e->u.mark.what = TRACE_MARK_PHASE;
		e->u.mark.id = 1;
	}
	load_and_serve(&v, 100);
	read_all(&v, true);
	assert_int_equal(v.p.count, 2);
	assert_string_equal(v.p.list[0].name, "compiling");
	assert_true(v.p.list[0].marked);
	assert_true(v.p.list[0].end_ns - v.p.list[0].start_ns < 6 * MS);
	assert_int_equal(v.p.list[1].end_ns, v.m->run.last_ns);
	done(&v);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_requests), cmocka_unit_test(test_loading_only),
	    cmocka_unit_test(test_marked)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

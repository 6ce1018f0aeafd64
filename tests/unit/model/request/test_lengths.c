/* The length of inputs, by marks or by sizes, and the blocks that shorter ones would have made. */
#include "model/unit.h"

#include "model/request/lengths.h"
#include "model/script.h"

struct server {
	struct script *script;
	uint32_t text, scores, answer, page, ring, refused;
	uint64_t id;
	uint32_t cuda, torch; /* 0: the host */
	uint64_t next;
	bool marked;
};

static struct server server_new(bool marked)
{
	struct script *s = script_new();

	return (struct server){.script = s,
	    .text = script_stack(s, "main;serve;read@/app/serve.py:5"),
	    .scores = script_stack(s, "main;serve;attend@/app/serve.py:12;alloc"),
	    .answer = script_stack(s, "main;serve;answer@/app/serve.py:20"),
	    .page = script_stack(s, "main;serve;page@/app/serve.py:30"),
	    .ring = script_stack(s, "main;serve;ring@/app/serve.py:40"),
	    .refused = script_stack(s, "main;serve;attend@/app/serve.py:12;alloc;raise"),
	    .marked = marked,
	    .id = 1,
	    .next = 1 << 20};
}

static void mark(struct server *v, uint32_t phase, uint64_t tokens)
{
	struct event *e;

	if (!v->marked)
		return;
	e = script_event(v->script, EV_MARK, 0);
	e->u.mark.phase = phase;
	e->u.mark.what = TRACE_MARK_REQUEST;
	e->u.mark.id = v->id;
	e->u.mark.tokens = tokens;
}

static uint64_t make(struct server *v, uint32_t stack, uint64_t size)
{
	if (!v->torch)
		return script_alloc(v->script, stack, size);
	v->next += size;
	script_space_alloc(v->script, v->torch, stack, v->next, size);
	return v->next;
}

static void release(struct server *v, uint64_t address)
{
	if (v->torch)
		script_space_free(v->script, v->torch, address);
	else
		script_release(v->script, address);
}

/* 100 bytes a token, 8 for each pair of tokens, a page of 2,000 for each 10; and a ring that
 * follows no input. A request whose scores are refused ends there. */
static void serve(struct server *v, uint64_t tokens, bool refuse)
{
	uint64_t text, scores, answer, pages[100], ring;

	mark(v, TRACE_MARK_BEGIN, 0);
	ring = make(v, v->ring, 5000);
	mark(v, TRACE_MARK_LENGTH, tokens);
	for (uint64_t i = 0; i < tokens / 10; i++)
		pages[i] = make(v, v->page, 2000);
	text = make(v, v->text, 100 * tokens);
	if (refuse) {
		if (v->torch)
			script_space_failed(
			    v->script, v->torch, v->refused, 8 * tokens * tokens, 0);
		else
			script_failed(v->script, v->refused, 8 * tokens * tokens);
		return;
	}
	scores = make(v, v->scores, 8 * tokens * tokens);
	answer = make(v, v->answer, 3000 * tokens);
	release(v, scores);
	release(v, text);
	release(v, answer);
	for (uint64_t i = 0; i < tokens / 10; i++)
		release(v, pages[i]);
	release(v, ring);
	mark(v, TRACE_MARK_END, 0);
	v->id++;
}

static void serve_all(struct server *v)
{
	static const uint64_t lengths[] = {30, 110, 70, 20, 100, 50, 90, 60, 40, 80};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		serve(v, lengths[i], false);
	serve(v, 400, true);
}

static struct lengths read_all(struct server *v)
{
	struct lengths l;
	struct err err;
	uint64_t moment = v->torch ? UINT64_MAX : script_now(v->script);

	assert_int_equal(
	    lengths_read(script_feed(v->script), v->torch ? "torch:0" : NULL, moment, &l, &err), 0);
	return l;
}

static bool near(double a, double b)
{
	return a > b * 0.99 - 1 && a < b * 1.01 + 1;
}

static uint64_t newest(const struct lengths *l, uint32_t stack, double most)
{
	uint64_t size = UINT64_MAX;

	for (size_t i = 0; i < l->blocks.count; i++)
		if (l->stacks.items[l->blocks.items[i].stack].stack == stack)
			size = lengths_size(l, i, most);
	return size;
}

static void check_sizes(struct server *v, const struct lengths *l, double token)
{
	double half = 200 * token;

	assert_true(near(l->longest, 400 * token));
	assert_true(l->refused);
	/* The refused request is on that line, which others define. */
	assert_int_equal(l->stacks.items[l->blocks.items[l->refused - 1].stack].stack, v->scores);
	assert_true(near((double)newest(l, v->scores, half), 8. * 200 * 200));
	assert_true(near((double)newest(l, v->text, half), 100. * 200));
	assert_int_equal(newest(l, v->ring, half), 5000);
	/* Inputs that were short enough are unchanged. */
	assert_int_equal(newest(l, v->answer, half), 3000 * 80);
	assert_int_equal(newest(l, v->text, 400 * token), 100 * 400);
	/* It would have gone on to its answer; inputs longer than it would not be longer. */
	assert_true(near((double)lengths_further(l, half), 3000. * 200));
	assert_true(near((double)lengths_further(l, 9999 * token), 3000. * 400));
}

static void test_marked(void **state)
{
	struct server v = server_new(true);
	struct lengths l;

	serve_all(&v);
	l = read_all(&v);
	assert_int_equal(l.source, LENGTHS_MARKED);
	check_sizes(&v, &l, 1);
	/* The first 20 of its 40 pages, and half of its text. */
	assert_int_equal(lengths_size(&l, l.refused - 3, 200), 0);
	assert_true(near((double)lengths_less(&l, 200, NULL, NULL), 20 * 2000 + 200 * 100));
	assert_int_equal(lengths_less(&l, 400, NULL, NULL), 0);
	lengths_fini(&l);
	script_free(v.script);
	(void)state;
}

static void test_by_sizes(void **state)
{
	struct server v = server_new(false);
	struct lengths l;

	serve_all(&v);
	l = read_all(&v);
	assert_int_equal(l.source, LENGTHS_SIZES);
	/* The answer's blocks measure no better than the text, which comes first. */
	assert_true(l.reference == v.text || l.reference == v.answer);
	check_sizes(&v, &l, l.longest / 400);
	lengths_fini(&l);
	script_free(v.script);
	(void)state;
}

static void test_device(void **state)
{
	struct server v = server_new(false);
	struct lengths l;

	v.cuda = script_space(v.script, "cuda:0");
	v.torch = script_space(v.script, "torch:0");
	serve_all(&v);
	l = read_all(&v);
	check_sizes(&v, &l, l.longest / 400);
	assert_int_equal(lengths_find(&l, 7), 6);
	assert_true(lengths_find(&l, l.blocks.count + 1) == SIZE_MAX);
	lengths_fini(&l);
	script_free(v.script);
	(void)state;
}

/* Workers that take turns do not label the others' blocks. */
static void test_workers(void **state)
{
	struct server v = server_new(false);
	struct lengths l;
	uint64_t text[4];

	for (int i = 0; i < 12; i++) {
		for (uint32_t k = 0; k < 4; k++) {
			script_thread(v.script, k + 1, 0);
			text[k] = make(&v, v.text, 1000 + 700 * ((uint64_t)i * 5 + k * 7) % 9000);
		}
		for (uint32_t k = 0; k < 4; k++) {
			uint64_t size = 1000 + 700 * ((uint64_t)i * 5 + k * 7) % 9000;

			script_thread(v.script, k + 1, 0);
			release(&v, make(&v, v.answer, size * 3));
			release(&v, text[k]);
		}
	}
	l = read_all(&v);
	for (size_t i = 0; i < l.stacks.count; i++)
		assert_int_equal(l.stacks.items[i].fit.kind, SCALING_LINEAR);
	lengths_fini(&l);
	script_free(v.script);
	(void)state;
}

static void test_nothing_grows(void **state)
{
	struct server v = server_new(false);
	struct lengths l;

	for (int i = 0; i < 20; i++)
		release(&v, make(&v, v.ring, 5000));
	l = read_all(&v);
	assert_int_equal(l.source, LENGTHS_NONE);
	assert_int_equal(newest(&l, v.ring, 1), 5000);
	assert_int_equal(lengths_further(&l, 1), 0);
	lengths_fini(&l);
	script_free(v.script);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_marked),
	    cmocka_unit_test(test_by_sizes),
	    cmocka_unit_test(test_device),
	    cmocka_unit_test(test_workers),
	    cmocka_unit_test(test_nothing_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

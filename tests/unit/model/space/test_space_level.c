#include "model/spaces.h"

static void unattributed(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), pool = script_space(s, "pool:0");
	static const struct event_level reserved[] = {
	    {TRACE_LEVEL_RESERVED, 64 * MiB}, {TRACE_LEVEL_ALLOCATED, 8 * MiB}};
	const struct device_sample *last;
	struct event *e;
	struct model *m;

	script_space_alloc(s, cuda, 0, 0x10000000, 100 * MiB);
	script_space_alloc(s, pool, 0, 0x20000000, 8 * MiB);
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 500 * MiB, TRACE_LEVEL_DEV_TOTAL, 1000 * MiB);
	m = spaces_model(s);
	last = &spaces_find(m->spaces, "cuda:0")->last_sample;
	assert_int_equal(last->explained, 108 * MiB);
	assert_int_equal(last->unattributed, 392 * MiB);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->sample_count, 1);
	model_free(m);
	/* The pool's own holdings count, and the others'. */
	e = script_event(s, EV_SPACE_CALL, pool);
	e->u.space.handle = 0x77;
	e->levels = reserved;
	e->level_count = 2;
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_OTHERS, 200 * MiB, TRACE_LEVEL_DEV_FREE, 500 * MiB);
	m = spaces_model(s);
	last = &spaces_find(m->spaces, "cuda:0")->last_sample;
	assert_int_equal(spaces_explained(m->spaces, 0), 164 * MiB);
	assert_int_equal(last->unattributed, 136 * MiB);
	assert_true(last->others_known);
	model_free(m);
	/* It grew since its level was read. */
	script_space_alloc(s, pool, 0, 0x30000000, 80 * MiB);
	m = spaces_model(s);
	assert_int_equal(spaces_explained(m->spaces, 0), 188 * MiB);
	model_free(m);
	script_free(s);
}

static void call(struct script *s, uint32_t cuda, const char *api, uint32_t thread, uint64_t value)
{
	struct event *e = script_event(s, EV_SPACE_CALL, cuda);

	e->u.space.api = api;
	e->u.space.offset = value;
	e->thread = thread;
}

static void alloc_by(struct script *s, uint32_t cuda, uint64_t address, uint32_t thread)
{
	struct event *e = script_event(s, EV_SPACE_ALLOC, cuda);

	e->address = address;
	e->size = MiB;
	e->thread = thread;
}

/* What a capturing thread allocates meanwhile is the graph's; another thread's is not. */
static void captures(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct model *m;

	script_space_alloc(s, cuda, 0, 0x10000000, MiB);
	call(s, cuda, "cuStreamBeginCapture_v2", 1, 3);
	alloc_by(s, cuda, 0x20000000, 1);
	alloc_by(s, cuda, 0x30000000, 2);
	call(s, cuda, "cuStreamEndCapture", 1, 3);
	alloc_by(s, cuda, 0x40000000, 1);
	call(s, cuda, "cuStreamBeginCapture_v2", 1, 8);
	m = spaces_model(s);
	for (uint32_t i = 0; i < m->spaces->used; i++)
		assert_int_equal(spaces_block(m->spaces, i)->captured,
		    spaces_block(m->spaces, i)->block.address == 0x20000000);
	assert_int_equal(m->spaces->captures.count, 2);
	assert_int_equal(m->spaces->captures.launches, 5);
	assert_int_equal(m->spaces->captures.open, 1);
	model_free(m);
	script_free(s);
	(void)state;
}

/* A long series is thinned out, not cut off. */
static void series(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct space *sp;
	struct model *m;

	for (uint64_t i = 0; i < 10000; i++)
		script_space_level(
		    s, cuda, TRACE_LEVEL_DEV_FREE, i * MiB, TRACE_LEVEL_DEV_TOTAL, 10000 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	assert_in_range(sp->sample_count, DEVICE_SAMPLES / 4, DEVICE_SAMPLES);
	assert_int_equal(sp->samples[0].free, 0);
	assert_in_range(sp->samples[sp->sample_count - 1].free, 9000 * MiB, 10000 * MiB);
	for (uint32_t i = 1; i < sp->sample_count; i++)
		assert_true(sp->samples[i].time_ns > sp->samples[i - 1].time_ns);
	model_free(m);
	script_free(s);
}

static struct event *outside(struct script *s, uint64_t free, uint64_t own, uint64_t others)
{
	struct event *e = script_event(s, EV_OUTSIDE, 0);

	e->u.device.free = free;
	e->u.device.total = 1000 * MiB;
	e->u.device.own = own;
	e->u.device.own_known = own;
	e->u.device.others = others;
	e->u.device.named = own || others;
	return e;
}

/* Before the process uses the device, while it does, and in a container where it has another
 * number. */
static void from_outside(void **state)
{
	struct script *s = script_new();
	const struct device_sample *last;
	struct space *sp;
	struct model *m;
	uint32_t cuda;

	outside(s, 800 * MiB, 0, 200 * MiB);
	m = spaces_model(s);
	assert_int_equal(m->spaces->count, 0); /* others use the device */
	assert_int_equal(m->run.events, 0);
	model_free(m);
	cuda = script_space(s, "cuda:0");
	script_space_alloc(s, cuda, 0, 0x10000000, 100 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	assert_int_equal(sp->sample_count, 1);
	assert_true(sp->samples[0].others_known);
	model_free(m);
	outside(s, 500 * MiB, 350 * MiB, 150 * MiB);
	outside(s, 450 * MiB, 400 * MiB, 150 * MiB)->u.device.number = 1;
	outside(s, 450 * MiB, 400 * MiB, 150 * MiB)->u.device.number = 99;
	m = spaces_model(s);
	assert_int_equal(m->run.events, 1);
	sp = spaces_find(m->spaces, "cuda:0");
	last = &sp->samples[sp->sample_count - 1];
	assert_true(last->own_known);
	assert_int_equal(last->unattributed, 250 * MiB);
	assert_int_equal(last->others, 150 * MiB);
	assert_int_equal(sp->model->measured.levels.value[TRACE_LEVEL_DEV_OTHERS], 150 * MiB);
	model_free(m);
	outside(s, 400 * MiB, 0, 600 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	last = &sp->samples[sp->sample_count - 1];
	assert_false(last->others_known);
	assert_int_equal(last->unattributed, 500 * MiB);
	model_free(m);
	/* A part of a device has no level of the whole. */
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 50 * MiB, TRACE_LEVEL_DEV_TOTAL, 500 * MiB);
	outside(s, 300 * MiB, 350 * MiB, 150 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	assert_int_equal(sp->samples[sp->sample_count - 1].free, 50 * MiB);
	model_free(m);
	script_free(s);
}

/* Between two samples from outside others can take all there is: bytes that the driver calls
 * used, and that are not ours, are theirs. */
static void others_since(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct space *sp;
	struct model *m;
	uint64_t bytes;

	script_space_alloc(s, cuda, 0, 0x10000000, 100 * MiB);
	m = spaces_model(s);
	assert_false(spaces_others(m->spaces, spaces_find(m->spaces, "cuda:0"), &bytes));
	model_free(m);
	outside(s, 500 * MiB, 350 * MiB, 150 * MiB); /* 250 of our own are a context's */
	script_space_alloc(s, cuda, 0, 0x20000000, 100 * MiB);
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 20 * MiB, TRACE_LEVEL_DEV_TOTAL, 1000 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	assert_true(spaces_others(m->spaces, sp, &bytes));
	assert_int_equal(bytes, 530 * MiB); /* 980 in use, less 200 in blocks and 250 */
	model_free(m);
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 480 * MiB, TRACE_LEVEL_DEV_TOTAL, 1000 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	assert_true(spaces_others(m->spaces, sp, &bytes));
	assert_int_equal(bytes, 150 * MiB); /* as sampled: ours may have shrunk */
	model_free(m);
	script_free(s);
}

/* There was no sample before the first context. */
static void first_context(void **state)
{
	static const struct event_level after[] = {
	    {TRACE_LEVEL_DEV_FREE, 600 * MiB}, {TRACE_LEVEL_DEV_TOTAL, 1000 * MiB}};
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct event *e;
	struct space *sp;
	struct model *m;

	outside(s, 900 * MiB, 0, 100 * MiB);
	for (int i = 0; i < 2; i++) { /* the second takes nothing */
		e = script_event(s, EV_SPACE_CALL, cuda);
		e->u.space.api = "cuDevicePrimaryCtxRetain";
		e->levels = after;
		e->level_count = 2;
		script_space_alloc(s, cuda, 0, 0x10000000, 100 * MiB);
	}
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "cuda:0");
	assert_true(sp->first_context.known && sp->first_context.others_known);
	assert_int_equal(sp->first_context.unexplained, 400 * MiB);
	assert_int_equal(sp->first_context.others, 100 * MiB);
	assert_int_equal(sp->context_bytes, 0);
	model_free(m);
	e = script_event(s, EV_SPACE_CLEAR, cuda);
	e->u.space.what = TRACE_CLEAR_DEVICE;
	m = spaces_model(s);
	assert_false(spaces_find(m->spaces, "cuda:0")->first_context.known);
	model_free(m);
	script_free(s);
}

static void calls(void **state)
{
	static const struct event_level context[] = {{TRACE_LEVEL_DEV_FREE_BEFORE, 900 * MiB},
	    {TRACE_LEVEL_DEV_FREE, 600 * MiB}, {TRACE_LEVEL_DEV_TOTAL, 1000 * MiB}};
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct event *e = script_event(s, EV_SPACE_CALL, cuda);
	struct model *m;

	e->u.space.api = "cuCtxCreate_v2";
	e->levels = context;
	e->level_count = 3;
	e = script_event(s, EV_SPACE_CALL, cuda);
	e->u.space.api = "cuModuleLoadData";
	e->levels = context;
	e->level_count = 2;
	m = spaces_model(s);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->context_bytes, 300 * MiB);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->module_bytes, 300 * MiB);
	model_free(m);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unattributed),
	    cmocka_unit_test(captures),
	    cmocka_unit_test(series),
	    cmocka_unit_test(from_outside),
	    cmocka_unit_test(others_since),
	    cmocka_unit_test(first_context),
	    cmocka_unit_test(calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

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
	/* What the pool itself holds counts, and what others have. */
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
	/* It has grown since it was asked. */
	script_space_alloc(s, pool, 0, 0x30000000, 80 * MiB);
	m = spaces_model(s);
	assert_int_equal(spaces_explained(m->spaces, 0), 188 * MiB);
	model_free(m);
	script_free(s);
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
	    cmocka_unit_test(series),
	    cmocka_unit_test(calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

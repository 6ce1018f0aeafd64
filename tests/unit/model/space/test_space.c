#include "model/spaces.h"

static void by_name(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), second = script_space(s, "cuda:1");
	uint32_t torch = script_space(s, "torch:1"), odd = script_space(s, "cuda:x");
	uint32_t stack = script_stack(s, "main");
	struct model *m;

	script_space_alloc(s, cuda, stack, 0x1000000, 1 * MiB);
	script_space_alloc(s, second, stack, 0x2000000, 2 * MiB);
	script_space_alloc(s, torch, stack, 0x2000000, 512);
	script_space_alloc(s, odd, stack, 0x2000000, 7);
	script_space_alloc(s, 99, stack, 0x3000000, 5); /* never defined */
	script_alloc(s, stack, 100);
	m = spaces_model(s);
	assert_int_equal(m->spaces->count, 4);
	assert_int_equal(live(m, "cuda:0"), 1 * MiB);
	assert_int_equal(live(m, "cuda:1"), 2 * MiB);
	assert_int_equal(live(m, "torch:1"), 512);
	assert_int_equal(live(m, "cuda:x"), 7);
	assert_int_equal(spaces_find(m->spaces, "cuda:x")->kind, SPACE_OTHER);
	assert_ptr_equal(spaces_of(m->spaces, SPACE_CUDA, 1), spaces_find(m->spaces, "cuda:1"));
	assert_null(spaces_of(m->spaces, SPACE_CUDA, 2));
	assert_null(spaces_find(NULL, "cuda:0"));
	assert_int_equal(m->spaces->unknown, 1);
	/* The host's sums leave them out. */
	assert_int_equal(m->blocks.bytes, 100);
	assert_int_equal(m->blocks.count, 1);
	model_free(m);
	script_free(s);
}

/* The model stands at the requested event, and the peak's event is the peak's. */
static void peak_and_prefix(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), stack = script_stack(s, "main");
	struct model *m, *then;
	struct err err;

	for (uint64_t i = 0; i < 10; i++) {
		script_alloc(s, stack, 100);
		script_space_alloc(s, cuda, stack, i << 24, 1 * MiB);
	}
	for (uint64_t i = 0; i < 6; i++)
		script_space_free(s, cuda, i << 24);
	script_space_alloc(s, cuda, stack, 1 << 24, 2 * MiB);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 6 * MiB);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->model->peak.bytes, 10 * MiB);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->peak_event, 10);
	assert_int_equal(feed_until_model(script_feed(s), 10, UINT64_MAX, &then, &err), 0);
	assert_int_equal(live(then, "cuda:0"), 10 * MiB);
	assert_int_equal(then->blocks.count, 10);
	model_free(then);
	assert_int_equal(feed_until_spaces(script_feed(s), 10, &then, &err), 0);
	assert_int_equal(live(then, "cuda:0"), 10 * MiB);
	model_free(then);
	assert_int_equal(feed_until_model(script_feed(s), UINT64_MAX, 8000, &then, &err), 0);
	assert_int_equal(live(then, "cuda:0"), 4 * MiB);
	model_free(then);
	model_free(m);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_name),
	    cmocka_unit_test(peak_and_prefix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

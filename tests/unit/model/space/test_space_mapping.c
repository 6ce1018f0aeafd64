#include "model/spaces.h"

/* As llama.cpp does: created, mapped, released at once; one unmapping removes several. */
static void released_while_mapped(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct model *m;

	for (uint64_t i = 0; i < 4; i++) {
		handle_new(s, cuda, 100, 2 * MiB); /* the value is used again */
		handle_map(s, 100, 0x10000000 + i * 2 * MiB, 2 * MiB);
		handle_release(s, 100);
	}
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 8 * MiB);
	model_free(m);
	unmap(s, 0x10000000, 6 * MiB, false);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 2 * MiB);
	model_free(m);
	unmap(s, 0x10000000, 6 * MiB, true); /* it did not happen */
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 8 * MiB);
	assert_int_equal(m->spaces->layout.count, 4);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->model->total.bytes, 8 * MiB);
	model_free(m);
	unmap(s, 0x10000000, 8 * MiB, false);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 0);
	model_free(m);
	script_free(s);
}

static void reference_outlives_mapping(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct model *m;

	handle_new(s, cuda, 100, 2 * MiB);
	handle_map(s, 100, 0x10000000, 2 * MiB);
	handle_map(s, 100, 0x20000000, 2 * MiB); /* seen twice, held once */
	unmap(s, 0x10000000, 2 * MiB, false);
	unmap(s, 0x20000000, 2 * MiB, false);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 2 * MiB);
	model_free(m);
	handle_release(s, 100);
	handle_map(s, 100, 0x10000000, 2 * MiB); /* the handle no longer exists */
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 0);
	assert_int_equal(m->spaces->unmatched, 1);
	model_free(m);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(released_while_mapped),
	    cmocka_unit_test(reference_outlives_mapping),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

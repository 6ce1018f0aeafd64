/* The pattern that a frame matches: by file, by folder, by qualified and by bare name, native by
 * module. */
#include "../util/unit.h"

#include <errno.h>

#include "knowledge/frames.h"

struct fixture {
	struct frames frames;
	struct arena arena;
	struct knowledge_framework a, b;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	map_seed();
	*state = f;
	return f ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	frames_free(&f->frames);
	arena_free(&f->arena);
	free(f);
	return 0;
}

static void python(struct fixture *f, const char *text, enum role role)
{
	struct knowledge_place place = {role, &f->a};

	assert_int_equal(frames_add_python(&f->frames, text, place, &f->arena), 0);
}

static enum role role(struct fixture *f, const char *function, const char *file, const char *module)
{
	struct knowledge_place place = {.role = ROLE_NONE};

	(void)frames_match(&f->frames, function, file, module, &place);
	return place.role;
}

static void test_python(void **state)
{
	struct fixture *f = *state;

	python(f, "vllm/v1/", ROLE_REQUEST_ENTRY);
	python(f, "transformers/cache_utils.py: Dynamic*.update", ROLE_KV_CACHE);
	python(f, "cache_utils.py: crop", ROLE_HISTORY);
	assert_int_equal(
	    role(f, "DynamicLayer.update", "/x/transformers/cache_utils.py", NULL), ROLE_KV_CACHE);
	/* CPython before 3.11 knows no qualified names. */
	assert_int_equal(role(f, "update", "/x/transformers/cache_utils.py", NULL), ROLE_KV_CACHE);
	assert_int_equal(
	    role(f, "Other.update", "/x/transformers/cache_utils.py", NULL), ROLE_NONE);
	assert_int_equal(role(f, "crop", "/mine/cache_utils.py", NULL), ROLE_HISTORY);
	assert_int_equal(role(f, "update", "/mine/cache_utils.py", NULL), ROLE_NONE);
	assert_int_equal(role(f, "update", "/x/nottransformers/cache_utils.py", NULL), ROLE_NONE);
	assert_int_equal(role(f, "any", "/x/vllm/v1/core/kv.py", NULL), ROLE_REQUEST_ENTRY);
	assert_int_equal(role(f, "any", "vllm/v1/kv.py", NULL), ROLE_REQUEST_ENTRY);
	assert_int_equal(role(f, "any", "/x/myvllm/v1/kv.py", NULL), ROLE_NONE);
	/* A module's import calls none of it. */
	assert_int_equal(role(f, "<module>", "/x/vllm/v1/core/kv.py", NULL), ROLE_NONE);
	assert_int_equal(role(f, NULL, NULL, NULL), ROLE_NONE);
}

static void test_native(void **state)
{
	struct fixture *f = *state;
	struct knowledge_place place = {ROLE_KV_CACHE, &f->b};

	assert_int_equal(
	    frames_add_native(&f->frames, "llama_kv_*  @ libllama*", place, &f->arena), 0);
	place.role = ROLE_ALLOCATOR;
	assert_int_equal(frames_add_native(&f->frames, "ggml_aligned_malloc", place, &f->arena), 0);
	assert_int_equal(
	    role(f, "llama_kv_cache::init", "kv.cpp", "/x/libllama.so"), ROLE_KV_CACHE);
	assert_int_equal(role(f, "llama_kv_cache::init", NULL, "/x/other.so"), ROLE_NONE);
	assert_int_equal(role(f, "ggml_aligned_malloc", NULL, "/x/other.so"), ROLE_ALLOCATOR);
	/* A Python function of that name is another function. */
	assert_int_equal(role(f, "ggml_aligned_malloc", "/x/a.py", NULL), ROLE_NONE);
	assert_true(frames_match(&f->frames, "llama_kv_x", NULL, "/x/libllama.so", &place));
	assert_ptr_equal(place.framework, &f->b);
}

static void test_package(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(frames_add_package(&f->frames, "vllm/", false, &f->a), 0);
	assert_int_equal(frames_add_package(&f->frames, "libllama*", true, &f->b), 0);
	assert_ptr_equal(frames_owner(&f->frames, "/x/vllm/a.py", NULL), &f->a);
	assert_ptr_equal(frames_owner(&f->frames, NULL, "/x/libllama.so.1"), &f->b);
	assert_null(frames_owner(&f->frames, "/x/mine.py", NULL));
	/* A pattern for the end of a path, whatever comes before. */
	assert_null(frames_owner(&f->frames, "/mine/one.py", NULL));
	assert_int_equal(frames_add_package(&f->frames, "one.py", false, &f->b), 0);
	assert_ptr_equal(frames_owner(&f->frames, "/mine/one.py", NULL), &f->b);
	assert_ptr_equal(frames_owner(&f->frames, "one.py", NULL), &f->b);
	assert_ptr_equal(frames_owner(&f->frames, "/x/vllm/a.py", NULL), &f->a);
	assert_null(frames_owner(&f->frames, "/mine/none.py", NULL));
}

/* Later patterns win, and a removed pattern has no effect. */
static void test_undo(void **state)
{
	struct fixture *f = *state;
	struct frames_mark mark;

	python(f, "a.py: f", ROLE_HISTORY);
	python(f, "pkg/", ROLE_HISTORY);
	mark = (struct frames_mark){f->frames.patterns.count, f->frames.packages.count};
	python(f, "a.py: f", ROLE_EMBEDDING);
	python(f, "pkg/", ROLE_EMBEDDING);
	python(f, "new.py: f", ROLE_EMBEDDING);
	assert_int_equal(role(f, "f", "/x/a.py", NULL), ROLE_EMBEDDING);
	assert_int_equal(role(f, "g", "/pkg/b.py", NULL), ROLE_EMBEDDING);
	frames_undo(&f->frames, mark);
	assert_int_equal(role(f, "f", "/x/a.py", NULL), ROLE_HISTORY);
	assert_int_equal(role(f, "g", "/pkg/b.py", NULL), ROLE_HISTORY);
	assert_int_equal(role(f, "f", "/x/new.py", NULL), ROLE_NONE);
}

static void test_mistakes(void **state)
{
	struct fixture *f = *state;
	struct knowledge_place place = {ROLE_KV_CACHE, &f->a};

	assert_int_equal(frames_add_python(&f->frames, ": f", place, &f->arena), -EINVAL);
	assert_int_equal(frames_add_python(&f->frames, "a.py:", place, &f->arena), -EINVAL);
	assert_int_equal(frames_add_python(&f->frames, "x/*.py: f", place, &f->arena), -EINVAL);
	assert_int_equal(frames_add_native(&f->frames, "@ lib", place, &f->arena), -EINVAL);
	assert_int_equal(f->frames.patterns.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_python, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_native, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_package, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_undo, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_mistakes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

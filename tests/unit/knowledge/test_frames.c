/* The pattern that a frame matches: by file, by folder, by qualified and by bare name, native by
 * module. */
#include "../util/unit.h"

#include <errno.h>

#include "files.h"
#include "knowledge/knowledge.h"

struct fixture {
	struct knowledge *k;
	struct files files;
	int count; /* of files */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	if (f)
		f->k = knowledge_new();
	return f && f->k ? files_make(&f->files) : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	knowledge_free(f->k);
	files_remove(&f->files);
	free(f);
	return 0;
}

/* Add a file of the framework: its packages, then sections. */
static int add(struct fixture *f, const char *framework, const char *text)
{
	struct err err;
	char name[32], all[512];

	snprintf(name, sizeof(name), "%d.know", f->count++);
	snprintf(all, sizeof(all), "framework = %s\n%s\n", framework, text);
	return knowledge_add(f->k, files_write(&f->files, name, all), &err);
}

static int pattern(struct fixture *f, const char *key, const char *text, enum role role)
{
	char section[256];

	snprintf(section, sizeof(section), "[role %s]\n%s = %s", role_name(role), key, text);
	return add(f, "a", section);
}

static void python(struct fixture *f, const char *text, enum role role)
{
	assert_int_equal(pattern(f, "python", text, role), 0);
}

static enum role role(struct fixture *f, const char *function, const char *file, const char *module)
{
	return knowledge_place(f->k, function, file, module).role;
}

static const char *owner(struct fixture *f, const char *file, const char *module)
{
	const struct knowledge_framework *of = knowledge_owner(f->k, file, module);

	return of ? of->id : "";
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
	struct knowledge_place place;

	assert_int_equal(pattern(f, "native", "llama_kv_*  @ libllama*", ROLE_KV_CACHE), 0);
	assert_int_equal(pattern(f, "native", "ggml_aligned_malloc", ROLE_ALLOCATOR), 0);
	assert_int_equal(
	    role(f, "llama_kv_cache::init", "kv.cpp", "/x/libllama.so"), ROLE_KV_CACHE);
	assert_int_equal(role(f, "llama_kv_cache::init", NULL, "/x/other.so"), ROLE_NONE);
	assert_int_equal(role(f, "ggml_aligned_malloc", NULL, "/x/other.so"), ROLE_ALLOCATOR);
	/* A Python function of that name is another function. */
	assert_int_equal(role(f, "ggml_aligned_malloc", "/x/a.py", NULL), ROLE_NONE);
	assert_true(knowledge_match(f->k, "llama_kv_x", NULL, "/x/libllama.so", &place));
	assert_string_equal(place.framework->id, "a");
}

static void test_package(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, "a", "package = vllm/"), 0);
	assert_int_equal(add(f, "b", "library = libllama*"), 0);
	assert_string_equal(owner(f, "/x/vllm/a.py", NULL), "a");
	assert_string_equal(owner(f, NULL, "/x/libllama.so.1"), "b");
	assert_string_equal(owner(f, "/x/mine.py", NULL), "");
	/* A pattern for the end of a path, whatever comes before. */
	assert_string_equal(owner(f, "/mine/one.py", NULL), "");
	assert_int_equal(add(f, "b", "package = one.py"), 0);
	assert_string_equal(owner(f, "/mine/one.py", NULL), "b");
	assert_string_equal(owner(f, "one.py", NULL), "b");
	assert_string_equal(owner(f, "/x/vllm/a.py", NULL), "a");
	assert_string_equal(owner(f, "/mine/none.py", NULL), "");
}

/* Later patterns win, and those of a file with a mistake have no effect. */
static void test_undo(void **state)
{
	struct fixture *f = *state;
	const char *again =
	    "[role embedding]\npython = a.py: f\npython = pkg/\npython = new.py: f\n";
	char text[256];

	python(f, "a.py: f", ROLE_HISTORY);
	python(f, "pkg/", ROLE_HISTORY);
	snprintf(text, sizeof(text), "package = other/\n%s[mistake]", again);
	assert_int_equal(add(f, "b", text), -EINVAL);
	assert_int_equal(role(f, "f", "/x/a.py", NULL), ROLE_HISTORY);
	assert_int_equal(role(f, "g", "/pkg/b.py", NULL), ROLE_HISTORY);
	assert_int_equal(role(f, "f", "/x/new.py", NULL), ROLE_NONE);
	assert_string_equal(owner(f, "/other/c.py", NULL), "");
	assert_int_equal(add(f, "b", again), 0);
	assert_int_equal(role(f, "f", "/x/a.py", NULL), ROLE_EMBEDDING);
	assert_int_equal(role(f, "g", "/pkg/b.py", NULL), ROLE_EMBEDDING);
}

static void test_mistakes(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(pattern(f, "python", ": f", ROLE_KV_CACHE), -EINVAL);
	assert_int_equal(pattern(f, "python", "a.py:", ROLE_KV_CACHE), -EINVAL);
	assert_int_equal(pattern(f, "python", "x/*.py: f", ROLE_KV_CACHE), -EINVAL);
	assert_int_equal(pattern(f, "native", "@ lib", ROLE_KV_CACHE), -EINVAL);
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

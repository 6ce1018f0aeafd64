/* The model's name in command lines of servers, and of mapped files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch/signs/model_name.h"

#define LONG "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static void test_arguments(void **state)
{
	static const struct {
		const char *argv[8], *name;
	} cases[] = {
	    {{"python3", "server.py"}, ""},
	    {{"python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "meta/llama-8b"},
		"meta/llama-8b"},
	    {{"vllm", "serve", "Qwen/Qwen3-8B", "--port", "8000"}, "Qwen/Qwen3-8B"},
	    {{"/usr/bin/python3", "/usr/bin/vllm", "serve", "x/y", NULL}, "x/y"},
	    {{"app", "serve", "static"}, ""}, {{"vllm", "serve", "--model", "a"}, "a"},
	    {{"s", "--model", "/models/meta/llama-8b/", "--served-model-name", "chat"}, "chat"},
	    {{"s", "--model-path=/models/meta/llama-8b/"}, "meta/llama-8b"},
	    {{"s", "--model-path=/llama"}, "llama"}, {{"s", "--model", "./llama"}, "llama"},
	    {{"llama-server", "-m", "/data/models/llama-7b.Q4.gguf"}, "llama-7b.Q4.gguf"},
	    {{"llama-server", "-m", "other"}, ""}, {{"s", "--model"}, ""},
	    {{"s", "--model", "--port"}, ""}, {{"s", "--model="}, ""},
	    {{"s", "--modelling", "x"}, ""}, {{"s", "--model", LONG "ab"}, LONG "a"},
	    {{"s", "--model", LONG "\u00e9"}, LONG}, /* whole characters */
	};
	char name[MODEL_NAME_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
		    model_name_of_arguments(cases[i].argv, name), *cases[i].name != '\0');
		assert_string_equal(name, cases[i].name);
	}
	assert_false(model_name_of_arguments(NULL, name));
	(void)state;
}

static void map(struct model_file *f, const char *name, uint64_t bytes)
{
	model_file_see(f, &(struct event){.kind = EV_MAP, .size = bytes, .u.map = {.name = name}});
}

static void test_files(void **state)
{
	struct model_file f = {.bytes = 0};

	map(&f, NULL, 9000);
	map(&f, "/usr/lib/libc.so.6", 9000);
	assert_string_equal(f.name, "");
	map(&f, "/m/model-00001-of-00002.safetensors", 100);
	map(&f, "/m/tokenizer.json", 500);
	map(&f, "/m/llama.GGUF", 300);
	map(&f, "/m/small.onnx", 200);
	assert_string_equal(f.name, "llama.GGUF");
	assert_int_equal(f.bytes, 300);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arguments), cmocka_unit_test(test_files)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

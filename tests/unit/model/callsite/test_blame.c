/* The blamed frame on stacks of C, C++, Python, extensions and frameworks. */
#include "model/unit.h"

#include "model/callsite/blame.h"

static struct symbol native(const char *function, const char *file, const char *module)
{
	return (struct symbol){.function = function,
	    .file = file,
	    .line = file ? 1 : 0,
	    .module = module,
	    .known = true};
}

static struct symbol python(const char *function, const char *file)
{
	return (struct symbol){
	    .function = function, .file = file, .line = 1, .python = true, .known = true};
}

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"
#define LIBCXX "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"
#define PROG "/opt/app/prog"
#define PY "/usr/bin/python3.11"

static const struct blame_context plain = {LIBC, NULL, NULL}, interpreted = {LIBC, PY, NULL};

static void expect(const struct blame_context *c, const struct symbol *s, size_t n, const char *who)
{
	struct blame_memory memory = {0};
	const struct blame_context keeps = {c->malloc_owner, c->interpreter, &memory};
	struct symbol known[16];
	int at = blame_frame(c, s, n);

	/* Caching symbols changes no answer, on the first look or later. */
	assert_in_range(n, 0, 16);
	for (size_t i = 0; i < n; i++) {
		known[i] = s[i];
		known[i].id = (uint32_t)(i * 1000 + 1);
	}
	assert_int_equal(blame_frame(&keeps, known, n), at);
	assert_int_equal(memory.traits.count > 0, n > 0);
	assert_int_equal(blame_frame(&keeps, known, n), at);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(blame_owner(&keeps, &known[i]), blame_owner(c, &s[i]));
	vec_free(&memory.traits);
	if (!who) {
		assert_int_equal(at, -1);
		return;
	}
	assert_in_range(at, 0, n - 1);
	assert_string_equal(s[at].function, who);
}
#define EXPECT(context, who, ...)                                                                  \
	do {                                                                                       \
		const struct symbol s[] = {__VA_ARGS__};                                           \
		expect(context, s, sizeof(s) / sizeof(*s), who);                                   \
	} while (0)

static void test_native(void **state)
{
	EXPECT(&plain, "load", native("_start", NULL, PROG), native("main", "m.c", PROG),
	    native("load", "m.c", PROG), native("strdup", "strdup.c", LIBC));
	EXPECT(&plain, "Chat::render() const", native("main", "m.cc", PROG),
	    native("Chat::render() const", "m.cc", PROG),
	    native("void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int*)",
		"/usr/include/c++/12/bits/vector.tcc", PROG),
	    native("std::__new_allocator<int>::allocate(unsigned long)", NULL, PROG),
	    native("operator new(unsigned long)", NULL, LIBCXX));
	/* A program may have the name of a system library. */
	EXPECT(&plain, "load", native("main", "m.c", "/opt/app/ld_server"),
	    native("load", "m.c", "/opt/app/libm-demo"), native("strdup", "strdup.c", LIBC));
	/* A user's function whose return type is of std. */
	EXPECT(&plain, "std::string render(std::vector<int> const&)", native("main", "m.cc", PROG),
	    native("std::string render(std::vector<int> const&)", "m.cc", PROG),
	    native("operator new(unsigned long)", NULL, LIBCXX));
	/* A system library in between: its caller is responsible. */
	EXPECT(&plain, "main", native("main", "m.c", PROG),
	    native("json_object", "j.c", "/usr/lib/x86_64-linux-gnu/libjansson.so.4"),
	    native("malloc", "m.c", LIBC));
	/* Without a caller in the user's code, the system library's frame is better than
	 * nothing. */
	EXPECT(&plain, "json_object", native("json_object", "j.c", "/usr/lib/libjansson.so.4"),
	    native("malloc", "m.c", LIBC));
	/* A linked-in allocator, and Rust's own library: the caller is responsible. */
	EXPECT(&plain, "serve", native("main", "m.c", PROG), native("serve", "m.c", PROG),
	    native("mi_theap_malloc_zero_aligned_at", "alloc.c", PROG),
	    native("_mi_os_alloc_aligned", "os.c", PROG), native("unix_mmap", "prim.c", PROG));
	EXPECT(&plain, "frame::join::cross", native("frame::join::cross", "j.rs", PROG),
	    native("<alloc::raw_vec::RawVecInner<_>>::finish_grow", "r.rs", PROG),
	    native("_rjem_je_malloc_default", "jemalloc.c", PROG),
	    native("pac_alloc_real", "pac.c", PROG));
	EXPECT(&plain, "je_main", native("je_main", "m.c", PROG), native("malloc", NULL, LIBC));
	EXPECT(&plain, "je_mallocx", native("je_mallocx", "j.c", PROG),
	    native("extent_alloc", "e.c", PROG));
	/* Without symbols. */
	{
		struct symbol s[] = {native("prog+0x12", NULL, PROG), native("malloc", NULL, LIBC)};
		s[0].known = false;
		expect(&plain, s, 2, "prog+0x12");
	}
	expect(&plain, NULL, 0, NULL);
	(void)state;
}

static void test_python(void **state)
{
	EXPECT(&interpreted, "Chat.turn", native("main", NULL, PY),
	    python("<module>", "/app/main.py"), python("Chat.turn", "/app/main.py"),
	    python("JSONEncoder.encode", "/usr/lib/python3.11/json/encoder.py"),
	    native("PyObject_Malloc", "obmalloc.c", PY), native("malloc", NULL, LIBC));
	EXPECT(&interpreted, "turn", python("turn", "/app/chat.py"),
	    python("invoke",
		"/app/venv/lib/python3.11/site-packages/langchain_core/runnables/base.py"),
	    native("list_resize", "listobject.c", PY));
	/* No frame of the user's: the framework's, not the standard library's. */
	EXPECT(&interpreted, "invoke", python("run", "/usr/lib/python3.11/threading.py"),
	    python("invoke", "/venv/lib/python3.11/site-packages/langchain_core/base.py"),
	    python("dumps", "/usr/lib/python3.11/json/__init__.py"));
	EXPECT(&interpreted, "dumps", python("run", "/usr/lib/python3.11/threading.py"),
	    python("dumps", "/usr/lib/python3.11/json/__init__.py"));
	/* numpy's own allocator is not to blame. */
	EXPECT(&interpreted, "embed", python("embed", "/app/e.py"),
	    python("zeros", "/v/lib/python3.12/site-packages/numpy/core/numeric.py"),
	    native("PyDataMem_UserNEW", NULL,
		"/v/lib/python3.12/site-packages/numpy/core/_multiarray_umath.so"));
	/* A user's extension is. */
	EXPECT(&interpreted, "grow", python("step", "/app/e.py"),
	    native("grow", "g.c", "/app/fast.so"), native("malloc", NULL, LIBC));
	/* Launchers only start the program. */
	EXPECT(&interpreted, "serve", python("<module>", "/venv/bin/uvicorn"),
	    python("serve", "/venv/lib/python3.11/site-packages/uvicorn/server.py"));
	(void)state;
}

#define LOOP                                                                                       \
	python("<module>", "/app/main.py"),                                                        \
	    python("BaseEventLoop.run_forever", "/usr/lib/python3.11/asyncio/base_events.py"),     \
	    python("Handle._run", "/usr/lib/python3.11/asyncio/events.py")
#define PACKAGE "/venv/lib/python3.11/site-packages/agents/"

static void test_event_loop(void **state)
{
	/* A framework's own task: the line that started the loop did not call it. */
	EXPECT(&interpreted, "Client.create", LOOP, python("Runtime.deliver", PACKAGE "runtime.py"),
	    python("Client.create", PACKAGE "client.py"),
	    python("dumps", "/usr/lib/python3.11/json/__init__.py"));
	/* The user's code within a task. */
	EXPECT(&interpreted, "Model.create", LOOP, python("Runtime.deliver", PACKAGE "runtime.py"),
	    python("Model.create", "/app/model.py"), python("encode", PACKAGE "codec.py"));
	/* A task without a user's frame is the program's. */
	EXPECT(&interpreted, "<module>", LOOP,
	    python("Queue.put", "/usr/lib/python3.11/asyncio/queues.py"));
	/* Waiting for a library within a task counts as a call. */
	EXPECT(&interpreted, "serve", LOOP, python("serve", "/app/main.py"),
	    python("wait_for", "/usr/lib/python3.12/asyncio/tasks.py"),
	    python("Client.create", PACKAGE "client.py"));
	(void)state;
}

static void test_comprehension(void **state)
{
	EXPECT(&interpreted, "load", python("load", "/app/m.py"),
	    python("load.<locals>.<listcomp>", "/app/m.py"), native("list_append", NULL, PY));
	EXPECT(&interpreted, "build", python("build", "/app/m.py"),
	    native("PyUnicode_Join", NULL, PY), python("build.<locals>.<genexpr>", "/app/m.py"),
	    native("malloc", NULL, LIBC));
	/* A generator that is consumed elsewhere: its own file is to blame. */
	EXPECT(&interpreted, "rows.<locals>.<genexpr>", python("use", "/app/other.py"),
	    python("rows.<locals>.<genexpr>", "/app/m.py"));
	(void)state;
}

static void expect_part(const struct symbol *s, size_t n, int at, const char *what)
{
	const struct stack_path path = {.symbols = s, .count = n};
	struct blame_parts parts = {0};
	int part = blame_part(&interpreted, &path, at, &parts);

	vec_free(&parts.marks);
	if (!what) {
		assert_int_equal(part, -1);
		return;
	}
	assert_in_range(part, at + 1, n - 1);
	assert_string_equal(s[part].function, what);
}

/* One line of the user's, and the framework's work under it. */
static void test_part(void **state)
{
#define CORE "/v/lib/python3.11/site-packages/langchain_core/"
	const struct symbol s[] = {
	    python("answer", "/app/rag.py"),
	    python("RunnableSequence.invoke", CORE "runnables/base.py"),
	    python("BasePromptTemplate.invoke", CORE "prompts/base.py"),
	    python("Runnable._call_with_config", CORE "runnables/base.py"),
	    python("PromptTemplate.format", CORE "prompts/prompt.py"),
	    python("PromptTemplate.format.<locals>.<genexpr>", CORE "prompts/prompt.py"),
	    python("Formatter.vformat", "/usr/lib/python3.11/string.py"),
	    native("PyUnicode_Join", "unicodeobject.c", PY),
	};

	expect_part(s, sizeof(s) / sizeof(*s), 0, "PromptTemplate.format");
	/* One or two files are a function with its helper, whatever their names. */
	expect_part(s, 4, 0, NULL);
	expect_part(s, 1, 0, NULL);
	expect_part(s, sizeof(s) / sizeof(*s), -1, NULL);
	(void)state;
#undef CORE
}

/* The answer by the path, all of whose frames are new. */
static bool is_import(const struct symbol *s, size_t n)
{
	const struct stack_path path = {.symbols = s, .count = n};
	blame_marks_t marks = {0};
	bool import;

	assert_int_equal(blame_follow(&interpreted, &path, &marks), 0);
	import = blame_is_import(&marks.items[n]);
	vec_free(&marks);
	return import;
}

#define FROZEN "<frozen importlib._bootstrap_external>"

static void test_imports(void **state)
{
	const struct symbol main = python("<module>", "/app/main.py"),
			    import = python("exec_module", FROZEN),
			    package = python("<module>", "/usr/lib/python3/dist-packages/a/b.py"),
			    own = python("<module>", "/app/tools.py"),
			    load = python("load", "/app/tools.py");
	const struct symbol library[] = {main, import, package}, code[] = {main, import},
			    lazily[] = {main, load, import, package, package},
			    at_import[] = {main, import, own, load},
			    called[] = {main, import, own, package}, plainly[] = {main, package};

	assert_true(is_import(library, 3));
	assert_true(is_import(code, 2));
	assert_true(is_import(lazily, 5));
	/* A user's module is to blame for what its import does. */
	assert_false(is_import(at_import, 4));
	assert_false(is_import(called, 4));
	assert_false(is_import(plainly, 2));
	assert_false(is_import(plainly, 0));
	(void)state;
}

/* Consecutive stacks share some frames: the answer for each is that of the stack alone, at any
 * depth, whatever the cache holds. */
static void test_follows_a_path(void **state)
{
#define PACKAGES "/usr/lib/python3/dist-packages/"
	const struct symbol kinds[] = {python("main", "/app/main.py"),
	    python("part", PACKAGES "a/c.py"),
	    python("parts.<locals>.<genexpr>", PACKAGES "a/d.py"),
	    python("<listcomp>", "/app/main.py"),
	    python("run", "/usr/lib/python3.11/asyncio/events.py"),
	    python("load", PACKAGES "a/b.py"), python("import", FROZEN),
	    python("loads", "/usr/lib/python3.11/json/__init__.py"),
	    native("take", "/usr/lib/libtaker.so.1", NULL), native("malloc", LIBC, NULL),
	    native("own", PROG, "own.c"), {.module = PROG}};
	struct symbol symbols[24];
	struct stack_path path = {.symbols = symbols};
	blame_marks_t marks = {0};
	struct blame_parts parts = {0};
	int many = 0;

	srand(7);
	for (int round = 0; round < 20000; round++) {
		path.same = path.count ? (size_t)rand() % (path.count + 1) : 0;
		path.count = path.same +
			     (size_t)rand() % (sizeof(symbols) / sizeof(*symbols) + 1 - path.same);
		for (size_t i = path.same; i < path.count; i++)
			symbols[i] = kinds[(size_t)rand() % (sizeof(kinds) / sizeof(*kinds))];
		assert_int_equal(blame_follow(&interpreted, &path, &marks), 0);
		for (size_t n = 0; n <= path.count; n++)
			assert_int_equal(blame_marked(&marks.items[n], symbols),
			    blame_frame(&interpreted, symbols, n));

		struct stack_path anew = {.symbols = symbols, .count = path.count};
		struct blame_parts fresh = {0};
		int at = path.count ? rand() % (int)(path.count < 4 ? path.count : 4) : -1;
		int part = blame_part(&interpreted, &path, at, &parts);

		assert_int_equal(part, blame_part(&interpreted, &anew, at, &fresh));
		many += part >= 0;
		vec_free(&fresh.marks);
	}
	assert_true(many > 100);
	vec_free(&parts.marks);
	vec_free(&marks);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_imports),
	    cmocka_unit_test(test_follows_a_path),
	    cmocka_unit_test(test_native),
	    cmocka_unit_test(test_python),
	    cmocka_unit_test(test_event_loop),
	    cmocka_unit_test(test_comprehension),
	    cmocka_unit_test(test_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

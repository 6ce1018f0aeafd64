/* The frames of a stack that a report shows, and the count of the others. */
#include "sample.h"

#include "report/frames.h"

#define PY(name)                                                                                   \
	{                                                                                          \
		.function = name, .file = "/app/main.py", .line = 7, .python = true, .known = true \
	}
#define NATIVE(name, path)                                                                         \
	{                                                                                          \
		.function = name, .module = path, .known = true                                    \
	}
#define UNNAMED(name, path)                                                                        \
	{                                                                                          \
		.function = name, .module = path                                                   \
	}

static const char python[] = "/usr/bin/python3.11", libc[] = "/lib/x86_64-linux-gnu/libc.so.6";
static const char numpy[] = "/site/_multiarray_umath.so";
static const char asyncio[] =
    "/usr/lib/python3.11/lib-dynload/_asyncio.cpython-311-x86_64-linux-gnu.so";

static struct str written(
    const struct symbol *symbols, size_t count, size_t from, unsigned most, struct report_style st)
{
	struct stack_view v = {symbols, count};
	struct str out = {0};

	frames_write(&out, &st, &v, from, most, 4);
	return out;
}

static void test_python(void **state)
{
	struct symbol s[] = {NATIVE("_start", python), UNNAMED("libc.so.6+0x27249", libc),
	    NATIVE("__libc_start_main_impl", libc), NATIVE("Py_BytesMain", python),
	    UNNAMED("python3.11+0x62d402", python), PY("<module>"), PY("main"),
	    UNNAMED("python3.11+0x560933", python), NATIVE("array_concat", numpy), PY("Chat.build"),
	    NATIVE("PyUnicode_Concat", python)};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 11, 9, 6, st);

	assert_string_equal(str_text(&out), "      in  Chat.build    main.py:7\n"
					    "    from  array_concat  _multiarray_umath.so\n"
					    "    from  main          main.py:7\n"
					    "    from  <module>      main.py:7\n"
					    "          + 6 native frames: --native\n");
	str_free(&out);
	st.native = true;
	out = written(s, 11, 9, 20, st);
	assert_non_null(strstr(str_text(&out), "from  python3.11+0x560933"));
	assert_non_null(strstr(str_text(&out), "from  _start"));
	assert_null(strstr(str_text(&out), "--native"));
	str_free(&out);
	(void)state;
}

/* CPython's own modules in C are the interpreter's, an installed one is not. */
static void test_own_modules(void **state)
{
	struct symbol s[] = {
	    PY("main"), NATIVE("task_step", asyncio), NATIVE("concat", numpy), PY("answer")};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 4, 3, 6, st);

	assert_non_null(strstr(str_text(&out), "from  concat "));
	assert_null(strstr(str_text(&out), "task_step"));
	assert_non_null(strstr(str_text(&out), "+ 1 native frame"));
	str_free(&out);
	(void)state;
}

#define OF(name, path)                                                                             \
	{                                                                                          \
		.function = name, .file = path, .line = 7, .python = true, .known = true           \
	}

static const char module[] = "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py";
static const char context[] = "/venv/lib/python3.11/site-packages/torch/utils/_contextlib.py";
static const char llama[] = "/venv/lib/python3.11/site-packages/transformers/modeling_llama.py";
static const char torch_python[] = "/venv/lib/python3.11/site-packages/torch/libtorch_python.so";
static const char torch_cpu[] = "/venv/lib/python3.11/site-packages/torch/libtorch_cpu.so";

/* Library frames between two user functions are counted, and the operator is named. */
static void test_passing_on(void **state)
{
	struct symbol s[] = {OF("Thread.run", "/usr/lib/python3.11/threading.py"),
	    OF("serve", "/app/server.py"), OF("decorate_context", context),
	    OF("generate", "/app/model.py"), OF("Module._wrapped_call_impl", module),
	    UNNAMED("python3.11+0x560933", python), OF("Module._call_impl", module),
	    OF("Attention.forward", "/app/model.py"), OF("<listcomp>", "/app/model.py"),
	    NATIVE("_PyEval_Vector", python),
	    NATIVE("torch::autograd::THPVariable_cat", torch_python),
	    NATIVE("at::_ops::cat::call", torch_cpu)};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 12, 7, 6, st);

	assert_string_equal(str_text(&out),
	    "      in  torch::autograd::THPVariable_cat  libtorch_python.so\n"
	    "    from  Attention.forward                 model.py:7\n"
	    "    from  generate                          model.py:7\n"
	    "    from  serve                             server.py:7\n"
	    "    from  Thread.run                        threading.py:7\n"
	    "          + 3 more frames: --verbose, 1 native frame: --native\n");
	str_free(&out);
	/* Too narrow for the name: its end stays. */
	st.columns = 45;
	out = written(s, 12, 7, 6, st);
	assert_non_null(strstr(str_text(&out), "in  ..THPVariable_cat"));
	str_free(&out);
	st = (struct report_style){.columns = 80, .verbose = true};
	out = written(s, 12, 7, 20, st);
	assert_non_null(strstr(str_text(&out), "from  Module._call_impl"));
	assert_non_null(strstr(str_text(&out), "in  Attention.forward"));
	assert_null(strstr(str_text(&out), "more frame"));
	str_free(&out);
	/* Python at the outermost frame is not called by a native function. */
	s[8] = (struct symbol)OF("layer_norm", context);
	st.verbose = false;
	out = written(s, 12, 7, 6, st);
	assert_non_null(strstr(str_text(&out), "in  Attention.forward"));
	str_free(&out);
	(void)state;
}

/* All frames are frameworks': several frames of one file between two of another package. */
static void test_passing_on_between_frameworks(void **state)
{
	struct symbol s[] = {OF("Model.forward", llama), OF("Module._wrapped_call_impl", module),
	    OF("Module._call_impl", module), OF("Layer.forward", llama), OF("checkpoint", context),
	    OF("Attention.forward", llama), OF("Module._wrapped_call_impl", module),
	    OF("Module._call_impl", module)};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 8, 5, 6, st);

	assert_string_equal(str_text(&out), "      in  Attention.forward  modeling_llama.py:7\n"
					    "    from  checkpoint         _contextlib.py:7\n"
					    "    from  Layer.forward      modeling_llama.py:7\n"
					    "    from  Model.forward      modeling_llama.py:7\n"
					    "          + 2 more frames: --verbose\n");
	str_free(&out);
	/* Begun inside the other package, only its own are several of a file. */
	out = written(s, 8, 7, 8, st);
	assert_non_null(strstr(str_text(&out), "from  Attention.forward"));
	assert_non_null(strstr(str_text(&out), "from  Layer.forward"));
	str_free(&out);
	(void)state;
}

/* Frames in between are of the same package, come from another, or are the user's: all stay. */
static void test_not_passing_on(void **state)
{
	static const char engine[] = "/venv/lib/python3.11/site-packages/transformers/engine.py";
	static const char vllm[] = "/venv/lib/python3.11/site-packages/vllm/model.py";
	struct symbol same[] = {OF("a", llama), OF("b", engine), OF("c", engine), OF("d", llama)};
	struct symbol other[] = {OF("a", vllm), OF("b", module), OF("c", module), OF("d", llama)};
	struct symbol user[] = {
	    OF("a", llama), OF("b", "/app/model.py"), OF("c", "/app/model.py"), OF("d", llama)};
	struct symbol *const stacks[] = {same, other, user};
	struct report_style st = {.columns = 80};

	for (size_t i = 0; i < 3; i++) {
		struct str out = written(stacks[i], 4, 3, 6, st);

		assert_int_equal(lines(str_text(&out)), 4);
		assert_null(strstr(str_text(&out), "more frame"));
		str_free(&out);
	}
	(void)state;
}

/* A native function that any program calls is not said to be called by Python. */
static void test_no_runtime_as_operator(void **state)
{
	struct symbol s[] = {PY("<module>"), NATIVE("malloc", libc)};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 2, 0, 6, st);

	assert_string_equal(str_text(&out), "      in  <module>  main.py:7\n");
	str_free(&out);
	(void)state;
}

static void test_template_arguments(void **state)
{
	struct symbol s[] = {NATIVE("main", "/app/server"),
	    NATIVE(
		"c10::impl::wrap_<c10::CompileTimeFunctionPointer<at::Tensor (at::Tensor const&), "
		"&at::wrapper_bmm> >::call",
		"/app/libtorch_cpu.so"),
	    NATIVE("operator<< <char, std::char_traits<char>, std::allocator<char>, and so on>",
		"/app/a"),
	    NATIVE("Map<int, long>::operator->", "/app/server")};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 4, 3, 6, st);

	assert_non_null(strstr(str_text(&out), "in  Map<int, long>::operator->  server\n"));
	assert_non_null(strstr(str_text(&out), "from  operator<< <..>"));
	assert_non_null(strstr(str_text(&out), "from  c10::impl::wrap_<..>::call"));
	assert_non_null(strstr(str_text(&out), "from  main"));
	str_free(&out);
	(void)state;
}

/* The first frame is always shown; of a C program main() stays. */
static void test_first_and_native(void **state)
{
	struct symbol s[] = {NATIVE("_start", "/app/server"), NATIVE("__libc_start_main", libc),
	    NATIVE("main", "/app/server"), NATIVE("serve", "/app/server"),
	    NATIVE("python3_like", "/app/python3-helper"), NATIVE("strdup", libc)};
	struct symbol p[] = {PY("<module>"), NATIVE("PyObject_Malloc", python)};
	struct symbol only[] = {NATIVE("clone", libc), NATIVE("start_thread", libc)};
	struct report_style st = {.columns = 80};
	struct str out = written(s, 6, 5, 6, st);

	assert_non_null(strstr(str_text(&out), "in  strdup"));
	assert_non_null(strstr(str_text(&out), "from  python3_like")); /* no Python about */
	assert_non_null(strstr(str_text(&out), "from  main"));
	assert_null(strstr(str_text(&out), "_start"));
	assert_non_null(strstr(str_text(&out), "+ 2 native frames: --native"));
	str_free(&out);
	out = written(p, 2, 1, 6, st);
	assert_non_null(strstr(str_text(&out), "in  PyObject_Malloc"));
	str_free(&out);
	out = written(only, 2, 1, 6, st);
	assert_non_null(strstr(str_text(&out), "in  start_thread"));
	assert_non_null(strstr(str_text(&out), "from  clone"));
	str_free(&out);
	(void)state;
}

static void test_most_and_width(void **state)
{
	struct symbol s[12];
	char names[12][120];

	for (unsigned i = 0; i < 12; i++) {
		snprintf(names[i], sizeof(names[i]), "std::vector<std::pair<int, %.*s> >::step_%u",
		    (int)(i * 5), "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllll",
		    i);
		s[i] = (struct symbol){.function = names[i],
		    .file = "/src/a_rather_long_file_name_of_a_library.hpp",
		    .line = 100 + i,
		    .known = true};
	}
	for (unsigned columns = 40; columns <= 160; columns += 5) {
		struct report_style st = {.columns = columns};

		for (int verbose = 0; verbose < 2; verbose++) {
			struct str out;

			st.verbose = verbose;
			out = written(s, 12, 11, 5, st);
			for (const char *p = str_text(&out); *p; p += strcspn(p, "\n") + 1) {
				char line[256];

				snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
				assert_true(term_columns(line) <= columns);
			}
			assert_non_null(strstr(str_text(&out), "+ 7 more frames: --verbose"));
			assert_non_null(strstr(str_text(&out), verbose ? "11" : ":111"));
			str_free(&out);
		}
	}
	(void)state;
}

static void test_empty(void **state)
{
	struct symbol none = {0};
	struct report_style st = {.columns = 80};
	struct str out = written(NULL, 0, 0, 6, st);

	assert_string_equal(str_text(&out), "");
	out = written(&none, 1, 5, 6, st);
	assert_string_equal(str_text(&out), "");
	str_free(&out);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_python),
	    cmocka_unit_test(test_own_modules),
	    cmocka_unit_test(test_passing_on),
	    cmocka_unit_test(test_passing_on_between_frameworks),
	    cmocka_unit_test(test_not_passing_on),
	    cmocka_unit_test(test_no_runtime_as_operator),
	    cmocka_unit_test(test_template_arguments),
	    cmocka_unit_test(test_first_and_native),
	    cmocka_unit_test(test_most_and_width),
	    cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

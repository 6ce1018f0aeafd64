#include <stdlib.h>
#include <unistd.h>

#include "../events.h"
#include "../sample.h"

static struct sample sample;

static void put_module(
    struct compose *c, uint64_t id, const char *path, const void *build_id, size_t bytes)
{
	def_begin(c, TRACE_DEF_MODULE);
	put_varint(c, id);
	put_text(c, path);
	put_bytes(c, build_id, bytes);
	for (int i = 0; i < 6; i++)
		put_varint(c, 0);
	def_end(c, true);
}

static void put_code(struct compose *c, uint64_t id, const char *name, const char *file)
{
	def_begin(c, TRACE_DEF_CODE);
	put_varint(c, id);
	put_varint(c, 0x309);
	put_varint(c, 10);
	put_varint(c, 0);
	put_text(c, name);
	put_text(c, file);
	put_bytes(c, "\4\1", 2);
	def_end(c, true);
}

struct raw {
	uint64_t head, a, b;
	int fields;
};
#define NATIVE(module, address)                                                                    \
	{                                                                                          \
		(module) << 3, (address), 0, 1                                                     \
	}
#define PYTHON(code, offset)                                                                       \
	{                                                                                          \
		(code) << 2 | 1, (offset) + 1, 0, 2                                                \
	}
#define CUT(n)                                                                                     \
	{                                                                                          \
		(n) << 2 | 2, 0, 0, 0                                                              \
	}
#define END(why)                                                                                   \
	{                                                                                          \
		(why) << 2 | 3, 0, 0, 0                                                            \
	}

static void put_stack(struct compose *c, uint64_t id, size_t n, const struct raw *frames)
{
	uint64_t last = 0;

	def_begin(c, TRACE_DEF_STACK);
	put_varint(c, id);
	put_varint(c, 0);
	put_varint(c, 0);
	put_varint(c, n);
	for (size_t i = 0; i < n; i++) {
		put_varint(c, frames[i].head);
		if (frames[i].fields == 1) {
			put_svarint(c, (int64_t)(frames[i].a - last));
			last = frames[i].a;
		} else if (frames[i].fields == 2) {
			put_varint(c, frames[i].a);
		}
	}
	def_end(c, true);
}
#define PUT_STACK(c, id, ...)                                                                      \
	put_stack((c), (id), sizeof((struct raw[]){__VA_ARGS__}) / sizeof(struct raw),             \
	    (struct raw[]){__VA_ARGS__})

static struct trace *build(struct compose *c)
{
	compose_begin(c);
	compose_chunk(c, 2, 0, 0, 0, 65536);
	put_module(c, 1, SAMPLE, sample.build_id, sample.build_id_bytes);
	put_module(c, 2, "/opt/none/libpython3.9.so", "\1\2\3", 3);
	put_module(c, 3, "/opt/none/app", "\4\5\6", 3);
	put_code(c, 1, "outer_py", "a.py");
	put_code(c, 2, "Inner.py", "b.py");
	PUT_STACK(c, 1, NATIVE(1, sample.call), NATIVE(1, sample.sink + 1), NATIVE(0, 0xabcd));
	PUT_STACK(c, 2, NATIVE(3, 0x100), NATIVE(2, 0x200), NATIVE(2, 0x300), PYTHON(1, 0),
	    PYTHON(1, 4), NATIVE(2, 0x400), NATIVE(2, 0x300), PYTHON(2, -1), NATIVE(2, 0x500),
	    NATIVE(3, 0x600));
	PUT_STACK(c, 3, END(1), NATIVE(3, 0x100), CUT(7), PYTHON(1, 0));
	PUT_STACK(c, 4, NATIVE(1, sample.call), PYTHON(1, 0)); /* known, and no interpreter */
	compose_chunk(c, 1, 1, 0, 0, 65536);
	for (uint32_t i = 1; i <= 4; i++)
		put_alloc(c, i, 0x1000 * i, 1, i);
	return open_composed(c);
}

static void native_names(void **state)
{
	struct compose c;
	struct trace *t = build(&c);
	const struct symbol *s, *again;

	assert_int_equal(trace_symbols(t, 1, &s), 5);
	assert_string_equal(s[0].function, "sample_outer");
	assert_string_equal(s[0].module, SAMPLE);
	assert_true(s[0].known && !s[0].inlined && !s[0].python && !s[0].interpreter);
	assert_string_equal(s[2].function, "inner");
	assert_true(s[2].inlined);
	assert_int_equal(s[2].line, sample_line("/* INNER */"));
	assert_string_equal(s[3].function, "sample::sink");
	assert_string_equal(s[4].function, "0xabcc");
	assert_null(s[4].module);
	assert_false(s[4].known);
	assert_int_equal(trace_symbols(t, 1, &again), 5);
	assert_ptr_equal(again, s);
	assert_int_equal(trace_symbols(t, 0, &s), 0);
	assert_int_equal(trace_symbols(t, 99, &s), 0);
	trace_close(t);
	compose_free(&c);
}

/* The interpreter's evaluation frame is left out before Python frames; its other frames stay,
 * and are marked. */
static void python_in_place_of_the_interpreter(void **state)
{
	static const struct {
		const char *function;
		unsigned line;
		bool python, interpreter;
	} expected[] = {
	    {"app+0xff", 0, false, false},
	    {"libpython3.9.so+0x1ff", 0, false, false},
	    {"outer_py", 10, true, false},
	    {"outer_py", 11, true, false},
	    {"libpython3.9.so+0x3ff", 0, false, true},
	    {"Inner.py", 10, true, false},
	    {"libpython3.9.so+0x4ff", 0, false, true},
	    {"app+0x5ff", 0, false, false},
	};
	struct compose c;
	struct trace *t = build(&c);
	const struct symbol *s;

	assert_int_equal(trace_symbols(t, 2, &s), 8);
	for (int i = 0; i < 8; i++) {
		assert_string_equal(s[i].function, expected[i].function);
		assert_int_equal(s[i].line, expected[i].line);
		assert_int_equal(s[i].python, expected[i].python);
		assert_int_equal(s[i].interpreter, expected[i].interpreter);
	}
	assert_string_equal(s[2].file, "a.py");
	assert_null(s[2].module);
	/* Frames that are known to be other functions stay. */
	assert_int_equal(trace_symbols(t, 4, &s), 4);
	assert_string_equal(s[0].function, "sample_outer");
	trace_close(t);
	compose_free(&c);
}

static void marks_in_words(void **state)
{
	struct compose c;
	struct trace *t = build(&c);
	const struct symbol *s;

	assert_int_equal(trace_symbols(t, 3, &s), 4);
	assert_non_null(strstr(s[0].function, "without unwind information"));
	assert_non_null(strstr(s[2].function, "7 frames"));
	assert_string_equal(s[3].function, "outer_py");
	trace_close(t);
	compose_free(&c);
}

/* In 12 bits. */
static uint16_t words_of(const struct symbol *s)
{
	uint32_t sum = s->line;

	for (const char *p = s->function; *p; p++)
		sum = sum * 31 + (unsigned char)*p;
	return sum % 4093 + 1;
}

/* The number of symbols, and the last one. */
static uint16_t mark_of(void *arg, const struct symbol *symbols, size_t count)
{
	uint16_t *asked = arg, last = 0;

	assert_in_range(count, 1, 15);
	++*asked;
	for (size_t i = 0; i < count; i++) {
		assert_false(symbols[i].interpreter);
		last = words_of(&symbols[i]);
	}
	return (uint16_t)(last << 4 | count);
}

static uint16_t join(uint16_t outer, uint16_t inner)
{
	return (uint16_t)((inner >> 4 ? inner : outer) & ~15u) | ((outer + inner) & 15);
}

/* All stacks together give the same symbols as each alone, and each frame is asked for once. */
static void assert_fold(struct trace *t, uint32_t most)
{
	uint16_t marks[16], asked = 0;
	struct trace_fold fold = {&asked, mark_of, join};

	assert_in_range(trace_stack_limit(t), 2, 16);
	assert_int_equal(trace_fold_stacks(t, &fold, marks), 0);
	assert_in_range(asked, 1, most);
	for (uint32_t stack = 0; stack < trace_stack_limit(t); stack++) {
		const struct symbol *s;
		size_t count = trace_symbols(t, stack, &s);

		assert_int_equal(marks[stack] & 15, count);
		assert_int_equal(marks[stack] >> 4, count ? words_of(&s[count - 1]) : 0);
	}
}

/* A read-only look sees the cache of others, whatever stack came before, and tells truly how
 * much of it is unchanged. */
static void looks_in_passing(void **state)
{
	static const uint32_t order[] = {1, 2, 5, 2, 6, 5, 5, 0, 5, 3, 4, 4, 7, 8, 7, 99, 1};
	struct compose c;
	struct trace *t;
	struct stack_path path = {0}, part = {0};
	struct symbol before[16], by_id[64] = {{0}};

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	put_module(&c, 1, SAMPLE, sample.build_id, sample.build_id_bytes);
	put_module(&c, 2, "/opt/none/libpython3.9.so", "\1\2\3", 3);
	put_code(&c, 1, "outer_py", "a.py");
	PUT_STACK(&c, 1, NATIVE(1, sample.call), NATIVE(2, 0x200), PYTHON(1, 0));
	PUT_STACK(&c, 2, NATIVE(1, sample.call), NATIVE(2, 0x200), NATIVE(2, 0x300));
	PUT_STACK(&c, 3, NATIVE(1, sample.call), NATIVE(2, 0x200));
	PUT_STACK(&c, 4, NATIVE(2, 0x200), PYTHON(1, 0), NATIVE(2, 0x300));
	PUT_STACK(&c, 5, NATIVE(2, 0x200), PYTHON(1, 0), NATIVE(2, 0x300), PYTHON(1, 4));
	PUT_STACK(&c, 6, NATIVE(2, 0x200), PYTHON(1, 0), NATIVE(2, 0x300), NATIVE(2, 0x400));
	PUT_STACK(&c, 7, NATIVE(2, 0x200));
	PUT_STACK(&c, 8, NATIVE(2, 0x300), PYTHON(1, 0), NATIVE(2, 0x300));
	t = open_composed(&c);
	assert_fold(t, 6);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		const struct symbol *kept;
		size_t count = trace_symbols(t, order[i], &kept);

		assert_int_equal(trace_path(t, order[i], &path), 0);
		assert_int_equal(path.count, count);
		assert_true(path.same <= count && (!i || path.same <= 16));
		for (size_t k = 0; k < count; k++) {
			assert_ptr_equal(path.symbols[k].function, kept[k].function);
			assert_int_equal(path.symbols[k].interpreter, kept[k].interpreter);
			assert_int_equal(path.symbols[k].line, kept[k].line);
			if (k < path.same)
				assert_memory_equal(&before[k], &kept[k], sizeof(*kept));
			before[k] = kept[k];
			/* Equal ids are equal symbols, also in whether they are the
			 * interpreter's. */
			assert_in_range(kept[k].id, 1, 63);
			if (by_id[kept[k].id].id)
				assert_memory_equal(&by_id[kept[k].id], &kept[k], sizeof(*kept));
			by_id[kept[k].id] = kept[k];
		}
	}
	/* Only some of the outermost, then more of the same. */
	for (size_t i = 0; i < 4 * sizeof(order) / sizeof(*order); i++) {
		const struct symbol *kept;
		uint32_t stack = order[i / 2 % (sizeof(order) / sizeof(*order))];
		size_t count = trace_symbols(t, stack, &kept);

		part.most = i % 2 ? i / 2 % 4 : 1;
		assert_int_equal(trace_path(t, stack, &part), 0);
		assert_true(part.same <= part.count && part.count <= count);
		assert_true(part.count == count || (part.most && part.count >= part.most));
		for (size_t k = 0; k < part.count; k++) {
			assert_memory_equal(&part.symbols[k], &kept[k], sizeof(*kept));
			if (k < part.same)
				assert_memory_equal(&before[k], &kept[k], sizeof(*kept));
			before[k] = kept[k];
		}
	}
	trace_path_fini(&part);
	/* The same once more: all but the last frame, which another could have hidden. */
	assert_int_equal(trace_path(t, 6, &path), 0);
	assert_int_equal(trace_path(t, 6, &path), 0);
	assert_int_equal(path.same, path.count - 1);
	trace_path_fini(&path);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(native_names),
	    cmocka_unit_test(python_in_place_of_the_interpreter),
	    cmocka_unit_test(marks_in_words),
	    cmocka_unit_test(looks_in_passing),
	};

	sample_read(SAMPLE, &sample);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

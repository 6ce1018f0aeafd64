#include "../events.h"

/* The one event of a trace whose definitions are under test: an ALLOC with this stack. */
static struct trace *open_with_alloc(struct compose *c, uint64_t stack, struct event *e)
{
	struct trace *t;

	compose_chunk(c, 1, 1, 0, 0, 65536);
	put_alloc(c, 10, 0x1000, 1, (uint32_t)stack);
	t = open_composed(c);
	*e = next_event(t);
	return t;
}

static void assert_stack(struct trace *t, uint32_t stack, size_t n, const uint64_t *addresses)
{
	const struct frame *frames;

	assert_int_equal(trace_stack(t, stack, &frames), n);
	for (size_t i = 0; i < n; i++)
		assert_true(frames[i].address == addresses[i]);
}
#define ASSERT_STACK(t, stack, ...)                                                                \
	assert_stack((t), (stack), sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

static void stacks_rest_on_others(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	DEF_STACK(&c, 4, 3, 2, 0x99); /* its base comes later, and that one's too */
	DEF_STACK(&c, 3, 2, 2, 0x40, 0x30);
	DEF_STACK(&c, 1, 0, 0, 0x10, 0x20, 0x30);
	DEF_STACK(&c, 2, 1, 3, 0x40);
	DEF_STACK(&c, 5, 1, 2, 0x30); /* the same frames as stack 1 */
	DEF_STACK(&c, 6, 0, 0, 0x10, 0x20, 0x40);
	t = open_with_alloc(&c, 4, &e);
	ASSERT_STACK(t, e.stack, 0x10, 0x20, 0x99);
	assert_int_equal(
	    stacks_canonical(&t->defs.stacks, 5), stacks_canonical(&t->defs.stacks, 1));
	ASSERT_STACK(t, stacks_canonical(&t->defs.stacks, 3), 0x10, 0x20, 0x40, 0x30);
	ASSERT_STACK(t, stacks_canonical(&t->defs.stacks, 6), 0x10, 0x20, 0x40);
	assert_int_equal(trace_stack_limit(t), 6);
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	trace_close(t);
	compose_free(&c);
}

static void uncommitted_and_holes_are_stepped_over(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	def_begin(&c, TRACE_DEF_STACK);
	put_varint(&c, 7);
	def_end(&c, false); /* the process died while it wrote this */
	c.at += 800; /* and another had claimed these */
	def_begin(&c, 60); /* a kind of the future */
	put_varint(&c, 1);
	def_end(&c, true);
	DEF_STACK(&c, 7, 0, 0, 0x10);
	t = open_with_alloc(&c, 7, &e);
	ASSERT_STACK(t, e.stack, 0x10);
	assert_int_equal(trace_facts(t)->unknown_records, 1);
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	trace_close(t);
	compose_free(&c);
}

/* Cycles, bases that do not exist, more kept frames than there are: refused, and the rest is
 * read. */
static void impossible_stacks(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	DEF_STACK(&c, 1, 2, 1, 0x10);
	DEF_STACK(&c, 2, 3, 1, 0x20);
	DEF_STACK(&c, 3, 1, 1, 0x30);
	DEF_STACK(&c, 4, 4, 0, 0x40); /* its own base */
	DEF_STACK(&c, 5, 3, 1, 0x50); /* its base is the cycle */
	DEF_STACK(&c, 6, 77, 1, 0x60);
	DEF_STACK(&c, 8, 0, 0, 0x80);
	DEF_STACK(&c, 9, 8, 2, 0x90);
	DEF_STACK(&c, 10, 0, 1, 0x90);
	def_begin(&c, TRACE_DEF_STACK); /* more frames than bytes */
	put_varint(&c, 11);
	put_varint(&c, 0);
	put_varint(&c, 0);
	put_varint(&c, 1ull << 50);
	def_end(&c, true);
	t = open_with_alloc(&c, 8, &e);
	ASSERT_STACK(t, e.stack, 0x80);
	assert_int_equal(trace_stack_limit(t), 2);
	for (uint32_t raw = 1; raw <= 11; raw++)
		assert_int_equal(stacks_canonical(&t->defs.stacks, raw), raw == 8);
	assert_true(trace_facts(t)->torn_chunks > 0);
	trace_close(t);
	compose_free(&c);
}

/* A long chain, last first: no recursion, no square. */
static void long_chains(void **state)
{
	enum { LINKS = 60000 };
	struct compose c;
	struct trace *t;
	struct event e;
	const struct frame *frames;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 1 << 22);
	for (uint64_t i = LINKS; i > 1; i--)
		DEF_STACK(&c, i, i - 1, i - 1, i);
	DEF_STACK(&c, 1, 0, 0, 1);
	t = open_with_alloc(&c, LINKS, &e);
	assert_int_equal(trace_stack(t, e.stack, &frames), LINKS);
	for (size_t i = 0; i < LINKS; i++)
		assert_int_equal(frames[i].address, i + 1);
	trace_close(t);
	compose_free(&c);
}

static void broken_framing_ends_the_chunk(void **state)
{
	for (int what = 0; what < 3; what++) {
		struct compose c;
		struct trace *t;
		struct event e;
		struct trace_def head = {.kind = 1, .committed = 1};

		compose_begin(&c);
		compose_chunk(&c, 2, 0, 0, 0, 65536);
		DEF_STACK(&c, 1, 0, 0, 0x10);
		head.bytes = what == 0 ? 13 : what == 1 ? 1u << 30 : 4;
		memcpy(c.bytes + c.at, &head, sizeof(head));
		c.at += 8;
		DEF_STACK(&c, 2, 0, 0, 0x20);
		compose_chunk(&c, 2, 0, 0, 0, 65536);
		DEF_STACK(&c, 3, 0, 0, 0x30);
		t = open_with_alloc(&c, 3, &e);
		ASSERT_STACK(t, e.stack, 0x30);
		assert_int_equal(stacks_canonical(&t->defs.stacks, 2), 0);
		assert_int_not_equal(stacks_canonical(&t->defs.stacks, 1), 0);
		assert_int_equal(trace_facts(t)->torn_chunks, 1);
		trace_close(t);
		compose_free(&c);
	}
}

static void facts_threads_and_names(void **state)
{
	const struct trace_thread *threads;
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	def_info(&c, "exe", "/bin/old");
	def_info(&c, "exe", "/bin/new");
	def_begin(&c, TRACE_DEF_INFO);
	put_text(&c, "cmdline");
	put_bytes(&c, "a\0b c\0\0d\0", 9); /* separated, not ended: the last one is empty */
	def_end(&c, true);
	def_begin(&c, TRACE_DEF_THREAD);
	put_varint(&c, 1);
	put_varint(&c, 555);
	put_text(&c, "main");
	def_end(&c, true);
	def_begin(&c, TRACE_DEF_THREAD); /* it renamed itself */
	put_varint(&c, 1);
	put_varint(&c, 555);
	put_text(&c, "worker");
	def_end(&c, true);
	t = open_with_alloc(&c, 0, &e);
	assert_string_equal(trace_info(t, "exe"), "/bin/new");
	assert_string_equal(trace_facts(t)->exe, "/bin/new");
	assert_null(trace_info(t, "cwd"));
	assert_string_equal(trace_facts(t)->argv[0], "a");
	assert_string_equal(trace_facts(t)->argv[1], "b c");
	assert_string_equal(trace_facts(t)->argv[2], "");
	assert_string_equal(trace_facts(t)->argv[3], "d");
	assert_string_equal(trace_facts(t)->argv[4], "");
	assert_null(trace_facts(t)->argv[5]);
	assert_int_equal(trace_threads(t, &threads), 1);
	assert_string_equal(threads[0].name, "worker");
	trace_close(t);
	compose_free(&c);
}

static void put_module(
    struct compose *c, uint64_t id, const char *path, const char *build_id, uint64_t bias)
{
	def_begin(c, TRACE_DEF_MODULE);
	put_varint(c, id);
	put_text(c, path);
	put_text(c, build_id);
	for (int i = 0; i < 5; i++)
		put_varint(c, i ? 100 + (uint64_t)i : bias);
	put_varint(c, 1);
	for (int i = 0; i < 4; i++)
		put_varint(c, 1);
	def_end(c, true);
}

static void put_code(struct compose *c, uint64_t id, const char *name)
{
	def_begin(c, TRACE_DEF_CODE);
	put_varint(c, id);
	put_varint(c, 0x30b);
	put_varint(c, 10);
	put_varint(c, 0);
	put_text(c, name);
	put_text(c, "f.py");
	put_text(c, "");
	def_end(c, true);
}

static void put_mixed_stack(struct compose *c, uint64_t id, uint64_t module, uint64_t code)
{
	def_begin(c, TRACE_DEF_STACK);
	put_varint(c, id);
	put_varint(c, 0);
	put_varint(c, 0);
	put_varint(c, 4);
	put_varint(c, 0 << 2 | 2); /* cut: none, then */
	put_varint(c, module << 3 | 4);
	put_svarint(c, 0x500);
	put_varint(c, code << 2 | 1);
	put_varint(c, 3);
	put_varint(c, 1 << 2 | 3);
	def_end(c, true);
}

static void put_segments(struct compose *c, uint64_t id, const uint64_t segments[4][3])
{
	def_begin(c, TRACE_DEF_MODULE);
	put_varint(c, id);
	put_text(c, "/lib/data.so");
	put_text(c, "id3");
	for (int i = 0; i < 5; i++)
		put_varint(c, 100);
	put_varint(c, 4);
	for (int i = 0; i < 4; i++) {
		put_varint(c, segments[i][0]);
		put_varint(c, segments[i][1]);
		put_varint(c, 0);
		put_varint(c, segments[i][2]);
	}
	def_end(c, true);
}

/* Whole pages of writable bytes; impossible sizes count for no module. */
static void data_of_modules(void **state)
{
	static const uint64_t segments[4][3] = {
	    {0, 0x5000, 1}, {0x6ff0, 0x20, 2}, {0x9000, 0x1001, 2}, {0, 1ull << 60, 2}};
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	put_module(&c, 10, "/lib/a.so", "id1", 0x10000);
	put_segments(&c, 11, segments);
	t = open_with_alloc(&c, 0, &e);
	assert_int_equal(trace_facts(t)->module_data, 4 * 4096);
	assert_false(trace_facts(t)->cuda_driver);
	trace_close(t);
	compose_free(&c);
}

static void cuda_driver_is_known(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	put_module(&c, 10, "/usr/lib/libcudart.so.12", "id1", 0x10000);
	put_module(&c, 11, "/usr/lib/libcuda.so.1", "id2", 0x20000);
	t = open_with_alloc(&c, 0, &e);
	assert_true(trace_facts(t)->cuda_driver);
	trace_close(t);
	compose_free(&c);
}

/* A library that was unloaded and loaded again, a code object made twice: equal stacks. */
static void same_module_and_code_are_one(void **state)
{
	const struct frame *frames;
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	put_mixed_stack(&c, 1, 10, 20);
	put_mixed_stack(&c, 2, 11, 21);
	put_mixed_stack(&c, 3, 12, 20); /* another build id */
	put_mixed_stack(&c, 4, 10, 22); /* another function */
	put_module(&c, 10, "/lib/a.so", "id1", 0x10000);
	put_module(&c, 11, "/lib/a.so", "id1", 0x20000);
	put_module(&c, 12, "/lib/a.so", "id2", 0x10000);
	put_code(&c, 20, "f");
	put_code(&c, 21, "f");
	put_code(&c, 22, "g");
	t = open_with_alloc(&c, 2, &e);
	assert_int_equal(stacks_canonical(&t->defs.stacks, 1), e.stack);
	assert_int_equal(trace_stack_limit(t), 4);
	assert_int_equal(trace_stack(t, e.stack, &frames), 4);
	assert_int_equal(frames[0].kind, FRAME_CUT);
	assert_int_equal(frames[1].kind, FRAME_NATIVE);
	assert_true(frames[1].exact && frames[1].address == 0x500 && frames[1].module);
	assert_int_equal(frames[2].kind, FRAME_PYTHON);
	assert_int_equal(frames[2].address, 3);
	assert_int_equal(frames[3].kind, FRAME_END);
	assert_int_equal(frames[3].module, 1);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(stacks_rest_on_others),
	    cmocka_unit_test(uncommitted_and_holes_are_stepped_over),
	    cmocka_unit_test(impossible_stacks),
	    cmocka_unit_test(long_chains),
	    cmocka_unit_test(broken_framing_ends_the_chunk),
	    cmocka_unit_test(facts_threads_and_names),
	    cmocka_unit_test(data_of_modules),
	    cmocka_unit_test(cuda_driver_is_known),
	    cmocka_unit_test(same_module_and_code_are_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

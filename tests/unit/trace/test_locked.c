#include <errno.h>
#include <sys/mman.h>

#include "events.h"

enum { CUDA = 1, PINNED = 2, CALL = 1, REGISTER = 2, CONTEXT = 0xc0, OTHER = 0xc1, STACK = 1 };

static void begin(struct compose *c)
{
	compose_begin(c);
	compose_chunk(c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	def_string(c, CALL, "cuMemHostAlloc");
	def_string(c, REGISTER, "cuMemHostRegister_v2");
	DEF_STACK(c, STACK, 0, 0, 0x400100);
	def_space(c, CUDA, "cuda:0");
	def_space(c, PINNED, "pinned");
	compose_chunk(c, TRACE_CHUNK_EVENTS, 1, 0, 0, TRACE_SLOT_BYTES);
}

static void took(struct compose *c, uint64_t ticks, uint32_t in, uint64_t address, uint64_t size,
    uint64_t context, uint64_t flags)
{
	PUT_EVENT(
	    c, ticks, TRACE_SPACE_ALLOC, in, CALL, address, size, STACK, 0, context, flags, 0, 0);
}

static void gave(struct compose *c, uint64_t ticks, uint64_t address)
{
	PUT_EVENT(c, ticks, TRACE_SPACE_FREE, 0, CALL, address, 0, 0, 0);
}

static void mapped(struct compose *c, uint64_t ticks, uint64_t address, uint64_t size, int prot,
    enum trace_backing backing)
{
	PUT_EVENT(c, ticks, TRACE_MAP, address, size, (uint64_t)prot, TRACE_API_MMAP,
	    TRACE_MAP_SHARED, backing, 0, 0, STACK);
}

static struct event next(struct trace *t, enum event_kind kind)
{
	struct event e;
	struct err err = {""};

	memset(&e, 0xaa, sizeof(e));
	if (trace_next_outside(t, &e, &err) != 1)
		fail_msg("no further event: %s", err.text);
	assert_int_equal(e.kind, kind);
	return e;
}

static void told(
    struct trace *t, enum event_kind kind, uint64_t ns, uint64_t address, uint64_t size)
{
	struct event e = next(t, kind);

	assert_int_equal(e.space, TRACE_SPACE_HOST);
	assert_int_equal(e.time_ns, ns);
	assert_true(e.address == address && e.size == size);
	assert_int_equal(e.level_count, 0);
	assert_null(e.block);
	if (kind != EV_MAP)
		return;
	assert_int_equal(e.stack, STACK);
	assert_int_equal(e.u.map.flags, TRACE_MAP_SHARED);
	assert_int_equal(e.u.map.backing, TRACE_BACKING_ANON);
	assert_int_equal(e.u.map.prot, PROT_READ | PROT_WRITE);
}

static void ends(struct compose *c, struct trace *t)
{
	struct event e;
	struct err err = {""};

	assert_int_equal(trace_next_outside(t, &e, &err), 0);
	trace_close(t);
	compose_free(c);
}

/* Acquired and released, at the same moment and stack, in every pass. */
static void is_a_mapping(void **state)
{
	struct compose c;
	struct trace *t;

	begin(&c);
	took(&c, 10, PINNED, 0x10000, 5000, CONTEXT, 0);
	took(&c, 20, CUDA, 0x7000000, 0x200000, CONTEXT, 0);
	gave(&c, 30, 0x7000000);
	gave(&c, 40, 0x10000);
	gave(&c, 50, 0x10000); /* of nothing */
	t = open_composed(&c);
	for (int pass = 0; pass < 2; pass++) {
		next(t, EV_SPACE_ALLOC);
		told(t, EV_MAP, 10, 0x10000, 5000);
		next(t, EV_SPACE_ALLOC);
		next(t, EV_SPACE_FREE);
		next(t, EV_SPACE_FREE);
		told(t, EV_UNMAP, 40, 0x10000, 5000);
		next(t, EV_SPACE_FREE);
		trace_rewind(t);
	}
	/* While it is written, nothing is beside it. */
	for (int i = 0; i < 5; i++)
		next_event(t);
	no_more(t);
	trace_rewind(t);
	for (int i = 0; i < 7; i++)
		next(t, i == 1	 ? EV_MAP
			: i == 5 ? EV_UNMAP
			: i < 3	 ? EV_SPACE_ALLOC
				 : EV_SPACE_FREE);
	ends(&c, t);
}

/* Not if the driver's own mapping was seen, nor for the program's earlier mappings. */
static void is_told_once(void **state)
{
	struct compose c;
	struct trace *t;

	begin(&c);
	mapped(&c, 10, 0x10000, 0x4000, PROT_READ | PROT_WRITE, TRACE_BACKING_ANON);
	took(&c, 20, PINNED, 0x11000, 0x1000, CONTEXT, 0);
	gave(&c, 30, 0x11000);
	took(&c, 40, PINNED, 0x90000, 0x1000, CONTEXT, TRACE_SPACE_REGISTERED);
	gave(&c, 50, 0x90000);
	/* Released: the next one there is another. */
	PUT_EVENT(&c, 60, TRACE_UNMAP, 0x10000, 0x4000, TRACE_API_MUNMAP, 0);
	took(&c, 70, PINNED, 0x11000, 0x1000, CONTEXT, 0);
	/* Addresses alone, and a window to a device, hold no memory. */
	mapped(&c, 80, 0x200000, 0x100000, PROT_NONE, TRACE_BACKING_ANON);
	took(&c, 90, PINNED, 0x210000, 0x1000, CONTEXT, 0);
	mapped(&c, 100, 0x400000, 0x100000, PROT_READ | PROT_WRITE, TRACE_BACKING_DEVICE);
	took(&c, 110, PINNED, 0x410000, 0x1000, CONTEXT, 0);
	t = open_composed(&c);
	next(t, EV_MAP);
	next(t, EV_SPACE_ALLOC);
	next(t, EV_SPACE_FREE);
	next(t, EV_SPACE_ALLOC);
	next(t, EV_SPACE_FREE);
	next(t, EV_UNMAP);
	next(t, EV_SPACE_ALLOC);
	told(t, EV_MAP, 70, 0x11000, 0x1000);
	next(t, EV_MAP);
	next(t, EV_SPACE_ALLOC);
	told(t, EV_MAP, 90, 0x210000, 0x1000);
	next(t, EV_MAP);
	next(t, EV_SPACE_ALLOC);
	told(t, EV_MAP, 110, 0x410000, 0x1000);
	ends(&c, t);
}

static void release_that_failed(void **state)
{
	struct compose c;
	struct trace *t;

	begin(&c);
	took(&c, 10, PINNED, 0x10000, 0x1000, CONTEXT, 0);
	gave(&c, 20, 0x10000);
	PUT_EVENT(&c, 30, TRACE_SPACE_UNFREE, 0, 0x10000, 0);
	gave(&c, 40, 0x10000);
	t = open_composed(&c);
	next(t, EV_SPACE_ALLOC);
	told(t, EV_MAP, 10, 0x10000, 0x1000);
	next(t, EV_SPACE_FREE);
	told(t, EV_UNMAP, 20, 0x10000, 0x1000);
	next(t, EV_SPACE_UNFREE);
	told(t, EV_UNUNMAP, 30, 0x10000, 0x1000);
	next(t, EV_SPACE_FREE);
	told(t, EV_UNMAP, 40, 0x10000, 0x1000);
	ends(&c, t);
}

/* A context's memory goes with it. */
static void goes_with_its_context(void **state)
{
	struct compose c;
	struct trace *t;

	begin(&c);
	took(&c, 10, PINNED, 0x10000, 0x1000, CONTEXT, 0);
	took(&c, 20, PINNED, 0x20000, 0x1000, OTHER, 0);
	took(&c, 30, PINNED, 0x30000, 0x1000, CONTEXT, 0);
	PUT_EVENT(&c, 40, TRACE_SPACE_CLEAR, CUDA, CALL, TRACE_CLEAR_CONTEXT, CONTEXT, 0);
	PUT_EVENT(&c, 50, TRACE_SPACE_CLEAR, CUDA, CALL, TRACE_CLEAR_DEVICE, 0, 0);
	t = open_composed(&c);
	for (int i = 0; i < 6; i++)
		next(t, i % 2 ? EV_MAP : EV_SPACE_ALLOC);
	next(t, EV_SPACE_CLEAR);
	told(t, EV_UNMAP, 40, 0x10000, 0x1000);
	told(t, EV_UNMAP, 40, 0x30000, 0x1000);
	next(t, EV_SPACE_CLEAR);
	told(t, EV_UNMAP, 50, 0x20000, 0x1000);
	ends(&c, t);
}

/* A refused request is the host's; a request to lock existing memory, and other errors, are not. */
static void refused(void **state)
{
	static const struct {
		uint32_t in, call, result;
		bool host;
	} tries[] = {{PINNED, CALL, 2, true}, {PINNED, REGISTER, 2, false},
	    {PINNED, CALL, 1, false}, {CUDA, CALL, 2, false}};
	struct compose c;
	struct trace *t;

	begin(&c);
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++)
		PUT_EVENT(&c, 10 + i, TRACE_FAILED, tries[i].in, 0, TRACE_FAIL_DEVICE,
		    tries[i].result, 12345, 0, 0, STACK, 1, TRACE_LEVEL_VSIZE, 77, tries[i].call, 0,
		    0, 0);
	t = open_composed(&c);
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct event e = next(t, EV_FAILED);

		assert_int_equal(e.space, tries[i].host ? TRACE_SPACE_HOST : tries[i].in);
		assert_int_equal(e.size, 12345);
		assert_int_equal(e.stack, STACK);
		assert_int_equal(event_level_value(&e, TRACE_LEVEL_VSIZE), 77);
		assert_int_equal(
		    e.u.failed.why, tries[i].host ? TRACE_FAIL_ERRNO : TRACE_FAIL_DEVICE);
		if (tries[i].host) {
			assert_int_equal(e.api, TRACE_API_MMAP);
			assert_int_equal(e.u.failed.result, ENOMEM);
		}
	}
	ends(&c, t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(is_a_mapping),
	    cmocka_unit_test(is_told_once),
	    cmocka_unit_test(release_that_failed),
	    cmocka_unit_test(goes_with_its_context),
	    cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * cuda_note.c - see cuda_call.h. Records events of spaces other than the host. Owns the definitions
 * of spaces, the groups of retries, and the times of queries for free memory.
 */
#include <string.h>

#include "base/record_fields.h"
#include "base/varint.h"
#include "cuda/cuda_call.h"
#include "cuda/cuda_device.h"
#include "cuda/space_record.h"
#include "levels/levels.h"
#include "trace/definitions.h"

#define RECORD_MAX 160u
#define FAILED_MAX 1024u

__thread struct cuda_thread cuda_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static const struct {
	const char *name;
	bool numbered;
} space_kinds[CUDA_KINDS] = {
    [CUDA_DEVICE] = {"cuda:", true},
    [CUDA_POOL] = {"pool:", true},
    [CUDA_GRAPH] = {"graph:", true},
    [CUDA_TORCH] = {"torch:", true},
    [CUDA_MANAGED] = {"managed", false},
    [CUDA_PINNED] = {"pinned", false},
    [CUDA_FOREIGN] = {"foreign", false},
    [CUDA_VA] = {"va", false},
};

static bool space_defined[CUDA_KINDS * SPACE_DEVICES + 1];
static uint32_t names[CUDA_IDS];
static uint32_t retries; /* number of groups so far */
static uint64_t sample_due[SPACE_DEVICES], pool_due[SPACE_DEVICES]; /* ticks */
static bool graph_memory; /* some graph has memory nodes */
static uint64_t launches; /* of graphs */

static const char *const symbols[CUDA_IDS] = {
    [CUDA_NOTHING] = "torch",
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	[CUDA_##symbol] = #symbol,
#include "cuda/cuda_api.def"
#undef CUDA_API
};

void cuda_attach(void)
{
	memset(space_defined, 0, sizeof(space_defined));
	memset(names, 0, sizeof(names));
	memset(sample_due, 0, sizeof(sample_due));
	memset(pool_due, 0, sizeof(pool_due));
}

void cuda_forked(void)
{
	cuda_attach();
	cuda_device_forked();
}

uint32_t cuda_name(enum cuda_id id)
{
	uint32_t name = __atomic_load_n(&names[id], __ATOMIC_ACQUIRE);

	if (SHIM_UNLIKELY(!name)) {
		name = definitions_string(symbols[id]);
		__atomic_store_n(&names[id], name, __ATOMIC_RELEASE);
	}
	return name;
}

/* Two threads may write the same definition twice, which is harmless. */
static void define_space(uint32_t id, enum cuda_kind kind, uint32_t device, uint32_t parent)
{
	uint8_t body[64], *p;
	char name[16];
	size_t n = strlen(space_kinds[kind].name);

	memcpy(name, space_kinds[kind].name, n);
	if (space_kinds[kind].numbered) {
		if (device >= 10)
			name[n++] = (char)('0' + device / 10);
		name[n++] = (char)('0' + device % 10);
	}
	p = varint_put(body, id);
	p = varint_put_bytes(p, name, n);
	p = varint_put(p, parent);
	if (definitions_write(TRACE_DEF_SPACE, body, (size_t)(p - body)))
		__atomic_store_n(&space_defined[id], true, __ATOMIC_RELEASE);
}

uint32_t cuda_space(enum cuda_kind kind, int device)
{
	uint32_t n = space_kinds[kind].numbered && device > 0 && device < SPACE_DEVICES
			 ? (uint32_t)device
			 : 0;
	uint32_t id = space_number(kind, n), parent = 0;

	if (SHIM_UNLIKELY(!__atomic_load_n(&space_defined[id], __ATOMIC_ACQUIRE))) {
		if (space_kinds[kind].numbered && kind != CUDA_DEVICE)
			parent = cuda_space(CUDA_DEVICE, device);
		define_space(id, kind, n, parent);
	}
	return id;
}

/* --- records --- */

static unsigned add_level(struct level *levels, unsigned count, uint32_t key, uint64_t value)
{
	levels[count] = (struct level){key, value};
	return count + 1;
}

static unsigned add_memory(
    struct level *levels, unsigned count, int device, uint64_t available, uint64_t total)
{
	cuda_device_set_last_memory(device, available, total);
	count = add_level(levels, count, TRACE_LEVEL_DEV_FREE, available);
	return add_level(levels, count, TRACE_LEVEL_DEV_TOTAL, total);
}

static unsigned add_allocator(
    struct level *levels, unsigned count, uint64_t reserved, uint64_t allocated)
{
	count = add_level(levels, count, TRACE_LEVEL_RESERVED, reserved);
	return add_level(levels, count, TRACE_LEVEL_ALLOCATED, allocated);
}

/* The name of the runtime's call; 0: the program called the driver. */
static uint32_t label_of(const struct cuda_call *c)
{
	return c->label ? cuda_name(c->label) : 0;
}

/* Returns true to one thread, at most every 100 ms. */
static bool claim_turn(uint64_t *due)
{
	uint64_t now = clock_ticks(), at = __atomic_load_n(due, __ATOMIC_RELAXED);

	return now >= at && __atomic_compare_exchange_n(due, &at, now + tick_clock.ticks_100ms,
				false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Records free memory if that is due and may be queried. Pre: outside a record, as it calls the
 * driver. */
static void sample_memory(const struct cuda_call *c, int device, uint64_t now)
{
	uint64_t available, total;
	struct level levels[2];
	struct extended x;
	struct note n;
	uint8_t *p;

	if (device < 0 || device >= SPACE_DEVICES ||
	    now < __atomic_load_n(&sample_due[device], __ATOMIC_RELAXED) ||
	    !cuda_device_may_ask(device) || !claim_turn(&sample_due[device]) ||
	    !cuda_device_memory(&available, &total) || !space_record_begin(&n, &c->start))
		return;
	if (extended_begin(n.thread, &x, TRACE_LEVEL, 96, true, 0)) {
		p = FIELDS_PUT(extended_dt(n.thread, &x), LEVEL, levels,
		    .space = cuda_space(CUDA_DEVICE, device),
		    .levels = add_memory(levels, 0, device, available, total));
		extended_end(n.thread, &x, p);
	}
	space_record_end(n);
}

/* Records the memory of a pool, or of a device's graphs, as a SPACE_CALL without an entry point. */
static void sample_pool(const struct cuda_call *c, enum cuda_kind kind, int device, uint64_t object)
{
	uint64_t reserved, used;
	struct level levels[2];
	struct extended x;
	struct note n;
	uint8_t *p;

	if (device < 0 || device >= SPACE_DEVICES || !cuda_device_may_ask(-1) ||
	    (kind == CUDA_POOL && !claim_turn(&pool_due[device])))
		return;
	if (!(kind == CUDA_POOL ? cuda_device_pool(device, object, &reserved, &used)
				: cuda_device_graphs(device, &reserved, &used)) ||
	    !space_record_begin(&n, &c->start))
		return;
	if (extended_begin(n.thread, &x, TRACE_SPACE_CALL, RECORD_MAX, true, 0)) {
		p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_CALL, levels,
		    .space = cuda_space(kind, device), .object = object,
		    .levels = add_allocator(levels, 0, reserved, used));
		extended_end(n.thread, &x, p);
	}
	space_record_end(n);
}

/* --- failures and retries --- */

static uint32_t retry_failed(void)
{
	struct cuda_thread *t = &cuda_self;
	uint64_t now = clock_ticks();

	if (!t->retry || now - t->retry_ticks > tick_clock.ticks_100ms / 2)
		t->retry = __atomic_add_fetch(&retries, 1, __ATOMIC_RELAXED);
	t->retry_ticks = now;
	return t->retry;
}

/* Ends the group of retries; returns it if the success belongs to it, else 0. */
static uint32_t retry_succeeded(void)
{
	struct cuda_thread *t = &cuda_self;
	uint32_t group = t->retry;

	if (SHIM_LIKELY(!group))
		return 0;
	t->retry = 0;
	return clock_ticks() - t->retry_ticks > tick_clock.ticks_100ms / 2 ? 0 : group;
}

static void retry_released(void)
{
	struct cuda_thread *t = &cuda_self;

	if (SHIM_UNLIKELY(t->retry) && clock_ticks() - t->retry_ticks <= tick_clock.ticks_100ms / 2)
		t->retry_ticks = clock_ticks();
}

struct failure {
	enum cuda_kind kind;
	uint32_t why, flags;
	enum cuda_id api, label;
	gpu_result result;
	uint64_t size;
	int device;
	bool memory; /* record the device's free memory */
	bool last_memory; /* the last known one, as the driver must not be queried */
	bool host; /* record the host's levels */
	uint64_t reserved, allocated; /* of a framework */
};

static void record_failure(const struct failure *f, const struct stack_start *start)
{
	uint64_t available = 0, total = 0;
	struct level levels[LEVELS_MAX + 4];
	unsigned count = 0;
	bool memory = false;
	struct extended x;
	struct note n;
	uint32_t stack, retry = retry_failed();
	uint8_t *p;

	if (f->memory && f->last_memory)
		memory = cuda_device_last_memory(f->device, &available, &total);
	else if (f->memory)
		memory = cuda_device_may_ask(f->device) && cuda_device_memory(&available, &total);
	if (!space_record_begin(&n, start))
		return;
	if (f->result == GPU_ERROR_OUT_OF_MEMORY &&
	    !(__atomic_load_n(&trace_file_header->flags, __ATOMIC_RELAXED) & TRACE_FLAG_FAILED))
		trace_file_flag(TRACE_FLAG_FAILED);
	if (!chunk_writer_make_room(n.thread, FAILED_MAX, true, 0))
		goto out;
	stack = record_stack(n, start);
	if (f->host && !shim.sandboxed)
		count = levels_read(levels, true);
	if (!extended_begin(n.thread, &x, TRACE_FAILED, FAILED_MAX, true, 0))
		goto out;
	if (memory)
		count = add_memory(levels, count, f->device, available, total);
	if (f->why == TRACE_FAIL_FRAMEWORK)
		count = add_allocator(levels, count, f->reserved, f->allocated);
	p = FIELDS_PUT(extended_dt(n.thread, &x), FAILED, levels,
	    .space = cuda_space(f->kind, f->device), .why = f->why, .result = (unsigned)f->result,
	    .size = f->size, .stack = stack, .levels = count, .call = cuda_name(f->api),
	    .label = f->label ? cuda_name(f->label) : 0, .retry = retry, .flags = f->flags);
	extended_end(n.thread, &x, p);
out:
	space_record_end(n);
	/* The recorder's own time does not separate the program's attempts: the first walk through
	 * a large library takes long. */
	cuda_self.retry_ticks = clock_ticks();
}

/*
 * Returns the device of the current context, and *context; -1: none. Some results forbid calling
 * the driver: it is not initialised, shut down, or this is a thread of its own, in a callback.
 */
static int device_after_call(gpu_result result, uint64_t *context)
{
	*context = 0;
	return result == GPU_ERROR_NOT_INITIALIZED || result == GPU_ERROR_DEINITIALIZED ||
		       result == GPU_ERROR_NOT_PERMITTED
		   ? -1
		   : cuda_device_now(context);
}

static void record_call_failure(
    const struct cuda_call *c, enum cuda_kind kind, int device, unsigned flags, uint64_t size)
{
	cuda_self.label_failed = true;
	record_failure(
	    &(struct failure){
		.kind = kind,
		.device = device,
		.why = TRACE_FAIL_DEVICE,
		.flags = flags,
		.api = c->id,
		.label = c->label,
		.result = c->result,
		.size = size,
		.memory = c->result == GPU_ERROR_OUT_OF_MEMORY,
		.host = kind == CUDA_PINNED && c->result == GPU_ERROR_OUT_OF_MEMORY,
	    },
	    &c->start);
}

void cuda_failed(const struct cuda_call *c, uint64_t size)
{
	uint64_t context;

	if (c->result == GPU_ERROR_OUT_OF_MEMORY)
		record_call_failure(
		    c, CUDA_DEVICE, device_after_call(c->result, &context), 0, size);
}

void cuda_label_end(const struct cuda_call *c, gpu_result result, uint64_t size)
{
	struct cuda_thread *t = &cuda_self;
	int device;
	uint64_t context;

	if (!c->outer)
		return;
	t->label = 0;
	if (SHIM_LIKELY(!result) || t->label_failed || (!size && result != GPU_ERROR_OUT_OF_MEMORY))
		return;
	device = device_after_call(result, &context);
	/* the runtime did not call the driver, or by a way that we do not see */
	record_failure(
	    &(struct failure){
		.kind = CUDA_DEVICE,
		.why = TRACE_FAIL_DEVICE,
		.flags = TRACE_FAILED_ABOVE,
		.api = c->id,
		.result = result,
		.size = size,
		.device = device,
		.memory = result == GPU_ERROR_OUT_OF_MEMORY,
	    },
	    &c->start);
}

void cuda_framework_failed(int device, uint64_t size, uint64_t reserved, uint64_t allocated,
    const struct stack_start *start)
{
	record_failure(
	    &(struct failure){
		.kind = CUDA_TORCH,
		.why = TRACE_FAIL_FRAMEWORK,
		.api = CUDA_NOTHING,
		.result = GPU_ERROR_OUT_OF_MEMORY,
		.size = size,
		.device = device,
		.memory = true,
		.last_memory = true,
		.reserved = reserved,
		.allocated = allocated,
	    },
	    start);
	cuda_self.retry = 0; /* refused for good: the next request is another one */
}

/* --- blocks --- */

/* Returns the ticks of the record; 0: none was made. */
static uint64_t record_allocation(
    const struct cuda_call *c, const struct cuda_block *b, int device, uint64_t context)
{
	struct extended x;
	uint32_t stack;
	uint64_t now = 0;
	struct note n;
	uint8_t *p;

	if (!space_record_begin(&n, &c->start))
		return 0;
	/* room first: in a foreign process nothing more may happen */
	if (!space_record_reserve(n.thread, RECORD_MAX, b->size))
		goto out;
	stack = record_stack(n, &c->start);
	if (!extended_begin(n.thread, &x, TRACE_SPACE_ALLOC, RECORD_MAX, true, b->size))
		goto out;
	p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_ALLOC, NULL,
	    .space = cuda_space(b->kind, device), .api = cuda_name(c->id), .address = b->address,
	    .size = b->size, .stack = stack, .stream = b->stream,
	    .context = b->object ? b->object : context, .flags = b->flags, .label = label_of(c),
	    .retry = retry_succeeded());
	extended_end(n.thread, &x, p);
	now = x.now;
out:
	space_record_end(n);
	return now;
}

void cuda_allocated(const struct cuda_call *c, const struct cuda_block *b)
{
	int device = b->device;
	uint64_t context = 0, now = 0;

	if (device < 0)
		device = device_after_call(c->result, &context);
	if (c->result)
		record_call_failure(c, b->kind, device,
		    b->kind >= CUDA_PINNED && b->kind != CUDA_VA ? TRACE_FAILED_NOT_DEVICE : 0,
		    b->size);
	else
		now = record_allocation(c, b, device, context);
	if (now) {
		if (b->kind == CUDA_GRAPH)
			__atomic_store_n(&graph_memory, true, __ATOMIC_RELAXED);
		if (b->kind == CUDA_POOL)
			sample_pool(c, CUDA_POOL, device, b->object);
		sample_memory(c, device, now);
	}
}

/* 0: the space that holds the address. */
static uint32_t space_of(enum cuda_kind kind, int device)
{
	return kind == CUDA_KINDS ? 0 : cuda_space(kind, device);
}

void cuda_free_begin(const struct cuda_call *c, enum cuda_kind kind, unsigned flags,
    uint64_t address, uint64_t stream)
{
	struct extended x;
	struct note n;
	uint8_t *p;

	if (address && space_record_begin(&n, &c->start)) {
		retry_released();
		if (extended_begin(n.thread, &x, TRACE_SPACE_FREE, RECORD_MAX, true, 0)) {
			p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_FREE, NULL,
			    .space = space_of(kind, 0), .api = cuda_name(c->id), .address = address,
			    .stream = stream, .flags = flags, .label = label_of(c));
			extended_end(n.thread, &x, p);
		}
		space_record_end(n);
	}
}

/* An event without a stack. Its fields are evaluated within the record, as names and spaces are
 * defined there. */
#define NOTE_FIELDS(c, NAME, ...)                                                                  \
	do {                                                                                       \
		struct extended x;                                                                 \
		struct note n;                                                                     \
                                                                                                   \
		if (!space_record_begin(&n, &(c)->start))                                          \
			break;                                                                     \
		if (extended_begin(n.thread, &x, TRACE_##NAME, RECORD_MAX, true, 0))               \
			extended_end(n.thread, &x,                                                 \
			    FIELDS_PUT(extended_dt(n.thread, &x), NAME, NULL, __VA_ARGS__));       \
		space_record_end(n);                                                               \
	} while (0)

void cuda_free_end(const struct cuda_call *c, enum cuda_kind kind, unsigned flags, uint64_t address)
{
	if (address && c->result)
		NOTE_FIELDS(c, SPACE_UNFREE, .space = space_of(kind, 0), .address = address,
		    .flags = flags);
}

void cuda_mapped(
    const struct cuda_call *c, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle)
{
	struct extended x;
	uint32_t stack;
	struct note n;
	uint8_t *p;

	if (c->result) {
		cuda_failed(c, size);
	} else if (space_record_begin(&n, &c->start)) {
		stack =
		    space_record_reserve(n.thread, RECORD_MAX, 0) ? record_stack(n, &c->start) : 0;
		if (extended_begin(n.thread, &x, TRACE_SPACE_MAP, RECORD_MAX, true, 0)) {
			p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_MAP, NULL,
			    .api = cuda_name(c->id), .address = address, .size = size,
			    .offset = offset, .handle = handle, .stack = stack);
			extended_end(n.thread, &x, p);
		}
		space_record_end(n);
	}
}

void cuda_unmap_begin(const struct cuda_call *c, uint64_t address, uint64_t size)
{
	retry_released();
	NOTE_FIELDS(c, SPACE_UNMAP, .api = cuda_name(c->id), .address = address, .size = size);
}

void cuda_unmap_end(const struct cuda_call *c, uint64_t address, uint64_t size)
{
	if (c->result)
		NOTE_FIELDS(c, SPACE_UNUNMAP, .address = address, .size = size);
}

void cuda_cleared(
    const struct cuda_call *c, enum cuda_kind kind, int device, unsigned what, uint64_t object)
{
	if (c->result)
		return;
	NOTE_FIELDS(c, SPACE_CLEAR, .space = space_of(kind, device), .api = cuda_name(c->id),
	    .what = what, .object = object, .label = label_of(c));
	if (what == TRACE_CLEAR_DEVICE)
		cuda_device_set_last_memory(device, 0, 0); /* query again for its next context */
}

/* Levels of a SPACE_CALL. */
struct called {
	enum cuda_kind kind;
	int device;
	uint64_t object, value;
	bool memory, pools;
	uint64_t available, total, reserved, used;
};

static void record_called(const struct cuda_call *c, const struct called *d)
{
	struct level levels[5];
	unsigned count = 0;
	struct extended x;
	uint32_t stack;
	bool before;
	struct note n;
	uint8_t *p;

	if (!space_record_begin(&n, &c->start))
		return;
	before = d->memory && c->before && c->before_device == d->device;
	stack = space_record_reserve(n.thread, RECORD_MAX, 0) ? record_stack(n, &c->start) : 0;
	if (extended_begin(n.thread, &x, TRACE_SPACE_CALL, RECORD_MAX, true, 0)) {
		if (d->memory)
			count = add_memory(levels, count, d->device, d->available, d->total);
		if (before)
			count = add_level(levels, count, TRACE_LEVEL_DEV_FREE_BEFORE, c->before);
		if (d->pools)
			count = add_allocator(levels, count, d->reserved, d->used);
		p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_CALL, levels,
		    .space = cuda_space(d->kind, d->device), .api = cuda_name(c->id),
		    .object = d->object, .value = d->value, .result = (unsigned)c->result,
		    .stack = stack, .levels = count, .label = label_of(c));
		extended_end(n.thread, &x, p);
	}
	space_record_end(n);
}

void cuda_called(
    const struct cuda_call *c, int device, uint64_t object, uint64_t value, enum cuda_object type)
{
	bool pool = type == CUDA_OBJECT_POOL;
	struct called d = {
	    .kind = pool ? CUDA_POOL : CUDA_DEVICE, .object = object, .value = value};
	uint64_t context;
	int now = device_after_call(c->result, &context);

	d.device = device < 0 ? now : device;
	if (c->result == GPU_ERROR_OUT_OF_MEMORY)
		record_call_failure(c, CUDA_DEVICE, d.device, 0, 0);
	if (now >= 0 && (c->before || pool) && cuda_device_may_ask(d.device))
		d.memory = cuda_device_memory(&d.available, &d.total);
	if (now >= 0 && pool && cuda_device_may_ask(-1))
		d.pools = cuda_device_pool(d.device, object, &d.reserved, &d.used);
	record_called(c, &d);
}

void cuda_context_created(const struct cuda_call *c, int device, uint64_t context)
{
	struct called d = {.kind = CUDA_DEVICE, .device = device, .object = context};

	if (c->result == GPU_ERROR_OUT_OF_MEMORY)
		record_call_failure(c, CUDA_DEVICE, device, 0, 0);
	if (context)
		d.memory = cuda_device_memory_in(device, context, &d.available, &d.total);
	record_called(c, &d);
}

void cuda_probed(const struct cuda_call *c, uint64_t available, uint64_t total)
{
	struct called d = {
	    .kind = CUDA_DEVICE, .memory = true, .available = available, .total = total};
	uint64_t context;

	d.device = cuda_device_now(&context);
	record_called(c, &d);
}

void cuda_graph_destroyed(const struct cuda_call *c, uint64_t graph)
{
	uint64_t context;

	if (__atomic_load_n(&graph_memory, __ATOMIC_RELAXED))
		cuda_cleared(c, CUDA_GRAPH, device_after_call(c->result, &context),
		    TRACE_CLEAR_GRAPH, graph);
}

void cuda_sample_before(struct cuda_call *c)
{
	uint64_t context, total;

	if (cuda_device_may_ask(-1) && cuda_device_memory(&c->before, &total))
		c->before_device = cuda_device_now(&context);
}

uint64_t cuda_launches(void)
{
	return __atomic_load_n(&launches, __ATOMIC_RELAXED);
}

void cuda_launched(const struct cuda_call *c)
{
	static uint64_t due;
	uint64_t context;

	if (c->result)
		cuda_failed(c, 0);
	else
		__atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
	if (!c->result && __atomic_load_n(&graph_memory, __ATOMIC_RELAXED) && claim_turn(&due))
		sample_pool(c, CUDA_GRAPH, cuda_device_now(&context), 0);
}

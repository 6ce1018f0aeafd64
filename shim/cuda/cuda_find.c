/*
 * cuda_find.c - see cuda_find.h. Each copy of a wrapper has one real function for good, unless the
 * library of that function is unloaded.
 */
#include "cuda/cuda_find.h"

#include <stdint.h>
#include <string.h>

#include "base/shim_state.h"
#include "cuda/cuda_call.h"
#include "cuda/cuda_device.h"
#include "loaded/got.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "loaded/visit.h"
#include "stack/modules.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"

enum { RUNTIME, DRIVER };
enum { ONE, LEGACY, PER_THREAD };
enum { ANY = INT32_MAX, VARIES = INT32_MAX };

static const struct row {
	const char *symbol, *asked;
	int32_t from, to;
	uint8_t library, stream;
} rows[CUDA_IDS] = {
#define CUDA_API(                                                                                  \
    library_, symbol_, asked_, from_, to_, stream_, class, parameters, arguments, effect)          \
	[CUDA_##symbol_] = {#symbol_, #asked_, from_, to_, library_, stream_},
#include "cuda/cuda_api.def"
#undef CUDA_API
};

void *cuda_real[CUDA_IDS][CUDA_COPIES];

/* Rows by symbol and by requested name: hash tables with open addressing, filled once. */
#define TABLE_SLOTS 1024u
static uint16_t by_symbol[TABLE_SLOTS], by_request[TABLE_SLOTS];
static int table_state; /* 0 empty, 1 being filled, 2 filled */

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ h >> 15;
}

static void table_put(uint16_t *table, const char *name, uint16_t id)
{
	uint32_t i = hash(name) % TABLE_SLOTS;

	while (table[i])
		i = (i + 1) % TABLE_SLOTS;
	table[i] = id;
}

static bool tables_ready(void)
{
	int expected = 0;

	if (__atomic_load_n(&table_state, __ATOMIC_ACQUIRE) == 2)
		return true;
	if (!__atomic_compare_exchange_n(
		&table_state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return expected == 2; /* another thread fills them: this look-up gets no wrapper */
	for (uint16_t id = 1; id < CUDA_IDS; id++) {
		if (!cuda_wrapper[id][0])
			continue;
		table_put(by_symbol, rows[id].symbol, id);
		if (rows[id].library == DRIVER)
			table_put(by_request, rows[id].asked, id);
	}
	__atomic_store_n(&table_state, 2, __ATOMIC_RELEASE);
	return true;
}

/* True for cuFoo and cudaFoo, not for cudnnFoo or cublasFoo. */
static inline bool is_cuda_name(const char *name)
{
	if (name[0] != 'c' || name[1] != 'u')
		return false;
	name += name[2] == 'd' && name[3] == 'a' ? 4 : 2;
	return *name >= 'A' && *name <= 'Z';
}

static enum cuda_id find_symbol(const char *name)
{
	if (!is_cuda_name(name) || !tables_ready())
		return CUDA_NOTHING;
	for (uint32_t i = hash(name) % TABLE_SLOTS; by_symbol[i]; i = (i + 1) % TABLE_SLOTS)
		if (!strcmp(rows[by_symbol[i]].symbol, name))
			return by_symbol[i];
	return CUDA_NOTHING;
}

/* --- classes of modules --- */

enum { CLASSIFIED = 1, LIBCUDA = 2, EXCLUDED = 4 };

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static unsigned class_of_path(const char *path)
{
	static const char *const excluded[] = {"libcupti", "libucm", "libucs", "libuct", "libucp",
	    "libnvperf", "libToolsInjection", "libInterceptorInjection", "libnvtx",
	    "libsanitizer-"};
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (has_prefix(name, "libcuda.so"))
		return CLASSIFIED | LIBCUDA | EXCLUDED;
	for (size_t i = 0; i < sizeof(excluded) / sizeof(excluded[0]); i++)
		if (has_prefix(name, excluded[i]))
			return CLASSIFIED | EXCLUDED;
	return CLASSIFIED;
}

/* Other modules need libcuda by this name. */
static const char *const driver_soname = "libcuda.so";

static unsigned class_of_address(const void *address)
{
	static uint8_t kinds[MODULES_MAX]; /* an id always names the same module */
	const struct module *m = module_find((uintptr_t)address);
	struct symbols_module where;
	unsigned kind;

	if (!m || m->id >= MODULES_MAX)
		return 0;
	kind = __atomic_load_n(&kinds[m->id], __ATOMIC_RELAXED);
	if (kind)
		return kind;
	if (!symbols_module_of(address, &where))
		return 0;
	kind = m->id == modules_self ? CLASSIFIED | EXCLUDED : class_of_path(where.path);
	if (has_prefix(where.soname, driver_soname))
		kind |= LIBCUDA | EXCLUDED;
	__atomic_store_n(&kinds[m->id], (uint8_t)kind, __ATOMIC_RELAXED);
	return kind;
}

bool cuda_wanted(const char *name)
{
	return name && find_symbol(name) != CUDA_NOTHING;
}

bool cuda_caller_wants(const void *caller)
{
	unsigned kind = class_of_address(caller);

	return !(kind & EXCLUDED);
}

bool cuda_is_driver_function(const void *function)
{
	return class_of_address(function) & LIBCUDA;
}

/* --- real functions --- */

static struct symbols_module driver; /* empty path: not known yet */

static void note_driver(const void *function)
{
	static int found; /* 1: a thread looks it up, 2: `driver` is filled in */
	int expected = 0;

	cuda_device_find_functions(function);
	if (__atomic_load_n(&found, __ATOMIC_RELAXED) ||
	    !__atomic_compare_exchange_n(
		&found, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (symbols_module_of(function, &driver) && !shim_is_copy())
		definitions_info("cuda.driver", driver.path);
	__atomic_store_n(&found, 2, __ATOMIC_RELEASE);
}

/* Returns the copy whose real function this is, or becomes. NULL: all copies are taken. */
static void *bind_copy(enum cuda_id id, void *function)
{
	void *wanted = function, *now;
	struct symbols_module where;

	for (unsigned i = 0; i < CUDA_COPIES; i++) {
		now = __atomic_load_n(&cuda_real[id][i], __ATOMIC_ACQUIRE);
		if (now == wanted)
			return cuda_wrapper[id][i];
		if (!now && __atomic_compare_exchange_n(&cuda_real[id][i], &now, wanted, false,
				__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return cuda_wrapper[id][i];
		if (now == wanted)
			return cuda_wrapper[id][i];
	}
	/* reuse a copy whose library is unloaded: nobody calls it any more */
	for (unsigned i = 0; i < CUDA_COPIES && loader_may_ask(); i++) {
		now = __atomic_load_n(&cuda_real[id][i], __ATOMIC_ACQUIRE);
		if (!symbols_module_of(now, &where) &&
		    __atomic_compare_exchange_n(
			&cuda_real[id][i], &now, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return cuda_wrapper[id][i];
	}
	if (!shim_is_copy())
		definitions_info("cuda.missed", rows[id].symbol);
	return NULL;
}

static void *wrapper_for(enum cuda_id id, void *function)
{
	void *wrapper;

	/* a slot that is not relocated yet points nowhere */
	if (id == CUDA_NOTHING ||
	    !(class_of_address(function) & (rows[id].library == DRIVER ? LIBCUDA : CLASSIFIED)))
		return function;
	wrapper = bind_copy(id, function);
	if (!wrapper)
		return function;
	if (rows[id].library == DRIVER)
		note_driver(function);
	return wrapper;
}

void *cuda_wrapper_by_symbol(const char *name, void *function)
{
	enum cuda_id id = find_symbol(name);

	/* look-ups of the runtime's functions get no wrapper, which would only provide a name */
	return id != CUDA_NOTHING && rows[id].library == DRIVER ? wrapper_for(id, function)
								: function;
}

/* Says whether libcuda exports this symbol at this very address. */
static bool is_exported(const char *symbol, void *function)
{
	void *exported = NULL;

	symbols_in(function, &symbol, &exported, 1);
	return exported == function;
}

void *cuda_wrapper_by_request(const char *name, int version, bool per_thread, void *function)
{
	enum cuda_id found = CUDA_NOTHING;
	int stream = per_thread ? PER_THREAD : LEGACY;
	unsigned count = 0;

	if (!is_cuda_name(name) || !tables_ready())
		return function;
	for (uint32_t i = hash(name) % TABLE_SLOTS; by_request[i]; i = (i + 1) % TABLE_SLOTS) {
		const struct row *row = &rows[by_request[i]];

		if (strcmp(row->asked, name) != 0 ||
		    (row->stream != ONE && row->stream != stream) ||
		    (version && (version < row->from || version > row->to)))
			continue;
		/* the version decides among several prototypes, unless it is unknown or newer */
		if ((!version || version > CUDA_API_NEWEST) && is_exported(row->symbol, function))
			return wrapper_for(by_request[i], function);
		found = by_request[i];
		count++;
	}
	return count == 1 && version <= CUDA_API_NEWEST ? wrapper_for(found, function) : function;
}

/* --- slots --- */

static void *cuda_slot(const struct got_slot *slot, bool *later)
{
	enum cuda_id id = find_symbol(slot->name);
	void *function = got_function(slot);

	if (!function) {
		*later = true;
		return NULL;
	}
	if (slot->now - shim.own_low < shim.own_high - shim.own_low)
		return NULL;
	return wrapper_for(id, function);
}

/* Says whether some module defines CUDA's functions. */
static bool cuda_present(const struct dl_phdr_info *info)
{
	static const char *const signs[] = {"cuMemAlloc_v2", "cudaMalloc"};
	static bool here;
	const uint32_t hashes[] = {symbols_hash(signs[0]), symbols_hash(signs[1])};
	void *found[2] = {NULL, NULL};

	if (!here && symbols_defined(info, signs, hashes, found, 2)) {
		here = true;
		visit_again(VISIT_CUDA);
	}
	return here;
}

bool cuda_modules_visit(const struct dl_phdr_info *info)
{
	static const struct got_walk walk = {cuda_wanted, cuda_slot};
	const char *path = info->dlpi_name ? info->dlpi_name : "";
	const char *name = strrchr(path, '/');

	if (!cuda_present(info) || class_of_path(path) & EXCLUDED ||
	    has_prefix(name ? name + 1 : path, "libcudart"))
		return true;
	return got_walk(info, &walk);
}

void cuda_find_attach(void)
{
	if (symbols_find("cuInit"))
		definitions_info(
		    "cuda.missed", "calls through pointers that were fetched before the attach");
}

void cuda_find_forked(void)
{
	if (driver.path[0])
		definitions_info("cuda.driver", driver.path);
}

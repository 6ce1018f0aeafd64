/*
 * lookup.c - the look-up of entry points by name, version and kind of default stream.
 */
#include <string.h>

#include "simgpu/api.h"
#include "simgpu/device/state.h"

#define SELF(symbol) extern __typeof__(symbol) self_##symbol __attribute__((visibility("hidden")));
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	SELF(symbol)
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters) SELF(symbol)
#define DRIVER_API_PTSZ(symbol, asked, from, to, parameters) SELF(symbol) SELF(symbol##_ptsz)
#include "simgpu/driver/driver.def"
#undef DRIVER_API
#undef DRIVER_API_PTSZ

enum kind { ONE, LEGACY, PER_THREAD };

static const struct entry {
	const char *asked;
	int from, to; /* 0: no end */
	enum kind kind;
	void *address;
} entries[] = {
#define ANY 0
#define VARIES 0
#define ENTRY_DRIVER(symbol, asked, from, to, kind) {#asked, from, to, kind, self_##symbol},
#define ENTRY_RUNTIME(symbol, asked, from, to, kind)
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	ENTRY_##library(symbol, asked, from, to, stream)
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters) ENTRY_DRIVER(symbol, asked, from, to, ONE)
#define DRIVER_API_PTSZ(symbol, asked, from, to, parameters)                                       \
	ENTRY_DRIVER(symbol, asked, from, to, LEGACY)                                              \
	ENTRY_DRIVER(symbol##_ptsz, asked, from, to, PER_THREAD)
#include "simgpu/driver/driver.def"
};

static void *look_up(const char *name, int version, uint64_t flags, bool *known)
{
	*known = false;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		const struct entry *e = &entries[i];

		if (strcmp(e->asked, name))
			continue;
		*known = true;
		if (version < e->from || (e->to && version > e->to))
			continue;
		if (e->kind != ONE && (e->kind == PER_THREAD) != (flags == GPU_PROC_PER_THREAD))
			continue;
		return e->address;
	}
	return NULL;
}

API_PTSZ(
    cuGetProcAddress_v2, (const char *name, void **out, int version, uint64_t flags, int *status))
{
	bool known;

	if (!name || !out || flags > GPU_PROC_PER_THREAD)
		return SIM_INVALID_VALUE;
	*out = look_up(name, version, flags, &known);
	if (status)
		*status = *out ? 0 : known ? 2 : 1; /* 1: no such name, 2: the version is too old */
	return *out ? SIM_OK : SIM_NOT_FOUND;
}

API_PTSZ_RETURNS(cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags),
    self_cuGetProcAddress_v2(name, out, version, flags, NULL))

API(cuGetExportTable, (const void **out, const struct gpu_uuid *id))
{
	if (out)
		*out = NULL;
	return SIM_NOT_FOUND;
}

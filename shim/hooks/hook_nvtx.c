/*
 * hook_nvtx.c - turns NVTX's ranges and marks into marks of ours. Each copy of NVTX in the process,
 * told to load libwhyoom-nvtx.so, hands us the table of its functions; we replace those that make
 * an event and leave the others without effect. Declares the few NVTX types that it needs, so that
 * it builds without NVTX.
 *
 * Must not keep state for a range, as programs may push ranges and never pop them.
 */
#include <stddef.h>
#include <string.h>
#include <wchar.h>

#include "base/shim_state.h"
#include "hooks/hook_mark.h"
#include "shim.h"

typedef void (*any_function)(void);

struct table_callbacks {
	size_t size;
	int (*functions_of)(int module, any_function ***out, unsigned *count);
};
#define TABLE_CALLBACKS 1u
enum { MODULE_CORE = 1, MODULE_DOMAINS = 5 };
enum {
	CORE_MARK_EX = 1,
	CORE_MARK_A,
	CORE_MARK_W,
	CORE_START_EX,
	CORE_START_A,
	CORE_START_W,
	CORE_END,
	CORE_PUSH_EX,
	CORE_PUSH_A,
	CORE_PUSH_W,
	CORE_POP,
};
enum {
	DOMAIN_MARK = 1,
	DOMAIN_START,
	DOMAIN_END,
	DOMAIN_PUSH,
	DOMAIN_POP,
	DOMAIN_REGISTER_A = 10,
	DOMAIN_REGISTER_W,
	DOMAIN_CREATE_A,
	DOMAIN_CREATE_W,
};

/* nvtxEventAttributes_t, versions 1 to 3: later ones may only be longer. */
struct attributes {
	uint16_t version, size;
	uint32_t category, color_type, color, payload_type, reserved;
	uint64_t payload;
	uint32_t message_type;
	const void *message;
};
enum { MESSAGE_ASCII = 1, MESSAGE_UNICODE = 2, MESSAGE_REGISTERED = 3 };

/* Push and pop return this if no tool counts their depth. */
#define NO_DEPTH (-2)

/* Handles of domains and registered strings are numbers of names; NULL is the default domain. */
static uint32_t name_of_handle(const void *handle)
{
	return (uintptr_t)handle <= UINT32_MAX ? (uint32_t)(uintptr_t)handle : 0;
}

static void *handle_of_name(uint32_t name)
{
	return (void *)(uintptr_t)name;
}

static uint32_t wide_name(const wchar_t *text)
{
	char narrow[MARK_NAME_BYTES];
	size_t n = 0;

	if (!text)
		return 0;
	for (; n < sizeof(narrow) - 1 && text[n]; n++)
		narrow[n] = text[n] > 0 && text[n] < 128 ? (char)text[n] : '?';
	narrow[n] = 0;
	return mark_name(narrow);
}

static uint32_t name_of(const struct attributes *a)
{
	if (!a || a->size < sizeof(*a))
		return 0;
	switch (a->message_type) {
	case MESSAGE_ASCII:
		return mark_name(a->message);
	case MESSAGE_UNICODE:
		return wide_name(a->message);
	case MESSAGE_REGISTERED:
		return name_of_handle(a->message);
	}
	return 0;
}

/* Not inlined: the caller is NVTX's function in the program. */
#define CALLBACK static __attribute__((noinline))

/* The callbacks that take a message of one kind. */
#define CALLBACKS(kind, type, name_of)                                                             \
	CALLBACK void mark_##kind(type message)                                                    \
	{                                                                                          \
		RECORD_MARK(POINT, NVTX, 0, .name = name_of(message));                             \
	}                                                                                          \
	CALLBACK uint64_t start_##kind(type message)                                               \
	{                                                                                          \
		uint64_t id = mark_next_id();                                                      \
                                                                                                   \
		RECORD_MARK(BEGIN, RANGE, id, .name = name_of(message));                           \
		return id;                                                                         \
	}                                                                                          \
	CALLBACK int push_##kind(type message)                                                     \
	{                                                                                          \
		RECORD_MARK(BEGIN, PUSHED, 0, .name = name_of(message));                           \
		return NO_DEPTH;                                                                   \
	}
CALLBACKS(ex, const struct attributes *, name_of)
CALLBACKS(a, const char *, mark_name)
CALLBACKS(w, const wchar_t *, wide_name)

CALLBACK void range_end(uint64_t id)
{
	RECORD_MARK(END, RANGE, id, .name = 0);
}

CALLBACK int pop(void)
{
	RECORD_MARK(END, PUSHED, 0, .name = 0);
	return NO_DEPTH;
}

CALLBACK void domain_mark(void *domain, const struct attributes *a)
{
	RECORD_MARK(POINT, NVTX, 0, .name = name_of(a), .domain = name_of_handle(domain));
}

CALLBACK uint64_t domain_start(void *domain, const struct attributes *a)
{
	uint64_t id = mark_next_id();

	RECORD_MARK(BEGIN, RANGE, id, .name = name_of(a), .domain = name_of_handle(domain));
	return id;
}

CALLBACK void domain_end(void *domain, uint64_t id)
{
	RECORD_MARK(END, RANGE, id, .name = 0, .domain = name_of_handle(domain));
}

CALLBACK int domain_push(void *domain, const struct attributes *a)
{
	RECORD_MARK(BEGIN, PUSHED, 0, .name = name_of(a), .domain = name_of_handle(domain));
	return NO_DEPTH;
}

CALLBACK int domain_pop(void *domain)
{
	RECORD_MARK(END, PUSHED, 0, .name = 0, .domain = name_of_handle(domain));
	return NO_DEPTH;
}

static void *register_a(void *domain, const char *text)
{
	return handle_of_name(mark_name(text));
}

static void *register_w(void *domain, const wchar_t *text)
{
	return handle_of_name(wide_name(text));
}

static void *create_a(const char *text)
{
	return handle_of_name(mark_name(text));
}

static void *create_w(const wchar_t *text)
{
	return handle_of_name(wide_name(text));
}

static const any_function core[] = {
    [CORE_MARK_EX] = (any_function)mark_ex,
    [CORE_MARK_A] = (any_function)mark_a,
    [CORE_MARK_W] = (any_function)mark_w,
    [CORE_START_EX] = (any_function)start_ex,
    [CORE_START_A] = (any_function)start_a,
    [CORE_START_W] = (any_function)start_w,
    [CORE_END] = (any_function)range_end,
    [CORE_PUSH_EX] = (any_function)push_ex,
    [CORE_PUSH_A] = (any_function)push_a,
    [CORE_PUSH_W] = (any_function)push_w,
    [CORE_POP] = (any_function)pop,
};
static const any_function domains[] = {
    [DOMAIN_MARK] = (any_function)domain_mark,
    [DOMAIN_START] = (any_function)domain_start,
    [DOMAIN_END] = (any_function)domain_end,
    [DOMAIN_PUSH] = (any_function)domain_push,
    [DOMAIN_POP] = (any_function)domain_pop,
    [DOMAIN_REGISTER_A] = (any_function)register_a,
    [DOMAIN_REGISTER_W] = (any_function)register_w,
    [DOMAIN_CREATE_A] = (any_function)create_a,
    [DOMAIN_CREATE_W] = (any_function)create_w,
};

/* Puts our functions into a table. Each slot but the unused first points to NVTX's pointer. */
static bool replace_functions(
    const struct table_callbacks *callbacks, int module, const any_function *functions, size_t most)
{
	any_function **table = NULL;
	unsigned count = 0;

	if (!callbacks->functions_of(module, &table, &count) || !table)
		return false;
	for (size_t i = 0; i < most && i < count; i++)
		if (functions[i] && table[i])
			*table[i] = functions[i];
	return true;
}

SHIM_EXPORT int whyoom_nvtx_attach(const void *(*export_table)(uint32_t id));

/* Called by libwhyoom-nvtx.so while NVTX is being initialised. Returns 1 if our functions are in
 * place. */
int whyoom_nvtx_attach(const void *(*export_table)(uint32_t id))
{
	const struct table_callbacks *callbacks;

	if (shim.mode != SHIM_RECORDING || !export_table)
		return 0;
	callbacks = export_table(TABLE_CALLBACKS);
	if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->functions_of)
		return 0;
	if (!replace_functions(callbacks, MODULE_CORE, core, sizeof(core) / sizeof(*core)))
		return 0;
	replace_functions(callbacks, MODULE_DOMAINS, domains, sizeof(domains) / sizeof(*domains));
	return 1;
}

/* nvtx_stand.h - the part of NVTX 3 that nvtx.c uses, written after its public description: it
 * finds its tool the same way, and calls it through the same tables. If NVTX's own header is
 * installed, the test builds nvtx.c with that, too. */
#ifndef NVTX_STAND_H
#define NVTX_STAND_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#define NVTX_VERSION 3
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_MESSAGE_TYPE_REGISTERED 3

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxStandDomain *nvtxDomainHandle_t;
typedef struct nvtxStandString *nvtxStringHandle_t;
typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	uint64_t payload;
	int32_t messageType;
	union {
		const char *ascii;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

typedef void (*stand_function)(void);
static stand_function stand_core[16], stand_domains[16];
static stand_function *stand_core_places[16], *stand_domains_places[16];

static int stand_functions_of(int module, stand_function ***out, unsigned *count)
{
	if (module != 1 && module != 5)
		return 0;
	*out = module == 1 ? stand_core_places : stand_domains_places;
	*count = 16;
	return 1;
}

static const void *stand_table(uint32_t id)
{
	static const struct {
		size_t size;
		int (*functions_of)(int, stand_function ***, unsigned *);
	} callbacks = {sizeof(callbacks), stand_functions_of};

	return id == 1 ? &callbacks : NULL;
}

static void stand_find(void)
{
	static int done;
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path && !done ? dlopen(path, RTLD_LAZY) : NULL;
	int (*start)(const void *(*)(uint32_t)) =
	    library ? (int (*)(const void *(*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2")
		    : NULL;

	if (done++)
		return;
	for (int i = 1; i < 16; i++) {
		stand_core_places[i] = &stand_core[i];
		stand_domains_places[i] = &stand_domains[i];
	}
	if (start && !start(stand_table))
		dlclose(library);
}

#define STAND(table, id, type, name, parameters, arguments, otherwise)                             \
	static inline type name parameters                                                         \
	{                                                                                          \
		stand_find();                                                                      \
		if (!table[id])                                                                    \
			return otherwise;                                                          \
		return ((type(*) parameters)table[id])arguments;                                   \
	}
STAND(stand_core, 1, void, nvtxMarkEx, (const nvtxEventAttributes_t *a), (a), )
STAND(stand_core, 2, void, nvtxMarkA, (const char *a), (a), )
STAND(stand_core, 4, nvtxRangeId_t, nvtxRangeStartEx, (const nvtxEventAttributes_t *a), (a), 0)
STAND(stand_core, 5, nvtxRangeId_t, nvtxRangeStartA, (const char *a), (a), 0)
STAND(stand_core, 7, void, nvtxRangeEnd, (nvtxRangeId_t a), (a), )
STAND(stand_core, 8, int, nvtxRangePushEx, (const nvtxEventAttributes_t *a), (a), -2)
STAND(stand_core, 9, int, nvtxRangePushA, (const char *a), (a), -2)
STAND(stand_core, 10, int, nvtxRangePushW, (const wchar_t *a), (a), -2)
STAND(stand_core, 11, int, nvtxRangePop, (void), (), -2)
STAND(stand_core, 12, void, nvtxNameCategoryA, (uint32_t a, const char *b), (a, b), )
STAND(stand_domains, 3, void, nvtxDomainRangeEnd, (nvtxDomainHandle_t a, nvtxRangeId_t b), (a, b), )
STAND(stand_domains, 5, int, nvtxDomainRangePop, (nvtxDomainHandle_t a), (a), -2)
STAND(stand_domains, 10, nvtxStringHandle_t, nvtxDomainRegisterStringA,
    (nvtxDomainHandle_t a, const char *b), (a, b), NULL)
STAND(stand_domains, 12, nvtxDomainHandle_t, nvtxDomainCreateA, (const char *a), (a), NULL)
STAND(stand_domains, 14, void, nvtxDomainDestroy, (nvtxDomainHandle_t a), (a), )
#define STAND_EVENT(id, type, name, otherwise)                                                     \
	STAND(stand_domains, id, type, name,                                                       \
	    (nvtxDomainHandle_t a, const nvtxEventAttributes_t *b), (a, b), otherwise)
STAND_EVENT(1, void, nvtxDomainMarkEx, )
STAND_EVENT(2, nvtxRangeId_t, nvtxDomainRangeStartEx, 0)
STAND_EVENT(4, int, nvtxDomainRangePushEx, -2)

#endif

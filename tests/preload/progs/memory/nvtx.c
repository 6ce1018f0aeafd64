/* nvtx.c - calls NVTX in each of its forms. Prints the results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_stand.h"
#endif

static nvtxEventAttributes_t named(const char *text, nvtxStringHandle_t registered)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = registered ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
	if (registered)
		a.message.registered = registered;
	else
		a.message.ascii = text;
	return a;
}

int main(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("server");
	nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
	nvtxEventAttributes_t plain = named("attributes", NULL), known = named("?", string),
			      cut = plain;
	nvtxRangeId_t first, second;
	int outer, inner;

	free(malloc(100000)); /* more than a trivial trace has */
	nvtxNameCategoryA(1, "nobody's");
	outer = nvtxRangePushA("outer");
	inner = nvtxRangePushW(L"w\u00efde");
	nvtxRangePop();
	nvtxRangePushEx(&plain);
	nvtxRangePop();
	nvtxRangePop();
	nvtxMarkA("token");
	nvtxMarkEx(&plain);
	first = nvtxRangeStartA("first");
	second = nvtxDomainRangeStartEx(domain, &known);
	nvtxRangeEnd(first);
	nvtxDomainRangePushEx(domain, &known);
	nvtxDomainMarkEx(domain, &plain);
	nvtxDomainRangePop(domain);
	nvtxDomainRangeEnd(domain, second);
	cut.size = 8; /* of no version */
	nvtxRangePushEx(&cut);
	nvtxRangePop();
	nvtxRangePushEx(NULL);
	nvtxRangePop();
	nvtxDomainDestroy(domain);
	printf("%d %d %llu %llu\n", outer, inner, (unsigned long long)first,
	    (unsigned long long)second);
	return 0;
}

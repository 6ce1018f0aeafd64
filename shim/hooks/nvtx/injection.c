/*
 * injection.c - libwhyoom-nvtx.so: what NVTX loads from the path in NVTX_INJECTION64_PATH. A
 * library of its own, so that libwhyoom.so has no symbol of NVTX's in the way of other tools, and
 * is never loaded into a process that it was not preloaded into.
 */
#include <stddef.h>

typedef const void *(*export_table)(unsigned id);

extern int whyoom_nvtx_attach(export_table table) __attribute__((weak));

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(export_table table);

/* 0: NVTX unloads this library, and its functions do nothing. */
int InitializeInjectionNvtx2(export_table table)
{
	return whyoom_nvtx_attach ? whyoom_nvtx_attach(table) : 0;
}

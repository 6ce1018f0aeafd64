/*
 * injection.c - libwhyoom-nvtx.so, which NVTX loads from the path in NVTX_INJECTION64_PATH. A
 * separate library: so libwhyoom.so exports no symbol of NVTX, which would disturb other tools,
 * and is never loaded into a process without LD_PRELOAD.
 */

typedef const void *(*export_table)(unsigned id);

extern int whyoom_nvtx_attach(export_table table) __attribute__((weak));

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(export_table table);

/* Returns 0 to make NVTX unload this library; its functions then do nothing. */
int InitializeInjectionNvtx2(export_table table)
{
	return whyoom_nvtx_attach ? whyoom_nvtx_attach(table) : 0;
}

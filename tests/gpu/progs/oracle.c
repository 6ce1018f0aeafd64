/*
 * oracle.c - NVIDIA's own account of device memory: with CUDA_INJECTION64_PATH naming this library,
 * a program's CUDA loads it, and CUPTI's records of memory go to the file that ORACLE_OUT names, a
 * line each: 1 taken or 2 given back, kind (CUpti_ActivityMemoryKind), address, bytes.
 */
#define _GNU_SOURCE
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER ((size_t)1 << 20)

static FILE *out;

static void CUPTIAPI room(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(8, BUFFER);
	*size = *buffer ? BUFFER : 0;
	*most = 0; /* as many as fit */
}

static void CUPTIAPI filled(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	const CUpti_ActivityMemory4 *m;

	(void)context, (void)stream, (void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (record->kind != CUPTI_ACTIVITY_KIND_MEMORY2)
			continue;
		m = (const CUpti_ActivityMemory4 *)record;
		fprintf(out, "%d %d %llu %llu\n", (int)m->memoryOperationType, (int)m->memoryKind,
		    (unsigned long long)m->address, (unsigned long long)m->bytes);
	}
	free(buffer);
}

static void finish(void)
{
	cuptiActivityFlushAll(1);
	fclose(out);
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *path = getenv("ORACLE_OUT");

	out = path ? fopen(path, "w") : NULL;
	if (!out || cuptiActivityRegisterCallbacks(room, filled) ||
	    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2))
		return 0;
	atexit(finish);
	return 1;
}

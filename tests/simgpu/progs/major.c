/* A library built for one major version of the runtime; it gets the structures of that version. */
#include <stddef.h>
#include <string.h>

int cudaRuntimeGetVersion(int *version);
int cudaGetDeviceProperties(void *out, int device);

int version(void);
int properties(void);

int version(void)
{
	int v = 0;

	return cudaRuntimeGetVersion(&v) ? -1 : v;
}

/* Returns 0 if all is right and no byte behind the structure changed. SIZE: of cudaDeviceProp; SMS:
 * offset of multiProcessorCount */
int properties(void)
{
	unsigned char out[SIZE + 64];
	int sms;

	memset(out, 0xa5, sizeof(out));
	if (cudaGetDeviceProperties(out, 0))
		return 1;
	memcpy(&sms, out + SMS, 4);
	if (sms != 108)
		return 2;
	for (size_t i = SIZE; i < sizeof(out); i++)
		if (out[i] != 0xa5)
			return 3;
	return 0;
}

/* trace.c - fuzz target: traces whose bytes are damaged anywhere. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	target_traces(data, bytes);
	return 0;
}

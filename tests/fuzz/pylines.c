/*
 * pylines.c - fuzz target: a Python code object's line table, asked for each instruction. Byte 0
 * says which of the three forms, bytes 1 to 4 the first line.
 */
#include "trace/pylines.h"
#include "target.h"

#define HEAD 5u
#define LOOKS 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const uint32_t versions[] = {0x308, 0x309, 0x30a, 0x30b, 0x30e};
	uint32_t version, first = 0;

	if (bytes < HEAD)
		return 0;
	version = versions[data[0] % (sizeof(versions) / sizeof(*versions))];
	for (size_t i = 1; i < HEAD; i++)
		first = first << 8 | data[i];
	for (int64_t offset = -1; offset < LOOKS; offset++)
		pylines_line(version, first, data + HEAD, bytes - HEAD, offset);
	pylines_line(version, first, data + HEAD, bytes - HEAD, INT64_MAX);
	return 0;
}

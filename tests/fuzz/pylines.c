/* pylines.c - fuzz target: a Python code object's line table, asked for each instruction. Byte 0
 * chooses one of the three forms, bytes 1 to 4 are the first line. Earlier reads must make no
 * difference. */
#include <stdlib.h>

#include "target.h"
#include "trace/symbols/pylines.h"

#define HEAD 5u
#define LOOKS 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const uint32_t versions[] = {0x308, 0x309, 0x30a, 0x30b, 0x30e};
	const uint8_t *table = data + HEAD;
	struct pylines marks = {0};
	uint32_t version, first = 0, lines[LOOKS];

	if (bytes < HEAD)
		return 0;
	version = versions[data[0] % (sizeof(versions) / sizeof(*versions))];
	for (size_t i = 1; i < HEAD; i++)
		first = first << 8 | data[i];
	bytes -= HEAD;
	for (uint32_t i = 0; i < LOOKS; i++)
		lines[i] = pylines_line(version, first, table, bytes, (int64_t)i - 1, NULL);
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint32_t at = i * 37 % LOOKS;

		if (pylines_line(version, first, table, bytes, (int64_t)at - 1, &marks) !=
		    lines[at])
			abort();
	}
	pylines_line(version, first, table, bytes, INT64_MAX, &marks);
	vec_free(&marks);
	return 0;
}

/* names.c - fuzz target: one symbol's name, from an ELF file or a trace, demangled and printed
 * in each way. */
#include <stdlib.h>
#include <string.h>

#include "report/text/style.h"
#include "target.h"
#include "trace/symbols/objfile.h"
#include "util/text/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct report_style style = {.columns = 60, .unicode = bytes % 2};
	char *name = malloc(bytes + 1), *readable, where[256];
	struct str out = {0};
	const char *shown;

	if (!name)
		abort();
	memcpy(name, data, bytes);
	name[bytes] = '\0';
	readable = objfile_demangle(name);
	shown = readable ? readable : name;
	style_function(&out, &style, shown);
	style_cell(&out, &style, shown, 30, true);
	style_place(&out, &style, shown, 20);
	style_wrap(&out, &style, 4, "%s", shown);
	style_where(where, sizeof(where), shown, 7, NULL);
	str_clear(&out);
	str_safe(&out, shown);
	for (size_t i = 0; i < out.length; i++)
		if ((unsigned char)out.text[i] < 0x20 || out.text[i] == 0x7f)
			abort(); /* it could steer a terminal */
	str_json(&out, shown);
	str_free(&out);
	free(readable);
	free(name);
	return 0;
}

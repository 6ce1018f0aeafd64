#include "util/text/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/memory.h"

int err_set(struct err *err, int code, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
		/* Say it once: one error may quote another. */
		if (code == -ENOMEM && !strstr(err->text, "--max-memory")) {
			size_t n = strlen(err->text);
			memory_words(err->text + n, sizeof(err->text) - n);
		}
	}
	return code;
}

/*
 * text.h - builds names and paths without libc. Text that does not fit is cut off.
 */
#ifndef SHIM_TEXT_H
#define SHIM_TEXT_H

#include <stdint.h>

/* Append at `p`, up to `end`. Both return the end of the text, at its NUL. */
static inline char *text_append(char *p, const char *end, const char *text)
{
	while (*text && p < end - 1)
		*p++ = *text++;
	*p = 0;
	return p;
}

static inline char *text_append_number(char *p, const char *end, uint64_t n)
{
	char digits[21];
	int i = 20;

	digits[i] = 0;
	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	return text_append(p, end, digits + i);
}

#endif

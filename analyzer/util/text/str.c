#include "util/text/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool str_room(struct str *s, size_t more)
{
	size_t need = s->length + more + 1, cap = s->capacity ? s->capacity : 64;
	char *grown;

	if (s->failed)
		return false;
	if (need <= s->capacity)
		return true;
	while (cap < need && cap <= PTRDIFF_MAX / 4)
		cap *= 2;
	grown = cap >= need && need > more ? realloc(s->text, cap) : NULL;
	if (!grown) {
		s->failed = true;
		return false;
	}
	s->text = grown;
	s->capacity = cap;
	return true;
}

void str_add(struct str *s, const char *text, size_t bytes)
{
	if (!str_room(s, bytes))
		return;
	if (bytes)
		memcpy(s->text + s->length, text, bytes);
	s->length += bytes;
	s->text[s->length] = 0;
}

void str_puts(struct str *s, const char *text)
{
	str_add(s, text, strlen(text));
}

void str_putc(struct str *s, char c)
{
	str_add(s, &c, 1);
}

void str_u64(struct str *s, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	str_add(s, digits + at, sizeof(digits) - at);
}

void str_fixed(struct str *s, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		str_putc(s, (char)(value >> 8 * i));
}

void str_vprintf(struct str *s, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (n < 0 || !str_room(s, (size_t)n)) {
		s->failed = true;
		return;
	}
	vsnprintf(s->text + s->length, (size_t)n + 1, format, args);
	s->length += (size_t)n;
}

void str_printf(struct str *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	str_vprintf(s, format, args);
	va_end(args);
}

void str_fit(const char *text, char *out, size_t room)
{
	size_t bytes = 0, n;

	while (text && text[bytes]) {
		n = str_utf8(text + bytes);
		n = n ? n : 1;
		if (bytes + n >= room)
			break;
		bytes += n;
	}
	if (bytes)
		memcpy(out, text, bytes);
	out[bytes] = '\0';
}

size_t str_utf8(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n;
	unsigned long code;

	if (p[0] < 0x80)
		return p[0] != 0;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	code = p[0] & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	/* overlong forms, surrogates, beyond Unicode */
	if ((n == 3 && code < 0x800) || (n == 4 && (code < 0x10000 || code > 0x10ffff)) ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

unsigned long str_code(const char *text, size_t n)
{
	unsigned long code = n < 2 ? (unsigned char)*text : (unsigned char)*text & 0x7fu >> n;

	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

/* True for code points that are invisible or disguise text: C1 controls, marks and overrides of the
 * writing direction, line separators, zero-width blanks, tags. */
static bool misleads(unsigned long code)
{
	static const struct {
		unsigned long first, last;
	} ranges[] = {{0x80, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x180e, 0x180e},
	    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
	    {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

	for (size_t i = 0; code >= 0x80 && i < sizeof(ranges) / sizeof(*ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

/* The length of the characters at `text` that JSON takes as they are, of one byte each. */
static size_t plain(const char *text)
{
	size_t n = 0;

	while (text[n] >= ' ' && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

void str_json(struct str *s, const char *text)
{
	str_putc(s, '"');
	for (const char *p = text; *p;) {
		unsigned char c = (unsigned char)*p;
		size_t n = plain(p);

		if (n) {
			str_add(s, p, n);
			p += n;
			continue;
		}
		n = str_utf8(p);
		if (n == 0) {
			str_puts(s, "\xef\xbf\xbd");
			p++;
		} else if (c == '"' || c == '\\') {
			str_putc(s, '\\');
			str_putc(s, *p++);
		} else if (c < 0x20 || c == 0x7f) {
			if (c == '\n')
				str_puts(s, "\\n");
			else if (c == '\t')
				str_puts(s, "\\t");
			else
				str_printf(s, "\\u%04x", c);
			p++;
		} else if (misleads(str_code(p, n))) {
			unsigned long code = str_code(p, n), high = code - 0x10000;

			if (code < 0x10000)
				str_printf(s, "\\u%04lx", code);
			else
				str_printf(s, "\\u%04lx\\u%04lx", 0xd800 + (high >> 10),
				    0xdc00 + (high & 0x3ff));
			p += n;
		} else {
			str_add(s, p, n);
			p += n;
		}
	}
	str_putc(s, '"');
}

void str_safe(struct str *s, const char *text)
{
	for (const char *p = text; *p;) {
		unsigned char c = (unsigned char)*p;
		size_t n = str_utf8(p);

		if (n == 0 || c < 0x20 || c == 0x7f) {
			str_printf(s, "\\x%02x", c);
			p++;
		} else if (misleads(str_code(p, n))) {
			str_printf(s, "\\u%04lx", str_code(p, n));
			p += n;
		} else {
			str_add(s, p, n);
			p += n;
		}
	}
}

void str_valid(struct str *s, const char *text)
{
	for (size_t n; text && *text; text += n ? n : 1) {
		for (n = 0; text[n] > 0;) /* ASCII: nearly all of it */
			n++;
		n = n ? n : str_utf8(text);
		if (n)
			str_add(s, text, n);
		else
			str_puts(s, "\xef\xbf\xbd");
	}
}

void str_clear(struct str *s)
{
	s->length = 0;
	s->failed = false;
	if (s->text)
		s->text[0] = 0;
}

void str_free(struct str *s)
{
	free(s->text);
	*s = (struct str){0};
}

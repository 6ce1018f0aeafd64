/*
 * str.h - growing text, always NUL-terminated. Without memory it stops growing and sets `failed`,
 * which callers check once at the end.
 */
#ifndef ANALYZER_UTIL_STR_H
#define ANALYZER_UTIL_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	char *text; /* NULL while it is empty: see str_text() */
	size_t length, capacity;
	bool failed;
};

void str_add(struct str *s, const char *text, size_t bytes);
void str_puts(struct str *s, const char *text);
void str_putc(struct str *s, char c);
/* Append a number in decimal, several times faster than printf(). */
void str_u64(struct str *s, uint64_t value);
/* Append the lowest `bytes` bytes of a number, little-endian. */
void str_fixed(struct str *s, uint64_t value, unsigned bytes);
void str_vprintf(struct str *s, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void str_printf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append a JSON string with its quotes. Escapes control characters and characters that mislead the
 * eye (directions of writing, zero-width blanks); invalid UTF-8 becomes U+FFFD. */
void str_json(struct str *s, const char *text);
/* Append text for a terminal: control characters and invalid UTF-8 as \xNN, characters that
 * mislead the eye as \uNNNN, so that no input can control the terminal or disguise itself. */
void str_safe(struct str *s, const char *text);
/* Append the text with invalid UTF-8 as U+FFFD, and nothing else changed. NULL: nothing. */
void str_valid(struct str *s, const char *text);
void str_clear(struct str *s);
void str_free(struct str *s);

/* True: equal texts, or both NULL. */
static inline bool str_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Return the part of a path behind the last '/'; NULL: there is no path. */
static inline const char *str_base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Extend a hash by the text, or by nothing for NULL: FNV-1a. */
#define STR_HASH 1469598103934665603u /* to begin with */
static inline uint64_t str_hash(uint64_t hash, const char *text)
{
	for (const char *p = text ? text : ""; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	return hash;
}

static inline const char *str_text(const struct str *s)
{
	return s->text ? s->text : "";
}

/* The length of the valid UTF-8 sequence at `text`, in bytes; 0: none, or NUL. */
size_t str_utf8(const char *text);
/* Copy the text with a final NUL, as many whole characters as `room` bytes have room for; `room` is
 * 1 at least. NULL is "". */
void str_fit(const char *text, char *out, size_t room);
/* The code point of such a sequence of `n` bytes; of fewer than 2, the byte. */
unsigned long str_code(const char *text, size_t n);

#endif

/*
 * str.h - text that grows. Always NUL-terminated. When memory ran out the text stops growing and
 * `failed` is set, to be asked once at the end.
 */
#ifndef ANALYZER_UTIL_STR_H
#define ANALYZER_UTIL_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	char *text; /* NULL as long as it is empty: see str_text() */
	size_t length, capacity;
	bool failed;
};

void str_add(struct str *s, const char *text, size_t bytes);
void str_puts(struct str *s, const char *text);
void str_putc(struct str *s, char c);
/* A number's lowest bytes, little-endian. */
void str_fixed(struct str *s, uint64_t value, unsigned bytes);
void str_printf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As a JSON string with its quotes: control characters and what misleads the eye (directions of
 * writing, blanks without width) escaped, invalid UTF-8 as U+FFFD. */
void str_json(struct str *s, const char *text);
/* For a terminal: control characters and invalid UTF-8 as \xNN, what misleads the eye as \uNNNN, so
 * that no input can steer it or look like something else. */
void str_safe(struct str *s, const char *text);
void str_clear(struct str *s);
void str_free(struct str *s);
/* Hands the text over, to be freed by the caller; NULL when it failed. */
char *str_take(struct str *s);

/* The same words, or both NULL. */
static inline bool str_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static inline const char *str_text(const struct str *s)
{
	return s->text ? s->text : "";
}

/* Bytes of the valid UTF-8 sequence at `text`, 0 when there is none. Stops at NUL. */
size_t str_utf8(const char *text);

#endif

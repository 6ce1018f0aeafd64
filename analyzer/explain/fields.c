/* fields.c - see fields.h. */
#include "explain/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text/fmt.h"

static const struct {
	const char *suffix, *unit; /* the text after the number, for fmt_parse_size() */
} sizes[] = {
    {"_bytes", ""},
    {"_KiB", "KiB"},
    {"_kB", "KiB"},
    {"_MiB", "MiB"},
    {"_MB", "MiB"},
    {"_GiB", "GiB"},
    {"_GB", "GiB"},
    {"_pages", "pages"},
};

#define PAGE 4096u

static int push(struct fields *fields, struct field field)
{
	return vec_push(&fields->list, field);
}

/* Returns the name with `to` in place of its suffix; NULL: no memory. */
static const char *renamed(struct arena *arena, const char *name, size_t bytes, const char *suffix)
{
	size_t more = strlen(suffix);
	char *out = arena_alloc(arena, bytes + more + 1);

	if (out) {
		memcpy(out, name, bytes);
		memcpy(out + bytes, suffix, more + 1);
	}
	return out;
}

static bool ends_in(const char *name, const char *suffix, size_t *stem)
{
	size_t have = strlen(name), want = strlen(suffix);

	if (have <= want || strcmp(name + have - want, suffix) != 0)
		return false;
	*stem = have - want;
	return true;
}

/* "46,5 GiB": a comma before one or two digits is that of a fraction; "1,53,70,112" has groups. */
static bool is_decimal_comma(const struct pattern_group *g, size_t i)
{
	size_t end = i + 1;

	while (end < g->bytes && g->text[end] >= '0' && g->text[end] <= '9')
		end++;
	return g->text[i] == ',' && (end == i + 2 || end == i + 3) &&
	       memchr(g->text, ',', g->bytes) == g->text + i &&
	       !memchr(g->text + i + 1, ',', g->bytes - i - 1);
}

/* Turns "1,234 bytes", "46,5 GiB" and "20.5MiB" into the form of fmt_parse_size(). */
static int parse_size(const struct pattern_group *g, const char *unit, uint64_t *bytes)
{
	char plain[64];
	size_t n = 0;

	for (size_t i = 0; i < g->bytes && n < sizeof(plain) - 8; i++)
		if (g->text[i] != ',' || is_decimal_comma(g, i))
			plain[n++] = g->text[i] == ',' ? '.' : g->text[i];
	plain[n] = '\0';
	if (plain[0] == '0' && plain[1] == 'x') {
		char *end;

		errno = 0;
		*bytes = strtoull(plain, &end, 16);
		return errno || *end ? -EINVAL : 0;
	}
	if (strcmp(unit, "pages") == 0)
		return fmt_parse_size(plain, bytes) || __builtin_mul_overflow(*bytes, PAGE, bytes);
	if (strspn(plain, "0123456789.") == n)
		memcpy(plain + n, unit, strlen(unit) + 1);
	else if (n >= 4 && strcmp(plain + n - 4, "byte") == 0)
		plain[n - 4] = '\0';
	else if (n >= 5 && strcmp(plain + n - 5, "bytes") == 0)
		plain[n - 5] = '\0';
	return fmt_parse_size(plain, bytes);
}

static int add_number(
    struct fields *fields, const char *name, const struct pattern_group *g, bool integer)
{
	struct field f = {.name = name, .type = integer ? FIELD_INTEGER : FIELD_REAL};
	char plain[64], *end;
	size_t n = 0;

	for (size_t i = 0; i < g->bytes && n < sizeof(plain) - 1; i++)
		if (g->text[i] != ',')
			plain[n++] = g->text[i];
	plain[n] = '\0';
	errno = 0;
	if (integer)
		f.integer = strtoll(plain, &end, 10);
	else
		f.real = strtod(plain, &end);
	if (errno || end == plain || *end)
		return 1;
	return push(fields, f);
}

/* 0; 1: the text is not such a number; -ENOMEM. */
static int add_typed(struct fields *fields, const struct pattern_group *g, struct arena *arena)
{
	struct field f = {.type = FIELD_BYTES};
	size_t stem;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (ends_in(g->name, sizes[i].suffix, &stem)) {
			if (parse_size(g, sizes[i].unit, &f.bytes))
				return 1;
			f.name = renamed(arena, g->name, stem, "_bytes");
			return f.name ? push(fields, f) : -ENOMEM;
		}
	if (ends_in(g->name, "_n", &stem) || ends_in(g->name, "_x", &stem)) {
		f.name = renamed(arena, g->name, stem, "");
		return f.name ? add_number(fields, f.name, g, g->name[stem + 1] == 'n') : -ENOMEM;
	}
	return 1;
}

int fields_of_match(struct fields *fields, const struct pattern_match *match, struct arena *arena)
{
	for (size_t i = 0; i < match->group_count; i++) {
		const struct pattern_group *g = &match->groups[i];
		int rc = g->bytes ? add_typed(fields, g, arena) : 0;

		if (rc > 0)
			rc = fields_add_text(fields, g->name, g->text, g->bytes, arena);
		if (rc)
			return rc;
	}
	return 0;
}

int fields_add_bytes(struct fields *fields, const char *name, uint64_t bytes)
{
	return push(fields, (struct field){.name = name, .type = FIELD_BYTES, .bytes = bytes});
}

int fields_add_integer(struct fields *fields, const char *name, int64_t value)
{
	return push(fields, (struct field){.name = name, .type = FIELD_INTEGER, .integer = value});
}

int fields_add_text(
    struct fields *fields, const char *name, const char *text, size_t bytes, struct arena *arena)
{
	struct field f = {.type = FIELD_TEXT};

	f.name = arena_copy(arena, name, strlen(name));
	f.text = arena_copy(arena, text, bytes);
	return f.name && f.text ? push(fields, f) : -ENOMEM;
}

struct field_rows *fields_add_rows(struct fields *fields, const char *name, struct arena *arena)
{
	struct field f = {.name = name, .type = FIELD_LIST};

	f.rows = arena_alloc(arena, sizeof(*f.rows));
	return f.rows && !push(fields, f) ? f.rows : NULL;
}

const struct field *fields_find(const struct fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->list.count; i++)
		if (strcmp(fields->list.items[i].name, name) == 0)
			return &fields->list.items[i];
	return NULL;
}

bool fields_bytes(const struct fields *fields, const char *name, uint64_t *bytes)
{
	const struct field *f = fields_find(fields, name);

	if (!f || f->type != FIELD_BYTES)
		return false;
	*bytes = f->bytes;
	return true;
}

void fields_free(struct fields *fields)
{
	for (size_t i = 0; i < fields->list.count; i++) {
		struct field *f = &fields->list.items[i];

		if (f->type != FIELD_LIST)
			continue;
		for (size_t row = 0; row < f->rows->count; row++)
			fields_free(&f->rows->items[row]);
		vec_free(f->rows);
	}
	vec_free(&fields->list);
}

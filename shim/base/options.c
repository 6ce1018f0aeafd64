/*
 * options.c - reads the WHYOOM_* variables by the table in include/whyoom/options.def. Calls no
 * function of libc that could allocate or depends on the locale.
 */
#include "base/options.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

struct options options;

enum option_type { TYPE_FLAG, TYPE_SIZE, TYPE_TEXT, TYPE_CHOICE };

static const struct option_row {
	const char *name; /* as in the table */
	enum option_type type;
	unsigned place;
	const char *fallback, *choices;
} option_rows[] = {
#define OPTION(name, TYPE, fallback, help)                                                         \
	{#name, TYPE_##TYPE, offsetof(struct options, name), fallback, NULL},
#define OPTION_CHOICE(name, fallback, choices, help)                                               \
	{#name, TYPE_CHOICE, offsetof(struct options, name), fallback, choices},
#include "whyoom/options.def"
#undef OPTION
#undef OPTION_CHOICE
};

static const struct size_row {
	unsigned place;
	const char *smallest, *largest;
} size_rows[] = {
#define OPTION_SIZE(name, smallest, largest) {offsetof(struct options, name), smallest, largest},
#include "whyoom/option_sizes.def"
#undef OPTION_SIZE
};

#define ROWS (sizeof(option_rows) / sizeof(option_rows[0]))

const char *options_variable(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, n) && (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

static void variable_name(const struct option_row *row, char out[40])
{
	char *p = out + 7;

	memcpy(out, "WHYOOM_", 7);
	for (const char *s = row->name; *s && p < out + 39; s++)
		*p++ = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
	*p = 0;
}

bool options_parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	uint64_t value = 0, scale = 1;
	const char *s = text;

	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
			return false;
	if (s == text)
		return false;
	if (*s) {
		const char *unit = strchr(units, *s & ~0x20);

		if (unit && *unit) {
			scale = 1ull << (10 * (unit - units + 1));
			s++;
			if (*s == 'i')
				s++;
		}
		if (*s == 'B' || *s == 'b')
			s++;
		if (*s)
			return false;
	}
	return !__builtin_mul_overflow(value, scale, out);
}

static bool is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	for (const char *c = choices; n; c++) {
		const char *end = strchr(c, '|');

		if (!strncmp(c, value, n) && (end ? end == c + n : !c[n]))
			return true;
		if (!end)
			return false;
		c = end;
	}
	return false;
}

/* The bounds of an option of type SIZE; NULL: none. */
static const struct size_row *size_row(unsigned place)
{
	for (size_t i = 0; i < sizeof(size_rows) / sizeof(size_rows[0]); i++)
		if (size_rows[i].place == place)
			return &size_rows[i];
	return NULL;
}

static bool set_size(unsigned place, const char *value)
{
	const struct size_row *row = size_row(place);
	uint64_t size, smallest, largest;

	if (!options_parse_size(value, &size))
		return false;
	if (row && options_parse_size(row->smallest, &smallest) &&
	    options_parse_size(row->largest, &largest) && (size < smallest || size > largest))
		return false;
	*(uint64_t *)((char *)&options + place) = size;
	return true;
}

static bool option_set(const struct option_row *row, const char *value)
{
	void *place = (char *)&options + row->place;

	switch (row->type) {
	case TYPE_FLAG:
		if ((value[0] != '0' && value[0] != '1') || value[1])
			return false;
		*(bool *)place = value[0] == '1';
		return true;
	case TYPE_SIZE:
		return set_size(row->place, value);
	case TYPE_CHOICE:
		if (!is_choice(row->choices, value))
			return false;
		*(const char **)place = value;
		return true;
	case TYPE_TEXT:
		*(const char **)place = value;
		return true;
	}
	return false;
}

/* "0 or 1", "a size from 1MiB to 16TiB". */
static char *append_wanted(char *p, const char *end, const struct option_row *row)
{
	const struct size_row *bounds = row->type == TYPE_SIZE ? size_row(row->place) : NULL;

	p = text_append(p, end,
	    row->type == TYPE_FLAG   ? "0 or 1"
	    : row->type == TYPE_SIZE ? "a size"
				     : row->choices);
	if (bounds) {
		p = text_append(text_append(p, end, " from "), end, bounds->smallest);
		p = text_append(text_append(p, end, " to "), end, bounds->largest);
	}
	return p;
}

void options_read(char *const *environment, void (*complain)(const char *line))
{
	char name[40], line[200], *p;
	const char *end = line + sizeof(line);

	for (size_t i = 0; i < ROWS; i++) {
		const char *value;

		option_set(&option_rows[i], option_rows[i].fallback);
		variable_name(&option_rows[i], name);
		value = options_variable(environment, name);
		if (!value || !*value || option_set(&option_rows[i], value))
			continue;
		p = text_append(text_append(line, end, name), end, "=");
		p = text_append(text_append(p, end - 100, value), end, " is not ");
		p = text_append(append_wanted(p, end, &option_rows[i]), end, "; using ");
		text_append(p, end, option_rows[i].fallback);
		complain(line);
	}
}

void options_text(char *const *environment, char *out, unsigned size)
{
	char *p = out;

	*p = 0;
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, "WHYOOM_", 7))
			p = text_append(text_append(p, out + size, p > out ? " " : ""), out + size,
			    *environment);
}

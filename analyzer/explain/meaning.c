/* meaning.c - see meaning.h. */
#include "explain/meaning.h"

#include <string.h>

#include "util/text/fmt.h"

static void write_value(struct str *out, const struct field *f, bool plain)
{
	struct fmt fmt;

	switch (f->type) {
	case FIELD_BYTES:
		str_puts(out, fmt_size(&fmt, f->bytes));
		break;
	case FIELD_INTEGER:
		if (f->integer >= 0 && !plain)
			str_puts(out, fmt_count(&fmt, (uint64_t)f->integer));
		else
			str_printf(out, "%lld", (long long)f->integer);
		break;
	case FIELD_REAL:
		str_printf(out, "%g", f->real);
		break;
	case FIELD_TEXT:
		str_puts(out, f->text);
		break;
	case FIELD_LIST:
		str_printf(out, "%zu", f->rows->count);
		break;
	}
}

/* Writes the field's value at '{'. Returns the text after '}'. */
static const char *write_field(
    struct str *out, const char *text, const struct fields *fields, bool *missing)
{
	bool plain = text[1] == '=';
	size_t bytes;
	const struct field *f;
	char name[64];

	text += plain;
	bytes = strcspn(text + 1, "}");
	if (text[1 + bytes] != '}' || bytes >= sizeof(name)) {
		str_putc(out, '{');
		return text + 1;
	}
	memcpy(name, text + 1, bytes);
	name[bytes] = '\0';
	f = fields_find(fields, name);
	if (f)
		write_value(out, f, plain);
	else
		str_putc(out, '?');
	*missing |= !f;
	return text + bytes + 2;
}

void meaning_write(struct str *out, const char *text, const struct fields *fields)
{
	size_t optional = 0; /* start of the optional part */
	bool inside = false, missing = false;

	while (*text) {
		if (!strncmp(text, "[[", 2)) {
			inside = true;
			missing = false;
			optional = out->length;
			text += 2;
		} else if (inside && !strncmp(text, "]]", 2)) {
			inside = false;
			if (missing && out->text && !out->failed) {
				out->length = optional;
				out->text[optional] = '\0';
			}
			text += 2;
		} else if (*text == '{') {
			text = write_field(out, text, fields, &missing);
		} else {
			str_putc(out, *text++);
		}
	}
}

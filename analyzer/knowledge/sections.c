#include "knowledge/sections.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/text/str.h"

struct reading {
	struct sections *out;
	struct arena *arena;
	struct str *value; /* of the current key */
	const char *key;
	unsigned key_line, line;
	struct err *err;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static const char *trimmed(const char *text, size_t *bytes)
{
	while (*bytes && blank(*text)) {
		text++;
		(*bytes)--;
	}
	while (*bytes && blank(text[*bytes - 1]))
		(*bytes)--;
	return text;
}

static int bad(const struct reading *r, const char *what)
{
	return err_set(r->err, -EINVAL, "%s:%u: %s", r->out->path, r->line, what);
}

static int no_memory(const struct reading *r)
{
	return err_set(r->err, -ENOMEM, "%s: no memory to read it", r->out->path);
}

/* True if blanks between a key's lines are part of its value. */
static bool verbatim(const char *key)
{
	return strcmp(key, "pattern") == 0 || strcmp(key, "each") == 0;
}

static int finish_key(struct reading *r)
{
	struct section *section = &r->out->list.items[r->out->list.count - 1];
	struct section_line line = {.key = r->key, .line = r->key_line};

	if (!r->key)
		return 0;
	line.value = arena_copy(r->arena, str_text(r->value), r->value->length);
	r->key = NULL;
	if (r->value->failed || !line.value || vec_push(&section->lines, line))
		return no_memory(r);
	return 0;
}

static int begin_section(struct reading *r, const char *text, size_t bytes)
{
	struct section section = {.line = r->line};
	const char *space;
	size_t kind;

	if (bytes < 3 || text[bytes - 1] != ']')
		return bad(r, "a section's header is [KIND] or [KIND NAME]");
	text++;
	bytes -= 2;
	text = trimmed(text, &bytes);
	space = memchr(text, ' ', bytes);
	kind = space ? (size_t)(space - text) : bytes;
	section.kind = arena_copy(r->arena, text, kind);
	text += kind;
	bytes -= kind;
	text = trimmed(text, &bytes);
	section.name = arena_copy(r->arena, text, bytes);
	if (!section.kind || !section.name || vec_push(&r->out->list, section))
		return no_memory(r);
	return 0;
}

static int begin_key(struct reading *r, const char *text, size_t bytes)
{
	const char *equals = memchr(text, '=', bytes), *value;
	size_t key_bytes, value_bytes;

	if (!equals)
		return bad(r, "neither [SECTION], key = value, nor a comment");
	key_bytes = (size_t)(equals - text);
	text = trimmed(text, &key_bytes);
	if (!key_bytes)
		return bad(r, "no key before '='");
	r->key = arena_copy(r->arena, text, key_bytes);
	r->key_line = r->line;
	value = equals + 1;
	value_bytes = bytes - (size_t)(value - text);
	value = trimmed(value, &value_bytes);
	str_clear(r->value);
	str_add(r->value, value, value_bytes);
	return r->key ? 0 : no_memory(r);
}

static int one_line(struct reading *r, const char *text, size_t bytes)
{
	bool goes_on = bytes && blank(*text);
	const char *word = trimmed(text, &bytes);
	int rc;

	if (!bytes || *word == '#')
		return 0;
	if (goes_on) {
		if (!r->key)
			return bad(r, "begins with a blank, but there is no value to go on with");
		if (r->value->length && !verbatim(r->key))
			str_putc(r->value, ' ');
		str_add(r->value, word, bytes);
		return 0;
	}
	rc = finish_key(r);
	if (rc)
		return rc;
	return *word == '[' ? begin_section(r, word, bytes) : begin_key(r, word, bytes);
}

int sections_parse(struct sections *out, const char *path, const char *text, size_t bytes,
    struct arena *arena, struct err *err)
{
	struct str value = {0};
	struct reading r = {.out = out, .arena = arena, .value = &value, .err = err};
	struct section first = {.kind = "", .name = "", .line = 1};
	int rc = 0;

	*out = (struct sections){.path = arena_copy(arena, path, strlen(path))};
	if (!out->path || vec_push(&out->list, first))
		rc = err_set(err, -ENOMEM, "%s: no memory to read it", path);
	else if (memchr(text, '\0', bytes))
		rc = err_set(err, -EINVAL, "%s: holds NUL bytes, so it is no text", path);
	while (!rc && bytes) {
		const char *end = memchr(text, '\n', bytes);
		size_t length = end ? (size_t)(end - text) : bytes;

		r.line++;
		rc = one_line(&r, text, length);
		length += end != NULL;
		text += length;
		bytes -= length;
	}
	if (!rc)
		rc = finish_key(&r);
	str_free(&value);
	if (rc)
		sections_free(out);
	return rc;
}

int sections_read(struct sections *out, const char *path, struct arena *arena, struct err *err)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t bytes;
	int rc;

	if (!in)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	text = malloc(SECTIONS_FILE_MAX + 1);
	bytes = text ? fread(text, 1, SECTIONS_FILE_MAX + 1, in) : 0;
	if (!text)
		rc = err_set(err, -ENOMEM, "%s: no memory to read it", path);
	else if (ferror(in))
		rc = err_set(err, -EIO, "%s: cannot be read", path);
	else if (bytes > SECTIONS_FILE_MAX)
		rc = err_set(err, -EFBIG, "%s: longer than a knowledge file may be", path);
	else
		rc = sections_parse(out, path, text, bytes, arena, err);
	free(text);
	fclose(in);
	return rc;
}

void sections_free(struct sections *sections)
{
	for (size_t i = 0; i < sections->list.count; i++)
		vec_free(&sections->list.items[i].lines);
	vec_free(&sections->list);
}

#include "util/text/json.h"

#include <math.h>

static void indent(struct json *j)
{
	if (!j->pretty)
		return;
	str_putc(j->out, '\n');
	for (unsigned i = 0; i < j->depth; i++)
		str_puts(j->out, "  ");
}

static void begin(struct json *j, const char *key)
{
	uint64_t bit = 1ull << (j->depth & 63);

	if (j->filled & bit)
		str_puts(j->out, j->pretty ? "," : ", ");
	j->filled |= bit;
	if (j->depth)
		indent(j);
	if (key) {
		str_json(j->out, key);
		str_puts(j->out, ": ");
	}
}

static void open_level(struct json *j, const char *key, char c)
{
	begin(j, key);
	str_putc(j->out, c);
	j->depth++;
	j->filled &= ~(1ull << (j->depth & 63));
}

static void close_level(struct json *j, char c)
{
	bool filled = j->filled & 1ull << (j->depth & 63);

	j->depth--;
	if (filled)
		indent(j);
	str_putc(j->out, c);
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	if (value)
		str_json(j->out, value);
	else
		str_puts(j->out, "null");
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	str_u64(j->out, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	begin(j, key);
	str_printf(j->out, "%lld", (long long)value);
}

void json_real(struct json *j, const char *key, double value, int decimals)
{
	begin(j, key);
	if (isfinite(value))
		str_printf(j->out, "%.*f", decimals, value);
	else
		str_puts(j->out, "null");
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	str_puts(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	str_puts(j->out, "null");
}

void json_u64_or_null(struct json *j, const char *key, uint64_t value, bool known)
{
	if (known)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

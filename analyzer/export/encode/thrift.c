/* thrift.c - see thrift.h. Rules: apache/thrift doc/specs/thrift-compact-protocol.md. */
#include "export/encode/thrift.h"

#include <assert.h>

#define SHORT_STEP 15u /* field ids this far apart fit into the header */

static void varint(struct str *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		str_putc(out, (char)(value | 0x80));
	str_putc(out, (char)value);
}

/* Small numbers of either sign become small ones. */
static void zigzag(struct str *out, int64_t value)
{
	varint(out, (uint64_t)value << 1 ^ (uint64_t)(value < 0 ? -1 : 0));
}

static void field_header(struct thrift *t, unsigned field, enum thrift_type type)
{
	assert(field > t->last && field - t->last <= SHORT_STEP);
	str_putc(t->out, (char)((field - t->last) << 4 | (unsigned)type));
	t->last = field;
}

struct thrift thrift_item(struct str *out)
{
	return (struct thrift){.out = out};
}

struct thrift thrift_struct(struct thrift *in, unsigned field)
{
	field_header(in, field, THRIFT_STRUCT);
	return thrift_item(in->out);
}

void thrift_end(struct thrift *t)
{
	str_putc(t->out, 0);
}

void thrift_i32(struct thrift *t, unsigned field, int32_t value)
{
	field_header(t, field, THRIFT_I32);
	zigzag(t->out, value);
}

void thrift_i64(struct thrift *t, unsigned field, int64_t value)
{
	field_header(t, field, THRIFT_I64);
	zigzag(t->out, value);
}

void thrift_item_i32(struct thrift *t, int32_t value)
{
	zigzag(t->out, value);
}

void thrift_item_text(struct thrift *t, const char *text)
{
	struct str valid = {0};

	str_valid(&valid, text);
	varint(t->out, valid.length);
	str_add(t->out, str_text(&valid), valid.length);
	t->out->failed |= valid.failed;
	str_free(&valid);
}

void thrift_text(struct thrift *t, unsigned field, const char *text)
{
	field_header(t, field, THRIFT_BINARY);
	thrift_item_text(t, text);
}

void thrift_list(struct thrift *t, unsigned field, enum thrift_type type, size_t count)
{
	field_header(t, field, THRIFT_LIST);
	if (count < SHORT_STEP) {
		str_putc(t->out, (char)(count << 4 | (unsigned)type));
		return;
	}
	str_putc(t->out, (char)(0xf0 | (unsigned)type));
	varint(t->out, count);
}

/* proto.c - see proto.h. */
#include "export/encode/proto.h"

#include <assert.h>
#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };
#define VARINT_MAX 10u

static size_t encode(unsigned char *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (unsigned char)(value | 0x80);
	to[n++] = (unsigned char)value;
	return n;
}

void proto_varint(struct proto *p, uint64_t value)
{
	unsigned char bytes[VARINT_MAX];

	str_add(&p->text, (char *)bytes, encode(bytes, value));
}

static void tag(struct proto *p, uint32_t field, enum wire wire)
{
	proto_varint(p, (uint64_t)field << 3 | wire);
}

void proto_u64(struct proto *p, uint32_t field, uint64_t value)
{
	tag(p, field, WIRE_VARINT);
	proto_varint(p, value);
}

void proto_fixed64(struct proto *p, uint32_t field, uint64_t value)
{
	tag(p, field, WIRE_FIXED64);
	str_fixed(&p->text, value, 8);
}

void proto_double(struct proto *p, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	proto_fixed64(p, field, bits);
}

void proto_bytes(struct proto *p, uint32_t field, const void *data, size_t bytes)
{
	tag(p, field, WIRE_LENGTH);
	proto_varint(p, bytes);
	str_add(&p->text, data, bytes);
}

void proto_text(struct proto *p, uint32_t field, const char *text)
{
	proto_begin(p, field);
	str_valid(&p->text, text);
	proto_end(p);
}

void proto_begin(struct proto *p, uint32_t field)
{
	assert(p->depth < PROTO_DEPTH);
	tag(p, field, WIRE_LENGTH);
	p->begins[p->depth++] = p->text.length;
}

void proto_end(struct proto *p)
{
	size_t begin, length, n;
	unsigned char bytes[VARINT_MAX];

	assert(p->depth);
	begin = p->begins[--p->depth];
	if (p->text.failed)
		return;
	length = p->text.length - begin;
	n = encode(bytes, length);
	/* Makes room at the end first, then moves the part behind its length. */
	str_add(&p->text, (char *)bytes, n);
	if (p->text.failed)
		return;
	memmove(p->text.text + begin + n, p->text.text + begin, length);
	memcpy(p->text.text + begin, bytes, n);
}

void proto_free(struct proto *p)
{
	str_free(&p->text);
}

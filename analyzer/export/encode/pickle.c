/* pickle.c - see pickle.h. Opcodes: CPython's Lib/pickletools.py. */
#include "export/encode/pickle.h"

enum {
	OP_PROTO = 0x80,
	OP_STOP = '.',
	OP_MARK = '(',
	OP_TRUE = 0x88,
	OP_FALSE = 0x89,
	OP_INT4 = 'J', /* signed */
	OP_INT1 = 'K',
	OP_INT2 = 'M',
	OP_LONG = 0x8a,
	OP_FLOAT = 'G',
	OP_TEXT = 'X',
	OP_LIST = ']',
	OP_APPENDS = 'e',
	OP_DICT = '}',
	OP_SETITEM = 's',
	OP_SETITEMS = 'u',
	OP_TUPLE2 = 0x86,
	OP_PUT1 = 'q',
	OP_PUT4 = 'r',
	OP_GET1 = 'h',
	OP_GET4 = 'j',
};
#define PROTOCOL 2

static void op(struct str *p, int code)
{
	str_putc(p, (char)code);
}

void pickle_begin(struct str *p)
{
	op(p, OP_PROTO);
	op(p, PROTOCOL);
}

void pickle_end(struct str *p)
{
	op(p, OP_STOP);
}

void pickle_u64(struct str *p, uint64_t value)
{
	unsigned bytes = 1;

	if (value <= UINT8_MAX) {
		op(p, OP_INT1);
	} else if (value <= UINT16_MAX) {
		op(p, OP_INT2);
		bytes = 2;
	} else if (value <= INT32_MAX) {
		op(p, OP_INT4);
		bytes = 4;
	} else {
		/* Its topmost bit is the sign. */
		while (bytes < 8 && value >> (8 * bytes - 1))
			bytes++;
		op(p, OP_LONG);
		op(p, (int)bytes);
	}
	str_fixed(p, value, bytes);
}

void pickle_minus_one(struct str *p)
{
	op(p, OP_INT4);
	str_fixed(p, UINT32_MAX, 4);
}

void pickle_real(struct str *p, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	op(p, OP_FLOAT);
	str_fixed(p, __builtin_bswap64(bits), 8);
}

void pickle_bool(struct str *p, bool value)
{
	op(p, value ? OP_TRUE : OP_FALSE);
}

void pickle_text(struct str *p, const char *text)
{
	struct str valid = {0};

	str_valid(&valid, text);
	op(p, OP_TEXT);
	str_fixed(p, valid.length, 4);
	str_add(p, str_text(&valid), valid.length);
	p->failed |= valid.failed;
	str_free(&valid);
}

void pickle_name(struct str *p, uint32_t number)
{
	op(p, number <= UINT8_MAX ? OP_PUT1 : OP_PUT4);
	str_fixed(p, number, number <= UINT8_MAX ? 1 : 4);
}

void pickle_again(struct str *p, uint32_t number)
{
	op(p, number <= UINT8_MAX ? OP_GET1 : OP_GET4);
	str_fixed(p, number, number <= UINT8_MAX ? 1 : 4);
}

void pickle_dict(struct str *p)
{
	op(p, OP_DICT);
	op(p, OP_MARK);
}

void pickle_dict_end(struct str *p)
{
	op(p, OP_SETITEMS);
}

void pickle_empty_dict(struct str *p)
{
	op(p, OP_DICT);
}

void pickle_set(struct str *p)
{
	op(p, OP_SETITEM);
}

void pickle_pair(struct str *p)
{
	op(p, OP_TUPLE2);
}

void pickle_empty_list(struct str *p)
{
	op(p, OP_LIST);
}

void pickle_list(struct str *p, struct pickle_list *list)
{
	list->items = 0;
	op(p, OP_MARK);
}

void pickle_list_next(struct str *p, struct pickle_list *list)
{
	if (list->items++ < PICKLE_PART)
		return;
	op(p, OP_APPENDS);
	op(p, OP_MARK);
	list->items = 1;
}

void pickle_list_end(struct str *p, struct pickle_list *list)
{
	list->items = 0;
	op(p, OP_APPENDS);
}

/* block.c - see block.h. */
#include "report/html/block.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void block_number(struct str *to, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		str_putc(to, (char)(value | 128));
	str_putc(to, (char)value);
}

void block_signed(struct str *to, int64_t value)
{
	block_number(to, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

void block_next(struct block_column *column, uint64_t value)
{
	block_signed(column->to, (int64_t)(value - column->before));
	column->before = value;
}

void block_texts_fini(struct block_texts *texts)
{
	intern_free(&texts->table);
	str_free(&texts->written);
}

/* Writes a new text: how much of the one before it begins with, and the rest. */
static void write_text(struct block_texts *texts, const char *text)
{
	const char *last = intern_text(&texts->table, texts->count); /* NULL: it is the first */
	size_t same = 0, bytes = strlen(text);

	while (last && same < bytes && last[same] == text[same])
		same++;
	block_number(&texts->written, same);
	block_number(&texts->written, bytes - same);
	str_add(&texts->written, text + same, bytes - same);
	texts->count++;
}

uint32_t block_text_id(struct block_texts *texts, const char *text)
{
	struct str safe = {0};
	uint32_t id = 0;

	if (!text)
		return 0;
	str_safe(&safe, text);
	if (!safe.failed)
		id = intern_add(&texts->table, str_text(&safe), safe.length);
	texts->failed |= !id;
	if (id > texts->count)
		write_text(texts, str_text(&safe));
	str_free(&safe);
	return id;
}

void block_text(struct block_texts *texts, struct str *to, const char *text)
{
	block_number(to, block_text_id(texts, text));
}

void block_texts_write(const struct block_texts *texts, struct str *to)
{
	block_number(to, texts->count);
	str_add(to, str_text(&texts->written), texts->written.length);
	to->failed |= texts->written.failed || texts->failed;
}

void block_section(struct str *block, enum block_section section, const struct str *body)
{
	block_number(block, section);
	block_number(block, body->length);
	str_add(block, str_text(body), body->length);
	block->failed |= body->failed;
}

static void base64(const unsigned char *data, size_t bytes, struct str *out)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes; i += 3) {
		unsigned long three = (unsigned long)data[i] << 16 |
				      (i + 1 < bytes ? (unsigned long)data[i + 1] << 8 : 0) |
				      (i + 2 < bytes ? data[i + 2] : 0);
		char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
		    digits[three >> 6 & 63], digits[three & 63]};

		if (i + 2 >= bytes)
			four[3] = '=';
		if (i + 1 >= bytes)
			four[2] = '=';
		str_add(out, four, sizeof(four));
	}
}

void block_pack(const struct str *block, struct str *out)
{
	z_stream z = {.next_in = (unsigned char *)str_text(block), .avail_in = (uInt)block->length};
	unsigned char *packed = NULL;
	size_t room;

	/* 16 more than the window's size: a gzip file. */
	if (block->failed || block->length > UINT32_MAX ||
	    deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY)) {
		out->failed = true;
		return;
	}
	room = deflateBound(&z, block->length);
	packed = malloc(room);
	z.next_out = packed;
	z.avail_out = (uInt)room;
	if (packed && deflate(&z, Z_FINISH) == Z_STREAM_END)
		base64(packed, z.total_out, out);
	else
		out->failed = true;
	deflateEnd(&z);
	free(packed);
}

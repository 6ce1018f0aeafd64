/* parquet_file.c - see parquet_file.h. Layout: apache/parquet-format, parquet.thrift. */
#include "export/encode/parquet_file.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <zstd.h>

#include "export/encode/thrift.h"

#define MAGIC "PAR1"
#define PAGE_BYTES (1u << 20) /* what readers expect a page to be */
#define GROUP_BYTES (8u << 20) /* compressed: what is held in memory */
#define GROUP_ROWS (1u << 20)
#define LEVEL 1 /* of zstd: columns repeat themselves so much that more gains little */

enum { TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };
enum { CONVERTED_UTF8 = 0, CONVERTED_UINT_64 = 14 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3 };
enum { CODEC_ZSTD = 6, PAGE_DATA = 0, REQUIRED = 0, FORMAT = 2 };

int parquet_begin(
    struct parquet_file *f, const struct parquet_column *columns, size_t count, struct sink *out)
{
	assert(count <= PARQUET_COLUMNS);
	*f = (struct parquet_file){.columns = columns, .column_count = count, .out = out};
	f->zstd = ZSTD_createCCtx();
	if (!f->zstd)
		return -ENOMEM;
	sink_puts(out, MAGIC);
	return 0;
}

static void fail(struct parquet_file *f)
{
	if (!f->out->failed)
		f->out->failed = -ENOMEM;
}

static void put_header(struct str *out, size_t raw, size_t packed, uint64_t values)
{
	struct thrift page = thrift_item(out), data;

	thrift_i32(&page, 1, PAGE_DATA);
	thrift_i32(&page, 2, (int32_t)raw);
	thrift_i32(&page, 3, (int32_t)packed);
	data = thrift_struct(&page, 5);
	thrift_i32(&data, 1, (int32_t)values);
	thrift_i32(&data, 2, ENCODING_PLAIN);
	thrift_i32(&data, 3, ENCODING_RLE);
	thrift_i32(&data, 4, ENCODING_RLE);
	thrift_end(&data);
	thrift_end(&page);
}

static void end_page(struct parquet_file *f, struct parquet_page *p)
{
	struct str packed = {0};
	size_t before, most = ZSTD_compressBound(p->raw.length), n;

	if (!p->page_values)
		return;
	/* Room first: the header needs the size. */
	for (size_t i = 0; i < most; i += 8)
		str_fixed(&packed, 0, 8);
	n = packed.failed ? (size_t)-ENOMEM
			  : ZSTD_compressCCtx(f->zstd, packed.text, packed.length,
				str_text(&p->raw), p->raw.length, LEVEL);
	if (packed.failed || p->raw.failed || ZSTD_isError(n)) {
		fail(f);
	} else {
		before = p->packed.length;
		put_header(&p->packed, p->raw.length, n, p->page_values);
		p->bytes += p->packed.length - before + p->raw.length;
		str_add(&p->packed, packed.text, n);
	}
	str_free(&packed);
	str_clear(&p->raw);
	p->page_values = 0;
}

static void describe_column(struct parquet_file *f, size_t number, uint64_t offset, struct str *out)
{
	const struct parquet_column *c = &f->columns[number];
	const struct parquet_page *p = &f->pages[number];
	struct thrift chunk = thrift_item(out), meta;

	thrift_i64(&chunk, 2, (int64_t)offset);
	meta = thrift_struct(&chunk, 3);
	thrift_i32(&meta, 1, c->type == PARQUET_TEXT ? TYPE_BYTE_ARRAY : TYPE_INT64);
	thrift_list(&meta, 2, THRIFT_I32, 1);
	thrift_item_i32(&meta, ENCODING_PLAIN);
	thrift_list(&meta, 3, THRIFT_BINARY, 1);
	thrift_item_text(&meta, c->name);
	thrift_i32(&meta, 4, CODEC_ZSTD);
	thrift_i64(&meta, 5, (int64_t)p->values);
	thrift_i64(&meta, 6, (int64_t)p->bytes);
	thrift_i64(&meta, 7, (int64_t)p->packed.length);
	thrift_i64(&meta, 9, (int64_t)offset);
	thrift_end(&meta);
	thrift_end(&chunk);
}

static void end_group(struct parquet_file *f)
{
	struct thrift group = thrift_item(&f->groups);
	uint64_t bytes = 0;

	if (!f->group_rows)
		return;
	thrift_list(&group, 1, THRIFT_STRUCT, f->column_count);
	for (size_t i = 0; i < f->column_count; i++) {
		struct parquet_page *p = &f->pages[i];

		end_page(f, p);
		describe_column(f, i, f->out->bytes, &f->groups);
		bytes += p->bytes;
		sink_str(f->out, &p->packed);
		p->values = p->bytes = 0;
	}
	thrift_i64(&group, 2, (int64_t)bytes);
	thrift_i64(&group, 3, (int64_t)f->group_rows);
	thrift_end(&group);
	f->group_count++;
	f->group_rows = 0;
}

static struct parquet_page *next_value(struct parquet_file *f)
{
	struct parquet_page *p = &f->pages[f->at++];

	if (p->raw.length >= PAGE_BYTES)
		end_page(f, p);
	p->values++;
	p->page_values++;
	return p;
}

void parquet_u64(struct parquet_file *f, uint64_t value)
{
	assert(f->columns[f->at].type != PARQUET_TEXT);
	/* Little-endian, as every machine that this runs on. */
	str_add(&next_value(f)->raw, (const char *)&value, sizeof(value));
}

void parquet_text(struct parquet_file *f, const char *text)
{
	struct parquet_page *p;
	size_t before;

	assert(f->columns[f->at].type == PARQUET_TEXT);
	p = next_value(f);
	before = p->raw.length;
	str_fixed(&p->raw, 0, 4);
	str_valid(&p->raw, text);
	if (p->raw.failed) {
		fail(f);
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		p->raw.text[before + i] = (char)((p->raw.length - before - 4) >> 8 * i);
}

void parquet_row_end(struct parquet_file *f)
{
	uint64_t packed = 0;

	assert(f->at == f->column_count);
	f->at = 0;
	f->rows++;
	f->group_rows++;
	for (size_t i = 0; i < f->column_count; i++)
		packed += f->pages[i].packed.length;
	if (packed >= GROUP_BYTES || f->group_rows >= GROUP_ROWS)
		end_group(f);
}

static void describe_schema(const struct parquet_file *f, struct thrift *file)
{
	struct thrift element;

	thrift_list(file, 2, THRIFT_STRUCT, f->column_count + 1);
	element = thrift_item(file->out);
	thrift_text(&element, 4, "whyoom");
	thrift_i32(&element, 5, (int32_t)f->column_count);
	thrift_end(&element);
	for (size_t i = 0; i < f->column_count; i++) {
		const struct parquet_column *c = &f->columns[i];

		element = thrift_item(file->out);
		thrift_i32(&element, 1, c->type == PARQUET_TEXT ? TYPE_BYTE_ARRAY : TYPE_INT64);
		thrift_i32(&element, 3, REQUIRED);
		thrift_text(&element, 4, c->name);
		if (c->type != PARQUET_INT)
			thrift_i32(&element, 6,
			    c->type == PARQUET_TEXT ? CONVERTED_UTF8 : CONVERTED_UINT_64);
		thrift_end(&element);
	}
}

static void describe_facts(struct thrift *file, const char *const *facts)
{
	size_t count = 0;

	while (facts[2 * count])
		count++;
	thrift_list(file, 5, THRIFT_STRUCT, count);
	for (size_t i = 0; i < count; i++) {
		struct thrift pair = thrift_item(file->out);

		thrift_text(&pair, 1, facts[2 * i]);
		thrift_text(&pair, 2, facts[2 * i + 1]);
		thrift_end(&pair);
	}
}

void parquet_end(struct parquet_file *f, const char *const *facts)
{
	struct str footer = {0};
	struct thrift file = thrift_item(&footer);
	size_t bytes;

	end_group(f);
	thrift_i32(&file, 1, FORMAT);
	describe_schema(f, &file);
	thrift_i64(&file, 3, (int64_t)f->rows);
	thrift_list(&file, 4, THRIFT_STRUCT, f->group_count);
	str_add(&footer, str_text(&f->groups), f->groups.length);
	footer.failed |= f->groups.failed;
	describe_facts(&file, facts);
	thrift_text(&file, 6, "whyoom " WHYOOM_VERSION);
	thrift_end(&file);
	bytes = footer.length;
	str_fixed(&footer, bytes, 4);
	str_puts(&footer, MAGIC);
	sink_str(f->out, &footer);
	str_free(&footer);
}

void parquet_fini(struct parquet_file *f)
{
	for (size_t i = 0; i < PARQUET_COLUMNS; i++) {
		str_free(&f->pages[i].raw);
		str_free(&f->pages[i].packed);
	}
	str_free(&f->groups);
	ZSTD_freeCCtx(f->zstd);
	f->zstd = NULL;
}

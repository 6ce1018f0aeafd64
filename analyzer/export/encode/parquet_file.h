/*
 * parquet_file.h - writes a Parquet file: a table whose columns all have a value in each row, PLAIN
 * and compressed by zstd. Pages are compressed when they are full, and row groups go out when they
 * are, so memory stays the same for any number of rows. It needs no seeking: a pipe will do.
 */
#ifndef ANALYZER_EXPORT_PARQUET_FILE_H
#define ANALYZER_EXPORT_PARQUET_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "export/sink.h"
#include "util/text/str.h"

enum parquet_type { PARQUET_INT, PARQUET_UNSIGNED, PARQUET_TEXT }; /* 64 bits, or UTF-8 */

struct parquet_column {
	const char *name;
	enum parquet_type type;
};

#define PARQUET_COLUMNS 24u
struct parquet_file {
	const struct parquet_column *columns;
	size_t column_count, at; /* at: the column of the next value */
	struct parquet_page {
		struct str raw; /* of the page under way */
		struct str packed; /* pages of the row group, with headers */
		uint64_t values, page_values; /* in the row group; in the page */
		uint64_t bytes; /* uncompressed, with headers */
	} pages[PARQUET_COLUMNS];
	uint64_t rows, group_rows;
	struct str groups; /* their descriptions, for the end of the file */
	size_t group_count;
	void *zstd;
	struct sink *out;
};

/* The columns stay the caller's. 0 or -ENOMEM. Call parquet_fini() after both. */
int parquet_begin(
    struct parquet_file *f, const struct parquet_column *columns, size_t count, struct sink *out);
/* The values of a row in the order of the columns; invalid UTF-8 becomes U+FFFD, NULL "". Without
 * memory the sink fails. */
void parquet_u64(struct parquet_file *f, uint64_t value);
void parquet_text(struct parquet_file *f, const char *text);
void parquet_row_end(struct parquet_file *f);
/* `facts`: keys and values in turn, up to a NULL key. */
void parquet_end(struct parquet_file *f, const char *const *facts);
void parquet_fini(struct parquet_file *f);

#endif

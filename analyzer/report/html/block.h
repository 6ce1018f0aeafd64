/*
 * block.h - writes the page's data: numbers of variable length, differences, texts by number. The
 * layout is in docs/page-data.md; assets/decode.js reads it.
 */
#ifndef ANALYZER_REPORT_BLOCK_H
#define ANALYZER_REPORT_BLOCK_H

#include "util/map.h"
#include "util/text/str.h"

/* A section's bytes, without texts. */
void block_number(struct str *to, uint64_t value); /* 7 bits a byte, the lowest first */
void block_signed(struct str *to, int64_t value); /* 0, -1, 1, -2, ... as 0, 1, 2, 3, ... */

/* A column of differences: each value as a signed number, less the one before. */
struct block_column {
	struct str *to;
	uint64_t before;
};
void block_next(struct block_column *column, uint64_t value);

/* All texts, once each; numbers are of the first use. Zero at first. */
struct block_texts {
	struct intern table;
	struct str written;
	uint32_t count;
	bool failed;
};
void block_texts_fini(struct block_texts *texts);
/* Append the number of a text to a section; 0: NULL. As str_safe() writes it: always UTF-8, no
 * control characters. */
void block_text(struct block_texts *texts, struct str *to, const char *text);
/* The same number, to be written later. */
uint32_t block_text_id(struct block_texts *texts, const char *text);

/* The section of all texts. */
void block_texts_write(const struct block_texts *texts, struct str *to);

/* The sections of a block; a reader passes over those that it does not know. */
enum block_section {
	SECTION_TEXTS = 1,
	SECTION_RUN,
	SECTION_FRAMES,
	SECTION_MARKS,
	SECTION_SPACE, /* begins a space, which the sections below belong to */
	SECTION_CURVE,
	SECTION_LATE,
	SECTION_PLACES,
	SECTION_SLICES,
	SECTION_TREE,
	SECTION_MAP,
	SECTION_LEVELS,
	SECTION_MOMENT, /* a further map */
	SECTION_LANES, /* who worked: of the whole run */
	SECTION_GROUPS,
	/* Of a comparison's page. */
	SECTION_SIDES = 32,
	SECTION_DIFF_SPACE, /* begins a space */
	SECTION_PHASES,
	SECTION_LINES,
	SECTION_UNION,
};
/* Append a section to the block. */
void block_section(struct str *block, enum block_section section, const struct str *body);

/* Append base64 of the block, compressed as a gzip file without a time. */
void block_pack(const struct str *block, struct str *out);

#endif

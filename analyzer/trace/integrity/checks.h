/*
 * checks.h - the checksums of a trace from version 2.9 on: of the file header, chunk headers,
 * definitions, side records, and the sum of the events in an unsealed chunk. Readers and writers
 * share them. docs/trace-format.md, section 8, defines each. Arguments are raw bytes of the file.
 */
#ifndef ANALYZER_TRACE_CHECKS_H
#define ANALYZER_TRACE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_header;

/* The check of the header's constant fields, and of how the image ended. */
uint64_t checks_header(const uint8_t *header);
uint64_t checks_end(const uint8_t *header);
/* Fill in both checks and the copies of the counters, in a page that begins with the header. */
void checks_page(uint8_t *page);
/* Give the offsets of the header's counters that have copies. Returns how many. */
size_t checks_counters(const uint16_t **offsets);

/* The check of a chunk's header: while events are appended, and once it is sealed, with its side
 * records. */
uint32_t checks_open(const uint8_t *chunk);
uint32_t checks_sealed(const uint8_t *chunk, const uint8_t *sides, size_t bytes);
/* True: one of the two is right. */
bool checks_chunk(const uint8_t *chunk, const uint8_t *sides, size_t bytes);
/* Repair a header with one wrong bit. False: more than one bit is wrong. `sides` are the records
 * that the unrepaired header describes. */
bool checks_repair_chunk(uint8_t *chunk, const uint8_t *sides, size_t bytes);

uint16_t checks_side(const uint8_t *side);

/* The check of a definition's record, with its head. */
uint32_t checks_definition(const uint8_t *record, size_t bytes);

/* The sum of one event's words. The chunk's header lies before `body`; `so_far` is stored into its
 * checksum, as the first events' words reach into it. */
uint64_t checks_words(uint8_t *body, const uint8_t *event, const uint8_t *end, uint64_t so_far);
/* True: the events in `body` add up to `sum`, with or without the last one, or `sum` is the sealed
 * checksum already; a killed process leaves each of the three. Changes the chunk's header, which
 * lies before `body`. */
bool checks_sum(uint8_t *body, size_t bytes, uint64_t sum);

#endif

/*
 * checks.h - the checks that a trace has from 2.7 on: of its header, of a chunk's header, of a
 * definition, and the sum of the events in a chunk that was not sealed. One place for who writes
 * them and who looks at them; docs/trace-format.md, section 8, says what each is of.
 */
#ifndef ANALYZER_TRACE_CHECKS_H
#define ANALYZER_TRACE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_header;

uint64_t checks_hash(const void *data, size_t bytes);

/* Of the header's constant part, and of how the image ended. Raw bytes of the file, as below. */
uint64_t checks_header(const uint8_t *header);
uint64_t checks_end(const uint8_t *header);
/* Fills in both of a header that is written, and the copies of its counters, in a page that begins
 * with it. */
void checks_page(uint8_t *page);
/* The header's counters that have copies: their offsets. */
size_t checks_counters(const uint16_t **offsets);

/* Of a chunk's header while it is written to, and once it is sealed, with its side records. */
uint32_t checks_open(const uint8_t *chunk);
uint32_t checks_sealed(const uint8_t *chunk, const uint8_t *sides, size_t bytes);
/* Does either hold? */
bool checks_chunk(const uint8_t *chunk, const uint8_t *sides, size_t bytes);
/* The same of a header of which one bit is wrong, which is put right; false: more is. The side
 * records are those that the header as it is has. */
bool checks_mend_chunk(uint8_t *chunk, const uint8_t *sides, size_t bytes);

uint16_t checks_side(const uint8_t *side);

/* A definition's record, head included, whose length is known to be sound. */
uint32_t checks_definition(const uint8_t *record, size_t bytes);

/* The words of the event from `event` to `end` in a chunk's body, with the chunk's header before
 * it, where the sum so far is written. */
uint64_t checks_words(uint8_t *body, const uint8_t *event, const uint8_t *end, uint64_t so_far);
/* The words of the events in `body`, of which `bytes` are committed; what lies before it is the
 * chunk's header, and is changed. True: they add up to `sum`, or do without the last one, or it is
 * the seal's checksum already, as a process that was killed leaves it. */
bool checks_sum(uint8_t *body, size_t bytes, uint64_t sum);

#endif

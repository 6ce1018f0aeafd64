/* compose.h - writes traces byte by byte from docs/trace-format.md, sound and damaged ones.
 * Shares only the numbers in include/whyoom with the reader. */
#ifndef TESTS_UNIT_TRACE_COMPOSE_H
#define TESTS_UNIT_TRACE_COMPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "whyoom/trace.h"

struct compose {
	uint8_t *bytes;
	size_t size, capacity;
	size_t chunk; /* offset of the chunk being written, 0: none */
	size_t at; /* position of its next byte */
	size_t def; /* offset of the definition being written */
	uint64_t ticks, address;
	unsigned sides;
	char path[64]; /* of the file, once it was saved */
};

/* A header of pid 4711 whose clock counts nanoseconds from 0. */
void compose_begin(struct compose *c);
struct trace_header *compose_header(struct compose *c);
struct trace_chunk *compose_head(struct compose *c); /* of the present chunk */
/* Close the chunk before, and begin one. Types 1 and 3: for `thread`, 0 for 2 and 3. */
void compose_chunk(struct compose *c, unsigned type, uint32_t thread, uint32_t sequence,
    uint64_t ticks, uint32_t bytes);
void compose_seal(struct compose *c, uint64_t checksum);
void compose_end(struct compose *c);
/* Write the file (to a new name) and return its path. */
const char *compose_save(struct compose *c);
/* Remove the file and free. */
void compose_free(struct compose *c);

void put_byte(struct compose *c, uint8_t byte);
void put_varint(struct compose *c, uint64_t v);
void put_svarint(struct compose *c, int64_t v);
void put_text(struct compose *c, const char *text);
void put_bytes(struct compose *c, const void *data, size_t n);

/* Events; ticks are absolute. */
void put_alloc(struct compose *c, uint64_t ticks, uint64_t address, uint64_t size, uint32_t stack);
void put_alloc_api(struct compose *c, uint64_t ticks, uint64_t address, uint64_t size,
    uint32_t stack, unsigned api);
void put_free(struct compose *c, uint64_t ticks, uint64_t address);
void put_free_realloc(struct compose *c, uint64_t ticks, uint64_t address);
void put_unfree(struct compose *c, uint64_t ticks, uint64_t address);
/* An event with a length: n fields after dt. */
void put_event(struct compose *c, uint64_t ticks, unsigned kind, size_t n, const uint64_t *fields);
#define PUT_EVENT(c, ticks, kind, ...)                                                             \
	put_event((c), (ticks), (kind), sizeof((uint64_t[]){__VA_ARGS__}) / 8,                     \
	    (uint64_t[]){__VA_ARGS__})
void put_side(struct compose *c, uint64_t ticks, unsigned kind, uint64_t address, uint64_t size,
    uint32_t stack, unsigned flags);

/* Definitions: def_begin(), fields, def_end(). */
void def_begin(struct compose *c, unsigned kind);
void def_end(struct compose *c, bool committed);
void def_string(struct compose *c, uint64_t id, const char *text);
void def_info(struct compose *c, const char *key, const char *value);
void def_space(struct compose *c, uint32_t id, const char *name); /* without a parent */
/* A stack of native frames without modules. */
void def_stack(struct compose *c, uint64_t id, uint64_t base, uint64_t keep, size_t n,
    const uint64_t *addresses);
#define DEF_STACK(c, id, base, keep, ...)                                                          \
	def_stack((c), (id), (base), (keep), sizeof((uint64_t[]){__VA_ARGS__}) / 8,                \
	    (uint64_t[]){__VA_ARGS__})

#endif

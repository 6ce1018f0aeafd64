#include "compose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(struct compose *c, size_t size)
{
	if (size > c->capacity) {
		size_t capacity = size * 2;
		c->bytes = realloc(c->bytes, capacity);
		if (!c->bytes)
			abort();
		memset(c->bytes + c->capacity, 0, capacity - c->capacity);
		c->capacity = capacity;
	}
	if (size > c->size)
		c->size = size;
}

struct trace_header *compose_header(struct compose *c)
{
	return (struct trace_header *)c->bytes;
}

struct trace_chunk *compose_head(struct compose *c)
{
	return (struct trace_chunk *)(c->bytes + c->chunk);
}

void compose_begin(struct compose *c)
{
	struct trace_header *h;

	*c = (struct compose){0};
	need(c, TRACE_SLOT_BYTES);
	h = compose_header(c);
	memcpy(h->magic, "WHYOOMT\n", 8);
	h->major = 1;
	h->header_bytes = 4096;
	h->slot_bytes = 65536;
	h->arch = 1;
	h->clock = 3;
	h->pid = 4711;
	h->ticks_hz = 1000000000;
	h->start_real_ns = 1700000000000000000;
	h->end_how = 1;
}

void compose_chunk(struct compose *c, unsigned type, uint32_t thread, uint32_t sequence,
    uint64_t ticks, uint32_t bytes)
{
	compose_end(c);
	c->chunk = c->size;
	need(c, c->chunk + bytes);
	*compose_head(c) = (struct trace_chunk){
	    .magic = 0x6b6e6843,
	    .type = (uint16_t)type,
	    .header_bytes = 64,
	    .bytes = bytes,
	    .thread = thread,
	    .tid = thread ? 100 + thread : 0,
	    .sequence = sequence,
	    .ticks = ticks,
	    .mono_ns = ticks,
	};
	c->at = c->chunk + 64;
	c->ticks = ticks;
	c->address = 0;
	c->sides = 0;
}

void compose_end(struct compose *c)
{
	if (!c->chunk)
		return;
	if (compose_head(c)->type != 2 && !compose_head(c)->committed)
		compose_head(c)->committed = (uint32_t)(c->at - c->chunk - 64);
	compose_header(c)->file_bytes = c->size;
	c->chunk = 0;
}

void compose_seal(struct compose *c, uint64_t checksum)
{
	compose_head(c)->sealed = 1;
	compose_head(c)->checksum = checksum;
}

const char *compose_save(struct compose *c)
{
	int fd;

	compose_end(c);
	strcpy(c->path, "/tmp/whyoom-unit-XXXXXX");
	fd = mkstemp(c->path);
	if (fd < 0 || write(fd, c->bytes, c->size) != (ssize_t)c->size)
		abort();
	close(fd);
	return c->path;
}

void compose_free(struct compose *c)
{
	if (c->path[0])
		unlink(c->path);
	free(c->bytes);
	*c = (struct compose){0};
}

void put_byte(struct compose *c, uint8_t byte)
{
	need(c, c->at + 1);
	c->bytes[c->at++] = byte;
}

void put_varint(struct compose *c, uint64_t v)
{
	for (; v >= 128; v /= 128)
		put_byte(c, (uint8_t)(v % 128 + 128));
	put_byte(c, (uint8_t)v);
}

void put_svarint(struct compose *c, int64_t v)
{
	put_varint(c, v < 0 ? (uint64_t)(-(v + 1)) * 2 + 1 : (uint64_t)v * 2);
}

void put_bytes(struct compose *c, const void *data, size_t n)
{
	put_varint(c, n);
	for (size_t i = 0; i < n; i++)
		put_byte(c, ((const uint8_t *)data)[i]);
}

void put_text(struct compose *c, const char *text)
{
	put_bytes(c, text, strlen(text));
}

static void put_place(struct compose *c, unsigned tag, uint64_t ticks, uint64_t address)
{
	put_byte(c, (uint8_t)tag);
	put_varint(c, ticks - c->ticks);
	put_svarint(c, ((int64_t)(address - c->address)) / 8);
	c->ticks = ticks;
	c->address = address;
}

void put_alloc_api(struct compose *c, uint64_t ticks, uint64_t address, uint64_t size,
    uint32_t stack, unsigned api)
{
	put_place(c, 1 | api << 4, ticks, address);
	put_varint(c, size);
	put_varint(c, stack);
}

void put_alloc(struct compose *c, uint64_t ticks, uint64_t address, uint64_t size, uint32_t stack)
{
	put_alloc_api(c, ticks, address, size, stack, 0);
}

void put_free(struct compose *c, uint64_t ticks, uint64_t address)
{
	put_place(c, 2, ticks, address);
}

void put_free_realloc(struct compose *c, uint64_t ticks, uint64_t address)
{
	put_place(c, 0x12, ticks, address);
}

void put_unfree(struct compose *c, uint64_t ticks, uint64_t address)
{
	put_place(c, 3, ticks, address);
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	for (; v >= 128; v /= 128)
		n++;
	return n;
}

void put_event(struct compose *c, uint64_t ticks, unsigned kind, size_t n, const uint64_t *fields)
{
	size_t length = varint_size(ticks - c->ticks);

	for (size_t i = 0; i < n; i++)
		length += varint_size(fields[i]);
	put_byte(c, 15);
	put_varint(c, kind);
	put_varint(c, length);
	put_varint(c, ticks - c->ticks);
	c->ticks = ticks;
	for (size_t i = 0; i < n; i++)
		put_varint(c, fields[i]);
}

void put_side(struct compose *c, uint64_t ticks, unsigned kind, uint64_t address, uint64_t size,
    uint32_t stack, unsigned flags)
{
	struct trace_side *side;

	compose_head(c)->side_count = ++c->sides;
	side = (struct trace_side *)(c->bytes + c->chunk + compose_head(c)->bytes - 32 * c->sides);
	*side = (struct trace_side){.ticks = ticks,
	    .address = address,
	    .size = size,
	    .stack = stack,
	    .kind = (uint8_t)kind,
	    .flags = (uint8_t)flags};
}

void def_begin(struct compose *c, unsigned kind)
{
	struct trace_def head = {.kind = (uint16_t)kind};

	c->def = c->at;
	need(c, c->at + sizeof(head));
	memcpy(c->bytes + c->at, &head, sizeof(head));
	c->at += sizeof(head);
}

void def_end(struct compose *c, bool committed)
{
	struct trace_def head;

	while ((c->at - c->def) % 8)
		put_byte(c, 0);
	memcpy(&head, c->bytes + c->def, sizeof(head));
	head.bytes = (uint32_t)(c->at - c->def);
	head.committed = committed;
	memcpy(c->bytes + c->def, &head, sizeof(head));
}

void def_string(struct compose *c, uint64_t id, const char *text)
{
	def_begin(c, 1);
	put_varint(c, id);
	put_text(c, text);
	def_end(c, true);
}

void def_info(struct compose *c, const char *key, const char *value)
{
	def_begin(c, 5);
	put_text(c, key);
	put_text(c, value);
	def_end(c, true);
}

void def_space(struct compose *c, uint32_t id, const char *name)
{
	def_begin(c, TRACE_DEF_SPACE);
	put_varint(c, id);
	put_text(c, name);
	put_varint(c, 0);
	def_end(c, true);
}

void def_stack(struct compose *c, uint64_t id, uint64_t base, uint64_t keep, size_t n,
    const uint64_t *addresses)
{
	uint64_t last = 0;

	def_begin(c, 4);
	put_varint(c, id);
	put_varint(c, base);
	put_varint(c, keep);
	put_varint(c, n);
	for (size_t i = 0; i < n; i++) {
		put_varint(c, 0);
		put_svarint(c, (int64_t)(addresses[i] - last));
		last = addresses[i];
	}
	def_end(c, true);
}

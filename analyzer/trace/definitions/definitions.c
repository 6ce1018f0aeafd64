#include "trace/definitions/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "trace/integrity/checks.h"
#include "whyoom/trace.h"

int defs_init(struct defs *d, uint64_t bytes_of_definitions)
{
	*d = (struct defs){0};
	/* A definition takes at least 16 bytes. Lost definitions leave gaps in the ids. */
	return stacks_init(&d->stacks, bytes_of_definitions / 8 + 4096);
}

void defs_fini(struct defs *d)
{
	arena_free(&d->arena);
	map_free(&d->strings);
	map_free(&d->module_ids);
	map_free(&d->code_ids);
	map_free(&d->space_ids);
	intern_free(&d->same);
	map_free(&d->same_ids);
	vec_free(&d->modules);
	vec_free(&d->codes);
	vec_free(&d->spaces);
	vec_free(&d->threads);
	vec_free(&d->infos);
	map_free(&d->thread_serials);
	intern_free(&d->info_keys);
	stacks_fini(&d->stacks);
	defs_stacks_fini(d);
}

/* The functions below return 0, -ENOMEM, or 1: the body contradicts the format. */

static const char *take_text(struct defs *d, struct cursor *c, int *r)
{
	size_t bytes;
	const uint8_t *p = cursor_bytes(c, &bytes);
	const char *text = p ? arena_copy(&d->arena, p, bytes) : "";

	if (!text)
		*r = -ENOMEM;
	return text;
}

static int put_id(struct map *map, uint64_t id, uint64_t value)
{
	uint64_t *place;

	if (!id || map_find(map, id))
		return 1;
	place = map_put(map, id);
	if (!place)
		return -ENOMEM;
	*place = value;
	return 0;
}

static int read_string(struct defs *d, struct cursor *c)
{
	uint64_t id = cursor_varint(c);
	int r = 0;
	const char *text = take_text(d, c, &r);

	return r ? r : c->bad ? 1 : put_id(&d->strings, id, (uintptr_t)text);
}

/* Return 1 + the index of an equal module or code object; 0: none, and *place takes the index. */
static int find_same(struct defs *d, const void *key, size_t bytes, uint64_t **place)
{
	uint32_t id = intern_add(&d->same, key, bytes);

	*place = id ? map_put(&d->same_ids, id) : NULL;
	return *place ? 0 : -ENOMEM;
}

static int read_module(struct defs *d, struct cursor *c)
{
	struct def_module m = {0};
	uint64_t id = cursor_varint(c), count, *same;
	const uint8_t *start, *build_id;
	uint8_t *key;
	size_t head;
	int r = 0;

	start = c->p;
	m.path = take_text(d, c, &r);
	build_id = cursor_bytes(c, &m.build_id_bytes);
	head = (size_t)(c->p - start);
	m.bias = cursor_varint(c);
	m.device = cursor_varint(c);
	m.inode = cursor_varint(c);
	m.file_size = cursor_varint(c);
	m.mtime_ns = cursor_varint(c);
	count = cursor_varint(c);
	if (r)
		return r;
	if (c->bad || count > cursor_left(c) / 4)
		return 1;
	/* Equal modules have the same path and build id, or without one the same file identity. */
	key = malloc(head + 4 * sizeof(uint64_t) + 1);
	if (!key)
		return -ENOMEM;
	key[0] = 'm';
	memcpy(key + 1, start, head);
	memset(key + 1 + head, 0, 4 * sizeof(uint64_t));
	if (!m.build_id_bytes) {
		uint64_t identity[4] = {m.device, m.inode, m.file_size, m.mtime_ns};
		memcpy(key + 1 + head, identity, sizeof(identity));
	}
	r = find_same(d, key, head + 4 * sizeof(uint64_t) + 1, &same);
	free(key);
	if (r)
		return r;
	if (*same)
		return put_id(&d->module_ids, id, *same);

	m.build_id = (uint8_t *)arena_copy(&d->arena, build_id, m.build_id_bytes);
	m.ranges = arena_alloc(&d->arena, count * sizeof(*m.ranges) + 1);
	if (!m.build_id || !m.ranges)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		m.ranges[i].address = cursor_varint(c);
		m.ranges[i].size = cursor_varint(c);
		m.ranges[i].offset = cursor_varint(c);
		m.ranges[i].flags = (uint32_t)cursor_varint(c);
	}
	m.range_count = count;
	if (c->bad)
		return 1;
	if (vec_push(&d->modules, m))
		return -ENOMEM;
	*same = d->modules.count;
	return put_id(&d->module_ids, id, d->modules.count);
}

static int read_code(struct defs *d, struct cursor *c)
{
	struct def_code code = {0};
	uint64_t id = cursor_varint(c), *same;
	const uint8_t *start = c->p, *lines;
	char *key;
	int r = 0;

	code.version = cursor_varint32(c);
	code.first_line = cursor_varint32(c);
	code.plain_name = cursor_varint(c) & 1;
	code.name = take_text(d, c, &r);
	code.file = take_text(d, c, &r);
	lines = cursor_bytes(c, &code.line_bytes);
	if (r || c->bad)
		return r ? r : 1;
	key = malloc((size_t)(c->p - start) + 1);
	if (!key)
		return -ENOMEM;
	key[0] = 'c';
	memcpy(key + 1, start, (size_t)(c->p - start));
	r = find_same(d, key, (size_t)(c->p - start) + 1, &same);
	free(key);
	if (r)
		return r;
	if (!*same) {
		code.lines = (uint8_t *)arena_copy(&d->arena, lines, code.line_bytes);
		if (!code.lines || vec_push(&d->codes, code))
			return -ENOMEM;
		*same = d->codes.count;
	}
	return put_id(&d->code_ids, id, *same);
}

static int read_info(struct defs *d, struct cursor *c)
{
	struct def_info info = {0};
	size_t key_bytes;
	const uint8_t *key = cursor_bytes(c, &key_bytes),
		      *value = cursor_bytes(c, &info.value_bytes);
	uint32_t id;

	if (c->bad)
		return 1;
	id = intern_add(&d->info_keys, (const char *)key, key_bytes);
	info.value = arena_copy(&d->arena, value, info.value_bytes);
	if (!id || !info.value)
		return -ENOMEM;
	info.key = intern_text(&d->info_keys, id);
	if (id <= d->infos.count) {
		d->infos.items[id - 1] = info; /* the last INFO of a key counts */
		return 0;
	}
	return vec_push(&d->infos, info);
}

static int read_space(struct defs *d, struct cursor *c)
{
	uint64_t id = cursor_varint(c);
	int r = 0;
	const char *name = take_text(d, c, &r);

	cursor_varint(c); /* skip the parent */
	if (r || c->bad)
		return r ? r : 1;
	if (vec_push(&d->spaces, name))
		return -ENOMEM;
	return put_id(&d->space_ids, id, d->spaces.count);
}

static int read_thread(struct defs *d, struct cursor *c)
{
	struct def_thread thread = {.serial = cursor_varint32(c), .tid = cursor_varint32(c)};
	uint64_t *index;
	int r = 0;

	thread.name = take_text(d, c, &r);
	if (r || c->bad)
		return r ? r : 1;
	/* A thread may be named again. */
	index = map_put(&d->thread_serials, thread.serial);
	if (!index)
		return -ENOMEM;
	if (*index) {
		d->threads.items[*index - 1] = thread;
		return 0;
	}
	*index = d->threads.count + 1;
	return vec_push(&d->threads, thread);
}

static int read_one(struct defs *d, uint16_t kind, struct cursor *c, bool stacks)
{
	if ((kind == TRACE_DEF_STACK) != stacks)
		return 0;
	switch (kind) {
	case TRACE_DEF_STRING:
		return read_string(d, c);
	case TRACE_DEF_MODULE:
		return read_module(d, c);
	case TRACE_DEF_CODE:
		return read_code(d, c);
	case TRACE_DEF_STACK:
		return defs_stack(d, c);
	case TRACE_DEF_INFO:
		return read_info(d, c);
	case TRACE_DEF_SPACE:
		return read_space(d, c);
	case TRACE_DEF_THREAD:
		return read_thread(d, c);
	}
	d->unknown++;
	return 0;
}

/* True if the record matches its check. The head's length is sound. */
static bool has_check(const uint8_t *record, size_t length)
{
	return length > sizeof(struct trace_def) &&
	       cursor_at(record + length - TRACE_DEF_CHECK_BYTES, TRACE_DEF_CHECK_BYTES) ==
		   checks_definition(record, length);
}

/* Return the length of the complete record at the start of `left` bytes; 0: there is none. */
static uint32_t record_at(const uint8_t *record, size_t left, bool checks)
{
	struct cursor c = cursor_of(record, left);
	uint32_t length = (uint32_t)cursor_fixed(&c, 4);
	bool committed;

	cursor_fixed(&c, 2);
	committed = cursor_fixed(&c, 1);
	if (length % 8 || length < sizeof(struct trace_def) || length > left)
		return 0;
	return (checks ? has_check(record, length) : committed) ? length : 0;
}

void defs_forget(uint8_t *body, const uint8_t *before, size_t bytes, bool checks)
{
	size_t at = 0;

	while (at + sizeof(struct trace_def) <= bytes) {
		uint32_t length = record_at(before + at, bytes - at, checks);

		memset(body + at, 0, length);
		at += length ? length : 8;
	}
}

int defs_read(struct defs *d, const void *body, size_t bytes, bool stacks, bool *torn)
{
	const size_t head = sizeof(struct trace_def), check = d->checks ? TRACE_DEF_CHECK_BYTES : 0;
	struct cursor c = cursor_of(body, bytes);
	/* bytes whose checks are computed at most: lengths may be anything */
	uint64_t room = 16 * (uint64_t)bytes;
	int r;

	*torn = false;
	d->sound_bytes = 0;
	d->unsound_at = DEFS_SOUND;
	while (cursor_left(&c) >= head) {
		const uint8_t *record = c.p;
		uint32_t length = (uint32_t)cursor_fixed(&c, 4);
		uint16_t kind = (uint16_t)cursor_fixed(&c, 2);
		bool committed = cursor_fixed(&c, 1);
		struct cursor fields;

		cursor_fixed(&c, 1);
		if (!length)
			continue; /* a hole */
		if (length % 8 || length < head || length - head > cursor_left(&c) ||
		    (check && (length > room || (room -= length, !has_check(record, length))))) {
			*torn = !check;
			if (*torn)
				break;
			if (d->unsound_at == DEFS_SOUND)
				d->unsound_at = (size_t)(record - (const uint8_t *)body);
			continue;
		}
		fields = cursor_of(c.p, length - head - check);
		cursor_take(&c, length - head);
		if (check)
			d->sound_bytes += length;
		else if (!committed)
			continue; /* a record with a valid check is committed */
		r = read_one(d, kind, &fields, stacks);
		if (r < 0)
			return r;
		d->broken += r;
	}
	return defs_stacks_settle(d);
}

const char *defs_string(const struct defs *d, uint64_t id)
{
	uint64_t *text = id ? map_find(&d->strings, id) : NULL;

	return text ? (const char *)(uintptr_t)*text : NULL;
}

const struct def_info *defs_info(const struct defs *d, const char *key)
{
	/* Few keys, asked rarely. */
	for (size_t i = 0; i < d->infos.count; i++)
		if (!strcmp(d->infos.items[i].key, key))
			return &d->infos.items[i];
	return NULL;
}

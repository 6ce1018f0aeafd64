/*
 * writer.c - builds the new trace in memory until it is saved, since it is a small part of the old
 * one. Ticks are nanoseconds of CLOCK_MONOTONIC, so no calibration is needed. See writer.h.
 */
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/extended.h"
#include "trace/integrity/checks.h"
#include "trace/reader.h"
#include "trace/xxh64.h"
#include "util/io.h"
#include "util/text/str.h"

/* A larger chunk is closed; readers refuse TRACE_CHUNK_BYTES_MAX, 64 MiB. */
#define BODY_BYTES (16u << 20)
#define NS 1000000000u

struct body {
	struct str bytes;
	uint16_t type; /* enum trace_chunk_type */
	uint32_t thread, tid, sequence;
	uint64_t ticks;
};

/* The open chunk of a thread. */
struct writer_lane {
	bool open;
	struct body body;
	uint32_t sequence; /* of the next chunk */
	uint64_t ticks, address; /* of the last event: the next one is coded against it */
	uint32_t stack, task;
};

struct trace_writer {
	struct trace *of;
	struct body definitions;
	VEC(struct body) done;
	VEC(struct writer_lane) lanes;
	struct map lane_ids; /* by the thread's serial: 1 + index in lanes */
	/* Ids of copied definitions. */
	struct map modules, codes, stacks, spaces, tasks;
	struct intern strings;
	uint32_t defined; /* strings up to this id are defined */
	uint64_t last_ticks;
	bool failed; /* an allocation failed */
	struct str scratch;
};

/* --- bytes --- */

static void put(struct str *s, uint64_t v)
{
	uint8_t text[CURSOR_VARINT_MAX];

	str_add(s, (char *)text, cursor_write_varint(text, v));
}

static void put_signed(struct str *s, uint64_t v)
{
	put(s, v << 1 ^ (0 - (v >> 63)));
}

static void put_bytes(struct str *s, const void *data, size_t bytes)
{
	put(s, bytes);
	str_add(s, data, bytes);
}

static void put_zeros(struct str *s, size_t bytes)
{
	static const char zeros[256];

	for (; bytes > sizeof(zeros); bytes -= sizeof(zeros))
		str_add(s, zeros, sizeof(zeros));
	str_add(s, zeros, bytes);
}

/* --- definitions --- */

static void close_body(struct trace_writer *w, struct body *b)
{
	if (b->bytes.length && vec_push(&w->done, *b))
		w->failed = true;
	if (w->failed)
		str_free(&b->bytes);
	b->bytes = (struct str){0};
}

/* Append a definition; its body is in w->scratch. */
static void define(struct trace_writer *w, enum trace_def_kind kind)
{
	struct str *to = &w->definitions.bytes;
	size_t bytes = sizeof(struct trace_def) + w->scratch.length, from = to->length;
	size_t whole = (bytes + TRACE_DEF_CHECK_BYTES + 7) / 8 * 8;

	str_fixed(to, whole, 4);
	str_fixed(to, kind, 2);
	str_fixed(to, 1, 1); /* committed */
	str_fixed(to, 0, 1);
	str_add(to, w->scratch.text, w->scratch.length);
	put_zeros(to, whole - bytes - TRACE_DEF_CHECK_BYTES);
	if (!to->failed)
		str_fixed(to, checks_definition((uint8_t *)to->text + from, whole),
		    TRACE_DEF_CHECK_BYTES);
	if (to->length > BODY_BYTES)
		close_body(w, &w->definitions);
}

/* Mark an id. False: already marked. A map, since a file may use large ids. */
static bool mark(struct trace_writer *w, struct map *taken, uint32_t id)
{
	uint64_t *there = map_put(taken, id);

	if (!there) {
		w->failed = true;
		return false;
	}
	return !(*there)++;
}

uint32_t writer_string(struct trace_writer *w, const char *text)
{
	uint32_t id = text ? intern_add(&w->strings, text, strlen(text)) : 0;

	if (text && !id)
		w->failed = true;
	if (id <= w->defined)
		return id;
	w->defined = id;
	str_clear(&w->scratch);
	put(&w->scratch, id);
	put_bytes(&w->scratch, text, strlen(text));
	define(w, TRACE_DEF_STRING);
	return id;
}

static void module(struct trace_writer *w, uint32_t id)
{
	const struct def_module *m;
	struct str *s = &w->scratch;

	if (!id || !mark(w, &w->modules, id))
		return;
	m = &w->of->defs.modules.items[id - 1];
	str_clear(s);
	put(s, id);
	put_bytes(s, m->path, strlen(m->path));
	put_bytes(s, m->build_id, m->build_id_bytes);
	put(s, m->bias);
	put(s, m->device);
	put(s, m->inode);
	put(s, m->file_size);
	put(s, m->mtime_ns);
	put(s, m->range_count);
	for (size_t i = 0; i < m->range_count; i++) {
		put(s, m->ranges[i].address);
		put(s, m->ranges[i].size);
		put(s, m->ranges[i].offset);
		put(s, m->ranges[i].flags);
	}
	define(w, TRACE_DEF_MODULE);
}

static void code(struct trace_writer *w, uint32_t id)
{
	const struct def_code *c;
	struct str *s = &w->scratch;

	if (!id || !mark(w, &w->codes, id))
		return;
	c = &w->of->defs.codes.items[id - 1];
	str_clear(s);
	put(s, id);
	put(s, c->version);
	put(s, c->first_line);
	put(s, c->plain_name);
	put_bytes(s, c->name, strlen(c->name));
	put_bytes(s, c->file, strlen(c->file));
	put_bytes(s, c->lines, c->line_bytes);
	define(w, TRACE_DEF_CODE);
}

uint32_t writer_stack(struct trace_writer *w, uint32_t id)
{
	const struct frame *frames;
	uint64_t before = 0;
	size_t count;

	if (!id || !mark(w, &w->stacks, id))
		return id;
	count = trace_stack(w->of, id, &frames);
	for (size_t i = 0; i < count; i++) {
		if (frames[i].kind == FRAME_NATIVE)
			module(w, frames[i].module);
		else if (frames[i].kind == FRAME_PYTHON)
			code(w, frames[i].module);
	}
	str_clear(&w->scratch);
	put(&w->scratch, id);
	put(&w->scratch, 0); /* no base, */
	put(&w->scratch, 0); /* and no frames of it */
	put(&w->scratch, count);
	for (size_t i = 0; i < count; i++) {
		const struct frame *f = &frames[i];

		switch (f->kind) {
		case FRAME_NATIVE:
			put(&w->scratch, (uint64_t)f->module << 3 | (uint64_t)f->exact << 2 |
					     TRACE_FRAME_NATIVE);
			put_signed(&w->scratch, f->address - before);
			before = f->address;
			break;
		case FRAME_PYTHON:
			put(&w->scratch, (uint64_t)f->module << 2 | TRACE_FRAME_PYTHON);
			put(&w->scratch, f->address);
			break;
		case FRAME_CUT:
			put(&w->scratch, (uint64_t)f->module << 2 | TRACE_FRAME_CUT);
			break;
		case FRAME_END:
			put(&w->scratch, (uint64_t)f->module << 2 | TRACE_FRAME_END);
			break;
		}
	}
	define(w, TRACE_DEF_STACK);
	return id;
}

/* Return the id of the enclosing space, as "cuda:0" for "torch:0"; 0: none, or not defined. */
static uint32_t parent_of(struct trace_writer *w, const char *name)
{
	const char *number = strchr(name, ':');
	char parent[32];

	if (!number || !strncmp(name, "cuda:", 5) || !strncmp(name, "gpu:", 4))
		return 0;
	snprintf(parent, sizeof(parent), "cuda%.20s", number);
	for (size_t i = 0; i < w->of->defs.space_ids.capacity; i++) {
		const struct map *ids = &w->of->defs.space_ids;

		if (ids->used[i] &&
		    !strcmp(w->of->defs.spaces.items[ids->slots[i].value - 1], parent))
			return (uint32_t)ids->slots[i].key;
	}
	return 0;
}

uint32_t writer_space(struct trace_writer *w, uint32_t id)
{
	const char *name = id ? trace_space(w->of, id) : NULL;

	if (!name || !mark(w, &w->spaces, id))
		return id;
	str_clear(&w->scratch);
	put(&w->scratch, id);
	put_bytes(&w->scratch, name, strlen(name));
	put(&w->scratch, parent_of(w, name));
	define(w, TRACE_DEF_SPACE);
	return id;
}

static void info(struct trace_writer *w, const char *key, const char *value, size_t bytes)
{
	str_clear(&w->scratch);
	put_bytes(&w->scratch, key, strlen(key));
	put_bytes(&w->scratch, value, bytes);
	define(w, TRACE_DEF_INFO);
}

static void define_threads(struct trace_writer *w)
{
	for (size_t i = 0; i < w->of->defs.threads.count; i++) {
		const struct def_thread *t = &w->of->defs.threads.items[i];

		if (!map_find(&w->lane_ids, t->serial))
			continue;
		str_clear(&w->scratch);
		put(&w->scratch, t->serial);
		put(&w->scratch, t->tid);
		put_bytes(&w->scratch, t->name ? t->name : "", t->name ? strlen(t->name) : 0);
		define(w, TRACE_DEF_THREAD);
	}
}

struct trace_writer *trace_writer_new(struct trace *of)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	const struct defs *d = &of->defs;

	if (!w)
		return NULL;
	w->of = of;
	w->definitions.type = TRACE_CHUNK_DEFINITIONS;
	for (size_t i = 0; i < d->infos.count; i++)
		info(w, d->infos.items[i].key, d->infos.items[i].value,
		    d->infos.items[i].value_bytes);
	return w;
}

void trace_writer_free(struct trace_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->done.count; i++)
		str_free(&w->done.items[i].bytes);
	for (size_t i = 0; i < w->lanes.count; i++)
		str_free(&w->lanes.items[i].body.bytes);
	str_free(&w->definitions.bytes);
	vec_free(&w->done);
	vec_free(&w->lanes);
	map_free(&w->lane_ids);
	map_free(&w->modules);
	map_free(&w->codes);
	map_free(&w->stacks);
	map_free(&w->spaces);
	map_free(&w->tasks);
	intern_free(&w->strings);
	str_free(&w->scratch);
	free(w);
}

/* Readers use the last INFO of a key. */
int trace_writer_info(struct trace_writer *w, const char *key, const char *value)
{
	info(w, key, value, strlen(value));
	return w->definitions.bytes.failed || w->scratch.failed ? -ENOMEM : 0;
}

/* --- events --- */

static struct writer_lane *lane_of(struct trace_writer *w, uint32_t thread, uint64_t ticks)
{
	uint64_t *index = map_put(&w->lane_ids, thread);
	struct writer_lane *l;

	if (!index || (!*index && vec_push(&w->lanes, (struct writer_lane){0}))) {
		w->failed = true;
		return NULL;
	}
	if (!*index)
		*index = w->lanes.count;
	l = &w->lanes.items[*index - 1];
	if (l->open && l->body.bytes.length > BODY_BYTES) {
		close_body(w, &l->body);
		l->open = false;
	}
	if (!l->open) {
		const struct def_thread *threads = w->of->defs.threads.items;
		uint32_t tid = 0;

		for (size_t i = 0; i < w->of->threads.count; i++)
			if (w->of->threads.items[i].serial == thread)
				tid = w->of->threads.items[i].tid;
		for (size_t i = 0; !tid && i < w->of->defs.threads.count; i++)
			if (threads[i].serial == thread)
				tid = threads[i].tid;
		l->open = true;
		/* Thread 0 is no thread: its events go to a shared chunk. */
		l->body = (struct body){.type = thread ? TRACE_CHUNK_EVENTS : TRACE_CHUNK_SHARED,
		    .thread = thread,
		    .tid = tid,
		    .sequence = l->sequence++,
		    .ticks = ticks};
		l->ticks = ticks;
		l->address = 0;
		l->stack = 0;
	}
	return l;
}

static void put_extended(struct writer_lane *l, uint64_t kind, const union trace_fields *f,
    uint64_t dt, const struct event *e)
{
	/* Of the kinds with later minor fields, only these two are written with them. */
	unsigned count = extended_count(kind, f, kind == TRACE_LEVEL_OF || kind == TRACE_MARK);
	const uint64_t *field = (const uint64_t *)f;
	struct str body = {0};

	put(&body, dt);
	for (unsigned i = 0; i < count; i++) {
		put(&body, field[i]);
		if ((trace_field_types[kind][i] & ~TRACE_FIELD_LATER) != TRACE_FIELD_LEVELS)
			continue;
		for (uint32_t n = 0; n < e->level_count; n++) {
			put(&body, e->levels[n].key);
			put(&body, e->levels[n].value);
		}
	}
	str_putc(&l->body.bytes, TRACE_EXTENDED);
	put(&l->body.bytes, kind);
	put(&l->body.bytes, body.length);
	str_add(&l->body.bytes, str_text(&body), body.length);
	l->body.bytes.failed |= body.failed;
	str_free(&body);
}

static void put_compact(struct writer_lane *l, uint8_t tag, uint64_t dt, uint64_t address)
{
	str_putc(&l->body.bytes, (char)tag);
	put(&l->body.bytes, dt);
	put_signed(&l->body.bytes, (uint64_t)((int64_t)(address - l->address) >> 3));
	l->address = address;
}

/* Write an event of a host's block. False: another kind of event. */
static bool add_block(
    struct trace_writer *w, struct writer_lane *l, const struct event *e, uint64_t dt)
{
	bool wide = (e->address & 7) || (l->address & 7);
	uint8_t moving = e->flags & EVENT_REALLOC ? TRACE_FREE_REALLOC : 0;
	union trace_fields f;
	uint32_t id;

	switch (e->kind) {
	case EV_ALLOC:
		id = writer_stack(w, e->stack);
		if (e->block && e->block->mean > 0) {
			f.SAMPLED_ALLOC = (struct trace_SAMPLED_ALLOC){.address = e->address,
			    .size = e->size,
			    .mean = (uint64_t)e->block->mean,
			    .stack = id,
			    .api = e->api};
			put_extended(l, TRACE_SAMPLED_ALLOC, &f, dt, e);
		} else if (wide) {
			f.ALLOC_WIDE = (struct trace_ALLOC_WIDE){
			    .address = e->address, .size = e->size, .stack = id, .api = e->api};
			put_extended(l, TRACE_ALLOC_WIDE, &f, dt, e);
		} else {
			uint8_t same = id == l->stack ? TRACE_ALLOC_SAME_STACK : 0;

			put_compact(l,
			    (uint8_t)(TRACE_ALLOC | e->api << TRACE_ALLOC_API_SHIFT | same), dt,
			    e->address);
			put(&l->body.bytes, e->size);
			if (!same)
				put(&l->body.bytes, id);
			l->stack = id;
		}
		return true;
	case EV_FREE:
		if (wide) {
			f.FREE_WIDE =
			    (struct trace_FREE_WIDE){.address = e->address, .flags = moving >> 4};
			put_extended(l, TRACE_FREE_WIDE, &f, dt, e);
		} else {
			put_compact(l, TRACE_FREE | moving, dt, e->address);
		}
		return true;
	case EV_UNFREE:
		/* There is no such record for an odd address. */
		if (!wide)
			put_compact(l, TRACE_UNFREE, dt, e->address);
		return true;
	default:
		return false;
	}
}

int trace_writer_add(struct trace_writer *w, const struct event *e, struct err *err)
{
	uint64_t ticks = w->of->facts.start_mono_ns + e->time_ns;
	union trace_fields f;
	struct writer_lane *l;
	uint64_t kind;

	if (e->kind == EV_OUTSIDE || e->kind == EV_WENT || e->kind == EV_CHECKPOINT)
		return 0;
	/* Make times distinct, so that readers keep the order. */
	ticks = ticks > w->last_ticks ? ticks : w->last_ticks + 1;
	w->last_ticks = ticks;
	l = lane_of(w, e->thread, ticks);
	/* A task that ends must have begun, even if it has no other event. */
	if (l && (e->kind == EV_TASK_END ? mark(w, &w->tasks, e->task) : e->task != l->task)) {
		mark(w, &w->tasks, e->task);
		f.TASK.key = e->task;
		put_extended(l, TRACE_TASK, &f, ticks - l->ticks, e);
		l->ticks = ticks;
		l->task = e->task;
	}
	if (l && !add_block(w, l, e, ticks - l->ticks)) {
		kind = extended_of_event(w, e, &f);
		if (kind)
			put_extended(l, kind, &f, ticks - l->ticks, e);
	}
	if (l)
		l->ticks = ticks;
	w->failed |=
	    (l && l->body.bytes.failed) || w->definitions.bytes.failed || w->scratch.failed;
	return w->failed ? err_set(err, -ENOMEM, "no memory for the trace to be written") : 0;
}

/* --- the file --- */

/* Write a chunk at *at, and move *at behind it. */
static int write_chunk(int fd, const struct body *b, uint64_t *at)
{
	bool events = b->type != TRACE_CHUNK_DEFINITIONS;
	size_t sides = events ? TRACE_SIDE_MAX * sizeof(struct trace_side) : 0;
	size_t need = sizeof(struct trace_chunk) + b->bytes.length + sides;
	struct trace_chunk head = {
	    .magic = TRACE_CHUNK_MAGIC,
	    .type = b->type,
	    .header_bytes = sizeof(head),
	    .bytes =
		(uint32_t)((need + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES),
	    .thread = b->thread,
	    .tid = b->tid,
	    .sequence = b->sequence,
	    .ticks = b->ticks,
	    .mono_ns = b->ticks,
	    .committed = (uint32_t)b->bytes.length,
	    .sealed = events,
	};
	uint64_t from = *at;
	int rc;

	if (events)
		head.checksum = xxh64_of(b->bytes.text, b->bytes.length);
	head.check =
	    events ? checks_sealed((uint8_t *)&head, NULL, 0) : checks_open((uint8_t *)&head);
	*at += head.bytes;
	rc = io_write_at(fd, &head, sizeof(head), from);
	return rc ? rc : io_write_at(fd, b->bytes.text, b->bytes.length, from + sizeof(head));
}

/* Write the old file's header with the new clock and size. */
static int write_header(const struct trace_writer *w, int fd, uint64_t end, struct err *err)
{
	union {
		struct trace_header h;
		uint8_t page[TRACE_HEADER_BYTES];
	} u;
	struct trace_header *h = &u.h;
	size_t got;
	int rc = source_read(&w->of->source, 0, &u, sizeof(u), &got, err);

	if (rc)
		return rc;
	if (got != sizeof(u))
		return err_set(err, -EIO, "%s: has become shorter", w->of->source.path);
	h->minor = TRACE_MINOR;
	h->clock = TRACE_CLOCK_MONOTONIC;
	h->ticks_shift = 0;
	h->ticks_hz = NS;
	h->start_ticks = h->start_mono_ns;
	h->file_bytes = end;
	memset(h->checkpoint, 0, sizeof(h->checkpoint)); /* its events are ordinary ones now */
	h->end_how = w->of->facts.end_how;
	h->end_code = w->of->facts.end_code;
	h->chunk_bytes = end - TRACE_SLOT_BYTES;
	checks_page(u.page);
	return io_write_at(fd, &u, sizeof(u), 0);
}

int trace_writer_save(struct trace_writer *w, const char *path, struct err *err)
{
	uint64_t at = TRACE_SLOT_BYTES;
	int fd, rc = 0;

	define_threads(w);
	w->definitions.ticks = w->of->facts.start_mono_ns;
	close_body(w, &w->definitions);
	for (size_t i = 0; i < w->lanes.count; i++)
		close_body(w, &w->lanes.items[i].body);
	for (size_t i = 0; i < w->done.count; i++)
		w->failed |= w->done.items[i].bytes.failed;
	if (w->failed)
		return err_set(err, -ENOMEM, "no memory for the trace to be written");
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	for (size_t i = 0; i < w->done.count && !rc; i++)
		rc = write_chunk(fd, &w->done.items[i], &at);
	if (!rc && ftruncate(fd, (off_t)at))
		rc = -errno;
	if (!rc)
		rc = write_header(w, fd, at, err);
	close(fd);
	if (rc) {
		err_set(err, rc, "%s: %s", path, strerror(-rc));
		unlink(path);
	}
	return rc;
}

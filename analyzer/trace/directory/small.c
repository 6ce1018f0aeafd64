/* small.c - files of small traces; docs/trace-format.md, section 11. See small.h. */
#include "trace/directory/small.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/cursor.h"
#include "trace/directory/small_code.h"
#include "trace/xxh64.h"
#include "util/io.h"
#include "whyoom/trace.h"

#define READ_AT_ONCE (1u << 20)
#define PIECES_MAX (TRACE_SMALL_SLOTS_MAX + 1u)
#define TIMES_MAX 65536u

struct small {
	uint8_t *bytes;
	uint32_t trace_bytes;
	size_t count;
	struct {
		uint32_t at, bytes; /* within the trace */
		uint32_t from; /* in bytes */
	} pieces[PIECES_MAX];
};

/* A record's head, decoded. */
struct head {
	uint64_t checksum, key, start_real_ns;
	uint32_t bytes, pid, image, trace_bytes, plain_bytes, times, base;
	uint16_t version;
	uint8_t coded, quantum;
};

bool small_is_name(const char *name)
{
	size_t n = strlen(name), m = strlen(TRACE_SMALL_SUFFIX);

	return n > m && name[0] != '.' && !strcmp(name + n - m, TRACE_SMALL_SUFFIX);
}

/* False: this is no head. */
static bool read_head(const uint8_t *p, size_t there, struct head *h)
{
	struct cursor c = cursor_of(p + 8, sizeof(struct trace_small) - 8);

	if (there < sizeof(struct trace_small) || memcmp(p, TRACE_SMALL_MAGIC, 8) != 0)
		return false;
	h->checksum = cursor_fixed(&c, 8);
	h->bytes = (uint32_t)cursor_fixed(&c, 4);
	h->version = (uint16_t)cursor_fixed(&c, 2);
	h->coded = (uint8_t)cursor_fixed(&c, 1);
	h->quantum = (uint8_t)cursor_fixed(&c, 1);
	h->pid = (uint32_t)cursor_fixed(&c, 4);
	h->image = (uint32_t)cursor_fixed(&c, 4);
	h->trace_bytes = (uint32_t)cursor_fixed(&c, 4);
	h->plain_bytes = (uint32_t)cursor_fixed(&c, 4);
	h->times = (uint32_t)cursor_fixed(&c, 4);
	h->base = (uint32_t)cursor_fixed(&c, 4);
	h->key = cursor_fixed(&c, 8);
	h->start_real_ns = cursor_fixed(&c, 8);
	return h->version == TRACE_SMALL_VERSION && h->bytes >= sizeof(struct trace_small) &&
	       h->bytes <= TRACE_SMALL_BYTES_MAX && h->plain_bytes <= TRACE_SMALL_PLAIN_MAX &&
	       h->plain_bytes >= TRACE_SMALL_HEADER_BYTES && h->times <= TIMES_MAX &&
	       h->quantum < 32 && h->coded <= 1 && h->trace_bytes >= TRACE_SLOT_BYTES &&
	       h->trace_bytes <= TRACE_SMALL_SLOTS_MAX * TRACE_SLOT_BYTES &&
	       (h->coded || h->bytes - sizeof(struct trace_small) >= h->plain_bytes);
}

static bool is_whole(const uint8_t *p, const struct head *h)
{
	static const uint8_t none[8];
	struct xxh64 x;

	xxh64_init(&x);
	xxh64_add(&x, p, 8);
	xxh64_add(&x, none, 8);
	xxh64_add(&x, p + 16, h->bytes - 16);
	return xxh64_done(&x) == h->checksum;
}

/* Add torn bytes: an incomplete record's head begins a new entry, others join the last one. */
static int add_torn(struct small_list *list, bool torn, const struct head *h, size_t bytes)
{
	if (!torn || h) {
		struct small_torn fresh = {0};

		if (h) {
			fresh.pid = h->pid;
			fresh.image = h->image;
			fresh.start_real_ns = h->start_real_ns;
		}
		if (vec_push(&list->torn, fresh))
			return -ENOMEM;
	}
	list->torn.items[list->torn.count - 1].bytes += bytes;
	return 0;
}

int small_list_read(const char *path, struct small_list *out, struct err *err)
{
	struct small_list list = {0};
	uint8_t *buffer = malloc(READ_AT_ONCE);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = 0;
	uint64_t offset = 0;
	bool torn = false;
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		r = -errno;
		err_set(err, r, "%s: %s", path, strerror(-r));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		r = err_set(err, -EINVAL, "%s: not a regular file, so no traces", path);
		goto out;
	}
	while (buffer && !r) {
		ssize_t n = io_read_at(fd, buffer, READ_AT_ONCE, offset);
		size_t at = 0;

		if (n < 0) {
			r = err_set(err, (int)n, "%s: %s", path, strerror((int)-n));
			break;
		}
		while (at < (size_t)n && !r) {
			const uint8_t *p = buffer + at;
			size_t there = (size_t)n - at;
			struct head h;
			bool begins;

			/* the next buffer starts with this record, unless this buffer does */
			if (n == READ_AT_ONCE && there < TRACE_SMALL_BYTES_MAX && at)
				break;
			begins = read_head(p, there, &h);
			if (!begins || h.bytes > there || !is_whole(p, &h)) {
				const uint8_t *next =
				    memchr(p + 1, TRACE_SMALL_MAGIC[0], there - 1);
				size_t step = next ? (size_t)(next - p) : there;

				r = add_torn(&list, torn, begins ? &h : NULL, step);
				torn = true;
				at += step;
				continue;
			}
			r = vec_push(
			    &list.places, (struct small_place){offset + at, h.start_real_ns, h.pid,
					      h.image, h.bytes, h.trace_bytes});
			at += h.bytes;
			torn = false;
		}
		offset += at;
		if (n < READ_AT_ONCE)
			break;
	}
	if (!buffer || r == -ENOMEM)
		r = err_set(err, -ENOMEM, "%s: out of memory", path);
out:
	if (fd >= 0)
		close(fd);
	free(buffer);
	if (r)
		small_list_free(&list);
	else
		*out = list;
	return r;
}

void small_list_free(struct small_list *list)
{
	vec_free(&list->places);
	vec_free(&list->torn);
}

/* --- the trace of a plain form --- */

struct making {
	struct small *s;
	size_t used, capacity;
	const uint32_t *times, *times_end;
	unsigned quantum;
};

/* Make room for that many more bytes; NULL: no memory. */
static uint8_t *room(struct making *m, size_t bytes)
{
	size_t wanted = m->used + bytes;
	uint8_t *grown;

	if (wanted > m->capacity) {
		wanted += wanted / 2;
		grown = realloc(m->s->bytes, wanted);
		if (!grown)
			return NULL;
		m->s->bytes = grown;
		m->capacity = wanted;
	}
	return m->s->bytes + m->used;
}

static int put(struct making *m, const void *from, size_t bytes)
{
	uint8_t *to = room(m, bytes);

	if (!to)
		return -ENOMEM;
	memcpy(to, from, bytes);
	m->used += bytes;
	return 0;
}

static int put_event(struct making *m, struct cursor *c)
{
	uint8_t head[1 + 3 * CURSOR_VARINT_MAX], dt[CURSOR_VARINT_MAX];
	uint8_t tag = (uint8_t)cursor_fixed(c, 1), kind = tag & TRACE_TAG_KIND;
	uint64_t extended, length;
	const uint8_t *start;
	size_t n = 1, time;
	int r;

	if (m->times == m->times_end)
		return -EINVAL;
	time = cursor_write_varint(dt, (uint64_t)*m->times++ << m->quantum);
	head[0] = tag;
	if (kind == TRACE_EXTENDED) {
		extended = cursor_varint(c);
		length = cursor_varint(c);
		if (c->bad || length > cursor_left(c))
			return -EINVAL;
		n += cursor_write_varint(head + n, extended);
		n += cursor_write_varint(head + n, length + time);
		start = cursor_take(c, length);
	} else {
		start = c->p;
		cursor_varint(c);
		if (kind == TRACE_ALLOC ||
		    (kind == TRACE_ALLOC_EXPECTED && !(tag & TRACE_ALLOC_SAME_SIZE)))
			cursor_varint(c);
		if (kind == TRACE_ALLOC && !(tag & TRACE_ALLOC_SAME_STACK))
			cursor_varint(c);
		if (c->bad || !kind || kind > TRACE_ALLOC_EXPECTED)
			return -EINVAL;
		length = (uint64_t)(c->p - start);
	}
	memcpy(head + n, dt, time);
	r = put(m, head, n + time);
	return r ? r : put(m, start, length);
}

static int put_chunk(struct making *m, struct cursor *c)
{
	uint64_t slot = cursor_fixed(c, 4);
	const uint8_t *head = cursor_take(c, sizeof(struct trace_chunk));
	size_t from = m->used;
	struct cursor part;
	uint32_t committed;
	uint64_t bytes;
	uint16_t type;
	int r = 0;

	if (c->bad || !slot || m->s->count == PIECES_MAX ||
	    slot * TRACE_SLOT_BYTES >= m->s->trace_bytes)
		return -EINVAL;
	type = (uint16_t)cursor_at(head + offsetof(struct trace_chunk, type), 2);
	bytes = type == TRACE_CHUNK_DEFINITIONS
		    ? cursor_fixed(c, 4)
		    : cursor_at(head + offsetof(struct trace_chunk, committed), 4);
	if (c->bad || bytes > cursor_left(c))
		return -EINVAL;
	part = cursor_of(cursor_take(c, bytes), bytes);
	r = put(m, head, sizeof(struct trace_chunk));
	if (!r && type == TRACE_CHUNK_DEFINITIONS)
		r = put(m, part.p, bytes);
	while (!r && type != TRACE_CHUNK_DEFINITIONS && cursor_left(&part))
		r = put_event(m, &part);
	if (r)
		return r;
	bytes = m->used - from;
	if (slot * TRACE_SLOT_BYTES + bytes > m->s->trace_bytes)
		return -EINVAL;
	if (type != TRACE_CHUNK_DEFINITIONS) {
		committed = (uint32_t)(bytes - sizeof(struct trace_chunk));
		for (int i = 0; i < 4; i++)
			m->s->bytes[from + offsetof(struct trace_chunk, committed) + (size_t)i] =
			    (uint8_t)(committed >> 8 * i);
	}
	m->s->pieces[m->s->count].at = (uint32_t)slot * TRACE_SLOT_BYTES;
	m->s->pieces[m->s->count].bytes = (uint32_t)bytes;
	m->s->pieces[m->s->count++].from = (uint32_t)from;
	return 0;
}

static int make(struct making *m, const uint8_t *plain, size_t bytes)
{
	struct cursor c = cursor_of(plain, bytes);
	int r = put(m, cursor_take(&c, TRACE_SMALL_HEADER_BYTES), TRACE_SMALL_HEADER_BYTES);

	m->s->pieces[0].bytes = TRACE_SMALL_HEADER_BYTES;
	m->s->count = 1;
	while (!r && cursor_left(&c))
		r = put_chunk(m, &c);
	return r;
}

/* --- one record --- */

/* Read a whole record at the offset; the caller frees it. */
static int read_record(int fd, uint64_t offset, uint8_t **out, struct head *h)
{
	uint8_t raw[sizeof(struct trace_small)], *record;
	ssize_t n = io_read_at(fd, raw, sizeof(raw), offset);

	if (n < 0)
		return (int)n;
	if (!read_head(raw, (size_t)n, h))
		return -EINVAL;
	record = malloc(h->bytes);
	if (!record)
		return -ENOMEM;
	n = io_read_at(fd, record, h->bytes, offset);
	if (n != (ssize_t)h->bytes || memcmp(record, raw, sizeof(raw)) != 0 ||
	    !is_whole(record, h)) {
		free(record);
		return n < 0 ? (int)n : -EINVAL;
	}
	*out = record;
	return 0;
}

static int decode(int fd, const uint8_t *record, const struct head *h, struct small *s)
{
	const uint8_t *body = record + sizeof(struct trace_small), *plain = body;
	size_t bytes = h->bytes - sizeof(struct trace_small);
	uint8_t *window = NULL, *base = NULL;
	uint32_t *times = calloc(h->times + 1u, sizeof(*times));
	struct making m = {.s = s, .quantum = h->quantum};
	struct head b = {.plain_bytes = 0};
	int r = times ? 0 : -ENOMEM;

	if (!r && h->coded)
		r = read_record(fd, h->base, &base, &b);
	if (!r && h->coded && b.coded)
		r = -EINVAL;
	if (!r && h->coded) {
		window = malloc((size_t)b.plain_bytes + h->plain_bytes);
		if (window)
			memcpy(window, base + sizeof(struct trace_small), b.plain_bytes);
		else
			r = -ENOMEM;
	} else {
		body += h->plain_bytes;
		bytes -= h->plain_bytes;
	}
	if (!r)
		r = small_decode(body, bytes, window, b.plain_bytes,
		    window ? b.plain_bytes + h->plain_bytes : b.plain_bytes, times, h->times);
	if (!r) {
		m.times = times;
		m.times_end = times + h->times;
		r = make(&m, window ? window + b.plain_bytes : plain, h->plain_bytes);
	}
	free(window);
	free(base);
	free(times);
	return r;
}

int small_open(
    int fd, const char *path, const struct small_place *place, struct small **out, struct err *err)
{
	struct small *s = calloc(1, sizeof(*s));
	uint8_t *record = NULL;
	struct head h;
	int r = s ? read_record(fd, place->offset, &record, &h) : -ENOMEM;

	if (!r) {
		s->trace_bytes = h.trace_bytes;
		r = decode(fd, record, &h, s);
	}
	free(record);
	if (!r) {
		*out = s;
		return 0;
	}
	small_close(s);
	if (r == -ENOMEM)
		return err_set(err, r, "%s: out of memory", path);
	return err_set(err, r,
	    r == -EINVAL ? "%s: offset %llu: the small trace there contradicts itself"
			 : "%s: offset %llu: the small trace there cannot be read",
	    path, (unsigned long long)place->offset);
}

void small_close(struct small *s)
{
	if (!s)
		return;
	free(s->bytes);
	free(s);
}

void small_read(const struct small *s, uint64_t offset, void *into, size_t bytes, size_t *got)
{
	uint64_t end;

	*got = 0;
	if (offset >= s->trace_bytes)
		return;
	if (bytes > s->trace_bytes - offset)
		bytes = (size_t)(s->trace_bytes - offset);
	memset(into, 0, bytes);
	end = offset + bytes;
	for (size_t i = 0; i < s->count; i++) {
		uint64_t from = s->pieces[i].at, to = from + s->pieces[i].bytes;

		from = from > offset ? from : offset;
		to = to < end ? to : end;
		if (from < to)
			memcpy((uint8_t *)into + (from - offset),
			    s->bytes + s->pieces[i].from + (from - s->pieces[i].at), to - from);
	}
	*got = bytes;
}

/*
 * supervisor_trace.c - encodes and writes run.whyoom. With pwrite(), not a mapping: a full disk is
 * then an error to count and not a SIGBUS, and what is written is as safe from SIGKILL.
 */
#include "cmd/supervise/supervisor_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trace/cursor.h"
#include "trace/integrity/checks.h"
#include "trace/xxh64.h"
#include "util/clock_ns.h"
#include "util/io.h"
#include "util/num.h"
#include "whyoom/trace_fields.h"

#define BODY_MAX                                                                                   \
	(TRACE_SLOT_BYTES - sizeof(struct trace_chunk) - TRACE_SIDE_MAX * sizeof(struct trace_side))
#define RECORD_MAX 1024u /* the largest LEVEL_OF: every key with its value */

struct run_trace {
	int fd;
	int trouble;
	union {
		struct trace_header header;
		uint8_t page[TRACE_HEADER_BYTES]; /* with the copies of its counters */
	};
	union { /* of events; bytes 0: none yet */
		struct trace_chunk chunk;
		uint8_t raw[TRACE_SLOT_BYTES];
	};
	uint64_t chunk_at;
	struct xxh64 sum;
	uint64_t last_ns;
	uint64_t defs_at; /* one chunk: its place in the file */
	uint32_t defs_used, defs_written; /* bytes of its body; of those, of whole records */
};

static uint8_t *put(uint8_t *p, uint64_t v)
{
	return p + cursor_write_varint(p, v);
}

static bool write_at(struct run_trace *t, const void *data, size_t bytes, uint64_t at)
{
	int rc = io_write_at(t->fd, data, bytes, at);

	if (rc && !t->trouble)
		t->trouble = -rc;
	return !rc;
}

static void write_header(struct run_trace *t)
{
	checks_page(t->page);
	write_at(t, t->page, sizeof(t->page), 0);
}

/* The header of a chunk that was claimed; from then on it is one. */
static bool begin_chunk(struct run_trace *t, struct trace_chunk *chunk, uint64_t at)
{
	chunk->check = checks_open((uint8_t *)chunk);
	if (!write_at(t, chunk, sizeof(*chunk), at))
		return false;
	t->header.chunk_bytes += chunk->bytes;
	write_header(t);
	return true;
}

static void dropped(struct run_trace *t, enum trace_drop why)
{
	t->header.dropped[why]++;
	write_header(t);
}

/* Room for one more chunk at the file's end; 0: there is none. */
static uint64_t claim(struct run_trace *t)
{
	uint64_t at = t->header.file_bytes;

	if (ftruncate(t->fd, (off_t)(at + TRACE_SLOT_BYTES))) {
		if (!t->trouble)
			t->trouble = errno;
		return 0;
	}
	t->header.file_bytes = at + TRACE_SLOT_BYTES;
	write_header(t);
	return at;
}

int run_trace_new(int dir, struct run_trace **out, struct err *err)
{
	struct run_trace *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	t->fd =
	    openat(dir, RUN_TRACE_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (t->fd < 0) {
		rc = err_set(err, -errno, "cannot make %s: %s", RUN_TRACE_NAME, strerror(errno));
		free(t);
		return rc;
	}
	flock(t->fd, LOCK_EX | LOCK_NB);
	t->header = (struct trace_header)
	{
		.magic = TRACE_MAGIC, .major = TRACE_MAJOR, .minor = TRACE_MINOR,
		.header_bytes = TRACE_HEADER_BYTES, .slot_bytes = TRACE_SLOT_BYTES,
#if defined(__x86_64__)
		.arch = TRACE_ARCH_X86_64,
#else
		.arch = TRACE_ARCH_AARCH64,
#endif
		.mode = TRACE_MODE_SUPERVISOR, .clock = TRACE_CLOCK_MONOTONIC,
		.pid = (uint32_t)getpid(), .ppid = (uint32_t)getppid(), .ticks_hz = 1000000000u,
		.start_mono_ns = clock_ns(CLOCK_MONOTONIC),
		.start_real_ns = clock_ns(CLOCK_REALTIME), .file_bytes = TRACE_SLOT_BYTES,
	};
	t->header.start_ticks = t->header.start_mono_ns;
	write_header(t);
	t->defs_at = claim(t);
	if (t->defs_at) {
		struct trace_chunk defs = {
		    .magic = TRACE_CHUNK_MAGIC,
		    .type = TRACE_CHUNK_DEFINITIONS,
		    .header_bytes = sizeof(defs),
		    .bytes = TRACE_SLOT_BYTES,
		    .ticks = t->header.start_ticks,
		    .mono_ns = t->header.start_mono_ns,
		};
		begin_chunk(t, &defs, t->defs_at);
	}
	*out = t;
	return 0;
}

/* A definition: a number, unless it is 0, a name and a value. */
static void define(
    struct run_trace *t, uint16_t kind, uint32_t id, const char *key, const char *value, size_t v)
{
	uint64_t room = TRACE_SLOT_BYTES - sizeof(struct trace_chunk) - t->defs_used;
	size_t k = strlen(key), bytes = sizeof(struct trace_def) + 30 + k + v;
	struct trace_def head = {.kind = kind};
	uint64_t at = t->defs_at + sizeof(struct trace_chunk) + t->defs_used;
	uint8_t *record, *p;
	uint32_t check;

	if (!t->defs_at || bytes + 16 > room || !(record = calloc(1, bytes + 16))) {
		dropped(t, TRACE_DROP_DEFINITION);
		return;
	}
	p = record + sizeof(head);
	if (id)
		p = put(p, id);
	p = put(p, k);
	p = (uint8_t *)mempcpy(p, key, k);
	p = put(p, v);
	if (v)
		p = (uint8_t *)mempcpy(p, value, v);
	head.bytes = ((uint32_t)(p - record) + TRACE_DEF_CHECK_BYTES + 7) & ~7u;
	memcpy(record, &head, sizeof(head));
	check = checks_definition(record, head.bytes);
	memcpy(record + head.bytes - sizeof(check), &check, sizeof(check));
	t->defs_used += head.bytes;
	if (write_at(t, record, head.bytes, at)) {
		head.committed = 1;
		write_at(t, &head, sizeof(head), at);
		t->defs_written += head.bytes;
		write_at(t, &t->defs_written, sizeof(t->defs_written),
		    t->defs_at + offsetof(struct trace_chunk, committed));
	}
	free(record);
}

void run_trace_info(struct run_trace *t, const char *key, const char *value)
{
	define(t, TRACE_DEF_INFO, 0, key, value, strlen(value));
}

void run_trace_space(struct run_trace *t, uint32_t id, const char *name)
{
	/* Its parent, none, is written as an empty value would be. */
	define(t, TRACE_DEF_SPACE, id, name, NULL, 0);
}

void run_trace_info_list(struct run_trace *t, const char *key, char *const *strings)
{
	size_t used = 0,
	       max = TRACE_SLOT_BYTES / 4; /* a longer one is cut, as others need room too */
	char *all = malloc(max);

	if (!all)
		return;
	for (; *strings && used < max; strings++) {
		size_t n = strlen(*strings) + 1;

		if (n > max - used)
			n = max - used;
		memcpy(all + used, *strings, n);
		used += n;
	}
	define(t, TRACE_DEF_INFO, 0, key, all, used ? used - 1 : 0);
	free(all);
}

static void seal(struct run_trace *t)
{
	if (!t->chunk.bytes)
		return;
	t->chunk.checksum = xxh64_done(&t->sum);
	t->chunk.check = checks_sealed(t->raw, NULL, 0);
	t->chunk.sealed = 1;
	write_at(t, &t->chunk, sizeof(t->chunk), t->chunk_at);
	t->chunk.bytes = 0;
}

static bool open_chunk(struct run_trace *t)
{
	uint32_t sequence = t->chunk.magic ? t->chunk.sequence + 1 : 0;

	seal(t);
	t->chunk_at = claim(t);
	if (!t->chunk_at)
		return false;
	t->last_ns = clock_ns(CLOCK_MONOTONIC);
	t->chunk = (struct trace_chunk){
	    .magic = TRACE_CHUNK_MAGIC,
	    .type = TRACE_CHUNK_EVENTS,
	    .header_bytes = sizeof(t->chunk),
	    .bytes = TRACE_SLOT_BYTES,
	    .thread = 1,
	    .tid = t->header.pid,
	    .sequence = sequence,
	    .ticks = t->last_ns,
	    .mono_ns = t->last_ns,
	};
	xxh64_init(&t->sum);
	if (begin_chunk(t, &t->chunk, t->chunk_at))
		return true;
	t->chunk.bytes = 0;
	return false;
}

/* An extended event: `body` without dt. `time_ns` 0: now. */
static void event(
    struct run_trace *t, uint64_t time_ns, uint32_t kind, const uint8_t *body, size_t bytes)
{
	uint8_t record[RECORD_MAX + 64], time[10], *p = record, *at;
	uint64_t now;
	size_t n;

	if ((!t->chunk.bytes || t->chunk.committed + sizeof(record) > BODY_MAX) && !open_chunk(t)) {
		dropped(t, TRACE_DROP_NO_SPACE);
		return;
	}
	now = time_ns ? num_most(time_ns, t->last_ns) : clock_ns(CLOCK_MONOTONIC);
	n = (size_t)(put(time, now - t->last_ns) - time);
	*p++ = TRACE_EXTENDED;
	p = put(p, kind);
	p = put(p, n + bytes);
	p = (uint8_t *)mempcpy(p, time, n);
	p = (uint8_t *)mempcpy(p, body, bytes);
	n = (size_t)(p - record);
	if (!write_at(t, record, n, t->chunk_at + sizeof(t->chunk) + t->chunk.committed)) {
		dropped(t, TRACE_DROP_NO_SPACE);
		return;
	}
	xxh64_add(&t->sum, record, n);
	t->last_ns = now;
	at = t->raw + sizeof(t->chunk) + t->chunk.committed;
	memcpy(at, record, n);
	t->chunk.checksum += checks_words(t->raw + sizeof(t->chunk), at, at + n, t->chunk.checksum);
	t->chunk.committed += (uint32_t)n;
	/* with the sum */
	write_at(t, &t->chunk.committed,
	    offsetof(struct trace_chunk, sealed) - offsetof(struct trace_chunk, committed),
	    t->chunk_at + offsetof(struct trace_chunk, committed));
}

/* Writes all fields of a kind in their order; `levels` has as many as the field of that name says.
 */
static void record(struct run_trace *t, uint64_t time_ns, uint32_t kind,
    const union trace_fields *fields, const struct event_level *levels)
{
	const uint8_t *types = trace_field_types[kind];
	const uint64_t *field = (const uint64_t *)fields;
	uint8_t body[RECORD_MAX], *p = body;

	for (; *types != TRACE_FIELD_END; types++, field++) {
		p = put(p, *field);
		if (*types != TRACE_FIELD_LEVELS)
			continue;
		for (uint64_t i = 0; i < *field; i++) {
			p = put(p, levels[i].key);
			p = put(p, levels[i].value);
		}
	}
	event(t, time_ns, kind, body, (size_t)(p - body));
}

static void levels_of(struct run_trace *t, uint64_t seen_ns, pid_t pid, uint32_t space,
    const struct event_level *levels, size_t count)
{
	uint64_t room = num_least(count, (RECORD_MAX - 20) / 15);
	union trace_fields f;

	if (pid)
		f.LEVEL_OF =
		    (struct trace_LEVEL_OF){.pid = (uint64_t)pid, .levels = room, .space = space};
	else
		f.LEVEL = (struct trace_LEVEL){.space = space, .levels = room};
	record(t, seen_ns, pid ? TRACE_LEVEL_OF : TRACE_LEVEL, &f, levels);
}

void run_trace_levels(struct run_trace *t, uint64_t seen_ns, pid_t pid,
    const struct event_level *levels, size_t count)
{
	levels_of(t, seen_ns, pid, TRACE_SPACE_HOST, levels, count);
}

void run_trace_levels_of(
    struct run_trace *t, pid_t pid, uint32_t space, const struct event_level *levels, size_t count)
{
	levels_of(t, 0, pid, space, levels, count);
}

void run_trace_child_end(struct run_trace *t, pid_t pid, int code, int status, bool direct)
{
	union trace_fields f = {.CHILD_END = {.pid = (uint64_t)pid,
				    .how = code == CLD_EXITED ? TRACE_END_EXIT : TRACE_END_SIGNAL,
				    .status = (uint64_t)status,
				    .flags = (direct ? 1u : 0u) | (code == CLD_DUMPED ? 2u : 0u)}};

	record(t, 0, TRACE_CHILD_END, &f, NULL);
}

uint64_t run_trace_bytes(const struct run_trace *t)
{
	return t->header.file_bytes;
}

int run_trace_trouble(const struct run_trace *t)
{
	return t->trouble;
}

int run_trace_fd(const struct run_trace *t)
{
	return t->fd;
}

void run_trace_close(struct run_trace *t, int exit_code)
{
	if (!t)
		return;
	seal(t);
	t->header.end_how = TRACE_END_EXIT;
	t->header.end_code = (uint32_t)exit_code;
	t->header.end_mono_ns = clock_ns(CLOCK_MONOTONIC);
	write_header(t);
	close(t->fd);
	free(t);
}

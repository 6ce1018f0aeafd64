/*
 * small.c - see small.h. One write appends the record, then the trace is unlinked: whenever the
 * process is killed, the trace exists once, or twice, which the reader notices. Trusts nothing that
 * it reads: the file may be another process's.
 */
#include "trace/small.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/varint.h"
#include "base/xxh64.h"
#include "trace/disk.h"
#include "trace/small_code.h"
#include "whyoom/trace.h"

#define TIMES_MAX 16384u
/* Times are rounded to this. */
#define QUANTUM_NS 200u

struct work {
	/* the base's plain form, followed by this trace's */
	uint8_t window[2 * TRACE_SMALL_PLAIN_MAX];
	uint32_t times[TIMES_MAX];
	uint8_t record[TRACE_SMALL_BYTES_MAX];
};

/* The plain form while it is made. */
struct plain {
	uint8_t *pos, *end;
	uint32_t *times;
	uint32_t count;
	unsigned quantum;
	uint64_t key;
};

static bool put(struct plain *o, const void *bytes, size_t n)
{
	if ((size_t)(o->end - o->pos) < n)
		return false;
	memcpy(o->pos, bytes, n);
	o->pos += n;
	return true;
}

static bool put_number(struct plain *o, uint64_t v)
{
	if (o->end - o->pos < VARINT_BYTES_MAX)
		return false;
	o->pos = varint_put(o->pos, v);
	return true;
}

/* Return the end of a compact event's fields after its time; NULL: not what this shim writes. */
static const uint8_t *fields_end(unsigned tag, const uint8_t *p, const uint8_t *end)
{
	uint64_t v;

	p = varint_get(p, end, &v); /* the address */
	switch (tag & TRACE_TAG_KIND) {
	case TRACE_ALLOC:
		p = varint_get(p, end, &v);
		return tag & TRACE_ALLOC_SAME_STACK ? p : varint_get(p, end, &v);
	case TRACE_ALLOC_EXPECTED:
		return tag & TRACE_ALLOC_SAME_SIZE ? p : varint_get(p, end, &v);
	case TRACE_FREE:
	case TRACE_UNFREE:
		return p;
	}
	return NULL;
}

/* Add one event: its time to the times, the rest to the plain form. NULL: not what this shim
 * writes, or no room. */
static const uint8_t *put_event(
    struct plain *o, const uint8_t *p, const uint8_t *end, uint64_t *ticks, uint64_t *last)
{
	const uint8_t *rest;
	uint64_t kind = 0, length = 0, dt, now;
	unsigned tag = *p++;
	bool extended = (tag & TRACE_TAG_KIND) == TRACE_EXTENDED;

	if (extended) {
		p = varint_get(varint_get(p, end, &kind), end, &length);
		if (!p || length > (uint64_t)(end - p))
			return NULL;
		end = p + length;
	}
	rest = varint_get(p, end, &dt);
	if (!rest || o->count == TIMES_MAX)
		return NULL;
	*ticks += dt;
	now = *ticks >> o->quantum;
	if (now - *last > UINT32_MAX)
		return NULL;
	o->times[o->count++] = (uint32_t)(now - *last);
	*last = now;
	if (!extended)
		end = fields_end(tag, rest, end);
	if (!end || !put(o, &(uint8_t){(uint8_t)tag}, 1) ||
	    (extended && (!put_number(o, kind) || !put_number(o, (uint64_t)(end - rest)))) ||
	    !put(o, rest, (size_t)(end - rest)))
		return NULL;
	return end;
}

/* The program's path distinguishes one kind of process from another. */
static void look_for_key(struct plain *o, const uint8_t *p, const uint8_t *end)
{
	static const char exe[] = "\003exe";

	for (uint32_t bytes; o->key == 0 && end - p > (long)sizeof(struct trace_def); p += bytes) {
		const struct trace_def *d = (const void *)p;

		bytes = d->bytes;
		if (bytes < sizeof(*d) + sizeof(exe) || bytes > (uint64_t)(end - p))
			return;
		if (d->kind == TRACE_DEF_INFO && !memcmp(d + 1, exe, sizeof(exe) - 1))
			o->key = xxh64(d + 1, bytes - sizeof(*d));
	}
}

/* The record has a checksum of its own; the definitions' would be half of its bytes. */
static void clear_checks(uint8_t *p, const uint8_t *end)
{
	for (uint32_t bytes; end - p >= (long)sizeof(struct trace_def); p += bytes) {
		bytes = ((const struct trace_def *)(const void *)p)->bytes;
		if (bytes < sizeof(struct trace_def) + TRACE_DEF_CHECK_BYTES ||
		    bytes > (uint64_t)(end - p))
			return;
		memset(p + bytes - TRACE_DEF_CHECK_BYTES, 0, TRACE_DEF_CHECK_BYTES);
	}
}

static bool put_chunk(struct plain *o, uint32_t slot, const struct trace_chunk *c)
{
	const uint8_t *p = (const uint8_t *)(c + 1), *end = (const uint8_t *)c + c->bytes;
	uint64_t ticks = 0, last = 0;
	struct trace_chunk head = *c;
	uint8_t *where;
	uint32_t bytes;

	head.checksum = 0; /* may differ after reading back */
	head.sealed = 0;
	head.check = 0;
	if (!put(o, &slot, sizeof(slot)))
		return false;
	where = o->pos;
	if (!put(o, &head, sizeof(head)))
		return false;
	if (c->type == TRACE_CHUNK_DEFINITIONS) {
		look_for_key(o, p, end);
		while (end > p && !((const uint64_t *)(const void *)end)[-1])
			end -= 8;
		bytes = (uint32_t)(end - p);
		if (!put(o, &bytes, sizeof(bytes)) || !put(o, p, bytes))
			return false;
		clear_checks(o->pos - bytes, o->pos);
		return true;
	}
	if ((c->type != TRACE_CHUNK_EVENTS && c->type != TRACE_CHUNK_SHARED) || c->side_count ||
	    c->committed > c->bytes - sizeof(*c))
		return false;
	end = p + c->committed;
	while (p && p < end)
		p = put_event(o, p, end, &ticks, &last);
	bytes = (uint32_t)(o->pos - where - sizeof(head));
	/* the length of the events' part takes the place of `committed`, which follows from it */
	memcpy(where + offsetof(struct trace_chunk, committed), &bytes, sizeof(bytes));
	return p;
}

static bool make_plain(struct plain *o, const uint8_t *base, uint64_t size)
{
	const struct trace_header *h = (const void *)base;

	for (int i = 0; i < TRACE_DROP_REASONS; i++)
		if (h->dropped[i])
			return false;
	if (memcmp(h->magic, TRACE_MAGIC, 8) != 0 || h->major != TRACE_MAJOR ||
	    (h->end_how != TRACE_END_EXIT && h->end_how != TRACE_END_EXEC) ||
	    (h->flags & ~(uint64_t)(TRACE_FLAG_FORKED)) || h->checkpoint[0].number ||
	    h->checkpoint[1].number || h->untold || h->brief_stacks || h->unrecorded ||
	    !put(o, h, TRACE_SMALL_HEADER_BYTES))
		return false;
	for (uint64_t at = TRACE_SLOT_BYTES; at < size;) {
		const struct trace_chunk *c = (const void *)(base + at);

		if (c->magic != TRACE_CHUNK_MAGIC) {
			at += TRACE_SLOT_BYTES;
			continue;
		}
		if (c->header_bytes != sizeof(*c) || !c->bytes || c->bytes % TRACE_SLOT_BYTES ||
		    c->bytes > size - at || !put_chunk(o, (uint32_t)(at / TRACE_SLOT_BYTES), c))
			return false;
		at += c->bytes;
	}
	o->key += (h->flags & TRACE_FLAG_FORKED) != 0; /* a forked child's trace lacks the start */
	return true;
}

/* Would writing up to `end`, with what others append meanwhile, raise SIGXFSZ? */
static bool over_file_limit(uint64_t end)
{
	return end + (1u << 20) > sys_limit(RLIMIT_FSIZE);
}

/* Does the file system append in one step? Network file systems do not, so writers would
 * overlap. */
static bool appends(int fd)
{
	static const uint32_t not [] = {0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546,
	    0x01021997, 0x00c36400, 0x0bd00bd0, 0x47504653, 0x5346414f};
	struct statfs fs;

	if (sys_call(SYS_fstatfs, fd, (long)&fs, 0, 0, 0, 0) < 0)
		return false;
	for (unsigned i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
		if ((uint32_t)fs.f_type == not [i])
			return false;
	return true;
}

static void file_name(char out[40], uint32_t number)
{
	const char *end = out + 40;

	text_append(text_append_number(text_append(out, end, "small."), end, number), end,
	    TRACE_SMALL_SUFFIX);
}

/* Open the file that is appended to now. Returns a descriptor or negative errno. */
static int open_file(int directory, uint32_t *number)
{
	enum { HOW = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK };
	struct stat st;
	char name[40];

	for (int tries = 0; tries < 4; tries++) {
		int fd;

		*number = disk_small_file();
		file_name(name, *number);
		fd = (int)sys_call(SYS_openat, directory, (long)name, HOW, 0600, 0, 0);
		if (fd < 0)
			return fd;
		if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) == 0 && S_ISREG(st.st_mode) &&
		    st.st_uid == (uid_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) &&
		    !over_file_limit((uint64_t)st.st_size + TRACE_SMALL_BYTES_MAX) && appends(fd)) {
			if (st.st_size < (long)TRACE_SMALL_FILE_MAX)
				return fd;
			disk_small_next(*number);
		} else {
			tries = 4;
		}
		sys_close(fd);
	}
	return -1;
}

/* Read the plain form of a similar trace to the start of the window. Returns its bytes; 0: none. */
static uint32_t read_base(struct work *w, int fd, uint32_t number, uint64_t key, uint32_t *at)
{
	struct trace_small head;

	if (!disk_small_base(number, key, at) ||
	    sys_call(SYS_pread64, fd, (long)&head, sizeof(head), (long)*at, 0, 0) !=
		(long)sizeof(head) ||
	    memcmp(head.magic, TRACE_SMALL_MAGIC, 8) != 0 || head.version != TRACE_SMALL_VERSION ||
	    head.coded || head.key != key || head.plain_bytes > TRACE_SMALL_PLAIN_MAX ||
	    head.bytes < sizeof(head) + head.plain_bytes || head.bytes > TRACE_SMALL_BYTES_MAX ||
	    sys_call(SYS_pread64, fd, (long)w->record, (long)head.bytes, (long)*at, 0, 0) !=
		(long)head.bytes)
		return 0;
	/* a base that the reader would refuse must not be used */
	memset(w->record + offsetof(struct trace_small, checksum), 0, sizeof(head.checksum));
	if (xxh64(w->record, head.bytes) != head.checksum)
		return 0;
	memcpy(w->window, w->record + sizeof(head), head.plain_bytes);
	return head.plain_bytes;
}

/* Make the record in w->record; `o` holds the plain form, at `plain`. Returns its bytes; 0: too
 * large. */
static uint32_t make_record(struct work *w, struct small_coder *coder, const struct plain *o,
    const uint8_t *plain, uint32_t base_bytes, struct trace_small *head)
{
	uint32_t bytes = (uint32_t)(o->pos - plain), at = sizeof(*head), base = base_bytes;
	size_t n;

	head->coded = base_bytes > 0;
	head->plain_bytes = bytes;
	head->times = o->count;
	head->quantum = (uint8_t)o->quantum;
	head->key = o->key;
	if (base_bytes) {
		memmove(w->window + base_bytes, plain, bytes);
	} else {
		memcpy(w->record + at, plain, bytes);
		at += bytes;
		bytes = 0;
	}
	n = small_encode(coder, w->window, base, base + bytes, w->times, o->count, w->record + at,
	    sizeof(w->record) - at);
	head->bytes = at + (uint32_t)n;
	memcpy(w->record, head, sizeof(*head));
	head->checksum = xxh64(w->record, head->bytes);
	memcpy(w->record, head, sizeof(*head));
	return n ? head->bytes : 0;
}

/* Append w->record; the disk's account counts it first. */
static bool append(struct work *w, int fd, uint32_t number, const struct trace_small *head)
{
	long n, end;

	if (!disk_take(head->bytes, DISK_LAST))
		return false;
	n = sys_call(SYS_write, fd, (long)w->record, head->bytes, 0, 0, 0);
	if (n != (long)head->bytes) {
		disk_give(n > 0 ? head->bytes - (uint64_t)n : head->bytes);
		return false;
	}
	end = sys_call(SYS_lseek, fd, 0, SEEK_CUR, 0, 0, 0);
	if (!head->coded && end >= n && end - n <= UINT32_MAX)
		disk_small_set_base(number, head->key, (uint32_t)(end - n));
	return true;
}

static bool fold(const char *directory, const uint8_t *trace, uint64_t size, struct work *w,
    struct small_coder *coder)
{
	const struct trace_header *h = (const void *)trace;
	uint8_t *plain = w->window + TRACE_SMALL_PLAIN_MAX;
	struct plain o = {plain, plain + TRACE_SMALL_PLAIN_MAX, w->times, .key = 0};
	struct trace_small head = {.version = TRACE_SMALL_VERSION,
	    .pid = h->pid,
	    .image = h->image,
	    .start_real_ns = h->start_real_ns,
	    .file_bytes = (uint32_t)size};
	uint64_t quantum = tick_clock.ticks_100ms / (100000000u / QUANTUM_NS);
	uint32_t number, base;
	bool done = false;
	int dir, fd;

	memcpy(head.magic, TRACE_SMALL_MAGIC, 8);
	while (quantum >> (o.quantum + 1))
		o.quantum++;
	if (!make_plain(&o, trace, size))
		return false;
	dir = sys_open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return false;
	fd = open_file(dir, &number);
	if (fd >= 0) {
		base = read_base(w, fd, number, o.key, &head.base);
		done =
		    make_record(w, coder, &o, plain, base, &head) && append(w, fd, number, &head);
		sys_close(fd);
	}
	sys_close(dir);
	return done;
}

bool small_alone(void)
{
	struct stat st;

	/* one link for itself, one for the directory above, one for each thread */
	return sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&st, 0, 0, 0) ==
		   0 &&
	       st.st_nlink == 3;
}

bool small_fold(const char *directory, const char *path)
{
	const size_t room = (sizeof(struct work) + small_coder_bytes() + 4095) & ~(size_t)4095;
	int file = sys_open(path, O_RDONLY | O_NOFOLLOW, 0);
	struct work *w = NULL;
	struct stat st;
	bool done = false;
	long p = -1;

	if (file < 0)
		return false;
	if (sys_call(SYS_fstat, file, (long)&st, 0, 0, 0, 0) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= TRACE_SLOT_BYTES &&
	    st.st_size <= (long)(TRACE_SMALL_SLOTS_MAX * TRACE_SLOT_BYTES))
		p = sys_call(SYS_mmap, 0, st.st_size, PROT_READ, MAP_SHARED, file, 0);
	sys_close(file);
	if (sys_failed(p))
		return false;
	w = sys_pages(room);
	if (w)
		done = fold(directory, (const uint8_t *)p, (uint64_t)st.st_size, w,
		    (struct small_coder *)(void *)(w + 1));
	sys_pages_free(w, room);
	sys_call(SYS_munmap, p, st.st_size, 0, 0, 0, 0);
	if (!done || sys_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0) < 0)
		return false;
	disk_give((uint64_t)st.st_size);
	return true;
}

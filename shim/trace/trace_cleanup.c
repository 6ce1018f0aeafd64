/*
 * trace_cleanup.c - reads small trace files back. Trusts nothing that it reads: the file may belong
 * to another process with a reused pid.
 */
#include "trace/trace_cleanup.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/record_fields.h"
#include "base/sys.h"
#include "base/varint.h"
#include "trace/disk.h"
#include "trace/trace_file.h"
#include "whyoom/trace.h"

#define FEW_EVENTS 32u
#define FEW_BYTES 65536u
#define SMALL_FILE (8u * TRACE_SLOT_BYTES)

struct tally {
	uint64_t events, bytes;
	bool keep; /* worth keeping whatever the counts */
};

/* Count one event. NULL: not what this shim writes. */
static const uint8_t *tally_event(const uint8_t *p, const uint8_t *end, struct tally *t)
{
	uint8_t tag = *p++;
	uint64_t kind = tag & TRACE_TAG_KIND, v, length;
	const uint8_t *next;
	union trace_fields f;

	if (kind != TRACE_EXTENDED) {
		if (kind > TRACE_UNFREE)
			return NULL; /* expected ALLOCs occur only in a thread's own chunk */
		t->events++;
		if ((p = varint_get(p, end, &v)))
			p = varint_get(p, end, &v);
		if (p && kind == TRACE_ALLOC && (p = varint_get(p, end, &v))) {
			t->bytes += v;
			if (!(tag & TRACE_ALLOC_SAME_STACK))
				p = varint_get(p, end, &v);
		}
		return p;
	}
	if (!(p = varint_get(p, end, &kind)) || !(p = varint_get(p, end, &length)) ||
	    length > (uint64_t)(end - p))
		return NULL;
	next = p + length;
	if (kind >= TRACE_KINDS)
		return next;
	fields_get((unsigned)kind, varint_get(p, next, &v), next, &f, NULL, 0);
	switch ((enum trace_event_kind)kind) {
	case TRACE_FAILED:
	case TRACE_SIGNAL:
	case TRACE_NOTICE:
	case TRACE_FORK:
	case TRACE_SAMPLED_ALLOC:
	case TRACE_SPACE_ALLOC:
	case TRACE_SPACE_MAP:
	case TRACE_SPACE_CALL:
		t->keep = true;
		break;
	case TRACE_MAP:
		t->bytes += f.MAP.length;
		t->events++;
		break;
	case TRACE_ALLOC_WIDE:
		t->bytes += f.ALLOC_WIDE.size;
		t->events++;
		break;
	case TRACE_UNMAP:
	case TRACE_BRK:
	case TRACE_ADVISE:
	case TRACE_FREE_WIDE:
		t->events++;
		break;
	case TRACE_ALLOC: /* compact: above */
	case TRACE_FREE:
	case TRACE_UNFREE:
	case TRACE_ALLOC_EXPECTED:
	case TRACE_EXTENDED:
	case TRACE_UNUNMAP: /* these say nothing about what is worth keeping */
	case TRACE_LEVEL:
	case TRACE_LEVEL_OF:
	case TRACE_THREAD_EXIT:
	case TRACE_EXIT:
	case TRACE_CHILD_END:
	case TRACE_SHARED_THREAD:
	case TRACE_MARK:
	case TRACE_SPACE_FREE:
	case TRACE_SPACE_UNFREE:
	case TRACE_CHECKPOINT:
	case TRACE_SPACE_UNMAP:
	case TRACE_SPACE_UNUNMAP:
	case TRACE_SPACE_CLEAR:
	case TRACE_TASK:
	case TRACE_TASK_END:
	case TRACE_WENT:
		break;
	}
	return next;
}

static bool tally_file(const uint8_t *base, uint64_t size, struct tally *t)
{
	const struct trace_header *h = (const void *)base;

	for (int i = 0; i < TRACE_DROP_REASONS; i++)
		if (h->dropped[i])
			return false;
	for (uint64_t at = TRACE_SLOT_BYTES; at + TRACE_SLOT_BYTES <= size;) {
		const struct trace_chunk *c = (const void *)(base + at);
		const uint8_t *p = base + at + sizeof(*c), *end;

		if (c->magic != TRACE_CHUNK_MAGIC) {
			at += TRACE_SLOT_BYTES;
			continue;
		}
		if (!c->bytes || c->bytes > size - at || c->committed > c->bytes - sizeof(*c) ||
		    c->side_count)
			return false;
		end = p + c->committed;
		while (c->type != TRACE_CHUNK_DEFINITIONS && p && p < end)
			p = tally_event(p, end, t);
		if (!p || t->keep || t->events >= FEW_EVENTS || t->bytes >= FEW_BYTES)
			return false;
		at += c->bytes;
	}
	return true;
}

/* Map a whole small file of ours, or the header of a larger one, writable; NULL: not possible. */
static uint8_t *map_small(const char *path, uint64_t *size)
{
	struct stat st;
	long p = -1;
	int fd = sys_open(path, O_RDWR | O_NOFOLLOW, 0);

	if (fd < 0)
		return NULL;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= TRACE_SLOT_BYTES) {
		*size = (uint64_t)st.st_size;
		p = sys_call(SYS_mmap, 0, (long)(*size > SMALL_FILE ? TRACE_HEADER_BYTES : *size),
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	sys_close(fd);
	return sys_failed(p) ? NULL : (uint8_t *)p;
}

static void unmap(uint8_t *base, uint64_t size)
{
	sys_call(SYS_munmap, (long)base, (long)(size > SMALL_FILE ? TRACE_HEADER_BYTES : size), 0,
	    0, 0, 0);
}

static bool trivial(const uint8_t *base, uint64_t size)
{
	struct tally t = {0};

	return size <= SMALL_FILE && tally_file(base, size, &t);
}

bool trace_cleanup_trivial(const char *path, uint64_t passed)
{
	uint64_t size;
	uint8_t *base = map_small(path, &size);
	bool answer;

	if (!base)
		return false;
	answer = passed < FEW_BYTES && trivial(base, size);
	unmap(base, size);
	return answer;
}

/* When this process was created, on the monotonic clock; exec does not change it. */
static uint64_t process_start_ns(void)
{
	char text[512], *p;
	uint64_t v = 0, apart;

	if (sys_read_file("/proc/self/stat", text, sizeof(text)) <= 0 || !(p = strrchr(text, ')')))
		return UINT64_MAX;
	for (int field = 2; field < 22 && p; field++) {
		p = strchr(p + 1, ' ');
		if (p && field == 21)
			for (p++; *p >= '0' && *p <= '9'; p++)
				v = v * 10 + (uint64_t)(*p - '0');
	}
	if (!p)
		return UINT64_MAX;
	/* counted in hundredths of a second since boot, sleep included */
	apart = sys_clock_ns(CLOCK_MONOTONIC);
	apart = sys_clock_ns(CLOCK_BOOTTIME) - apart;
	v *= 10000000u;
	return v > apart ? v - apart : 0;
}

bool trace_cleanup_former(const char *path)
{
	uint64_t size, started;
	uint8_t *base = map_small(path, &size);
	struct trace_header *h = (struct trace_header *)(void *)base;
	bool removed = false;

	if (!base)
		return false;
	started = process_start_ns();
	if (!memcmp(h->magic, TRACE_MAGIC, 8) && h->end_how == TRACE_END_NONE &&
	    h->pid == (uint32_t)sys_getpid() && started != UINT64_MAX &&
	    h->start_mono_ns + 20000000u >= started) {
		trace_file_set_end(h, TRACE_END_EXEC, 0, sys_clock_ns(CLOCK_MONOTONIC));
		if (trivial(base, size) && trace_file_pass_on(h))
			removed = sys_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0) == 0;
		if (removed) /* a file so small has no gaps */
			disk_give(size);
	}
	unmap(base, size);
	return removed;
}

bool trace_cleanup_is_former(const char *path, const struct trace_header *last)
{
	struct trace_header h;
	int fd = sys_open(path, O_RDONLY | O_NOFOLLOW, 0);
	long n;

	if (fd < 0)
		return false;
	n = sys_call(SYS_pread64, fd, (long)&h, sizeof(h), 0, 0, 0);
	sys_close(fd);
	return n == (long)sizeof(h) && !memcmp(h.magic, TRACE_MAGIC, 8) && h.pid == last->pid &&
	       h.end_how == TRACE_END_EXEC && h.end_mono_ns <= last->start_mono_ns &&
	       h.file_bytes <= SMALL_FILE;
}

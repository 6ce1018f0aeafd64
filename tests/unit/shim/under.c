/* under.c - the recording core without hooks: minimal replacements for lifecycle.c, stack.c and
 * python.c. A test calls note_*() itself. */
#include "under.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "python/python.h"
#include "shim.h"
#include "stack/stack.h"
#include "thread/chunk_writer.h"
#include "thread/thread.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"

struct shim_state shim = {.can_wipe = true};
uint32_t under_stack;
uint64_t under_task;
bool under_interrupted;
static char *directory;

static bool start(void)
{
	return shim.mode == SHIM_RECORDING;
}

static bool forked(struct thread *self)
{
	return false;
}

const struct thread_lifecycle thread_lifecycle = {start, forked};

uint32_t stack_capture(
    struct walker **w, const struct stack_start *start, bool python, struct stack_task *task)
{
	if (task->key != under_task) {
		task->key = under_task;
		task->turn++;
	}
	return under_stack;
}

bool stack_interrupted(const struct walker *w)
{
	return under_interrupted;
}

void stack_thread_end(struct walker **w)
{
}

void stack_fork_child(struct walker *own)
{
}

void python_fork_child(struct python_walk *own)
{
}

static void ignore(const char *line)
{
}

static void remove_directory(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/" TRACE_DISK_NAME, directory);
	unlink(path);
	rmdir(directory);
	free(directory);
}

int under_begin(uint64_t max_trace)
{
	char template[] = "/tmp/whyoom-unit-XXXXXX";
	const char *why;

	if (!directory) {
		directory = strdup(mkdtemp(template));
		atexit(remove_directory);
	}
	options_read(NULL, ignore);
	options.max_trace = max_trace;
	options.allow_tmpfs = true;
	options.dir = directory;
	clock_init();
	shim.pid = getpid();
	shim.page_size = 4096;
	if (trace_file_create(directory, false, &why) < 0)
		return -1;
	shim.mode = SHIM_RECORDING;
	return 0;
}

const char *under_directory(void)
{
	return directory;
}

const char *under_path(void)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%d.0.whyoom", directory, getpid());
	return path;
}

void under_end(void)
{
	/* forget everything, like the child of a fork */
	shim.mode = SHIM_DORMANT;
	shim.budget = false;
	unlink(under_path());
	trace_file_forget();
	definitions_forked();
	chunk_writer_forked();
	note_forked();
	checkpoint_forked(clock_ticks());
	thread_forked(NULL);
	thread_self = NULL;
}

static const uint8_t *number(const uint8_t *p, uint64_t *v)
{
	*v = 0;
	for (int shift = 0;; shift += 7) {
		*v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p++ & 0x80))
			return p;
	}
}

static int64_t zigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Events that a checkpoint replaces count only in the checkpoint. */
static bool counts(const struct trace_chunk *c, const struct under_trace *t, uint64_t ticks)
{
	return c->type == TRACE_CHUNK_CHECKPOINT || !t->checkpoint || ticks > t->checkpoint_ticks;
}

static void read_chunk(const struct trace_chunk *c, struct under_trace *t)
{
	const uint8_t *p = (const uint8_t *)(c + 1), *end = p + c->committed;
	uint64_t ticks = c->ticks, address = 0, stack = 0, v;
	uint64_t expected[TRACE_EXPECTED_PLACES][2] = {{0}}; /* stack, size */
	uint32_t thread = c->thread;

	while (p < end) {
		struct under_event *e = &t->events[t->count++];
		uint8_t tag = *p++;

		*e = (struct under_event){.kind = tag & 15, .flags = tag >> 4, .thread = thread};
		if (e->kind == TRACE_EXTENDED) {
			const uint8_t *next;
			uint64_t length;

			p = number(p, &v);
			e->kind = (uint32_t)v;
			p = number(p, &length);
			next = p + length;
			p = number(p, &v);
			ticks += v;
			while (p < next) {
				p = number(p, &v);
				if (e->fields < UNDER_FIELDS)
					e->field[e->fields++] = v;
			}
			if (p != next)
				t->errors++;
			if (e->kind == TRACE_SHARED_THREAD)
				e->thread = thread = (uint32_t)e->field[0];
		} else {
			p = number(p, &v);
			ticks += v;
			p = number(p, &v);
			address += (uint64_t)(zigzag(v) * 8);
			e->field[0] = address;
			if (e->kind == TRACE_ALLOC || e->kind == TRACE_ALLOC_EXPECTED) {
				uint64_t *known = expected[TRACE_EXPECTED_PLACE(stack)];
				bool same = tag & TRACE_ALLOC_SAME_STACK;

				if (e->kind == TRACE_ALLOC_EXPECTED) {
					e->kind = TRACE_ALLOC;
					t->expected++;
					stack = known[0];
					e->field[1] = known[1];
					p = same ? p : number(p, &e->field[1]);
				} else {
					p = number(p, &e->field[1]);
					p = same ? p : number(p, &stack);
				}
				known[0] = e->field[2] = stack;
				known[1] = e->field[1];
			}
		}
		e->ticks = ticks;
		e->checkpoint = c->type == TRACE_CHUNK_CHECKPOINT;
		if (!counts(c, t, ticks))
			t->count--;
	}
	if (p != end)
		t->errors++;
	t->side += c->side_count;
}

static void read_checkpoint(const struct trace_header *h, struct under_trace *t)
{
	for (int i = 0; i < TRACE_CHECKPOINT_SLOTS; i++)
		if (h->checkpoint[i].number > t->checkpoint) {
			t->checkpoint = h->checkpoint[i].number;
			t->checkpoint_ticks = h->checkpoint[i].ticks;
			t->checkpoint_parts = h->checkpoint[i].parts;
		}
}

struct under_trace *under_read(void)
{
	struct under_trace *t = calloc(1, sizeof(*t));
	struct stat st;
	int fd = open(under_path(), O_RDONLY);
	const uint8_t *base;

	fstat(fd, &st);
	base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	t->base = base;
	t->bytes = (uint64_t)st.st_size;
	t->events = calloc(1000000, sizeof(*t->events));
	read_checkpoint((const void *)base, t);
	for (uint64_t at = 65536; at < t->bytes;) {
		const struct trace_chunk *c = (const void *)(base + at);

		if (c->magic != TRACE_CHUNK_MAGIC) {
			at += 65536;
			continue;
		}
		t->chunks[c->type]++;
		if (c->type == TRACE_CHUNK_CHECKPOINT && c->tid == t->checkpoint)
			t->parts += c->sealed;
		if (c->type != TRACE_CHUNK_DEFINITIONS &&
		    (c->type != TRACE_CHUNK_CHECKPOINT || c->tid == t->checkpoint))
			read_chunk(c, t);
		at += c->bytes;
	}
	return t;
}

void under_free(struct under_trace *t)
{
	munmap((void *)t->base, t->bytes);
	free(t->events);
	free(t);
}

uint64_t under_count(const struct under_trace *t, uint32_t kind)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->count; i++)
		n += t->events[i].kind == kind;
	return n;
}

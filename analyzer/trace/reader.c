/*
 * reader.c - opens one trace file: its header, the list of its chunks, its definitions. Refuses a
 * file that is no trace; reads a damaged one as far as it is sound.
 */
#include "trace/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/checkpoint.h"
#include "trace/cursor.h"
#include "trace/integrity/checks.h"
#include "trace/packed/packed.h"
#include "whyoom/trace.h"

#define WINDOW_MIN 16384u
#define WINDOW_MAX 262144u
#define WINDOWS_TOTAL (16u << 20)
#define LIST_TRIES 8
#define RELIST_NS 5000000 /* longer each time: 0.14 s in all */

/* Return a hash that identifies a chunk: of the header's constant part; in files without checks,
 * with the checksum of a sealed chunk. Two threads that take a shared chunk at a time may give them
 * the same number at the same moment: then their events differ. */
static uint64_t identity(const struct trace *t, const struct chunk *c)
{
	struct {
		uint64_t ticks, mono_ns, checksum, offset;
		uint32_t type, thread, tid, sequence;
	} key = {.ticks = c->ticks,
	    .mono_ns = c->mono_ns,
	    .type = c->type,
	    .thread = c->thread,
	    .tid = c->tid,
	    .sequence = c->sequence};

	if (c->type == TRACE_CHUNK_SHARED ||
	    (!t->checks && c->sealed && c->type != TRACE_CHUNK_DEFINITIONS))
		key.checksum = c->checksum;
	else if (!t->checks || c->distrusted)
		key.offset = c->offset;
	return xxh64_of(&key, sizeof(key));
}

/* Register a chunk. 0; 1: a copy of an earlier one; -ENOMEM. */
static int found(struct trace *t, const struct chunk *c)
{
	struct damage_chunk chunk = {.offset = c->offset,
	    .ticks = c->ticks,
	    .bytes = c->bytes,
	    .thread = c->thread,
	    .sequence = c->sequence,
	    .type = c->distrusted ? 0 : c->type};

	/* A chunk whose header cannot be read counts as a gap. */
	if (c->distrusted && c->bytes == TRACE_SLOT_BYTES && !c->committed)
		return damage_gap(&t->damage, c->offset, c->offset + c->bytes, true);
	return damage_chunk(&t->damage, &chunk, identity(t, c));
}

/* List the chunks from *offset on: `events` in t->chunks, or definitions in `list`. */
static int list_chunks(struct trace *t, uint64_t *offset, bool events, void *list, struct err *err)
{
	VEC(struct chunk) *definitions = list;
	uint64_t at = *offset, data;
	struct chunk chunk;
	bool foreign;
	int r = 0;

	while (at < t->source.size) {
		r = trace_read_chunk(t, at, &chunk, &foreign, err);
		if (r < 0)
			return r;
		if (r) { /* claimed but not written, or reserved space */
			uint64_t from = at;

			at += TRACE_SLOT_BYTES;
			data = source_next_data(&t->source, at);
			if (data > at && data - at >= TRACE_SLOT_BYTES && !foreign)
				at = data - data % TRACE_SLOT_BYTES;
			r = events ? damage_gap(&t->damage, from, at, foreign) : 0;
			if (r)
				return r;
			continue;
		}
		r = events ? found(t, &chunk) : 0;
		at += chunk.bytes;
		if (r < 0)
			return r;
		if (r)
			continue;
		/* A torn part of a checkpoint is no loss: the header names the complete one. */
		if (chunk.torn && chunk.type != TRACE_CHUNK_CHECKPOINT) {
			t->context.torn_chunks++;
			chunk.counted = true;
		}
		if (!chunk.distrusted)
			r = clock_add(&t->clock, chunk.ticks, chunk.mono_ns);
		if (!r && chunk.type == TRACE_CHUNK_DEFINITIONS)
			r = vec_push(definitions, chunk);
		else if (!r && events &&
			 (chunk.type == TRACE_CHUNK_CHECKPOINT ||
			     (chunk.readable + chunk.side_count &&
				 (chunk.type == TRACE_CHUNK_EVENTS ||
				     chunk.type == TRACE_CHUNK_SHARED))))
			r = vec_push(&t->chunks, chunk);
		if (r)
			return r;
	}
	*offset = at;
	return 0;
}

/* Return how many bytes of the chunk's definitions are missing or damaged, after it was read. */
static uint64_t definitions_missing(const struct trace *t, const struct chunk *c)
{
	/* A definition left unfinished by a kill is no loss; `committed` excludes it. */
	return t->checks && !c->distrusted && c->committed > t->defs.sound_bytes
		   ? c->committed - t->defs.sound_bytes
		   : 0;
}

static void note_definitions(struct trace *t, const struct chunk *c, size_t at, uint64_t missing)
{
	damage_note(&t->damage, TRACE_DAMAGE_DEFINITIONS,
	    &(struct damage_where){
		.offset = c->offset + (at < c->readable ? sizeof(struct trace_chunk) + at : 0),
		.bytes = missing,
		.from = c->ticks,
		.to = DAMAGE_LATEST});
}

static int read_definitions(
    struct trace *t, const struct chunk *list, size_t count, bool stacks, struct err *err)
{
	uint8_t *body = NULL;
	size_t capacity = 0, got;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		bool torn;
		uint64_t missing;

		if (!list[i].readable) {
			if (!stacks)
				note_definitions(t, &list[i], 0, list[i].committed);
			continue;
		}
		if (list[i].readable > capacity) {
			free(body);
			capacity = list[i].readable;
			body = malloc(capacity);
			if (!body)
				return -ENOMEM;
		}
		r = source_read(&t->source, list[i].offset + sizeof(struct trace_chunk), body,
		    list[i].readable, &got, err);
		if (r)
			break;
		uint64_t broken = t->defs.broken;
		r = defs_read(&t->defs, body, got, stacks, &torn);
		if (r)
			break;
		if (!list[i].torn && (t->defs.broken > broken || (torn && !stacks)))
			t->context.torn_chunks++;
		missing = definitions_missing(t, &list[i]);
		if (!stacks) {
			t->definition_bytes += t->defs.sound_bytes;
			if (missing && !list[i].torn)
				t->context.torn_chunks++;
		}
		if ((!stacks && (missing || torn)) || t->defs.broken > broken)
			note_definitions(t, &list[i], t->defs.unsound_at, stacks ? 0 : missing);
	}
	free(body);
	return r;
}

static int by_place(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->type == TRACE_CHUNK_EVENTS && x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->type != TRACE_CHUNK_SHARED && x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

uint32_t trace_thread_index(void *arg, uint32_t serial, uint32_t tid)
{
	struct trace *t = arg;
	struct trace_thread thread = {.serial = serial, .tid = tid};
	uint64_t *index, *def;

	if (t->threads.count >= THREADS_MAX)
		return 0;
	index = map_put(&t->thread_ids, serial);
	if (!index)
		return 0;
	if (*index)
		return (uint32_t)*index - 1;
	def = map_find(&t->defs.thread_serials, serial);
	if (def) {
		thread.name = t->defs.threads.items[*def - 1].name;
		if (!thread.tid)
			thread.tid = t->defs.threads.items[*def - 1].tid;
	}
	if (vec_reach(&t->states, t->threads.count + 1) || vec_push(&t->threads, thread))
		return 0;
	*index = t->threads.count;
	return (uint32_t)t->threads.count - 1;
}

static bool begins_stream(const struct chunk *c)
{
	return c->type == TRACE_CHUNK_SHARED || c->type != c[-1].type || c->thread != c[-1].thread;
}

size_t trace_order_chunks(struct trace *t)
{
	struct chunk *chunks = t->chunks.items;
	size_t count = t->chunks.count, streams = 0;

	if (count)
		qsort(chunks, count, sizeof(*chunks), by_place);
	for (size_t i = 0; i < count; i++)
		streams += !i || begins_stream(&chunks[i]);
	return streams;
}

void trace_group_chunks(struct trace *t, struct stream *streams)
{
	const struct chunk *chunks = t->chunks.items;
	size_t n = 0;

	for (size_t i = 0; i < t->chunks.count; i++) {
		if (!i || begins_stream(&chunks[i])) {
			streams[n].gaps.room = &t->context.gaps_room;
			streams[n++].first = (uint32_t)i;
		}
		streams[n - 1].count++;
		if (chunks[i].type == TRACE_CHUNK_EVENTS)
			trace_thread_index(t, chunks[i].thread, chunks[i].tid);
	}
}

/* Make streams: one of each thread's chunks, one of each shared chunk, one of the checkpoint. */
static int make_streams(struct trace *t)
{
	size_t n = trace_order_chunks(t);

	t->streams = calloc(n + 1, sizeof(*t->streams));
	t->heap = calloc(n + 1, sizeof(*t->heap));
	if (!t->streams || !t->heap)
		return -ENOMEM;
	trace_group_chunks(t, t->streams);
	for (size_t i = 0; i < t->chunks.count; i++)
		t->facts.event_bytes += t->chunks.items[i].readable;
	t->stream_count = n;
	t->context.source = &t->source;
	t->context.defs = &t->defs;
	t->context.live = &t->live;
	t->context.chunks = t->chunks.items;
	t->context.thread_index = trace_thread_index;
	t->context.arg = t;
	t->context.damage = &t->damage;
	t->context.checks = &t->checks;
	t->context.running = &t->facts.running;
	t->context.gaps_room = GAPS_ROOM;
	t->context.window = WINDOWS_TOTAL / (n + 1) / 4096 * 4096;
	if (t->context.window > WINDOW_MAX)
		t->context.window = WINDOW_MAX;
	if (t->context.window < WINDOW_MIN)
		t->context.window = WINDOW_MIN;
	return 0;
}

/* Sizes come from the file: ignore those that no address space could hold. */
static uint64_t module_data(const struct defs *defs)
{
	const uint64_t page = 4096, most = 1ull << 47;
	uint64_t bytes = 0;

	for (size_t i = 0; i < defs->modules.count; i++) {
		const struct def_module *m = &defs->modules.items[i];

		for (size_t k = 0; k < m->range_count; k++) {
			const struct def_range *r = &m->ranges[k];

			if ((r->flags & 2) && r->size < most)
				bytes += (r->address % page + r->size + page - 1) / page * page;
		}
	}
	return bytes < most ? bytes : 0;
}

static bool has_cuda_driver(const struct defs *defs)
{
	for (size_t i = 0; i < defs->modules.count; i++) {
		const char *path = defs->modules.items[i].path;
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (slash && strncmp(slash + 1, "libcuda.so", 10) == 0)
			return true;
	}
	return false;
}

static int read_facts(struct trace *t)
{
	const struct def_info *cmdline = defs_info(&t->defs, "cmdline");
	size_t count = 0, n = 0;

	t->facts.exe = trace_info(t, "exe");
	t->facts.module_data = module_data(&t->defs);
	t->facts.cuda_driver = has_cuda_driver(&t->defs);
	if (!cmdline)
		return 0;
	for (size_t i = 0; i < cmdline->value_bytes; i++)
		count += !cmdline->value[i];
	t->argv = calloc(count + 2, sizeof(*t->argv));
	if (!t->argv)
		return -ENOMEM;
	/* Step over separators, so that the last argument may be empty. */
	for (size_t at = 0; at <= cmdline->value_bytes; at += strlen(cmdline->value + at) + 1)
		t->argv[n++] = cmdline->value + at;
	t->facts.argv = t->argv;
	return 0;
}

int trace_newest_checkpoint(struct trace *t, uint32_t *number, struct err *err)
{
	uint8_t raw[TRACE_CHECKPOINT_SLOTS * sizeof(struct trace_checkpoint)];
	struct checkpoint_slots slots;
	struct cursor c;
	size_t got;
	int r = source_read(
	    &t->source, offsetof(struct trace_header, checkpoint), raw, sizeof(raw), &got, err);

	if (r)
		return r;
	c = cursor_of(raw, got);
	slots = checkpoint_slots_read(&c);
	*number = checkpoint_newest(&slots);
	return 0;
}

/* A running process changes its file during the read: contradictions may be before and after. */
static void publish_damage(struct trace *t)
{
	const struct stream_context *c = &t->context;
	double undefined = 0;

	t->facts.damage = (struct trace_damage){0};
	if (t->facts.running)
		return;
	/* Definitions without room in the trace are counted already. */
	if (c->stacks_undefined && !t->facts.untold && !t->facts.dropped[TRACE_DROP_DEFINITION]) {
		undefined = (double)c->stacks_undefined / (double)c->stacks_named;
		if (!(t->damage.kinds & 1u << TRACE_DAMAGE_UNDEFINED))
			damage_note(&t->damage, TRACE_DAMAGE_UNDEFINED,
			    &(struct damage_where){.to = DAMAGE_LATEST});
	}
	damage_publish(&t->damage, &t->clock, t->facts.last_ns,
	    t->facts.event_bytes + t->definition_bytes, undefined, &t->facts.damage);
}

void trace_publish(struct trace *t)
{
	t->facts.torn_chunks = (uint32_t)t->context.torn_chunks;
	t->facts.bad_checksums = (uint32_t)t->context.bad_checksums;
	t->facts.unknown_records = (uint32_t)(t->context.unknown_records + t->defs.unknown);
	publish_damage(t);
}

/* Called once for each place. */
static void unreadable(void *arg, uint64_t offset, uint64_t bytes)
{
	struct trace *t = arg;

	for (size_t i = 0; i < t->damage.list.count; i++)
		if (t->damage.list.items[i].kind == TRACE_DAMAGE_UNREADABLE &&
		    t->damage.list.items[i].where.offset == offset)
			return;
	/* Missing chunks are noticed if the file says how many there were. */
	damage_note(&t->damage, TRACE_DAMAGE_UNREADABLE,
	    &(struct damage_where){.offset = offset, .bytes = t->checks ? 0 : bytes});
}

/* List header, clock and all chunks. A running program may replace chunks by a checkpoint
 * meanwhile: then list again, a bounded number of times. */
static int list_file(
    struct trace *t, struct header_tail *tail, uint64_t *offset, void *definitions, struct err *err)
{
	VEC(struct chunk) *list = definitions;
	uint32_t newest = 0;
	int r = 0;

	for (int tries = 0; tries < LIST_TRIES && !r; tries++) {
		t->chunks.count = list->count = t->clock.pairs.count = 0;
		damage_clear(&t->damage);
		t->context.torn_chunks = 0;
		t->facts.dropped_total = 0;
		*offset = TRACE_SLOT_BYTES;
		t->source.unreadable = NULL; /* without a header nothing can be read */
		r = trace_read_header(t, tail, err);
		t->source.unreadable = unreadable;
		t->source.arg = t;
		if (!r)
			r = clock_add(&t->clock, tail->start_ticks, t->facts.start_mono_ns);
		if (!r)
			r = list_chunks(t, offset, true, definitions, err);
		if (!r)
			r = trace_newest_checkpoint(t, &newest, err);
		t->newest = checkpoint_newest(&tail->slots);
		if (newest == t->newest)
			break;
	}
	return r;
}

static int open_file(const char *path, const char *shared, const struct small_place *place,
    bool follow, struct trace **out, struct err *err)
{
	VEC(struct chunk) definitions = {0};
	struct header_tail tail = {0};
	uint64_t offset, listed, definition_bytes = 0, broken, until = 0;
	struct trace *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	t->source.fd = -1;
	t->horizon = UINT64_MAX;
	r = source_open(&t->source, path, shared, place, err);
	if (!r)
		r = list_file(t, &tail, &offset, &definitions, err);
	listed = t->source.size;
	/* A running process writes definitions before the events that need them: later definitions
	 * are wanted, later events are not. */
	if (!r)
		r = source_refresh(&t->source, err);
	if (!r)
		r = list_chunks(t, &offset, false, &definitions, err);
	if (r)
		goto out;
	for (size_t i = 0; i < definitions.count; i++)
		definition_bytes += definitions.items[i].readable;
	r = defs_init(&t->defs, definition_bytes);
	t->defs.checks = t->checks;
	if (!r && follow)
		r = follow_begin(t, definitions.items, definitions.count, tail.ticks_hz, err);
	if (!r && !follow)
		r = read_definitions(t, definitions.items, definitions.count, false, err);
	if (!r && !follow)
		r = read_definitions(t, definitions.items, definitions.count, true, err);
	if (r)
		goto out;
	checkpoint_choose(&tail.slots, t->chunks.items, &t->chunks.count, &t->facts.checkpoint,
	    &t->context.floor, &until);
	if (t->facts.checkpoint.damaged)
		damage_note(
		    &t->damage, TRACE_DAMAGE_CHECKPOINT, &(struct damage_where){.to = until});
	damage_chunks_end(&t->damage, &(struct damage_file){.size = listed,
					  .claimed = t->facts.file_bytes,
					  .chunk_bytes = tail.chunk_bytes,
					  .until = until,
					  .ended = t->facts.end_how != TRACE_END_NONE});
	broken = t->defs.broken;
	r = follow ? 0 : defs_finish(&t->defs);
	t->context.torn_chunks += t->defs.broken > broken;
	if (t->defs.broken > broken)
		damage_note(&t->damage, TRACE_DAMAGE_DEFINITIONS, &(struct damage_where){0});
	if (!r)
		r = live_init(&t->live);
	if (!r)
		r = make_streams(t);
	if (!r)
		r = read_facts(t);
	if (r)
		goto out;
	clock_finish(&t->clock, t->facts.start_mono_ns, tail.ticks_hz);
	if (until)
		t->facts.checkpoint.until_ns = clock_ns(&t->clock, until);
	t->late_ticks = clock_ticks_of(&t->clock, 100000);
	t->context.slack = clock_ticks_of(&t->clock, 1000000);
	t->early_ticks = clock_ticks_of(&t->clock, 1000);
	t->facts.path = t->source.path;
	t->facts.last_ns = t->clock.pairs.items[t->clock.pairs.count - 1].ns;
	if (tail.end_mono_ns > t->facts.start_mono_ns &&
	    tail.end_mono_ns - t->facts.start_mono_ns > t->facts.last_ns)
		t->facts.last_ns = tail.end_mono_ns - t->facts.start_mono_ns;
	/* Gigabytes of unused space may follow the last chunk. */
	if (!t->facts.file_bytes || t->facts.file_bytes > t->source.size)
		t->facts.file_bytes = t->source.size;
	t->facts.rights = rights_facts(&tail.rights, &t->clock);
	trace_publish(t);
out:
	source_release(&t->source);
	vec_free(&definitions);
	if (r) {
		if (r == -ENOMEM)
			err_set(err, r, "%s: out of memory", path);
		trace_close(t);
		return r;
	}
	locked_rewind(t);
	*out = t;
	return 0;
}

int trace_open_small(const char *path, const char *shared, const struct small_place *place,
    struct trace **out, struct err *err)
{
	return open_file(path, shared, place, false, out, err);
}

int trace_open(const char *path, struct trace **out, struct err *err)
{
	return open_file(path, NULL, NULL, false, out, err);
}

int trace_follow(const char *path, struct trace **out, struct err *err)
{
	/* A checkpoint may come between the two, or the program may still give back what the last
	 * one replaced. */
	for (int tries = 0; tries < LIST_TRIES; tries++) {
		int r;

		if (tries)
			nanosleep(&(struct timespec){.tv_nsec = tries * RELIST_NS}, NULL);
		r = open_file(path, NULL, NULL, true, out, err);

		if (r)
			return r;
		r = trace_follow_on(*out, err);
		if (!r)
			return 0;
		trace_close(*out);
		*out = NULL;
		if (r < 0)
			return r;
	}
	return err_set(err, -EAGAIN,
	    "%s: the program replaces older events by checkpoints faster than they can be read",
	    path);
}

void trace_unfollow(struct trace *t)
{
	trace_close(t);
}

void trace_close(struct trace *t)
{
	if (!t)
		return;
	trace_symbols_fini(t);
	follow_end(t);
	for (size_t i = 0; i < t->stream_count; i++)
		stream_fini(&t->streams[i]);
	free(t->streams);
	free(t->heap);
	free(t->extended);
	free(t->argv);
	vec_free(&t->states);
	vec_free(&t->threads);
	vec_free(&t->chunks);
	map_free(&t->thread_ids);
	live_fini(&t->live);
	map_free(&t->outside.used);
	locked_fini(t);
	map_free(&t->tasks);
	defs_fini(&t->defs);
	damage_fini(&t->damage);
	clock_fini(&t->clock);
	source_close(&t->source);
	free(t);
}

const struct trace_facts *trace_facts(const struct trace *t)
{
	return &t->facts;
}

uint64_t trace_packed(const struct trace *t)
{
	return t->source.packed ? packed_file_bytes(t->source.packed) : 0;
}

bool trace_is_small(const struct trace *t)
{
	return t->source.shared;
}

const char *trace_info(const struct trace *t, const char *key)
{
	const struct def_info *info = defs_info(&t->defs, key);

	return info ? info->value : NULL;
}

bool trace_info_at(const struct trace *t, size_t index, const char **key, const char **value)
{
	if (index >= t->defs.infos.count)
		return false;
	*key = t->defs.infos.items[index].key;
	*value = t->defs.infos.items[index].value;
	return true;
}

const char *trace_space(const struct trace *t, uint32_t id)
{
	const uint64_t *index = map_find(&t->defs.space_ids, id);

	return index ? t->defs.spaces.items[*index - 1] : NULL;
}

uint64_t trace_bytes_read(const struct trace *t)
{
	return t->context.bytes_read;
}

const struct trace_counts *trace_counts(const struct trace *t)
{
	return &t->counts;
}

size_t trace_threads(const struct trace *t, const struct trace_thread **out)
{
	*out = t->threads.items;
	return t->threads.count;
}

int trace_each_live(const struct trace *t, int (*fn)(void *arg, const struct block *b), void *arg)
{
	return live_each(&t->live, fn, arg);
}

uint32_t trace_stack_limit(const struct trace *t)
{
	return (uint32_t)t->defs.stacks.ends.count;
}

size_t trace_stack(const struct trace *t, uint32_t stack, const struct frame **frames)
{
	/* The scratch array is not part of the constant state. */
	return stacks_frames((struct stacks *)&t->defs.stacks, stack, frames);
}

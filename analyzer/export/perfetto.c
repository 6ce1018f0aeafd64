/*
 * perfetto.c - Perfetto's trace for ui.perfetto.dev: counters of memory, requests and phases as
 * slices, refusals as instants, and for each space heap profiles until the moment. Packets stand
 * alone, so the file is written as it comes.
 *
 * A heap profile holds the stacks that changed since the one before, with their sums since the
 * start. The trace processor subtracts each sum from the next one, so sums must never fall.
 *
 * What the trace processor wants: a snapshot of the clocks first, or it drops heap profiles; a
 * mapping for each frame, or it drops the stack; no stack in two heaps, so the space is the root.
 * Field numbers: protos/perfetto/trace of google/perfetto.
 */
#include <errno.h>
#include <stdio.h>

#include "export/encode/proto.h"
#include "export/export.h"
#include "knowledge/knowledge.h"
#include "util/map.h"
#include "util/num.h"
#include "util/vec.h"

enum { TRACE_PACKET = 1 };
enum packet {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_PROFILE = 37,
	PACKET_TRACK = 60
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum clock { CLOCK_OF_DAY = 1, CLOCK_MONO = 3, CLOCK_MONO_COARSE = 4, CLOCK_BOOT = 6 };
enum track {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8
};
enum track_event {
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_VALUE = 30
};
enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum interned {
	INTERNED_FUNCTIONS = 5,
	INTERNED_FRAMES = 6,
	INTERNED_STACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_MAPPING_PATHS = 17,
	INTERNED_SOURCES = 18,
	INTERNED_MAPPINGS = 19
};
enum { SEQUENCE_HEAPS = 1, SEQUENCE_EVENTS = 2 };
enum { COUNTER_BYTES = 3 };

/* Numbers of the tracks. */
#define PROCESS_TRACK 1u
#define REFUSED_TRACK 2u
#define VERDICT_TRACK 3u
#define LIMIT_TRACK 4u
#define CURVE_TRACKS 0x1000u
#define LANE_TRACKS (1ull << 32) /* and what << 33 */
#define THREAD_TRACKS (1ull << 40)

#define MOMENTS 15u /* and the one that is exported: as many as one clicks through */
#define SAMPLES 1000u /* in a packet: some 20 KB */
#define DEEPEST 500u /* frames; the picture of a deeper stack is one of blanks */

/* Marks that are open at once lie on lanes below each other. */
struct lanes {
	VEC(uint32_t) free;
	uint32_t count;
};
#define WHATS 5u

/* A stack in a space, as the last profile has it. */
struct told_stack {
	uint32_t number; /* in the file */
	uint64_t total, freed, count, freed_count;
};

struct perfetto {
	struct proto packet, profile;
	struct map stacks; /* of a space: 1 + index */
	VEC(struct told_stack) told;
	struct intern functions, sources, modules;
	uint32_t told_functions, told_sources, told_modules; /* written */
	VEC(uint32_t) frames; /* by the symbol's id */
	struct map spaces; /* to the number of the frame that is its root */
	uint32_t frame_count, stack_count;
	uint64_t profile_index;
	uint32_t samples; /* in `profile` */
	bool begun; /* a sequence of interned data */
	struct lanes lanes[WHATS];
	struct map open; /* marks: to 1 + lane */
	struct map depth; /* of pushed ranges: 1 + how many, by thread */
	bool refused; /* has a track */
	uint32_t curve; /* the latest: 1 + its number */
};

static uint64_t time_of(const struct export *x, uint64_t time_ns)
{
	return x->facts->start_mono_ns + time_ns;
}

/* A name as a terminal would be shown it: nothing hides, and nothing turns the direction. */
static void put_safe(struct proto *p, uint32_t field, const char *text)
{
	struct str safe = {0};

	str_safe(&safe, text ? text : "");
	proto_text(p, field, str_text(&safe));
	p->text.failed |= safe.failed;
	str_free(&safe);
}

static struct proto *packet(struct export *x, unsigned sequence)
{
	struct perfetto *t = x->state;

	proto_begin(&t->packet, TRACE_PACKET);
	proto_u64(&t->packet, PACKET_SEQUENCE, sequence);
	return &t->packet;
}

static void packet_end(struct export *x)
{
	struct perfetto *t = x->state;

	proto_end(&t->packet);
	sink_str(x->out, &t->packet.text);
}

/* Begin a packet that describes a track of the process; the caller ends both. */
static struct proto *track(struct export *x, uint64_t uuid, const char *name)
{
	struct proto *p = packet(x, SEQUENCE_EVENTS);

	proto_begin(p, PACKET_TRACK);
	proto_u64(p, TRACK_UUID, uuid);
	proto_u64(p, TRACK_PARENT, PROCESS_TRACK);
	put_safe(p, TRACK_NAME, name);
	return p;
}

static void put_track(struct export *x, uint64_t uuid, const char *name)
{
	proto_end(track(x, uuid, name));
	packet_end(x);
}

static struct proto *event(
    struct export *x, uint64_t time_ns, enum event_type type, uint64_t track, const char *name)
{
	struct proto *p = packet(x, SEQUENCE_EVENTS);

	proto_u64(p, PACKET_TIME, time_of(x, time_ns));
	proto_begin(p, PACKET_EVENT);
	proto_u64(p, EVENT_TYPE, type);
	proto_u64(p, EVENT_TRACK, track);
	if (name)
		put_safe(p, EVENT_NAME, name);
	return p;
}

static void event_end(struct export *x)
{
	struct perfetto *t = x->state;

	proto_end(&t->packet);
	packet_end(x);
}

static void annotate_u64(struct proto *p, const char *name, uint64_t value)
{
	proto_begin(p, EVENT_ANNOTATION);
	put_safe(p, 10, name);
	proto_u64(p, 3, value);
	proto_end(p);
}

static void annotate(struct proto *p, const char *name, const char *value)
{
	if (!value)
		return;
	proto_begin(p, EVENT_ANNOTATION);
	put_safe(p, 10, name);
	put_safe(p, 6, value);
	proto_end(p);
}

/* --- begin --- */

static void put_clock(struct proto *p, enum clock clock, uint64_t value)
{
	proto_begin(p, 1);
	proto_u64(p, 1, clock);
	proto_u64(p, 2, value);
	proto_end(p);
}

static void put_process(struct export *x)
{
	struct proto *p = packet(x, SEQUENCE_EVENTS);
	const struct trace_facts *f = x->facts;

	proto_begin(p, PACKET_TRACK);
	proto_u64(p, TRACK_UUID, PROCESS_TRACK);
	proto_begin(p, TRACK_PROCESS);
	proto_u64(p, 1, f->pid);
	for (const char *const *arg = f->argv; arg && *arg; arg++)
		put_safe(p, 2, *arg);
	put_safe(p, 6, f->argv && f->argv[0] ? f->argv[0] : f->exe);
	proto_end(p);
	proto_end(p);
	packet_end(x);
}

static int perfetto_begin(struct export *x, struct err *err)
{
	const struct trace_facts *f = x->facts;
	struct proto *p = packet(x, SEQUENCE_HEAPS);

	(void)err;
	proto_begin(p, PACKET_CLOCKS);
	put_clock(p, CLOCK_BOOT, f->start_mono_ns);
	put_clock(p, CLOCK_MONO, f->start_mono_ns);
	put_clock(p, CLOCK_MONO_COARSE, f->start_mono_ns);
	put_clock(p, CLOCK_OF_DAY, f->start_real_ns);
	proto_end(p);
	packet_end(x);
	put_process(x);
	return 0;
}

/* --- heap profiles --- */

static void put_text(struct proto *p, enum interned field, uint32_t iid, const char *text)
{
	proto_begin(p, field);
	proto_u64(p, 1, iid);
	put_safe(p, 2, text);
	proto_end(p);
}

/* The number of a text, which is written with the first packet that needs it. */
static int text_of(struct proto *p, struct intern *texts, uint32_t *told, enum interned field,
    const char *text, uint32_t *out)
{
	*out = intern_add(texts, text, strlen(text));
	if (!*out)
		return -ENOMEM;
	if (*out > *told)
		put_text(p, field, *out, text);
	*told = *out > *told ? *out : *told;
	return 0;
}

static int mapping_of(struct perfetto *t, const char *path, uint32_t *out)
{
	struct proto *p = &t->packet;
	uint32_t told = t->told_modules;
	int rc = text_of(p, &t->modules, &t->told_modules, INTERNED_MAPPING_PATHS, path, out);

	if (rc || *out <= told)
		return rc;
	proto_begin(p, INTERNED_MAPPINGS);
	proto_u64(p, 1, *out);
	proto_u64(p, 2, 1);
	proto_u64(p, 7, *out);
	proto_end(p);
	return 0;
}

static int put_frame(struct perfetto *t, const char *function, const char *module, const char *file,
    uint32_t line, uint32_t *out)
{
	struct proto *p = &t->packet;
	uint32_t name, mapping, source = 0;
	int rc = text_of(p, &t->functions, &t->told_functions, INTERNED_FUNCTIONS, function, &name);

	if (!rc)
		rc = mapping_of(t, module, &mapping);
	if (!rc && file)
		rc = text_of(p, &t->sources, &t->told_sources, INTERNED_SOURCES, file, &source);
	if (rc)
		return rc;
	*out = ++t->frame_count;
	proto_begin(p, INTERNED_FRAMES);
	proto_u64(p, 1, *out);
	proto_u64(p, 2, name);
	proto_u64(p, 3, mapping);
	/* Frames of equal address and name become one. */
	proto_u64(p, 4, *out);
	if (source) {
		proto_u64(p, 5, source);
		proto_u64(p, 6, line);
	}
	proto_end(p);
	return 0;
}

static int frame_of(struct perfetto *t, const struct symbol *s, uint32_t *out)
{
	struct str name = {0};
	int rc;

	if (vec_reach(&t->frames, s->id + 1u))
		return -ENOMEM;
	if (!t->frames.items[s->id]) {
		export_function(&name, s);
		rc = name.failed ? -ENOMEM
				 : put_frame(t, str_text(&name),
				       s->module   ? s->module
				       : s->python ? "[python]"
						   : "[unknown]",
				       s->file, s->line, &t->frames.items[s->id]);
		str_free(&name);
		if (rc)
			return rc;
	}
	*out = t->frames.items[s->id];
	return 0;
}

/* The frame that stands for a space, or for what is unknown. */
static int root_of(struct perfetto *t, const char *name, uint64_t key, uint32_t *out)
{
	uint64_t *slot = map_put(&t->spaces, key);
	int rc = 0;

	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		rc = put_frame(t, name, "[space]", NULL, 0, out);
		*slot = rc ? 0 : *out;
	}
	*out = (uint32_t)*slot;
	return rc;
}

static int put_stack(struct export *x, const struct export_sum *s)
{
	struct perfetto *t = x->state;
	const struct export_stack *stack = s->stack;
	VEC(uint32_t) path = {0};
	uint32_t frame;
	int rc = root_of(t, s->space->name, s->space->index, &frame);

	if (!rc)
		rc = vec_push(&path, frame);
	if (!rc && !stack->count) {
		rc = root_of(t, "(unknown)", UINT64_MAX, &frame);
		if (!rc)
			rc = vec_push(&path, frame);
	}
	for (size_t i = 0; !rc && i < stack->count; i++) {
		if (stack->count > DEEPEST && i == DEEPEST / 2) {
			i = stack->count - DEEPEST / 2;
			rc = root_of(t, "(frames left out)", UINT64_MAX - 1, &frame);
			if (!rc)
				rc = vec_push(&path, frame);
		}
		if (!rc)
			rc = frame_of(t, &stack->symbols[i], &frame);
		if (!rc)
			rc = vec_push(&path, frame);
	}
	proto_begin(&t->packet, INTERNED_STACKS);
	proto_u64(&t->packet, 1, ++t->stack_count);
	for (size_t i = 0; !rc && i < path.count; i++)
		proto_u64(&t->packet, 2, path.items[i]);
	proto_end(&t->packet);
	vec_free(&path);
	return rc;
}

static void begin_profile(struct export *x, const struct export_space *s)
{
	struct perfetto *t = x->state;
	struct proto *p = &t->profile;
	bool host = s->index == EXPORT_HOST;
	uint64_t every = 0;

	feed_number(&x->feed, "sampled.every", &every);
	t->samples = 0;
	proto_begin(p, 5);
	proto_u64(p, 1, x->facts->pid);
	proto_u64(p, 3, 1); /* from the start */
	proto_u64(p, 9, time_of(x, s->time_ns));
	/* The one name that Perfetto calls a native heap profile. */
	put_safe(p, 11, host ? "libc.malloc" : s->name);
	proto_u64(p, 12, every && host ? every : 1);
	proto_u64(p, 13, every && host ? every : 1);
}

static void end_profile(struct export *x, bool more)
{
	struct perfetto *t = x->state;
	struct proto *p;

	proto_end(&t->profile);
	p = packet(x, SEQUENCE_HEAPS);
	proto_u64(p, PACKET_FLAGS, FLAG_NEEDS_STATE);
	proto_begin(p, PACKET_PROFILE);
	str_add(&p->text, str_text(&t->profile.text), t->profile.text.length);
	p->text.failed |= t->profile.text.failed;
	str_clear(&t->profile.text);
	proto_u64(p, 6, more);
	proto_u64(p, 7, t->profile_index++);
	proto_end(p);
	packet_end(x);
}

static int perfetto_space(struct export *x, const struct export_space *s, struct err *err)
{
	(void)err;
	begin_profile(x, s);
	return 0;
}

static void put_build_id(struct perfetto *t)
{
	proto_begin(&t->packet, INTERNED_BUILD_IDS);
	proto_u64(&t->packet, 1, 1);
	proto_bytes(&t->packet, 2, "", 0);
	proto_end(&t->packet);
}

/* Write a stack's frames where it occurs first. */
static int tell_stack(struct export *x, const struct export_sum *s, struct told_stack **out)
{
	struct perfetto *t = x->state;
	uint64_t *slot = map_put(&t->stacks, (uint64_t)s->space->index << 32 | s->stack->id);
	struct proto *p;
	int rc;

	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		p = packet(x, SEQUENCE_HEAPS);
		proto_u64(
		    p, PACKET_FLAGS, t->begun ? FLAG_NEEDS_STATE : FLAG_NEEDS_STATE | FLAG_CLEARED);
		proto_begin(p, PACKET_INTERNED);
		if (!t->begun)
			put_build_id(t);
		t->begun = true;
		rc = put_stack(x, s);
		proto_end(p);
		packet_end(x);
		if (rc || vec_push(&t->told, (struct told_stack){.number = t->stack_count}))
			return -ENOMEM;
		*slot = t->told.count;
	}
	*out = &t->told.items[*slot - 1];
	return 0;
}

/* The sums since the start, which do not fall: what is live is their difference. */
static bool advance(struct told_stack *k, const struct export_sum *s)
{
	struct told_stack before = *k;
	uint64_t live = s->value[MEASURE_LIVE], blocks = s->live_blocks;

	k->total = num_most(num_most(s->value[MEASURE_TOTAL], k->total), k->freed + live);
	k->freed = k->total - live;
	k->count = num_most(num_most(s->value[MEASURE_COUNT], k->count), k->freed_count + blocks);
	k->freed_count = k->count - blocks;
	return memcmp(&before, k, sizeof(before)) != 0;
}

static int perfetto_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct perfetto *t = x->state;
	struct told_stack *k;
	struct proto *p = &t->profile;
	int rc = tell_stack(x, s, &k);

	(void)err;
	if (rc || !advance(k, s))
		return rc;
	if (t->samples == SAMPLES) {
		end_profile(x, true);
		begin_profile(x, s->space);
	}
	t->samples++;
	proto_begin(p, 2);
	proto_u64(p, 1, k->number);
	proto_u64(p, 2, k->total);
	proto_u64(p, 3, k->freed);
	proto_u64(p, 5, k->count);
	proto_u64(p, 6, k->freed_count);
	proto_end(p);
	return 0;
}

static int perfetto_space_end(struct export *x, const struct export_space *s, struct err *err)
{
	(void)s, (void)err;
	end_profile(x, false);
	return 0;
}

/* --- marks and refusals --- */

static const char *const lane_names[WHATS] = {"requests", "phases", "ranges", "ranges", "points"};

static int begin_mark(struct export *x, const struct event *e, uint64_t key)
{
	struct perfetto *t = x->state;
	struct lanes *l = &t->lanes[e->u.mark.what];
	uint64_t *slot = map_put(&t->open, key),
		 track = LANE_TRACKS | (uint64_t)e->u.mark.what << 33;
	struct proto *p;

	if (!slot || vec_reserve(&l->free, l->free.count + 1))
		return -ENOMEM;
	if (*slot) /* it began before, and its end was not seen */
		return 0;
	if (l->free.count) {
		*slot = l->free.items[--l->free.count];
	} else {
		*slot = ++l->count;
		put_track(x, track + *slot, lane_names[e->u.mark.what]);
	}
	p = event(x, e->time_ns, TYPE_BEGIN, track + *slot,
	    e->u.mark.name ? e->u.mark.name : lane_names[e->u.mark.what]);
	annotate_u64(p, "id", e->u.mark.id);
	annotate_u64(p, "thread", e->thread);
	annotate(p, "domain", e->u.mark.domain);
	event_end(x);
	return 0;
}

static int end_mark(struct export *x, const struct event *e, uint64_t key)
{
	struct perfetto *t = x->state;
	struct lanes *l = &t->lanes[e->u.mark.what];
	uint64_t *slot = map_find(&t->open, key),
		 track = LANE_TRACKS | (uint64_t)e->u.mark.what << 33;

	if (!slot)
		return 0;
	event(x, e->time_ns, TYPE_END, track + *slot, NULL);
	event_end(x);
	if (vec_push(&l->free, (uint32_t)*slot))
		return -ENOMEM;
	map_remove(&t->open, key);
	return 0;
}

/* Ranges of one thread nest, and points need no lane. */
static int thread_mark(struct export *x, const struct event *e)
{
	struct perfetto *t = x->state;
	uint64_t *depth = map_put(&t->depth, e->thread), track = THREAD_TRACKS | e->thread;
	enum event_type type = e->u.mark.phase == TRACE_MARK_BEGIN ? TYPE_BEGIN
			       : e->u.mark.phase == TRACE_MARK_END ? TYPE_END
								   : TYPE_INSTANT;
	char name[32];

	if (!depth)
		return -ENOMEM;
	if (!*depth) {
		snprintf(name, sizeof(name), "marks of thread %u", e->thread);
		put_track(x, track, name);
		*depth = 1;
	}
	if (type == TYPE_END && *depth == 1)
		return 0;
	*depth += type == TYPE_BEGIN;
	*depth -= type == TYPE_END;
	event(x, e->time_ns, type, track, type == TYPE_END ? NULL : e->u.mark.name);
	event_end(x);
	return 0;
}

static int on_mark(struct export *x, const struct event *e)
{
	uint64_t key = e->u.mark.id ^ (uint64_t)e->u.mark.what << 60;

	if (e->u.mark.what >= WHATS)
		return 0;
	switch (e->u.mark.phase) {
	case TRACE_MARK_BEGIN:
		return e->u.mark.id ? begin_mark(x, e, key) : thread_mark(x, e);
	case TRACE_MARK_END:
		return e->u.mark.id ? end_mark(x, e, key) : thread_mark(x, e);
	case TRACE_MARK_POINT:
		return thread_mark(x, e);
	default:
		return 0;
	}
}

static void on_refusal(struct export *x, const struct export_event *e)
{
	struct perfetto *t = x->state;
	struct str name = {0};
	struct proto *p;

	if (!t->refused)
		put_track(x, REFUSED_TRACK, "refused requests");
	t->refused = true;
	str_printf(
	    &name, "%s refused %llu bytes", x->names[e->space], (unsigned long long)e->raw->size);
	p = event(x, e->raw->time_ns, TYPE_INSTANT, REFUSED_TRACK, str_text(&name));
	annotate_u64(p, "requested_bytes", e->raw->size);
	annotate(p, "space", x->names[e->space]);
	annotate(p, "call", e->raw->u.failed.api);
	event_end(x);
	str_free(&name);
}

static int perfetto_event(struct export *x, const struct export_event *e, struct err *err)
{
	(void)err;
	if (e->kind == EXPORT_MARK)
		return on_mark(x, e->raw);
	if (e->kind == EXPORT_FAILED)
		on_refusal(x, e);
	return 0;
}

/* --- counters and the verdict --- */

static void put_counter(struct export *x, uint64_t uuid, const char *name)
{
	struct proto *p = track(x, uuid, name);

	proto_begin(p, TRACK_COUNTER);
	proto_u64(p, 3, COUNTER_BYTES);
	put_safe(p, 7, "bytes"); /* of the shared axis */
	proto_end(p);
	proto_end(p);
	packet_end(x);
}

static void put_value(struct export *x, uint64_t uuid, uint64_t time_ns, uint64_t value)
{
	struct proto *p = event(x, time_ns, TYPE_COUNTER, uuid, NULL);

	proto_u64(p, EVENT_VALUE, value);
	event_end(x);
}

static int perfetto_point(struct export *x, const struct export_curve *c, uint64_t time_ns,
    uint64_t value, struct err *err)
{
	struct perfetto *t = x->state;
	uint32_t number = 4 * c->space + (uint32_t)c->kind;
	char name[64];

	(void)err;
	if (t->curve != number + 1) {
		t->curve = number + 1;
		snprintf(
		    name, sizeof(name), "%s: %s", x->names[c->space], export_curve_name(c->kind));
		put_counter(x, CURVE_TRACKS + number, name);
	}
	put_value(x, CURVE_TRACKS + number, time_ns, value);
	return 0;
}

static int perfetto_verdict(struct export *x, const struct verdict_result *r, struct err *err)
{
	const struct verdict *v = &r->verdict;
	struct proto *p;

	(void)err;
	if (r->ledger.limit_bytes && r->ledger.limit_bytes <= INT64_MAX) {
		put_counter(x, LIMIT_TRACK, limit_kind_name(r->ledger.limit));
		put_value(x, LIMIT_TRACK, 0, r->ledger.limit_bytes);
		put_value(x, LIMIT_TRACK, x->facts->last_ns, r->ledger.limit_bytes);
	}
	put_track(x, VERDICT_TRACK, "whyoom");
	p = event(x, r->failure.time_ns, TYPE_INSTANT, VERDICT_TRACK, cause_name(v->cause));
	annotate(p, "verdict", v->summary);
	annotate(p, "function", v->blame.function);
	annotate(p, "file", v->blame.file);
	for (size_t i = 0; i < v->fix_count; i++)
		annotate(p, "fix", v->fixes[i].text);
	event_end(x);
	return 0;
}

static void perfetto_fini(struct export *x)
{
	struct perfetto *t = x->state;

	proto_free(&t->packet);
	proto_free(&t->profile);
	intern_free(&t->functions);
	intern_free(&t->sources);
	intern_free(&t->modules);
	vec_free(&t->frames);
	map_free(&t->spaces);
	map_free(&t->stacks);
	vec_free(&t->told);
	map_free(&t->open);
	map_free(&t->depth);
	for (uint32_t i = 0; i < WHATS; i++)
		vec_free(&t->lanes[i].free);
}

const struct exporter exporter_perfetto = {
    .name = "perfetto",
    .summary = "ui.perfetto.dev: curves, requests, refusals, and heap profiles over time",
    .needs = EXPORT_SUMS | EXPORT_EVENTS | EXPORT_CURVES | EXPORT_VERDICT,
    .binary = true,
    .can_gzip = true,
    .moments = MOMENTS,
    .state = sizeof(struct perfetto),
    .begin = perfetto_begin,
    .space = perfetto_space,
    .sum = perfetto_sum,
    .space_end = perfetto_space_end,
    .event = perfetto_event,
    .point = perfetto_point,
    .verdict = perfetto_verdict,
    .fini = perfetto_fini,
};

/*
 * torch_snapshot.c - PyTorch's memory snapshot: a pickle that pytorch.org/memory_viz and
 * torch/cuda/_memory_viz.py open. Events of all devices come in one order, and each device has a
 * list of its own; so the lists are named first, and parts are appended as they come. A part goes
 * out under the key "device_traces", which the last value of that key replaces.
 */
#include <errno.h>

#include "export/encode/pickle.h"
#include "export/export.h"
#include "export/torch_layout.h"
#include "model/torch/torch_replay.h"
#include "util/map.h"
#include "util/vec.h"

/* The viewer takes seconds for that many, and a browser fails at some millions. */
#define LAST_EVENTS 200000u
#define DEVICES 128u /* more than a machine has; a name in a trace may have any number */
#define FRAMES 500u /* of a stack; the viewer shows all in one text */
#define SMALL_SEGMENT (2u << 20)

/* Words that occur in each event. Each one's number in the pickle is its place. */
#define WORDS(WORD)                                                                                \
	WORD(action)                                                                               \
	WORD(addr)                                                                                 \
	WORD(size)                                                                                 \
	WORD(stream)                                                                               \
	WORD(time_us)                                                                              \
	WORD(frames)                                                                               \
	WORD(filename)                                                                             \
	WORD(line)                                                                                 \
	WORD(name)                                                                                 \
	WORD(device_free)                                                                          \
	WORD(device)                                                                               \
	WORD(address)                                                                              \
	WORD(total_size)                                                                           \
	WORD(allocated_size)                                                                       \
	WORD(active_size)                                                                          \
	WORD(requested_size)                                                                       \
	WORD(segment_type)                                                                         \
	WORD(segment_pool_id)                                                                      \
	WORD(is_expandable)                                                                        \
	WORD(blocks)                                                                               \
	WORD(state)                                                                                \
	WORD(small)                                                                                \
	WORD(large)                                                                                \
	WORD(active_allocated)                                                                     \
	WORD(inactive)                                                                             \
	WORD(alloc)                                                                                \
	WORD(free_requested)                                                                       \
	WORD(free_completed)                                                                       \
	WORD(segment_alloc)                                                                        \
	WORD(segment_free)                                                                         \
	WORD(segment_map)                                                                          \
	WORD(segment_unmap)                                                                        \
	WORD(oom)                                                                                  \
	WORD(device_traces)
enum word {
#define WORD(word) W_##word,
	WORDS(WORD)
#undef WORD
	    W_NO_FRAMES,
	W_LISTS, /* of the devices, from here on */
	W_OTHERS = W_LISTS + DEVICES,
};

struct device {
	struct str part;
	uint32_t items;
};

struct snapshot {
	struct torch_layout layout;
	struct device devices[DEVICES];
	uint32_t device_count;
	uint32_t next; /* number in the pickle */
	VEC(uint32_t) stacks, symbols, words; /* their numbers, 0: none yet, by id */
	struct intern names;
	struct str text;
	const struct export_event *now;
	struct export *x;
	uint64_t unwritten; /* recorded events before the first */
	int error;
	/* The segment under way. */
	struct pickle_list segments, blocks;
	struct torch_piece segment;
	uint64_t at, live;
	bool open;
};

static void key(struct str *p, enum word word)
{
	pickle_again(p, word);
}

static void key_u64(struct str *p, enum word word, uint64_t value)
{
	key(p, word);
	pickle_u64(p, value < 1ull << 53 ? value : 1ull << 53);
}

static void key_word(struct str *p, enum word word, enum word value)
{
	key(p, word);
	key(p, value);
}

/* --- frames: each value once --- */

/* Push a name; the first time, as text. _memory_viz.py puts it into lines. */
static int push_name(struct snapshot *t, struct str *p, const char *text)
{
	uint32_t id = intern_add(&t->names, text, strlen(text));
	struct str safe = {0};

	if (!id || vec_reach(&t->words, id + 1u))
		return -ENOMEM;
	if (t->words.items[id]) {
		pickle_again(p, t->words.items[id]);
		return 0;
	}
	str_safe(&safe, text);
	pickle_text(p, str_text(&safe));
	pickle_name(p, t->words.items[id] = t->next++);
	p->failed |= safe.failed;
	str_free(&safe);
	return 0;
}

static int push_frame(struct snapshot *t, struct str *p, const struct symbol *s)
{
	const char *file = s->file ? s->file : s->module ? s->module : "??";
	struct str name = {0};
	int rc;

	if (vec_reach(&t->symbols, s->id + 1u))
		return -ENOMEM;
	if (s->id && t->symbols.items[s->id]) {
		pickle_again(p, t->symbols.items[s->id]);
		return 0;
	}
	export_function(&name, s);
	pickle_dict(p);
	key(p, W_filename);
	rc = push_name(t, p, file);
	key_u64(p, W_line, s->line);
	key(p, W_name);
	if (!rc)
		rc = name.failed ? -ENOMEM : push_name(t, p, str_text(&name));
	pickle_dict_end(p);
	if (s->id)
		pickle_name(p, t->symbols.items[s->id] = t->next++);
	str_free(&name);
	return rc;
}

/* Name the list of a stack's frames, innermost first, if it has no number yet. */
static int name_frames(struct export *x, uint32_t stack, uint32_t *out)
{
	struct snapshot *t = x->state;
	struct pickle_list list;
	struct export_stack s;
	int rc;

	*out = W_NO_FRAMES;
	if (!stack)
		return 0;
	rc = vec_reach(&t->stacks, stack + 1u);
	if (rc)
		return rc;
	if (t->stacks.items[stack]) {
		*out = t->stacks.items[stack];
		return 0;
	}
	rc = export_look(x, stack, &s);
	if (rc)
		return rc;
	key(&t->text, W_device_traces);
	pickle_empty_list(&t->text);
	*out = t->stacks.items[stack] = t->next++;
	pickle_name(&t->text, *out);
	pickle_list(&t->text, &list);
	for (size_t i = 0; !rc && i < s.count && i < FRAMES; i++) {
		pickle_list_next(&t->text, &list);
		rc = push_frame(t, &t->text, &s.symbols[s.count - 1 - i]);
	}
	pickle_list_end(&t->text, &list);
	pickle_set(&t->text);
	sink_str(x->out, &t->text);
	return rc;
}

/* --- events --- */

static void write_part(struct export *x, uint32_t number)
{
	struct snapshot *t = x->state;
	struct device *d = &t->devices[number];
	struct pickle_list list;

	if (!d->items)
		return;
	key(&t->text, W_device_traces);
	pickle_again(&t->text, W_LISTS + number);
	pickle_list(&t->text, &list);
	sink_str(x->out, &t->text);
	sink_str(x->out, &d->part);
	pickle_list_end(&t->text, &list);
	pickle_set(&t->text);
	sink_str(x->out, &t->text);
	d->items = 0;
}

static void add_event(
    struct snapshot *t, enum word action, const struct torch_piece *p, uint64_t device_free)
{
	struct device *d = &t->devices[p->device];
	const struct event *raw = t->now->raw;
	uint32_t frames;
	int rc;

	if (t->now->number < t->x->first || t->error)
		return;
	rc = name_frames(t->x, p->stack, &frames);
	if (rc) {
		t->error = rc;
		return;
	}
	pickle_dict(&d->part);
	key_word(&d->part, W_action, action);
	key_u64(&d->part, action == W_oom ? W_device_free : W_addr,
	    action == W_oom ? device_free : p->start);
	key_u64(&d->part, W_size, p->end - p->start);
	key_u64(&d->part, W_stream, p->stream);
	key_u64(&d->part, W_time_us, (t->x->facts->start_real_ns + raw->time_ns) / 1000);
	key(&d->part, W_frames);
	pickle_again(&d->part, frames);
	pickle_dict_end(&d->part);
	if (++d->items == PICKLE_PART)
		write_part(t->x, p->device);
}

static void on_change(void *arg, enum torch_layout_change change, const struct torch_piece *p)
{
	static const enum word words[] = {W_segment_alloc, W_segment_free, W_segment_map,
	    W_segment_unmap, W_alloc, W_free_requested};

	add_event(arg, words[change], p, 0);
	if (change == TORCH_BLOCK_FREE)
		add_event(arg, W_free_completed, p, 0);
}

/* The space that an index of the names is; NULL: the host. */
static const struct space *space_of(const struct export *x, uint32_t index)
{
	return index == EXPORT_HOST ? NULL : x->all->spaces->list[index - 1];
}

/* True: of the space that the user chose, or of PyTorch. */
static bool holds_blocks(const struct export *x, const struct space *sp)
{
	if (!sp || sp->device >= DEVICES)
		return false;
	return x->options.space ? str_same(sp->name, x->options.space) : sp->kind == SPACE_TORCH;
}

static bool is_below(const struct space *sp)
{
	return sp && (sp->kind == SPACE_CUDA || sp->kind == SPACE_POOL);
}

static int on_block(struct export *x, const struct export_event *e, bool acquired)
{
	struct snapshot *t = x->state;
	const struct space *sp = space_of(x, e->space);
	const struct block *b = e->block;
	struct torch_piece p;
	bool handle = e->raw->kind == EV_SPACE_ALLOC &&
		      (e->raw->u.space.flags & (TRACE_SPACE_HANDLE | TRACE_SPACE_ARRAY));
	int rc = 0;

	if (!b || !sp)
		return 0;
	p = (struct torch_piece){.start = b->address,
	    .end = b->address + b->size,
	    .stream = e->raw->kind == EV_SPACE_ALLOC ? e->raw->u.space.stream : 0,
	    .stack = b->stack,
	    .device = sp->device};
	if (is_below(sp) && !handle)
		rc = acquired ? torch_layout_memory(&t->layout, &p)
			      : torch_layout_no_memory(&t->layout, p.start, p.end);
	if (!rc && holds_blocks(x, sp))
		rc = acquired ? torch_layout_block(&t->layout, &p)
			      : torch_layout_no_block(&t->layout, p.start);
	return rc;
}

static int on_mapping(struct export *x, const struct event *raw, bool mapped)
{
	struct snapshot *t = x->state;
	struct torch_piece p = {.start = raw->address,
	    .end = raw->address + raw->size,
	    .stack = raw->stack,
	    .expandable = true};

	return mapped ? torch_layout_memory(&t->layout, &p)
		      : torch_layout_no_memory(&t->layout, p.start, p.end);
}

static void on_refusal(struct export *x, const struct export_event *e)
{
	const struct space *sp = space_of(x, e->space);
	struct torch_piece p = {
	    .end = e->raw->size, .stack = e->raw->stack, .device = sp ? sp->device : 0};

	if (holds_blocks(x, sp))
		add_event(x->state, W_oom, &p, event_level_value(e->raw, TRACE_LEVEL_DEV_FREE));
}

static int snapshot_event(struct export *x, const struct export_event *e, struct err *err)
{
	struct snapshot *t = x->state;
	int rc = 0;

	(void)err;
	t->now = e;
	t->unwritten = e->number < x->first ? e->number : t->unwritten;
	if (e->kind == EXPORT_ALLOC || e->kind == EXPORT_UNFREE)
		rc = on_block(x, e, true);
	else if (e->kind == EXPORT_FREE)
		rc = on_block(x, e, false);
	else if (e->kind == EXPORT_FAILED)
		on_refusal(x, e);
	else if (e->raw->kind == EV_SPACE_MAP || e->raw->kind == EV_SPACE_UNUNMAP)
		rc = on_mapping(x, e->raw, true);
	else if (e->raw->kind == EV_SPACE_UNMAP)
		rc = on_mapping(x, e->raw, false);
	return rc ? rc : t->error;
}

/* --- begin --- */

static int check_space(const struct export *x, struct err *err)
{
	bool any = false;

	for (uint32_t i = 1; i < x->name_count; i++)
		any |= holds_blocks(x, space_of(x, i));
	if (any)
		return 0;
	if (x->options.space)
		return err_set(
		    err, -ENOENT, "no space '%.40s' of a device in this trace", x->options.space);
	return err_set(err, -ENOENT,
	    "no memory of PyTorch in this trace: --space cuda:0 writes the driver's blocks");
}

static int snapshot_begin(struct export *x, struct err *err)
{
	struct snapshot *t = x->state;
	int rc = check_space(x, err);

	if (rc)
		return rc;
	torch_layout_init(&t->layout);
	t->layout.changed = on_change;
	t->layout.arg = t;
	t->x = x;
	t->next = W_OTHERS;
	for (uint32_t i = 1; i < x->name_count; i++) {
		const struct space *sp = space_of(x, i);

		if (holds_blocks(x, sp) && sp->device >= t->device_count)
			t->device_count = sp->device + 1;
	}
	pickle_begin(&t->text);
	pickle_empty_dict(&t->text);
	/* Each word once, as a key of a dict that nobody sees in the end. */
	pickle_text(&t->text, "device_traces");
	pickle_dict(&t->text);
#define WORD(word)                                                                                 \
	pickle_text(&t->text, #word);                                                              \
	pickle_name(&t->text, W_##word);                                                           \
	pickle_u64(&t->text, 0);
	WORDS(WORD)
#undef WORD
	pickle_dict_end(&t->text);
	pickle_set(&t->text);
	key(&t->text, W_device_traces);
	pickle_empty_list(&t->text);
	pickle_name(&t->text, W_NO_FRAMES);
	pickle_set(&t->text);
	for (uint32_t i = 0; i < t->device_count; i++) {
		key(&t->text, W_device_traces);
		pickle_empty_list(&t->text);
		pickle_name(&t->text, W_LISTS + i);
		pickle_set(&t->text);
	}
	sink_str(x->out, &t->text);
	return 0;
}

/* --- end: the segments --- */

/* Frames are named where no value is under way. */
static void name_of_piece(void *arg, const struct torch_piece *p)
{
	struct snapshot *t = arg;
	uint32_t frames;

	if (!t->error)
		t->error = name_frames(t->x, p->stack, &frames);
}

static void push_frames(struct snapshot *t, uint32_t stack)
{
	key(&t->text, W_frames);
	pickle_again(&t->text, stack ? t->stacks.items[stack] : W_NO_FRAMES);
}

static void put_block(struct snapshot *t, uint64_t start, uint64_t end, uint32_t stack, bool live)
{
	struct str *p = &t->text;

	pickle_list_next(p, &t->blocks);
	pickle_dict(p);
	key_u64(p, W_address, start);
	key_u64(p, W_size, end - start);
	key_u64(p, W_requested_size, live ? end - start : 0);
	key_word(p, W_state, live ? W_active_allocated : W_inactive);
	push_frames(t, live ? stack : 0);
	pickle_dict_end(p);
	sink_str(t->x->out, p);
	t->at = end;
	t->live += live ? end - start : 0;
}

static void end_segment(struct snapshot *t)
{
	struct str *p = &t->text;

	if (!t->open)
		return;
	t->open = false;
	if (t->at < t->segment.end)
		put_block(t, t->at, t->segment.end, 0, false);
	pickle_list_end(p, &t->blocks);
	key_u64(p, W_allocated_size, t->live);
	key_u64(p, W_active_size, t->live);
	key_u64(p, W_requested_size, t->live);
	pickle_dict_end(p);
	sink_str(t->x->out, p);
}

static void put_segment(void *arg, const struct torch_piece *piece)
{
	struct snapshot *t = arg;
	struct str *p = &t->text;
	uint64_t size = piece->end - piece->start;

	end_segment(t);
	t->segment = *piece;
	t->open = true;
	t->at = piece->start;
	t->live = 0;
	pickle_list_next(p, &t->segments);
	pickle_dict(p);
	key_u64(p, W_device, piece->device);
	key_u64(p, W_address, piece->start);
	key_u64(p, W_total_size, size);
	key_u64(p, W_stream, piece->stream);
	key_word(p, W_segment_type, size <= SMALL_SEGMENT ? W_small : W_large);
	key(p, W_segment_pool_id);
	pickle_u64(p, 0);
	pickle_u64(p, 0);
	pickle_pair(p);
	key(p, W_is_expandable);
	pickle_bool(p, piece->expandable);
	push_frames(t, piece->stack);
	key(p, W_blocks);
	pickle_empty_list(p);
	pickle_list(p, &t->blocks);
}

static void put_live(void *arg, const struct torch_piece *piece)
{
	struct snapshot *t = arg;
	uint64_t start = piece->start, end = piece->end;

	/* A block in two expandable segments that touch, of two streams. */
	start = start > t->segment.start ? start : t->segment.start;
	end = end < t->segment.end ? end : t->segment.end;
	if (t->at < start)
		put_block(t, t->at, start, 0, false);
	put_block(t, start, end, piece->stack, true);
}

static int put_segments(struct snapshot *t)
{
	struct torch_layout_visit names = {t, name_of_piece, name_of_piece};
	struct torch_layout_visit visit = {t, put_segment, put_live};

	torch_layout_each(&t->layout, &names);
	if (t->error)
		return t->error;
	pickle_text(&t->text, "segments");
	pickle_empty_list(&t->text);
	pickle_list(&t->text, &t->segments);
	torch_layout_each(&t->layout, &visit);
	end_segment(t);
	pickle_list_end(&t->text, &t->segments);
	pickle_set(&t->text);
	return 0;
}

static void put_traces(struct snapshot *t)
{
	struct pickle_list list;

	key(&t->text, W_device_traces);
	pickle_empty_list(&t->text);
	pickle_list(&t->text, &list);
	for (uint32_t i = 0; i < t->device_count; i++) {
		pickle_list_next(&t->text, &list);
		pickle_again(&t->text, W_LISTS + i);
	}
	pickle_list_end(&t->text, &list);
	pickle_set(&t->text);
}

static void named_u64(struct str *p, const char *name, uint64_t value)
{
	pickle_text(p, name);
	pickle_u64(p, value < 1ull << 53 ? value : 1ull << 53);
}

/* The viewer shows the settings as they are, so this is where whyoom says what it left out. */
static void put_settings(struct export *x)
{
	struct snapshot *t = x->state;
	struct str *p = &t->text;
	struct caching_settings s;

	torch_replay_settings(x->feed, &s);
	pickle_text(p, "allocator_settings");
	pickle_dict(p);
	pickle_text(p, "PYTORCH_CUDA_ALLOC_CONF");
	pickle_text(p, torch_replay_conf(x->feed));
	pickle_text(p, "max_split_size");
	if (s.max_split == UINT64_MAX)
		pickle_minus_one(p);
	else
		pickle_u64(p, s.max_split < 1ull << 53 ? s.max_split : 1ull << 53);
	pickle_text(p, "garbage_collection_threshold");
	pickle_real(p, s.gc_threshold);
	pickle_text(p, "expandable_segments");
	pickle_bool(p, s.expandable);
	pickle_text(p, "whyoom");
	pickle_dict(p);
	pickle_text(p, "version");
	pickle_text(p, WHYOOM_VERSION);
	named_u64(p, "pid", x->facts->pid);
	pickle_text(p, "at");
	pickle_text(p, x->options.until.at);
	named_u64(p, "damaged", x->facts->damage.count != 0);
	named_u64(p, "events_before_the_first", t->unwritten);
	named_u64(p, "blocks_left_out", t->layout.left_out);
	named_u64(p, "bytes_left_out", t->layout.left_out_bytes);
	pickle_dict_end(p);
	pickle_dict_end(p);
	pickle_set(p);
}

static int snapshot_end(struct export *x, struct err *err)
{
	struct snapshot *t = x->state;
	int rc;

	(void)err;
	for (uint32_t i = 0; i < t->device_count; i++)
		write_part(x, i);
	rc = put_segments(t);
	if (rc)
		return rc;
	put_traces(t);
	put_settings(x);
	pickle_end(&t->text);
	sink_str(x->out, &t->text);
	return 0;
}

static void snapshot_fini(struct export *x)
{
	struct snapshot *t = x->state;

	torch_layout_fini(&t->layout);
	for (uint32_t i = 0; i < DEVICES; i++)
		str_free(&t->devices[i].part);
	vec_free(&t->stacks);
	vec_free(&t->symbols);
	vec_free(&t->words);
	intern_free(&t->names);
	str_free(&t->text);
}

const struct exporter exporter_torch_snapshot = {
    .name = "torch-snapshot",
    .summary = "pytorch.org/memory_viz: PyTorch's events, and its segments at the moment",
    .needs = EXPORT_EVENTS,
    .binary = true,
    .devices = true,
    .last_events = LAST_EVENTS,
    .state = sizeof(struct snapshot),
    .begin = snapshot_begin,
    .event = snapshot_event,
    .end = snapshot_end,
    .fini = snapshot_fini,
};

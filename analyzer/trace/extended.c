#include "trace/extended.h"

#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"
#include "trace/writer.h"
#include "util/num.h"
#include "whyoom/trace.h"

/* --- bytes --- */

bool extended_is_known(uint64_t kind)
{
	return kind < TRACE_KINDS && trace_field_types[kind][0] != TRACE_FIELD_NONE;
}

unsigned extended_count(uint64_t kind, const union trace_fields *f, bool more)
{
	const uint8_t *types = trace_field_types[kind];
	unsigned always = 0, all;

	while (types[always] != TRACE_FIELD_END && !(types[always] & TRACE_FIELD_LATER))
		always++;
	for (all = always; types[all] != TRACE_FIELD_END;)
		all++;
	if (kind == TRACE_FAILED)
		return f->FAILED.why == TRACE_FAIL_DEVICE || f->FAILED.why == TRACE_FAIL_FRAMEWORK
			   ? all
			   : always;
	if (kind == TRACE_NOTICE)
		more &= f->NOTICE.what == TRACE_NOTICE_MODE ||
			f->NOTICE.what == TRACE_NOTICE_RATE ||
			f->NOTICE.what == TRACE_NOTICE_THINNED;
	if (kind == TRACE_MARK && f->MARK.phase != TRACE_MARK_LENGTH)
		all = TRACE_FIELDS_BEFORE(MARK, tokens);
	return more ? all : always;
}

bool extended_read(uint64_t kind, struct cursor *body, struct extended_body *out)
{
	const uint8_t *types = trace_field_types[kind];
	uint64_t *field = (uint64_t *)&out->fields;
	unsigned count = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; types[i] != TRACE_FIELD_END; i++) {
		unsigned type = types[i] & ~(unsigned)TRACE_FIELD_LATER;

		out->has_stack |= type == TRACE_FIELD_STACK;
		if (types[i] & TRACE_FIELD_LATER) {
			if (!count)
				count = extended_count(kind, &out->fields, cursor_left(body));
			if (i >= count)
				continue;
		}
		field[i] = cursor_varint(body);
		if (type == TRACE_FIELD_STACK)
			out->stack = field[i];
		if (type == TRACE_FIELD_LEVELS) {
			if (field[i] > cursor_left(body) / 2)
				return false;
			out->level_count = (uint32_t)field[i];
			out->levels = *body;
			for (uint32_t n = 0; n < out->level_count * 2; n++)
				cursor_varint(body);
		}
	}
	return !body->bad;
}

struct extended *extended_new(uint64_t kind, const struct extended_body *body)
{
	struct extended *x = malloc(sizeof(*x) + body->level_count * sizeof(struct event_level));
	struct cursor levels = body->levels;

	if (!x)
		return NULL;
	x->kind = (uint16_t)kind;
	x->fields = body->fields;
	x->level_count = body->level_count;
	for (uint32_t i = 0; i < x->level_count; i++) {
		uint64_t key = cursor_varint(&levels);

		x->levels[i].key = key > UINT32_MAX ? 0 : (uint32_t)key;
		x->levels[i].value = cursor_varint(&levels);
	}
	return x;
}

/* --- to an event, and back --- */

/* How the number of a field stands in an event. */
enum form {
	NOWHERE,
	BYTE, /* its lowest 8 bits */
	LOW, /* its lowest 32 bits */
	NARROW, /* in 32 bits, at most UINT32_MAX */
	WHOLE,
	TEXT, /* as the text of that string */
	SPACE, /* NARROW: the id of a space */
};

struct place {
	uint8_t form;
	uint16_t at; /* in struct event */
};

#define FIELD(KIND, field, form, member)                                                           \
	[TRACE_FIELDS_BEFORE(KIND, field)] = {form, offsetof(struct event, member)}

/* The event of each kind, 0: none, and the places of its fields. Those of stacks and levels go by
 * themselves. stream.c handles the other kinds. */
static const struct {
	uint8_t event;
	struct place fields[TRACE_FIELDS_MAX];
} kinds[TRACE_KINDS] = {
    [TRACE_MAP] = {EV_MAP,
	{FIELD(MAP, address, WHOLE, address), FIELD(MAP, length, WHOLE, size),
	    FIELD(MAP, prot, LOW, u.map.prot), FIELD(MAP, api, BYTE, api),
	    FIELD(MAP, flags, LOW, u.map.flags), FIELD(MAP, backing, NARROW, u.map.backing),
	    FIELD(MAP, name, TEXT, u.map.name), FIELD(MAP, offset, WHOLE, u.map.offset)}},
    [TRACE_UNMAP] = {EV_UNMAP,
	{FIELD(UNMAP, address, WHOLE, address), FIELD(UNMAP, length, WHOLE, size),
	    FIELD(UNMAP, api, BYTE, api), FIELD(UNMAP, flags, LOW, u.map.flags)}},
    [TRACE_UNUNMAP] = {EV_UNUNMAP,
	{FIELD(UNUNMAP, address, WHOLE, address), FIELD(UNUNMAP, length, WHOLE, size)}},
    [TRACE_ADVISE] = {EV_ADVISE,
	{FIELD(ADVISE, address, WHOLE, address), FIELD(ADVISE, length, WHOLE, size),
	    FIELD(ADVISE, advice, NARROW, u.advise.advice)}},
    [TRACE_BRK] = {EV_BRK,
	{FIELD(BRK, old_end, WHOLE, u.brk.old_end), FIELD(BRK, new_end, WHOLE, u.brk.new_end)}},
    [TRACE_FAILED] = {EV_FAILED,
	{FIELD(FAILED, space, SPACE, space), FIELD(FAILED, api, BYTE, api),
	    FIELD(FAILED, why, NARROW, u.failed.why), FIELD(FAILED, result, LOW, u.failed.result),
	    FIELD(FAILED, size, WHOLE, size), FIELD(FAILED, alignment, WHOLE, u.failed.alignment),
	    FIELD(FAILED, old_address, WHOLE, u.failed.old_address),
	    FIELD(FAILED, call, TEXT, u.failed.api), FIELD(FAILED, label, TEXT, u.failed.label),
	    FIELD(FAILED, retry, NARROW, u.failed.retry),
	    FIELD(FAILED, flags, LOW, u.failed.flags)}},
    [TRACE_LEVEL] = {EV_LEVEL, {FIELD(LEVEL, space, SPACE, space)}},
    [TRACE_LEVEL_OF] = {EV_LEVEL,
	{FIELD(LEVEL_OF, pid, NARROW, u.child.pid), FIELD(LEVEL_OF, space, SPACE, space)}},
    [TRACE_THREAD_EXIT] = {.event = EV_THREAD_EXIT},
    [TRACE_EXIT] = {EV_EXIT,
	{FIELD(EXIT, how, NARROW, u.end.how), FIELD(EXIT, status, NARROW, u.end.code)}},
    [TRACE_SIGNAL] = {EV_SIGNAL,
	{FIELD(SIGNAL, signal, NARROW, u.end.code), FIELD(SIGNAL, address, WHOLE, address)}},
    [TRACE_FORK] = {EV_FORK, {FIELD(FORK, child, NARROW, u.child.pid)}},
    [TRACE_NOTICE] = {EV_NOTICE,
	{FIELD(NOTICE, what, NARROW, u.notice.what), FIELD(NOTICE, value, WHOLE, u.notice.value),
	    FIELD(NOTICE, mean, WHOLE, u.notice.mean),
	    FIELD(NOTICE, exact_from, WHOLE, u.notice.exact_from)}},
    [TRACE_CHILD_END] = {EV_CHILD_END,
	{FIELD(CHILD_END, pid, NARROW, u.child.pid), FIELD(CHILD_END, how, NARROW, u.child.how),
	    FIELD(CHILD_END, status, NARROW, u.child.code),
	    FIELD(CHILD_END, flags, LOW, u.child.flags)}},
    [TRACE_MARK] = {EV_MARK,
	{FIELD(MARK, phase, NARROW, u.mark.phase), FIELD(MARK, id, WHOLE, u.mark.id),
	    FIELD(MARK, name, TEXT, u.mark.name), FIELD(MARK, what, NARROW, u.mark.what),
	    FIELD(MARK, domain, TEXT, u.mark.domain), FIELD(MARK, tokens, WHOLE, u.mark.tokens)}},
    [TRACE_SPACE_ALLOC] = {EV_SPACE_ALLOC,
	{FIELD(SPACE_ALLOC, space, SPACE, space), FIELD(SPACE_ALLOC, api, TEXT, u.space.api),
	    FIELD(SPACE_ALLOC, address, WHOLE, address), FIELD(SPACE_ALLOC, size, WHOLE, size),
	    FIELD(SPACE_ALLOC, stream, WHOLE, u.space.stream),
	    FIELD(SPACE_ALLOC, context, WHOLE, u.space.context),
	    FIELD(SPACE_ALLOC, flags, LOW, u.space.flags),
	    FIELD(SPACE_ALLOC, label, TEXT, u.space.label),
	    FIELD(SPACE_ALLOC, retry, NARROW, u.space.retry)}},
    [TRACE_SPACE_FREE] = {EV_SPACE_FREE,
	{FIELD(SPACE_FREE, space, SPACE, space), FIELD(SPACE_FREE, api, TEXT, u.space.api),
	    FIELD(SPACE_FREE, address, WHOLE, address),
	    FIELD(SPACE_FREE, stream, WHOLE, u.space.stream),
	    FIELD(SPACE_FREE, flags, LOW, u.space.flags),
	    FIELD(SPACE_FREE, label, TEXT, u.space.label)}},
    [TRACE_SPACE_UNFREE] = {EV_SPACE_UNFREE,
	{FIELD(SPACE_UNFREE, space, SPACE, space), FIELD(SPACE_UNFREE, address, WHOLE, address),
	    FIELD(SPACE_UNFREE, flags, LOW, u.space.flags)}},
    [TRACE_SPACE_MAP] = {EV_SPACE_MAP,
	{FIELD(SPACE_MAP, api, TEXT, u.space.api), FIELD(SPACE_MAP, address, WHOLE, address),
	    FIELD(SPACE_MAP, size, WHOLE, size), FIELD(SPACE_MAP, offset, WHOLE, u.space.offset),
	    FIELD(SPACE_MAP, handle, WHOLE, u.space.handle)}},
    [TRACE_SPACE_UNMAP] = {EV_SPACE_UNMAP,
	{FIELD(SPACE_UNMAP, api, TEXT, u.space.api), FIELD(SPACE_UNMAP, address, WHOLE, address),
	    FIELD(SPACE_UNMAP, size, WHOLE, size)}},
    [TRACE_SPACE_UNUNMAP] = {EV_SPACE_UNUNMAP,
	{FIELD(SPACE_UNUNMAP, address, WHOLE, address), FIELD(SPACE_UNUNMAP, size, WHOLE, size)}},
    [TRACE_SPACE_CLEAR] = {EV_SPACE_CLEAR,
	{FIELD(SPACE_CLEAR, space, SPACE, space), FIELD(SPACE_CLEAR, api, TEXT, u.space.api),
	    FIELD(SPACE_CLEAR, what, NARROW, u.space.what),
	    FIELD(SPACE_CLEAR, object, WHOLE, u.space.handle),
	    FIELD(SPACE_CLEAR, label, TEXT, u.space.label)}},
    [TRACE_SPACE_CALL] = {EV_SPACE_CALL,
	{FIELD(SPACE_CALL, space, SPACE, space), FIELD(SPACE_CALL, api, TEXT, u.space.api),
	    FIELD(SPACE_CALL, object, WHOLE, u.space.handle),
	    FIELD(SPACE_CALL, value, WHOLE, u.space.offset),
	    FIELD(SPACE_CALL, result, LOW, u.space.result),
	    FIELD(SPACE_CALL, label, TEXT, u.space.label)}},
    [TRACE_TASK_END] = {EV_TASK_END, {FIELD(TASK_END, key, LOW, task)}}, /* only written */
    /* These two are only read. */
    [TRACE_WENT] = {EV_WENT,
	{FIELD(WENT, space, SPACE, space), FIELD(WENT, blocks, WHOLE, u.went.count),
	    FIELD(WENT, bytes, WHOLE, u.went.bytes), FIELD(WENT, largest, WHOLE, size)}},
    [TRACE_CHECKPOINT] = {EV_CHECKPOINT,
	{FIELD(CHECKPOINT, trace_bytes, WHOLE, u.period.trace_bytes),
	    FIELD(CHECKPOINT, acquired, WHOLE, u.period.acquired),
	    FIELD(CHECKPOINT, acquired_bytes, WHOLE, u.period.acquired_bytes),
	    FIELD(CHECKPOINT, released, WHOLE, u.period.released),
	    FIELD(CHECKPOINT, released_bytes, WHOLE, u.period.released_bytes),
	    FIELD(CHECKPOINT, most_bytes, WHOLE, u.period.most_bytes),
	    FIELD(CHECKPOINT, left_out, WHOLE, u.period.left_out)}},
};

static void put_field(const struct trace *t, struct event *out, struct place place, uint64_t value)
{
	char *at = (char *)out + place.at;
	uint32_t low = (uint32_t)value;
	const char *text;

	switch ((enum form)place.form) {
	case NOWHERE:
		break;
	case BYTE:
		*at = (char)value;
		break;
	case NARROW:
	case SPACE:
		if (value > UINT32_MAX)
			low = UINT32_MAX;
		/* fall through */
	case LOW:
		memcpy(at, &low, sizeof(low));
		break;
	case WHOLE:
		memcpy(at, &value, sizeof(value));
		break;
	case TEXT:
		text = defs_string(&t->defs, value);
		memcpy(at, &text, sizeof(text));
		break;
	}
}

static uint64_t get_field(struct trace_writer *w, const struct event *e, struct place place)
{
	const char *at = (const char *)e + place.at, *text;
	uint64_t value = 0;
	uint32_t low;

	switch ((enum form)place.form) {
	case NOWHERE:
		break;
	case BYTE:
		value = (uint8_t)*at;
		break;
	case LOW:
	case NARROW:
	case SPACE:
		memcpy(&low, at, sizeof(low));
		value = place.form == SPACE ? writer_space(w, low) : low;
		break;
	case WHOLE:
		memcpy(&value, at, sizeof(value));
		break;
	case TEXT:
		memcpy(&text, at, sizeof(text));
		value = writer_string(w, text);
		break;
	}
	return value;
}

/* Add a replaced period to the sums of all. */
static void read_period(struct trace *t, uint64_t begin, struct event *out)
{
	struct trace_replaced *all = &t->counts.replaced;

	out->u.period.begin_ns = num_least(clock_ns(&t->clock, begin), out->time_ns);
	all->trace_bytes = num_sum(all->trace_bytes, out->u.period.trace_bytes);
	all->acquired = num_sum(all->acquired, out->u.period.acquired);
	all->acquired_bytes = num_sum(all->acquired_bytes, out->u.period.acquired_bytes);
	all->released = num_sum(all->released, out->u.period.released);
	all->released_bytes = num_sum(all->released_bytes, out->u.period.released_bytes);
	all->left_out = num_sum(all->left_out, out->u.period.left_out);
	all->periods++;
}

static uint64_t passed_ns(const struct trace *t, uint64_t ticks, uint64_t times)
{
	double ns = (double)ticks / (double)clock_ticks_of(&t->clock, 1000000000) * 1e9;

	return ns * (double)times < 0x1p56 ? (uint64_t)(ns * (double)times) : 1ull << 56;
}

/* What is more than a field in its place. */
static void complete(struct trace *t, const struct extended *record, struct event *out)
{
	const union trace_fields *f = &record->fields;

	switch (record->kind) {
	case TRACE_BRK:
		out->api = TRACE_API_BRK;
		out->address = num_least(f->BRK.old_end, f->BRK.new_end);
		out->size = num_most(f->BRK.old_end, f->BRK.new_end) - out->address;
		break;
	case TRACE_EXIT:
		if (t->facts.end_how == TRACE_END_NONE &&
		    (f->EXIT.how == TRACE_END_EXIT || f->EXIT.how == TRACE_END_EXEC ||
			f->EXIT.how == TRACE_END_DETACHED)) {
			t->facts.end_how = out->u.end.how;
			t->facts.end_code = out->u.end.code;
		}
		break;
	case TRACE_SIGNAL:
		out->u.end.how = TRACE_END_SIGNAL;
		break;
	case TRACE_NOTICE:
		t->facts.budget |= f->NOTICE.what == TRACE_NOTICE_BUDGET;
		break;
	case TRACE_WENT:
		out->u.went.life_ns = passed_ns(t, f->WENT.life, f->WENT.blocks);
		out->u.went.longest_ns = passed_ns(t, f->WENT.longest, 1);
		break;
	case TRACE_CHECKPOINT:
		read_period(t, f->CHECKPOINT.begin, out);
		break;
	}
}

bool extended_to_event(struct trace *t, const struct extended *record, struct event *out)
{
	const uint8_t *types = trace_field_types[record->kind];
	const uint64_t *field = (const uint64_t *)&record->fields;

	if (!kinds[record->kind].event)
		return false;
	memset(&out->u, 0, sizeof(out->u));
	out->kind = kinds[record->kind].event;
	out->levels = record->levels;
	out->level_count = record->level_count;
	for (unsigned i = 0; types[i] != TRACE_FIELD_END; i++)
		put_field(t, out, kinds[record->kind].fields[i], field[i]);
	complete(t, record, out);
	return true;
}

uint64_t extended_of_event(struct trace_writer *w, const struct event *e, union trace_fields *f)
{
	uint64_t kind = e->kind == EV_LEVEL && e->u.child.pid ? TRACE_LEVEL_OF : 0;
	uint64_t *field = (uint64_t *)f;

	while (kind < TRACE_KINDS && kinds[kind].event != e->kind)
		kind++;
	if (kind == TRACE_KINDS || !kinds[kind].event)
		return 0;
	for (unsigned i = 0; trace_field_types[kind][i] != TRACE_FIELD_END; i++) {
		unsigned type = trace_field_types[kind][i] & ~(unsigned)TRACE_FIELD_LATER;

		if (type == TRACE_FIELD_STACK)
			field[i] = writer_stack(w, e->stack);
		else if (type == TRACE_FIELD_LEVELS)
			field[i] = e->level_count;
		else
			field[i] = get_field(w, e, kinds[kind].fields[i]);
	}
	return kind;
}

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

/* --- to an event --- */

static uint32_t narrow(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* Add a replaced period to the sums of all. */
static void read_period(struct trace *t, const struct trace_CHECKPOINT *f, struct event *out)
{
	struct trace_replaced *all = &t->counts.replaced;

	out->u.period.begin_ns = clock_ns(&t->clock, f->begin);
	if (out->u.period.begin_ns > out->time_ns)
		out->u.period.begin_ns = out->time_ns;
	all->trace_bytes = num_sum(all->trace_bytes, out->u.period.trace_bytes = f->trace_bytes);
	all->acquired = num_sum(all->acquired, out->u.period.acquired = f->acquired);
	all->acquired_bytes =
	    num_sum(all->acquired_bytes, out->u.period.acquired_bytes = f->acquired_bytes);
	all->released = num_sum(all->released, out->u.period.released = f->released);
	all->released_bytes =
	    num_sum(all->released_bytes, out->u.period.released_bytes = f->released_bytes);
	out->u.period.most_bytes = f->most_bytes;
	all->left_out = num_sum(all->left_out, out->u.period.left_out = f->left_out);
	all->periods++;
}

static uint64_t passed_ns(const struct trace *t, uint64_t ticks, uint64_t times)
{
	double ns = (double)ticks / (double)clock_ticks_of(&t->clock, 1000000000) * 1e9;

	return ns * (double)times < 0x1p56 ? (uint64_t)(ns * (double)times) : 1ull << 56;
}

bool extended_to_event(struct trace *t, const struct extended *record, struct event *out)
{
	const union trace_fields *f = &record->fields;

	memset(&out->u, 0, sizeof(out->u));
	out->levels = record->levels;
	out->level_count = record->level_count;
	switch ((enum trace_event_kind)record->kind) {
	case TRACE_MAP:
		out->kind = EV_MAP;
		out->address = f->MAP.address;
		out->size = f->MAP.length;
		out->u.map.prot = (uint32_t)f->MAP.prot;
		out->api = (uint8_t)f->MAP.api;
		out->u.map.flags = (uint32_t)f->MAP.flags;
		out->u.map.backing = narrow(f->MAP.backing);
		out->u.map.name = defs_string(&t->defs, f->MAP.name);
		out->u.map.offset = f->MAP.offset;
		return true;
	case TRACE_UNMAP:
		out->kind = EV_UNMAP;
		out->address = f->UNMAP.address;
		out->size = f->UNMAP.length;
		out->api = (uint8_t)f->UNMAP.api;
		out->u.map.flags = (uint32_t)f->UNMAP.flags;
		return true;
	case TRACE_UNUNMAP:
		out->kind = EV_UNUNMAP;
		out->address = f->UNUNMAP.address;
		out->size = f->UNUNMAP.length;
		return true;
	case TRACE_ADVISE:
		out->kind = EV_ADVISE;
		out->address = f->ADVISE.address;
		out->size = f->ADVISE.length;
		out->u.advise.advice = narrow(f->ADVISE.advice);
		return true;
	case TRACE_BRK:
		out->kind = EV_BRK;
		out->api = TRACE_API_BRK;
		out->address = num_least(f->BRK.old_end, f->BRK.new_end);
		out->size = num_most(f->BRK.old_end, f->BRK.new_end) - out->address;
		out->u.brk.old_end = f->BRK.old_end;
		out->u.brk.new_end = f->BRK.new_end;
		return true;
	case TRACE_FAILED:
		out->kind = EV_FAILED;
		out->space = narrow(f->FAILED.space);
		out->api = (uint8_t)f->FAILED.api;
		out->u.failed.why = narrow(f->FAILED.why);
		out->u.failed.result = (int32_t)f->FAILED.result;
		out->size = f->FAILED.size;
		out->u.failed.alignment = f->FAILED.alignment;
		out->u.failed.old_address = f->FAILED.old_address;
		out->u.failed.api = defs_string(&t->defs, f->FAILED.call);
		out->u.failed.label = defs_string(&t->defs, f->FAILED.label);
		out->u.failed.retry = narrow(f->FAILED.retry);
		out->u.failed.flags = (uint32_t)f->FAILED.flags;
		return true;
	case TRACE_LEVEL:
		out->kind = EV_LEVEL;
		out->space = narrow(f->LEVEL.space);
		return true;
	case TRACE_LEVEL_OF:
		out->kind = EV_LEVEL;
		out->u.child.pid = narrow(f->LEVEL_OF.pid);
		out->space = narrow(f->LEVEL_OF.space);
		return true;
	case TRACE_THREAD_EXIT:
		out->kind = EV_THREAD_EXIT;
		return true;
	case TRACE_EXIT:
		out->kind = EV_EXIT;
		out->u.end.how = narrow(f->EXIT.how);
		out->u.end.code = narrow(f->EXIT.status);
		if (t->facts.end_how == TRACE_END_NONE &&
		    (f->EXIT.how == TRACE_END_EXIT || f->EXIT.how == TRACE_END_EXEC)) {
			t->facts.end_how = (uint32_t)f->EXIT.how;
			t->facts.end_code = narrow(f->EXIT.status);
		}
		return true;
	case TRACE_SIGNAL:
		out->kind = EV_SIGNAL;
		out->u.end.how = TRACE_END_SIGNAL;
		out->u.end.code = narrow(f->SIGNAL.signal);
		out->address = f->SIGNAL.address;
		return true;
	case TRACE_FORK:
		out->kind = EV_FORK;
		out->u.child.pid = narrow(f->FORK.child);
		return true;
	case TRACE_NOTICE:
		out->kind = EV_NOTICE;
		out->u.notice.what = narrow(f->NOTICE.what);
		out->u.notice.value = f->NOTICE.value;
		out->u.notice.mean = f->NOTICE.mean;
		out->u.notice.exact_from = f->NOTICE.exact_from;
		if (f->NOTICE.what == TRACE_NOTICE_BUDGET)
			t->facts.budget = true;
		return true;
	case TRACE_CHILD_END:
		out->kind = EV_CHILD_END;
		out->u.child.pid = narrow(f->CHILD_END.pid);
		out->u.child.how = narrow(f->CHILD_END.how);
		out->u.child.code = narrow(f->CHILD_END.status);
		out->u.child.flags = (uint32_t)f->CHILD_END.flags;
		return true;
	case TRACE_SPACE_ALLOC:
		out->kind = EV_SPACE_ALLOC;
		out->space = narrow(f->SPACE_ALLOC.space);
		out->u.space.api = defs_string(&t->defs, f->SPACE_ALLOC.api);
		out->address = f->SPACE_ALLOC.address;
		out->size = f->SPACE_ALLOC.size;
		out->u.space.stream = f->SPACE_ALLOC.stream;
		out->u.space.context = f->SPACE_ALLOC.context;
		out->u.space.flags = (uint32_t)f->SPACE_ALLOC.flags;
		out->u.space.label = defs_string(&t->defs, f->SPACE_ALLOC.label);
		out->u.space.retry = narrow(f->SPACE_ALLOC.retry);
		return true;
	case TRACE_SPACE_FREE:
		out->kind = EV_SPACE_FREE;
		out->space = narrow(f->SPACE_FREE.space);
		out->u.space.api = defs_string(&t->defs, f->SPACE_FREE.api);
		out->address = f->SPACE_FREE.address;
		out->u.space.stream = f->SPACE_FREE.stream;
		out->u.space.flags = (uint32_t)f->SPACE_FREE.flags;
		out->u.space.label = defs_string(&t->defs, f->SPACE_FREE.label);
		return true;
	case TRACE_SPACE_UNFREE:
		out->kind = EV_SPACE_UNFREE;
		out->space = narrow(f->SPACE_UNFREE.space);
		out->address = f->SPACE_UNFREE.address;
		out->u.space.flags = (uint32_t)f->SPACE_UNFREE.flags;
		return true;
	case TRACE_SPACE_MAP:
		out->kind = EV_SPACE_MAP;
		out->u.space.api = defs_string(&t->defs, f->SPACE_MAP.api);
		out->address = f->SPACE_MAP.address;
		out->size = f->SPACE_MAP.size;
		out->u.space.offset = f->SPACE_MAP.offset;
		out->u.space.handle = f->SPACE_MAP.handle;
		return true;
	case TRACE_SPACE_UNMAP:
		out->kind = EV_SPACE_UNMAP;
		out->u.space.api = defs_string(&t->defs, f->SPACE_UNMAP.api);
		out->address = f->SPACE_UNMAP.address;
		out->size = f->SPACE_UNMAP.size;
		return true;
	case TRACE_SPACE_UNUNMAP:
		out->kind = EV_SPACE_UNUNMAP;
		out->address = f->SPACE_UNUNMAP.address;
		out->size = f->SPACE_UNUNMAP.size;
		return true;
	case TRACE_SPACE_CLEAR:
		out->kind = EV_SPACE_CLEAR;
		out->space = narrow(f->SPACE_CLEAR.space);
		out->u.space.api = defs_string(&t->defs, f->SPACE_CLEAR.api);
		out->u.space.what = narrow(f->SPACE_CLEAR.what);
		out->u.space.handle = f->SPACE_CLEAR.object;
		out->u.space.label = defs_string(&t->defs, f->SPACE_CLEAR.label);
		return true;
	case TRACE_SPACE_CALL:
		out->kind = EV_SPACE_CALL;
		out->space = narrow(f->SPACE_CALL.space);
		out->u.space.api = defs_string(&t->defs, f->SPACE_CALL.api);
		out->u.space.handle = f->SPACE_CALL.object;
		out->u.space.offset = f->SPACE_CALL.value;
		out->u.space.result = (int32_t)f->SPACE_CALL.result;
		out->u.space.label = defs_string(&t->defs, f->SPACE_CALL.label);
		return true;
	case TRACE_MARK:
		out->kind = EV_MARK;
		out->u.mark.phase = narrow(f->MARK.phase);
		out->u.mark.what = narrow(f->MARK.what);
		out->u.mark.id = f->MARK.id;
		out->u.mark.name = defs_string(&t->defs, f->MARK.name);
		out->u.mark.domain = defs_string(&t->defs, f->MARK.domain);
		out->u.mark.tokens = f->MARK.phase == TRACE_MARK_LENGTH ? f->MARK.tokens : 0;
		return true;
	case TRACE_WENT:
		out->kind = EV_WENT;
		out->space = narrow(f->WENT.space);
		out->u.went.count = f->WENT.blocks;
		out->u.went.bytes = f->WENT.bytes;
		out->size = f->WENT.largest;
		out->u.went.life_ns = passed_ns(t, f->WENT.life, f->WENT.blocks);
		out->u.went.longest_ns = passed_ns(t, f->WENT.longest, 1);
		return true;
	case TRACE_CHECKPOINT:
		out->kind = EV_CHECKPOINT;
		read_period(t, &f->CHECKPOINT, out);
		return true;
	case TRACE_ALLOC:
	case TRACE_ALLOC_EXPECTED:
	case TRACE_FREE:
	case TRACE_UNFREE:
	case TRACE_TASK:
	case TRACE_TASK_END:
	case TRACE_EXTENDED:
	case TRACE_SHARED_THREAD:
	case TRACE_SAMPLED_ALLOC:
	case TRACE_ALLOC_WIDE:
	case TRACE_FREE_WIDE:
		break; /* stream.c handles these itself */
	}
	return false;
}

/* --- and back --- */

uint64_t extended_of_event(struct trace_writer *w, const struct event *e, union trace_fields *f)
{
	switch (e->kind) {
	case EV_MAP:
		f->MAP.address = e->address;
		f->MAP.length = e->size;
		f->MAP.prot = e->u.map.prot;
		f->MAP.api = e->api;
		f->MAP.flags = e->u.map.flags;
		f->MAP.backing = e->u.map.backing;
		f->MAP.name = writer_string(w, e->u.map.name);
		f->MAP.offset = e->u.map.offset;
		f->MAP.stack = writer_stack(w, e->stack);
		return TRACE_MAP;
	case EV_UNMAP:
		f->UNMAP.address = e->address;
		f->UNMAP.length = e->size;
		f->UNMAP.api = e->api;
		f->UNMAP.flags = e->u.map.flags;
		return TRACE_UNMAP;
	case EV_UNUNMAP:
		f->UNUNMAP.address = e->address;
		f->UNUNMAP.length = e->size;
		return TRACE_UNUNMAP;
	case EV_ADVISE:
		f->ADVISE.address = e->address;
		f->ADVISE.length = e->size;
		f->ADVISE.advice = e->u.advise.advice;
		return TRACE_ADVISE;
	case EV_BRK:
		f->BRK.old_end = e->u.brk.old_end;
		f->BRK.new_end = e->u.brk.new_end;
		f->BRK.stack = writer_stack(w, e->stack);
		return TRACE_BRK;
	case EV_FAILED:
		f->FAILED.space = writer_space(w, e->space);
		f->FAILED.api = e->api;
		f->FAILED.why = e->u.failed.why;
		f->FAILED.result = (uint32_t)e->u.failed.result;
		f->FAILED.size = e->size;
		f->FAILED.alignment = e->u.failed.alignment;
		f->FAILED.old_address = e->u.failed.old_address;
		f->FAILED.stack = writer_stack(w, e->stack);
		f->FAILED.levels = e->level_count;
		f->FAILED.call = writer_string(w, e->u.failed.api);
		f->FAILED.label = writer_string(w, e->u.failed.label);
		f->FAILED.retry = e->u.failed.retry;
		f->FAILED.flags = e->u.failed.flags;
		return TRACE_FAILED;
	case EV_LEVEL:
		if (!e->u.child.pid) {
			f->LEVEL.space = writer_space(w, e->space);
			f->LEVEL.levels = e->level_count;
			return TRACE_LEVEL;
		}
		f->LEVEL_OF.pid = e->u.child.pid;
		f->LEVEL_OF.levels = e->level_count;
		f->LEVEL_OF.space = writer_space(w, e->space);
		return TRACE_LEVEL_OF;
	case EV_THREAD_EXIT:
		return TRACE_THREAD_EXIT;
	case EV_EXIT:
		f->EXIT.how = e->u.end.how;
		f->EXIT.status = e->u.end.code;
		return TRACE_EXIT;
	case EV_SIGNAL:
		f->SIGNAL.signal = e->u.end.code;
		f->SIGNAL.address = e->address;
		return TRACE_SIGNAL;
	case EV_FORK:
		f->FORK.child = e->u.child.pid;
		return TRACE_FORK;
	case EV_NOTICE:
		f->NOTICE.what = e->u.notice.what;
		f->NOTICE.value = e->u.notice.value;
		return TRACE_NOTICE;
	case EV_CHILD_END:
		f->CHILD_END.pid = e->u.child.pid;
		f->CHILD_END.how = e->u.child.how;
		f->CHILD_END.status = e->u.child.code;
		f->CHILD_END.flags = e->u.child.flags;
		return TRACE_CHILD_END;
	case EV_SPACE_ALLOC:
		f->SPACE_ALLOC.space = writer_space(w, e->space);
		f->SPACE_ALLOC.api = writer_string(w, e->u.space.api);
		f->SPACE_ALLOC.address = e->address;
		f->SPACE_ALLOC.size = e->size;
		f->SPACE_ALLOC.stack = writer_stack(w, e->stack);
		f->SPACE_ALLOC.stream = e->u.space.stream;
		f->SPACE_ALLOC.context = e->u.space.context;
		f->SPACE_ALLOC.flags = e->u.space.flags;
		f->SPACE_ALLOC.label = writer_string(w, e->u.space.label);
		f->SPACE_ALLOC.retry = e->u.space.retry;
		return TRACE_SPACE_ALLOC;
	case EV_SPACE_FREE:
		f->SPACE_FREE.space = writer_space(w, e->space);
		f->SPACE_FREE.api = writer_string(w, e->u.space.api);
		f->SPACE_FREE.address = e->address;
		f->SPACE_FREE.stream = e->u.space.stream;
		f->SPACE_FREE.flags = e->u.space.flags;
		f->SPACE_FREE.label = writer_string(w, e->u.space.label);
		return TRACE_SPACE_FREE;
	case EV_SPACE_UNFREE:
		f->SPACE_UNFREE.space = writer_space(w, e->space);
		f->SPACE_UNFREE.address = e->address;
		f->SPACE_UNFREE.flags = e->u.space.flags;
		return TRACE_SPACE_UNFREE;
	case EV_SPACE_MAP:
		f->SPACE_MAP.api = writer_string(w, e->u.space.api);
		f->SPACE_MAP.address = e->address;
		f->SPACE_MAP.size = e->size;
		f->SPACE_MAP.offset = e->u.space.offset;
		f->SPACE_MAP.handle = e->u.space.handle;
		f->SPACE_MAP.stack = writer_stack(w, e->stack);
		return TRACE_SPACE_MAP;
	case EV_SPACE_UNMAP:
		f->SPACE_UNMAP.api = writer_string(w, e->u.space.api);
		f->SPACE_UNMAP.address = e->address;
		f->SPACE_UNMAP.size = e->size;
		return TRACE_SPACE_UNMAP;
	case EV_SPACE_UNUNMAP:
		f->SPACE_UNUNMAP.address = e->address;
		f->SPACE_UNUNMAP.size = e->size;
		return TRACE_SPACE_UNUNMAP;
	case EV_SPACE_CLEAR:
		f->SPACE_CLEAR.space = writer_space(w, e->space);
		f->SPACE_CLEAR.api = writer_string(w, e->u.space.api);
		f->SPACE_CLEAR.what = e->u.space.what;
		f->SPACE_CLEAR.object = e->u.space.handle;
		f->SPACE_CLEAR.label = writer_string(w, e->u.space.label);
		return TRACE_SPACE_CLEAR;
	case EV_SPACE_CALL:
		f->SPACE_CALL.space = writer_space(w, e->space);
		f->SPACE_CALL.api = writer_string(w, e->u.space.api);
		f->SPACE_CALL.object = e->u.space.handle;
		f->SPACE_CALL.value = e->u.space.offset;
		f->SPACE_CALL.result = (uint32_t)e->u.space.result;
		f->SPACE_CALL.stack = writer_stack(w, e->stack);
		f->SPACE_CALL.levels = e->level_count;
		f->SPACE_CALL.label = writer_string(w, e->u.space.label);
		return TRACE_SPACE_CALL;
	case EV_MARK:
		f->MARK.phase = e->u.mark.phase;
		f->MARK.id = e->u.mark.id;
		f->MARK.name = writer_string(w, e->u.mark.name);
		f->MARK.what = e->u.mark.what;
		f->MARK.stack = writer_stack(w, e->stack);
		f->MARK.domain = writer_string(w, e->u.mark.domain);
		f->MARK.tokens = e->u.mark.tokens;
		return TRACE_MARK;
	case EV_TASK_END:
		f->TASK_END.key = e->task;
		return TRACE_TASK_END;
	/* Blocks have compact forms; the other three are not events of the process. */
	case EV_ALLOC:
	case EV_FREE:
	case EV_UNFREE:
	case EV_OUTSIDE:
	case EV_WENT:
	case EV_CHECKPOINT:
		break;
	}
	return 0;
}

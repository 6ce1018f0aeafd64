/* repair.c - searches the waiting events of other threads for the missing event at an address. */
#include "trace/integrity/repair.h"

#include "whyoom/trace.h"

#define LOOK_QUEUE 65536u /* events of one stream that a search decodes ahead */

int repair_find(struct trace *t, const struct rec *of, bool own, unsigned kind, uint64_t window,
    struct rec *found, struct err *err)
{
	uint64_t address = of->address, limit = of->ticks + window;
	struct rec *best = NULL;

	if (limit < of->ticks)
		limit = UINT64_MAX;
	for (size_t i = own ? 0 : 1; i < t->heap_count && t->look_credit > 0; i++) {
		struct stream *s = &t->streams[t->heap[i].stream];

		t->look_credit--;
		if (t->heap[i].ticks > limit)
			continue;
		for (uint32_t n = i == 0;; n++) {
			struct rec *rec;

			if (s->head + n == s->tail) {
				int r = 0;

				if (s->ended || n >= LOOK_QUEUE || s->last_ticks > limit)
					break;
				r = stream_more(s, &t->context, err);
				if (r)
					return r;
				if (s->head + n >= s->tail)
					break;
			}
			rec = &s->queue[s->head + n];
			t->look_credit--;
			if (rec->ticks > limit || (best && rec->ticks >= best->ticks))
				break;
			if (rec->address != address)
				continue;
			/* A realloc's allocation stays behind its release. */
			if (rec->kind == kind &&
			    (kind == TRACE_FREE || rec->api != TRACE_API_REALLOC))
				best = rec;
			if (rec->kind == TRACE_FREE || rec->kind == TRACE_ALLOC)
				break;
		}
	}
	if (!best)
		return 0;
	*found = *best;
	best->kind = REC_APPLIED;
	return 1;
}

bool repair_just_released(struct trace *t, const struct rec *rec)
{
	for (size_t i = 0; i < t->states.count && t->look_credit > 0; i++, t->look_credit--) {
		const struct thread_state *state = &t->states.items[i];

		for (unsigned n = 0; i != rec->thread && n < state->release_count; n++)
			if (state->releases[n].serial &&
			    state->releases[n].address == rec->address &&
			    rec->ticks - state->release_ticks[n] <= t->early_ticks)
				return true;
	}
	return false;
}

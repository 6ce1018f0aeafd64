/* device.c - see device.h. */
#include "explain/device.h"

#include <errno.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"

/* CUDA's context and loaded modules, at most: what a process holds besides what it asked for. */
#define CONTEXT (3ull << 30)

struct state {
	uint64_t requested, total, free, live, gap; /* gap: reserved, not allocated */
	uint64_t allowed; /* PyTorch's own cap; 0: none */
	uint64_t here; /* by this process in all; 0: not said */
	uint64_t others; /* by other processes, as far as said */
	uint64_t unlisted; /* in use, and not said by whom */
	uint64_t known; /* used, and said by whom */
	bool torch; /* live and gap are known */
};

/* The process in the list that this one must be when it is not named: in a container, the driver's
 * process ids are of another namespace. It is the smallest that holds as much as PyTorch says. */
static const struct fields *hidden_self(const struct field_rows *rows, uint64_t reserved)
{
	const struct fields *found = NULL;
	uint64_t used, least = UINT64_MAX;

	for (size_t i = 0; i < rows->count; i++)
		if (fields_bytes(&rows->items[i], "used_bytes", &used) && used >= reserved &&
		    used < least) {
			least = used;
			found = &rows->items[i];
		}
	return found;
}

static void read_processes(const struct explain_message *m, struct state *s)
{
	const struct field *list = fields_find(&m->fields, "processes");
	uint64_t used, in_use = num_less(s->total, s->free);

	if (!list || list->type != FIELD_LIST)
		return;
	for (size_t i = 0; i < list->rows->count; i++) {
		const struct fields *row = &list->rows->items[i];

		if (!fields_bytes(row, "used_bytes", &used))
			continue;
		if (fields_find(row, "self"))
			s->here += used;
		else
			s->others += used;
	}
	if (!s->here && s->others + s->live + s->gap > in_use + in_use / 50) {
		const struct fields *self = hidden_self(list->rows, s->live + s->gap);

		if (self && fields_bytes(self, "used_bytes", &s->here))
			s->others -= s->here;
	}
}

static bool read_state(const struct explain_message *m, struct state *s)
{
	const struct fields *f = &m->fields;
	uint64_t reserved;
	bool live;

	*s = (struct state){0};
	if (!fields_bytes(f, "requested_bytes", &s->requested) ||
	    !fields_bytes(f, "total_bytes", &s->total) || !fields_bytes(f, "free_bytes", &s->free))
		return false;
	live = fields_bytes(f, "allocated_bytes", &s->live);
	s->torch = live && fields_bytes(f, "reserved_unallocated_bytes", &s->gap);
	if (live && !s->torch && fields_bytes(f, "reserved_bytes", &reserved)) {
		s->gap = num_less(reserved, s->live);
		s->torch = true;
	}
	fields_bytes(f, "allowed_bytes", &s->allowed);
	read_processes(m, s);
	if (s->allowed >= s->total)
		s->allowed = 0;
	s->known = (s->here > s->live + s->gap ? s->here : s->live + s->gap) + s->others;
	s->unlisted = num_less(num_less(s->total, s->free), s->known);
	return true;
}

static void add_row(struct explain_ledger *l, const char *name, uint64_t bytes, bool always)
{
	if ((bytes || always) && l->row_count < EXPLAIN_ROWS_MAX)
		l->rows[l->row_count++] = (struct explain_row){name, bytes};
}

bool device_ledger(const struct explain_message *m, struct explain_ledger *out)
{
	const struct field *device = fields_find(&m->fields, "device");
	struct state s;
	uint64_t sum = 0;

	if (!read_state(m, &s) || !s.torch)
		return false;
	*out = (struct explain_ledger){.total = s.total, .requested = s.requested};
	out->device = device && device->type == FIELD_TEXT ? device->text : "the device";
	add_row(out, "allocated by PyTorch", s.live, true);
	add_row(out, "reserved, not allocated", s.gap, true);
	add_row(out, "this process, not PyTorch", num_less(s.here, s.live + s.gap), false);
	add_row(out, "other processes", s.others, false);
	add_row(out, "free", s.free, true);
	for (size_t i = 0; i < out->row_count; i++)
		sum += out->rows[i].bytes;
	out->unaccounted = (int64_t)(s.total - sum);
	return true;
}

int device_derive(struct explain_message *m)
{
	struct fields *f = &m->fields;
	struct state s;
	int rc = 0;

	if (!read_state(m, &s) || !s.torch)
		return 0;
	if (!fields_find(f, "reserved_bytes"))
		rc = fields_add_bytes(f, "reserved_bytes", s.live + s.gap);
	if (!rc && !fields_find(f, "reserved_unallocated_bytes"))
		rc = fields_add_bytes(f, "reserved_unallocated_bytes", s.gap);
	if (!rc && s.here)
		rc = fields_add_bytes(f, "this_process_bytes", s.here);
	if (!rc && s.others)
		rc = fields_add_bytes(f, "other_processes_bytes", s.others);
	return rc;
}

static double between(double x, double from, double to, double low, double high)
{
	if (x <= from)
		return low;
	return x >= to ? high : low + (high - low) * (x - from) / (to - from);
}

/* What PyTorch asks the device for: a segment of 2 or 20 MiB for small requests. */
static uint64_t segment_of(const struct state *s)
{
	if (!s->torch)
		return s->requested;
	if (s->requested <= 1u << 20)
		return 2u << 20;
	return s->requested < 10u << 20 ? 20u << 20 : s->requested;
}

/* Refused although there was room, and not just the last crumbs that the driver keeps? */
static bool free_but_refused(const struct state *s)
{
	return s->free >= segment_of(s) && s->free - segment_of(s) >= s->total / 50;
}

/* The allocator held enough, but not in one piece. It matters as far as the gap is a part of the
 * device: of a device that is full to the brim any small rest would have served a small request. */
static void fragmented(const struct state *s, struct votes *votes, struct str *words)
{
	double share = (double)s->gap / (double)s->total;
	bool enough = s->gap >= s->requested;
	struct fmt a, b, c;

	votes_add(
	    votes, CAUSE_FRAGMENTATION, between(share, 0.01, 0.15, 0.3, enough ? 0.88 : 0.65));
	str_printf(words, "PyTorch held %s that no tensor used", fmt_size(&a, s->gap));
	if (!enough)
		str_printf(words, ", and %s of the device were free", fmt_size(&b, s->free));
	str_printf(words, "; the request of %s was %s, but there was no piece of that size",
	    fmt_size(&c, s->requested), enough ? "smaller" : "smaller than both together");
	if (share >= 0.04) {
		str_puts(words, ": fragmentation.");
		return;
	}
	votes_add(votes, CAUSE_OVERSIZED_MODEL, 0.35);
	votes_add(votes, CAUSE_PROMPT_GROWTH, 0.3);
	str_puts(words,
	    ". So little was left, though, that the next request would have failed: the "
	    "device was full.");
}

/* Without the others it would have fitted. */
static void others(
    const struct state *s, uint64_t bytes, bool listed, struct votes *votes, struct str *words)
{
	double share = (double)bytes / (double)s->total;
	struct fmt a, b;

	votes_add(votes, CAUSE_EXTERNAL, between(share, 0.05, 0.5, 0.35, listed ? 0.9 : 0.65));
	str_printf(words,
	    "Other processes held %s%s of the device's %s; without them the request "
	    "would have fitted.",
	    listed ? "" : "perhaps ", fmt_size(&a, bytes), fmt_size(&b, s->total));
	if (!listed)
		str_puts(words, " The message does not say whose it is: nvidia-smi does.");
}

/* Neither a gap nor somebody else: all of it was needed at once. */
static void needed(const struct state *s, struct votes *votes, struct str *words)
{
	double share = (double)s->requested / (double)s->total;
	struct fmt a, b, c;

	str_printf(words,
	    "All of it was needed: %s were in use by tensors, and the gap of %s between reserved "
	    "and allocated is smaller than the request of %s.",
	    fmt_size(&a, s->live), fmt_size(&b, s->gap), fmt_size(&c, s->requested));
	if (share >= 0.1) {
		/* Nearly enough of it, too. */
		votes_add(votes, CAUSE_FRAGMENTATION,
		    between((double)s->gap / (double)s->requested, 0.2, 1, 0, 0.4));
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, between(share, 0.1, 0.4, 0.35, 0.6));
		votes_add(votes, CAUSE_PROMPT_GROWTH, between(share, 0.1, 0.4, 0.35, 0.5));
		str_puts(words,
		    " One request was large against the device: a single tensor, or one "
		    "that grows with the prompt.");
	} else {
		votes_add(votes, CAUSE_OVERSIZED_MODEL, 0.35);
		votes_add(votes, CAUSE_PROMPT_GROWTH, 0.3);
		str_puts(words,
		    " What filled it the message does not say: at load it is the model, "
		    "with long prompts the KV cache, after hours a leak.");
	}
}

bool device_vote(const struct explain_message *m, struct votes *votes, struct str *words)
{
	struct state s;
	uint64_t limit, lacking;
	struct fmt a, b, c;

	if (!read_state(m, &s) || !s.total)
		return false;
	limit = s.allowed ? s.allowed : s.total;
	lacking = num_less(segment_of(&s), s.free);
	if (s.requested > limit) {
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, 0.75);
		votes_add(votes, CAUSE_PROMPT_GROWTH, 0.45);
		str_printf(words,
		    "One request of %s is more than the %s there are: no allocator can serve it, "
		    "and "
		    "no setting of one helps.",
		    fmt_size(&a, s.requested), fmt_size(&b, limit));
	} else if (s.allowed && s.live + s.gap + s.requested > s.allowed && s.free >= s.requested) {
		votes_add(votes, CAUSE_EXTERNAL, 0.55);
		votes_add(votes, CAUSE_OVERSIZED_MODEL, 0.3);
		str_printf(words,
		    "%s of the device were free: what refused is PyTorch's own limit of %s "
		    "(set_per_process_memory_fraction).",
		    fmt_size(&a, s.free), fmt_size(&b, s.allowed));
	} else if (free_but_refused(&s)) {
		str_printf(words,
		    "The device had %s free and still refused %s: another process may have come "
		    "and gone, or a limit applies that the message does not know (MIG, vGPU, a "
		    "container, Windows' driver). Fragmentation inside PyTorch is not it, nor is "
		    "the size of the model.",
		    fmt_size(&a, s.free), fmt_size(&b, s.requested));
	} else if (s.torch && s.gap + (lacking ? s.free : 0) >= s.requested) {
		fragmented(&s, votes, words);
	} else if (s.others && s.others >= lacking) {
		others(&s, s.others, true, votes, words);
	} else if (num_less(s.unlisted, s.here ? 0 : CONTEXT) >= lacking &&
		   num_less(s.unlisted, s.here ? 0 : CONTEXT) > s.total / 8) {
		others(&s, s.unlisted, false, votes, words);
	} else if (s.torch) {
		needed(&s, votes, words);
	} else {
		str_printf(words, "%s were asked for, and %s of %s were free.",
		    fmt_size(&a, s.requested), fmt_size(&b, s.free), fmt_size(&c, s.total));
	}
	return true;
}

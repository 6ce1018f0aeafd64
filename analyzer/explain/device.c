/* device.c - see device.h. */
#include "explain/device.h"

#include <errno.h>
#include <string.h>

#include "explain/meaning.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

TUNED(uint64_t, CONTEXT, 3ull << 30,
    "CUDA's context with PyTorch's and cuDNN's kernels loaded at once comes near that");
TUNED(uint64_t, SPARE_PART, 50,
    "a fiftieth of the device: the driver keeps less than that for itself");
TUNED(uint64_t, UNLISTED_PART, 8,
    "an eighth: context and fragmentation of the driver explain less than that");

/* The gap between reserved and allocated memory, as a share of the device. */
TUNED(double, GAP_MIN, 0.01, "caching alone leaves a hundredth");
TUNED(double, GAP_MAX, 0.15, "PyTorch rounds and caches less than that without holes");
TUNED(double, GAP_DECIDES, 0.04, "a device that is full to 96 % fails at the next request anyway");
TUNED(
    double, BRIM, 0.95, "a device with a context and a library's handles has no more for tensors");
TUNED(double, GAP_WEAK, 0.3, "below what decides: a small gap only adds to other messages");
TUNED(
    double, GAP_ENOUGH, 0.88, "the request would have fitted: only a later change can explain it");
TUNED(double, GAP_WITH_FREE, 0.65, "the driver's free memory may be in pieces of its own");

/* Other processes' memory, as a share of the device. */
TUNED(double, OTHERS_MIN, 0.05, "a display server or a monitor holds that");
TUNED(double, OTHERS_MAX, 0.5, "more than the program has itself");
TUNED(double, OTHERS_WEAK, 0.35, "below what decides: without a small neighbour it barely fits");
TUNED(double, OTHERS_LISTED, 0.9, "PyTorch names the process and its bytes");
TUNED(double, OTHERS_GUESSED, 0.65, "the rest may also be memory of other libraries");

/* One request, as a share of the device. */
TUNED(double, REQUEST_LARGE, 0.1, "a weight or a KV block is smaller, an unsplit tensor larger");
TUNED(double, REQUEST_HUGE, 0.4, "no layout of the rest could serve it next to a model");
TUNED(double, GAP_NEAR, 0.2, "a gap of a fifth of the request is what rounding leaves");
TUNED(double, GAP_NEAR_MOST, 0.4, "below what decides: the gap still was too small");
TUNED(double, WEAK, 0.35, "below what decides: large requests have several causes");
TUNED(double, HUGE_INTERMEDIATE, 0.6, "such a tensor is mostly a temporary");
TUNED(double, HUGE_PROMPT, 0.5, "or it grows with the prompt");
TUNED(double, FULL_MODEL, 0.35,
    "a full device with small requests is often a model that is too large");
TUNED(double, FULL_PROMPT, 0.3, "or its KV cache");
TUNED(double, BEYOND_INTERMEDIATE, 0.75, "more than the device has: a temporary or a wrong size");
TUNED(double, BEYOND_PROMPT, 0.45, "an attention matrix of a long prompt can be that large");
TUNED(double, CAP_EXTERNAL, 0.55, "the cap is set from outside, but the program may set it itself");
TUNED(double, CAP_MODEL, 0.3, "the model may be too large for the cap");
TUNED(uint64_t, CAP_ROUNDING, 10u << 20,
    "two decimals of a GiB are 5 MiB, in the cap and in what was allocated");
TUNED(double, PLAN_MODEL, 0.6, "arguments are weights, but also what the program works on");
TUNED(double, PLAN_INTERMEDIATE, 0.65, "the plan shows the sizes, not which tensor is too large");
TUNED(uint64_t, PLAN_SMALL, 256ull << 20, "any device for computing has many times as much");
TUNED(uint64_t, ONE_MOST, 4ull << 30, "32 bits of size: what many drivers allow in one piece");
TUNED(double, ONE_VOTE, 0.5, "another process may hold the rest");
TUNED(double, PLAN_OTHERS, 0.6, "the process itself may keep arrays of earlier steps");

struct state {
	uint64_t requested, total, free, live, gap; /* gap: reserved, not allocated */
	uint64_t allowed; /* PyTorch's own cap; 0: none */
	uint64_t here; /* by this process in all; 0: not said */
	uint64_t others; /* by other processes, as far as said */
	uint64_t unlisted; /* in use, and not said by whom */
	uint64_t known; /* used, and said by whom */
	bool torch; /* live and gap are known */
	bool free_said; /* else `free` is the most there can be: all that PyTorch does not hold */
};

/* In a container, the driver's process ids are of another namespace. Returns the listed process
 * that must be this one: the smallest that holds as much as PyTorch says. */
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
	bool live, wanted;

	*s = (struct state){0};
	wanted = fields_bytes(f, "requested_bytes", &s->requested) &&
		 fields_bytes(f, "total_bytes", &s->total);
	live = fields_bytes(f, "allocated_bytes", &s->live);
	s->torch = live && fields_bytes(f, "reserved_unallocated_bytes", &s->gap);
	if (live && !s->torch && fields_bytes(f, "reserved_bytes", &reserved)) {
		s->gap = num_less(reserved, s->live);
		s->torch = true;
	}
	if (live && !s->torch)
		s->here = s->live; /* of an allocator that says no more */
	s->free_said = fields_bytes(f, "free_bytes", &s->free);
	if (!wanted || (!s->free_said && !s->torch))
		return false;
	if (!s->free_said)
		s->free = num_less(s->total, s->live + s->gap);
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
	if (s.free_said)
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

/* Returns what PyTorch asks the device for: 2 or 20 MiB for small requests. */
static uint64_t segment_of(const struct state *s)
{
	if (!s->torch)
		return s->requested;
	if (s->requested <= 1u << 20)
		return 2u << 20;
	return s->requested < 10u << 20 ? 20u << 20 : s->requested;
}

/* Returns whether the request was refused although there was room, more than the driver keeps. */
static bool free_but_refused(const struct state *s)
{
	return s->free >= segment_of(s) && s->free - segment_of(s) >= s->total / SPARE_PART;
}

/* The allocator held enough, but not in one piece. The gap counts by its share of the device: on a
 * device that is full to the brim, any small rest would have served a small request. */
static void fragmented(const struct state *s, struct votes *votes, struct str *words)
{
	double share = (double)s->gap / (double)s->total;
	bool enough = s->gap >= s->requested;
	struct fmt a, b, c;

	/* Tensors fill it to the brim: with no hole at all, the next request would have failed. */
	if (share >= GAP_DECIDES || (double)s->live < BRIM * (double)s->total)
		votes_add(votes, CAUSE_FRAGMENTATION,
		    between(
			share, GAP_MIN, GAP_MAX, GAP_WEAK, enough ? GAP_ENOUGH : GAP_WITH_FREE));
	str_printf(words, "PyTorch held %s that no tensor used", fmt_size(&a, s->gap));
	if (!enough)
		str_printf(words, ", and %s%s of the device were free",
		    s->free_said ? "" : "at most ", fmt_size(&b, s->free));
	str_printf(words, "; the request of %s was %s, but there was no piece of that size",
	    fmt_size(&c, s->requested), enough ? "smaller" : "smaller than both together");
	if (share >= GAP_DECIDES) {
		str_puts(words, ": fragmentation.");
		return;
	}
	votes_add(votes, CAUSE_OVERSIZED_MODEL, FULL_MODEL);
	votes_add(votes, CAUSE_PROMPT_GROWTH, FULL_PROMPT);
	str_puts(words, ". So little was left, though, that the next request would have failed: "
			"the device was full.");
}

/* The request would have fitted without the other processes. */
static void others(
    const struct state *s, uint64_t bytes, bool listed, struct votes *votes, struct str *words)
{
	double share = (double)bytes / (double)s->total;
	struct fmt a, b;

	votes_add(votes, CAUSE_EXTERNAL,
	    between(share, OTHERS_MIN, OTHERS_MAX, OTHERS_WEAK,
		listed ? OTHERS_LISTED : OTHERS_GUESSED));
	str_printf(words,
	    "Other processes held %s%s of the device's %s; without them the request would have "
	    "fitted.",
	    listed ? "" : "perhaps ", fmt_size(&a, bytes), fmt_size(&b, s->total));
	if (!listed)
		str_puts(words, " The message does not say whose it is: nvidia-smi does.");
}

/* No gap and no other process: the program needed all of it at once. */
static void needed(const struct state *s, struct votes *votes, struct str *words)
{
	double share = (double)s->requested / (double)s->total;
	struct fmt a, b, c;

	str_printf(words,
	    "All of it was needed: %s were in use by tensors, and the gap of %s between reserved "
	    "and allocated is smaller than the request of %s.",
	    fmt_size(&a, s->live), fmt_size(&b, s->gap), fmt_size(&c, s->requested));
	if (share >= REQUEST_LARGE) {
		/* The gap is nearly large enough. */
		votes_add(votes, CAUSE_FRAGMENTATION,
		    between((double)s->gap / (double)s->requested, GAP_NEAR, 1, 0, GAP_NEAR_MOST));
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE,
		    between(share, REQUEST_LARGE, REQUEST_HUGE, WEAK, HUGE_INTERMEDIATE));
		votes_add(votes, CAUSE_PROMPT_GROWTH,
		    between(share, REQUEST_LARGE, REQUEST_HUGE, WEAK, HUGE_PROMPT));
		str_puts(words, " One request was large against the device: a single tensor, or "
				"one that grows with the prompt.");
	} else {
		votes_add(votes, CAUSE_OVERSIZED_MODEL, FULL_MODEL);
		votes_add(votes, CAUSE_PROMPT_GROWTH, FULL_PROMPT);
		str_puts(words, " What filled it the message does not say: at load it is the "
				"model, with long prompts the KV cache, after hours a leak.");
	}
}

/* There was room, as far as the message says. */
static void refused_with_room(const struct state *s, struct votes *votes, struct str *words)
{
	struct fmt a, b, c;

	if (!s->free_said && s->requested >= ONE_MOST && !s->live) {
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, ONE_VOTE);
		votes->advice =
		    "Split the tensor: drivers limit the size of one allocation (4 GiB on many of "
		    "Intel's GPUs, where UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 lifts it). If "
		    "smaller pieces are refused, too, see what else is on the device.";
		str_printf(words,
		    "PyTorch held nothing of the device's %s, and one tensor of %s was refused: "
		    "the device limits the size of one allocation, or another process holds the "
		    "rest.",
		    fmt_size(&a, s->total), fmt_size(&b, s->requested));
		return;
	}
	if (!s->free_said) {
		votes->advice =
		    "See what else is on the device. If it is free, ask for smaller pieces: where "
		    "those are served, the driver limits the size of one allocation.";
		str_printf(words,
		    "PyTorch held %s of the device's %s, and %s were refused all the same: another "
		    "process holds the rest, or the device limits the size of one allocation. How "
		    "much was free the message does not say.",
		    fmt_size(&a, s->live + s->gap), fmt_size(&b, s->total),
		    fmt_size(&c, s->requested));
		return;
	}
	if (s->torch && !s->live && !s->gap && !s->here && !s->others &&
	    s->total - s->free <= s->total / SPARE_PART) {
		votes->advice =
		    "Do not tune memory, it is empty: choose one device (ZE_AFFINITY_MASK, "
		    "HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES), and try the driver or the version "
		    "that worked before; then report it.";
		str_printf(words,
		    "The device was empty, %s of %s free, and still refused %s: no lack of memory, "
		    "but a fault of the driver, of the program's build, or a limit on one "
		    "allocation.",
		    fmt_size(&a, s->free), fmt_size(&b, s->total), fmt_size(&c, s->requested));
		return;
	}
	votes->advice =
	    "Look for the limit that the message does not know: a GPU that shares the host's "
	    "memory (an APU) or has a display gives less than it shows, so let less be taken at "
	    "once (a smaller share, context, batch or resolution), or give it a larger part of "
	    "that memory. Else watch the free memory while it runs (nvidia-smi, amd-smi, Windows' "
	    "Task Manager) for another process that comes and goes.";
	str_printf(words,
	    "The device had %s free and still refused %s: another process may have come "
	    "and gone, or a limit applies that the message does not know (MIG, vGPU, a "
	    "container, Windows' driver). Fragmentation inside PyTorch is not it, nor is "
	    "the size of the model.",
	    fmt_size(&a, s->free), fmt_size(&b, s->requested));
}

/* A compiler planned the memory of a whole program before it ran. False: the message has no plan.
 */
static bool planned(const struct explain_message *m, struct votes *votes, struct str *words)
{
	const struct fields *f = &m->fields;
	uint64_t arguments, program, outputs = 0, temporaries, plan;
	struct fmt a, b, c;

	if (!fields_bytes(f, "arguments_bytes", &arguments))
		return false;
	meaning_write(words, m->known->meaning, f);
	if (fields_bytes(f, "program_bytes", &program)) {
		str_printf(words, " Its arguments (weights and inputs) take %s of it, the rest %s.",
		    fmt_size(&a, arguments), fmt_size(&b, program));
	} else {
		fields_bytes(f, "outputs_bytes", &outputs);
		if (!fields_bytes(f, "temporaries_bytes", &temporaries))
			temporaries = 0;
		program = temporaries > UINT64_MAX - outputs ? UINT64_MAX : outputs + temporaries;
		str_puts(words, " The plan of the compiled program");
		if (fields_bytes(f, "plan_bytes", &plan))
			str_printf(words, ", %s in all,", fmt_size(&a, plan));
		str_printf(words,
		    " has %s for its arguments (weights and inputs), %s for outputs and %s for "
		    "temporaries.",
		    fmt_size(&a, arguments), fmt_size(&b, outputs), fmt_size(&c, temporaries));
	}
	if (fields_bytes(f, "plan_bytes", &plan) && plan < PLAN_SMALL) {
		votes_add(votes, CAUSE_EXTERNAL, PLAN_OTHERS);
		str_puts(words,
		    " That is no size for a device: another process, or an earlier one that was "
		    "never ended, holds it.");
		votes->advice =
		    "See who is on the device (nvidia-smi) and stop it. JAX takes three quarters "
		    "of each device at its start, so two programs do not fit side by side: "
		    "XLA_PYTHON_CLIENT_PREALLOCATE=false for each, or a smaller "
		    "XLA_PYTHON_CLIENT_MEM_FRACTION.";
	} else if (arguments >= program) {
		votes_add(votes, CAUSE_OVERSIZED_MODEL, PLAN_MODEL);
	} else {
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, PLAN_INTERMEDIATE);
	}
	return true;
}

/* What may be of others: in use and listed to nobody, without what this process' context takes. */
static uint64_t perhaps_others(const struct state *s)
{
	return num_less(s->unlisted, s->here ? 0 : CONTEXT);
}

/* The holes would have served this request, but hardly the next, and others hold far more. */
static bool full_by_others(const struct state *s)
{
	return (double)s->gap < GAP_DECIDES * (double)s->total &&
	       (s->others > s->total / UNLISTED_PART ||
		   perhaps_others(s) > s->total / UNLISTED_PART);
}

bool device_vote(const struct explain_message *m, struct votes *votes, struct str *words)
{
	struct state s;
	uint64_t limit, lacking;
	struct fmt a, b, c;

	if (planned(m, votes, words))
		return true;
	if (!read_state(m, &s) || !s.total)
		return false;
	limit = s.allowed ? s.allowed : s.total;
	lacking = num_less(segment_of(&s), s.free);
	if (s.requested > limit) {
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, BEYOND_INTERMEDIATE);
		votes_add(votes, CAUSE_PROMPT_GROWTH, BEYOND_PROMPT);
		str_printf(words,
		    "One request of %s is more than the %s there are: no allocator can serve it, "
		    "and no setting of one helps.",
		    fmt_size(&a, s.requested), fmt_size(&b, limit));
	} else if (s.allowed && s.live + s.gap + s.requested + CAP_ROUNDING > s.allowed &&
		   s.free >= s.requested) {
		votes_add(votes, CAUSE_EXTERNAL, CAP_EXTERNAL);
		votes_add(votes, CAUSE_OVERSIZED_MODEL, CAP_MODEL);
		str_printf(words,
		    "%s%s of the device were free: what refused is PyTorch's own limit of %s "
		    "(set_per_process_memory_fraction).",
		    s.free_said ? "" : "Up to ", fmt_size(&a, s.free), fmt_size(&b, s.allowed));
		votes->advice =
		    "Raise the fraction given to torch.cuda.set_per_process_memory_fraction(), "
		    "or use less than it allows: the device itself has room.";
	} else if (free_but_refused(&s)) {
		refused_with_room(&s, votes, words);
	} else if (s.torch && s.gap + (lacking ? s.free : 0) >= s.requested &&
		   !full_by_others(&s)) {
		fragmented(&s, votes, words);
	} else if (s.others && s.others >= lacking) {
		others(&s, s.others, true, votes, words);
	} else if (perhaps_others(&s) >= lacking && perhaps_others(&s) > s.total / UNLISTED_PART) {
		others(&s, s.unlisted, false, votes, words);
	} else if (s.torch) {
		needed(&s, votes, words);
	} else {
		str_printf(words, "%s were asked for, and %s of %s were free.",
		    fmt_size(&a, s.requested), fmt_size(&b, s.free), fmt_size(&c, s.total));
	}
	return true;
}

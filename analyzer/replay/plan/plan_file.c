/* plan_file.c - see plan_file.h. */
#include "replay/plan/plan_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_OPS 65536u /* so that lanes stay short */
/* By so much what lives may differ from the record, whatever the order of the threads; the last
 * operation is not in it yet. */
#define EPOCH_BYTES ((1u << 20) - PLAN_LARGE)
#define OPS_AT 4096u
#define SLOTS_TOGETHER 64u /* of one thread: some cache lines' worth */

int plan_file_init(struct plan_file *f, FILE *out)
{
	memset(f, 0, sizeof(*f));
	f->out = out;
	f->epoch = 1;
	if (vec_push(&f->lanes, (struct plan_lane){.last = PLAN_NONE}) ||
	    vec_push(&f->firsts, PLAN_NONE))
		return -ENOMEM;
	return 0;
}

void plan_file_fini(struct plan_file *f)
{
	for (size_t i = 0; i < f->lanes.count; i++) {
		vec_free(&f->lanes.items[i].ops);
		vec_free(&f->lanes.items[i].spare);
	}
	vec_free(&f->lanes);
	vec_free(&f->active);
	vec_free(&f->parts);
	vec_free(&f->firsts);
	vec_free(&f->slots);
	vec_free(&f->ended);
	vec_free(&f->left);
}

static int write_part(struct plan_file *f, uint32_t thread, uint32_t before)
{
	struct plan_lane *l = &f->lanes.items[thread];
	uint32_t part = (uint32_t)f->parts.count;

	if (vec_push(&f->parts, (struct plan_part){.first = f->ops,
				    .count = (uint32_t)l->ops.count,
				    .thread = thread,
				    .before = before,
				    .next = PLAN_NONE}))
		return -ENOMEM;
	if (l->last == PLAN_NONE)
		f->firsts.items[thread] = part;
	else
		f->parts.items[l->last].next = part;
	l->last = part;
	errno = 0;
	if (f->out &&
	    fwrite(l->ops.items, sizeof(*l->ops.items), l->ops.count, f->out) != l->ops.count)
		return errno ? -errno : -EIO;
	f->ops += l->ops.count;
	l->ops.count = 0;
	l->now = l->least = l->most = 0;
	return 0;
}

static int end_epoch(struct plan_file *f)
{
	uint32_t before = (uint32_t)f->parts.count;
	int rc = 0;

	for (size_t i = 0; i < f->active.count && !rc; i++)
		rc = write_part(f, f->active.items[i], before);
	for (size_t i = 0; i < f->left.count && !rc; i++) {
		uint32_t home = f->slots.items[f->left.items[i]].home;
		struct plan_lane *l = &f->lanes.items[home];

		rc = vec_push(&l->spare, f->left.items[i]);
		if (!rc && l->ended && l->spare.count == 1)
			rc = vec_push(&f->ended, home);
	}
	f->active.count = f->left.count = 0;
	f->epoch++;
	f->epoch_ops = 0;
	f->epoch_range = 0;
	return rc;
}

/* What lives by the thread's own operations is between its least and its most of this epoch,
 * however far it is; so all threads together are off the record by the sum at most. */
static void count_change(struct plan_file *f, struct plan_lane *l, int64_t change)
{
	l->now += change;
	if (l->now > l->most) {
		f->epoch_range += (uint64_t)(l->now - l->most);
		l->most = l->now;
	} else if (l->now < l->least) {
		f->epoch_range += (uint64_t)(l->least - l->now);
		l->least = l->now;
	}
}

static int push(struct plan_file *f, uint32_t thread, struct plan_op op, int64_t change)
{
	struct plan_lane *l = &f->lanes.items[thread];

	if (!l->ops.count && vec_push(&f->active, thread))
		return -ENOMEM;
	if (vec_push(&l->ops, op))
		return -ENOMEM;
	l->total++;
	f->epoch_ops++;
	count_change(f, l, change);
	return 0;
}

int plan_file_spawn(struct plan_file *f, uint32_t creator, uint32_t *thread)
{
	*thread = (uint32_t)f->lanes.count;
	if (vec_push(&f->lanes, (struct plan_lane){.last = PLAN_NONE}) ||
	    vec_push(&f->firsts, PLAN_NONE))
		return -ENOMEM;
	return push(f, creator, plan_op(PLAN_SPAWN, *thread, 0), 0);
}

static int make_slots(struct plan_file *f, uint32_t thread)
{
	struct plan_lane *l = &f->lanes.items[thread];
	int rc = 0;

	for (uint32_t i = 0; i < SLOTS_TOGETHER && !rc; i++)
		rc = vec_push(&f->slots, (struct plan_slot){.home = thread});
	for (uint32_t i = 1; i <= SLOTS_TOGETHER && !rc; i++)
		rc = vec_push(&l->spare, (uint32_t)f->slots.count - i);
	return rc;
}

/* Whoever has ended leaves his slots to those who take next. */
static int inherit(struct plan_file *f, uint32_t thread)
{
	struct plan_lane *l = &f->lanes.items[thread];
	int rc = 0;

	while (f->ended.count && !l->spare.count && !rc) {
		struct plan_lane *from = &f->lanes.items[f->ended.items[--f->ended.count]];

		while (from->spare.count && !rc) {
			uint32_t slot = from->spare.items[--from->spare.count];

			f->slots.items[slot].home = thread;
			rc = vec_push(&l->spare, slot);
		}
	}
	return rc;
}

int plan_file_take(struct plan_file *f, uint32_t thread, uint32_t *slot)
{
	struct plan_lane *l = &f->lanes.items[thread];
	int rc = l->spare.count ? 0 : inherit(f, thread);

	if (!rc && !l->spare.count)
		rc = make_slots(f, thread);
	if (!rc)
		*slot = l->spare.items[--l->spare.count];
	return rc;
}

int plan_file_leave(struct plan_file *f, uint32_t slot)
{
	const struct plan_slot *s = &f->slots.items[slot];

	/* Whose own it is may use it again at once, while it is in his cache. */
	if (s->home == s->thread)
		return vec_push(&f->lanes.items[s->home].spare, slot);
	return vec_push(&f->left, slot);
}

/*
 * Side by side with others only what is small, and touches no block that another thread has touched
 * in the same epoch: then no order of the threads lets much more live than the record's.
 */
static int begin(struct plan_file *f, uint32_t thread, uint32_t slot, uint64_t bytes)
{
	struct plan_slot *s = &f->slots.items[slot];
	bool own = f->active.count == 1 && f->active.items[0] == thread;
	bool apart = bytes >= PLAN_LARGE || f->epoch_range > EPOCH_BYTES ||
		     (s->epoch == f->epoch && s->thread != thread);
	int rc = 0;

	if (f->epoch_ops >= EPOCH_OPS || (f->active.count && !own && apart))
		rc = end_epoch(f);
	s->epoch = f->epoch;
	s->thread = thread;
	return rc;
}

int plan_file_add(struct plan_file *f, uint32_t thread, struct plan_op op, int64_t change)
{
	int rc = begin(f, thread, op.slot, (uint64_t)llabs(change));

	return rc ? rc : push(f, thread, op, change);
}

int plan_file_add_at(
    struct plan_file *f, uint32_t thread, uint64_t at, struct plan_op op, int64_t change)
{
	int rc = begin(f, thread, op.slot, plan_size(&op));

	if (!rc)
		rc = push(f, thread, plan_op(PLAN_AT, op.slot, at), 0);
	return rc ? rc : push(f, thread, op, change);
}

int plan_file_alone(struct plan_file *f, uint32_t thread, struct plan_op op)
{
	int rc = f->active.count ? end_epoch(f) : 0;

	if (!rc)
		rc = push(f, thread, op, 0);
	return rc ? rc : end_epoch(f);
}

int plan_file_exit(struct plan_file *f, uint32_t thread)
{
	f->lanes.items[thread].ended = true;
	if (f->lanes.items[thread].spare.count && vec_push(&f->ended, thread))
		return -ENOMEM;
	return plan_file_alone(f, thread, plan_op(PLAN_EXIT, 0, 0));
}

static bool put(FILE *out, const void *data, size_t bytes)
{
	return fwrite(data, 1, bytes, out) == bytes;
}

int plan_file_finish(struct plan_file *f, uint32_t samples, struct err *err)
{
	static const char zeros[8];
	int rc = f->active.count ? end_epoch(f) : 0;
	struct plan_header h = {.magic = PLAN_MAGIC,
	    .threads = (uint32_t)f->lanes.count,
	    .slots = (uint32_t)f->slots.count + 1, /* a place for who has no block */
	    .samples = samples,
	    .parts = (uint32_t)f->parts.count,
	    .ops = f->ops,
	    .ops_at = OPS_AT};
	uint64_t ops_end = OPS_AT + f->ops * sizeof(struct plan_op);

	if (rc || !f->out)
		return rc;
	h.parts_at = (ops_end + 7) / 8 * 8;
	h.firsts_at = h.parts_at + f->parts.count * sizeof(struct plan_part);
	if (!put(f->out, zeros, h.parts_at - ops_end) ||
	    !put(f->out, f->parts.items, f->parts.count * sizeof(*f->parts.items)) ||
	    !put(f->out, f->firsts.items, f->firsts.count * sizeof(*f->firsts.items)) ||
	    fseek(f->out, 0, SEEK_SET) || !put(f->out, &h, sizeof(h)) || fflush(f->out))
		return err_set(err, errno ? -errno : -EIO,
		    "cannot write the plan of the replay: %s", strerror(errno ? errno : EIO));
	return 0;
}

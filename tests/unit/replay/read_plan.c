/* read_plan.c - see read_plan.h. */
#include "model/unit.h"

#include "replay/read_plan.h"

static void *section(FILE *f, uint64_t at, uint64_t bytes)
{
	void *p = calloc(1, bytes + 1);

	assert_non_null(p);
	assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
	assert_int_equal(fread(p, 1, bytes, f), bytes);
	return p;
}

static void check_order(const struct plan *p)
{
	uint32_t begin = 0;

	for (uint32_t i = 0; i < p->header.parts; i++) {
		const struct plan_part *part = &p->parts[i];

		/* An epoch is a run of parts that wait for all before the first of them. */
		if (part->before != begin) {
			assert_int_equal(part->before, i);
			begin = i;
		}
		assert_true(part->thread < p->header.threads);
		assert_true(part->count > 0 && part->first + part->count <= p->header.ops);
		if (part->next != PLAN_NONE) {
			assert_true(part->next > i && part->next < p->header.parts);
			assert_int_equal(p->parts[part->next].thread, part->thread);
		}
	}
}

static int is_acquisition(const struct plan_op *op)
{
	unsigned what = op->what & PLAN_WHAT;

	return what == PLAN_MALLOC || what == PLAN_CALLOC || what == PLAN_ALIGNED ||
	       what == PLAN_MAP;
}

static int has_block(const struct plan_op *op)
{
	return (op->what & PLAN_WHAT) <= PLAN_ADVISE && !(op->what & PLAN_REFUSED);
}

/* Side by side, threads may run in any order: each one's live bytes lie between its minimum and
 * its maximum, and the sum of those ranges bounds the error of all together. */
struct drift {
	uint32_t epoch, threads;
	uint64_t sum;
	int64_t now, least, most; /* of the part */
};

static void drift_part(struct drift *d, uint32_t epoch)
{
	d->sum += (uint64_t)(d->most - d->least);
	d->now = d->least = d->most = 0;
	if (epoch == d->epoch) {
		d->threads++;
		return;
	}
	assert_true(d->threads < 2 || d->sum <= MiB);
	*d = (struct drift){.epoch = epoch, .threads = 1};
}

static void drift_by(struct drift *d, int64_t change)
{
	d->now += change;
	d->most = d->now > d->most ? d->now : d->most;
	d->least = d->now < d->least ? d->now : d->least;
}

static void check_slots(const struct plan *p)
{
	uint32_t *owner = calloc(p->header.slots + 1, sizeof(*owner)),
		 *epoch = calloc(p->header.slots + 1, sizeof(*epoch));
	uint64_t *left = calloc(p->header.slots + 1, sizeof(*left));
	char *live = calloc(p->header.slots + 1, 1);
	struct drift drift = {.epoch = UINT32_MAX};

	for (uint32_t i = 0; i < p->header.parts; i++) {
		const struct plan_part *part = &p->parts[i];

		drift_part(&drift, part->before);
		for (uint32_t n = 0; n < part->count; n++) {
			const struct plan_op *op = &p->ops[part->first + n];

			if (!has_block(op))
				continue;
			assert_true(op->slot < p->header.slots);
			/* Of one thread in one epoch. */
			if (epoch[op->slot] == part->before + 1)
				assert_int_equal(owner[op->slot], part->thread);
			epoch[op->slot] = part->before + 1;
			owner[op->slot] = part->thread;
			assert_int_equal(live[op->slot], !is_acquisition(op));
			if (is_acquisition(op)) {
				live[op->slot] = 1;
				left[op->slot] = plan_size(op);
				drift_by(&drift, (int64_t)plan_size(op));
			} else if ((op->what & PLAN_WHAT) == PLAN_REALLOC) {
				drift_by(&drift, (int64_t)(plan_size(op) - left[op->slot]));
				left[op->slot] = plan_size(op);
			} else if ((op->what & PLAN_WHAT) == PLAN_FREE) {
				live[op->slot] = 0;
				drift_by(&drift, -(int64_t)left[op->slot]);
			} else if ((op->what & PLAN_WHAT) == PLAN_UNMAP) {
				assert_true(left[op->slot] >= plan_size(op));
				left[op->slot] -= plan_size(op);
				drift_by(&drift, -(int64_t)plan_size(op));
				live[op->slot] = left[op->slot] > 0;
			}
		}
	}
	drift_part(&drift, UINT32_MAX - 1);
	free(owner);
	free(epoch);
	free(left);
	free(live);
}

void plan_read(FILE *f, struct plan *out)
{
	struct plan_header *h = section(f, 0, sizeof(*h));

	out->header = *h;
	free(h);
	assert_true(out->header.magic == PLAN_MAGIC);
	out->ops = section(f, out->header.ops_at, out->header.ops * sizeof(*out->ops));
	out->parts = section(f, out->header.parts_at, out->header.parts * sizeof(*out->parts));
	out->firsts = section(f, out->header.firsts_at, out->header.threads * sizeof(*out->firsts));
	check_order(out);
	check_slots(out);
}

void plan_forget(struct plan *p)
{
	free(p->parts);
	free(p->ops);
	free(p->firsts);
}

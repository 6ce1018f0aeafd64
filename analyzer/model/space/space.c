/*
 * space.c - the spaces of a process by name, and the part of the model that each event concerns.
 * Blocks and mappings are in space_blocks.c.
 */
#include "model/space/space.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/space/space_parts.h"
#include "model/torch/caching_settings.h"

static const struct {
	const char *prefix;
	enum space_kind kind;
	bool device; /* a number follows */
} names[] = {
    {"cuda:", SPACE_CUDA, true},
    {"pool:", SPACE_POOL, true},
    {"graph:", SPACE_GRAPH, true},
    {"torch:", SPACE_TORCH, true},
    {"managed", SPACE_MANAGED, false},
    {"pinned", SPACE_PINNED, false},
    {"foreign", SPACE_FOREIGN, false},
    {"va", SPACE_VA, false},
};

static enum space_kind kind_of(const char *name, uint32_t *device)
{
	*device = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i].prefix);
		char *end;
		unsigned long number;

		if (strncmp(name, names[i].prefix, n) != 0)
			continue;
		if (!names[i].device) {
			if (!name[n])
				return names[i].kind;
			continue;
		}
		if (!isdigit((unsigned char)name[n]))
			continue;
		number = strtoul(name + n, &end, 10);
		if (*end || number > 1u << 20)
			continue;
		*device = (uint32_t)number;
		return names[i].kind;
	}
	return SPACE_OTHER;
}

static int spaces_new(const struct model *m, struct spaces **out)
{
	struct spaces *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	map_seed();
	s->feed = m->feed;
	s->witness = m->options.space_witness;
	ranges_init(&s->layout);
	*out = s;
	return 0;
}

static void space_free(struct space *sp)
{
	if (!sp)
		return;
	model_free(sp->model);
	map_free(&sp->own);
	map_free(&sp->contexts);
	map_free(&sp->pool_index);
	vec_free(&sp->pools);
	free(sp);
}

void spaces_free(struct spaces *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		space_free(s->list[i]);
	for (size_t i = 0; i < s->chunks.count; i++)
		free(s->chunks.items[i]);
	vec_free(&s->chunks);
	map_free(&s->ids);
	map_free(&s->addresses);
	map_free(&s->handles);
	ranges_fini(&s->layout);
	vec_free(&s->unmapped);
	vec_free(&s->hit);
	free(s);
}

static int space_new(struct spaces *s, const char *name, struct space **out)
{
	struct space *sp = calloc(1, sizeof(*sp));
	int rc;

	if (!sp)
		return -ENOMEM;
	sp->index = s->count;
	sp->kind = kind_of(name, &sp->device);
	sp->sample_stride = 1;
	snprintf(sp->name, sizeof(sp->name), "%s", name);
	rc = model_new(s->feed, &sp->model, NULL);
	if (rc) {
		space_free(sp);
		return rc;
	}
	/* The allocator does not split off a rest this small. */
	sp->model->options.padding = sp->kind == SPACE_TORCH ? CACHING_SMALL : 0;
	*out = sp;
	return 0;
}

/* Find the space of a trace's id. 0; *out is NULL when it has no name or there are too many. */
static int space_of(struct spaces *s, uint32_t id, struct space **out)
{
	const char *name;
	uint64_t *index;
	struct space *sp = NULL;
	int rc;

	*out = NULL;
	if (!id)
		return 0;
	if (id == s->last_id) {
		*out = s->list[s->last_index];
		return 0;
	}
	index = map_find(&s->ids, id);
	if (!index) {
		name = s->feed.space ? s->feed.space(s->feed.self, id) : NULL;
		if (!name || s->count == SPACES_MAX) {
			s->unknown++;
			return 0;
		}
		/* Two ids may share a name. */
		sp = spaces_find(s, name);
		if (!sp) {
			rc = space_new(s, name, &sp);
			if (rc)
				return rc;
			s->list[s->count++] = sp;
			space_take_outside(s, sp);
		}
		index = map_put(&s->ids, id);
		if (!index)
			return -ENOMEM;
		*index = sp->index + 1;
	}
	s->last_id = id;
	s->last_index = (uint32_t)*index - 1;
	*out = s->list[s->last_index];
	return 0;
}

/* Apply a replaced period to a space's own model, as to the host's. */
static int space_on_went(struct spaces *s, struct space *sp, const struct event *e)
{
	struct event own = *e;

	own.space = TRACE_SPACE_HOST;
	space_failure_freed_stats(s, sp, e->u.went.bytes);
	return model_apply(sp->model, &own, NULL);
}

static int dispatch(struct spaces *s, struct space *sp, const struct event *e)
{
	int rc;

	switch (e->kind) {
	case EV_SPACE_FREE:
		return space_on_free(s, sp, e);
	case EV_SPACE_UNFREE:
		return space_on_unfree(s, sp, e);
	case EV_SPACE_MAP:
		return space_on_map(s, e);
	case EV_SPACE_UNMAP:
		return space_on_unmap(s, e);
	case EV_SPACE_UNUNMAP:
		return space_on_ununmap(s, e);
	default:
		break;
	}
	if (!sp)
		return 0;
	switch (e->kind) {
	case EV_SPACE_ALLOC:
		return space_on_alloc(s, sp, e);
	case EV_SPACE_CLEAR:
		return space_on_clear(s, sp, e);
	case EV_SPACE_CALL:
		return space_on_call(s, sp, e);
	case EV_WENT:
		return space_on_went(s, sp, e);
	case EV_LEVEL:
		return space_take_levels(s, sp, e);
	case EV_FAILED:
		rc = space_take_levels(s, sp, e);
		if (!rc)
			space_on_failed(s, sp, e);
		return rc;
	default:
		return 0;
	}
}

int spaces_apply(struct model *m, const struct event *e)
{
	struct spaces *s = m->spaces;
	struct space *sp;
	int rc;

	if (!s) {
		rc = spaces_new(m, &m->spaces);
		if (rc)
			return rc;
		s = m->spaces;
	}
	s->now_ns = e->time_ns;
	s->replaced_until_ns =
	    m->replaced.count ? m->replaced.periods[m->replaced.count - 1].end_ns : 0;
	s->now_event = m->run.others;
	s->now_thread = e->thread;
	rc = space_of(s, e->space, &sp);
	if (rc || (rc = dispatch(s, sp, e)))
		return rc;
	if (s->failure_count && e->kind != EV_FAILED)
		space_note_failure(s, sp, e);
	return 0;
}

int spaces_outside(struct model *m, const struct event *e)
{
	struct device_sample *to;
	struct space *cuda;
	int rc;

	if (e->u.device.number >= DEVICES_MAX)
		return 0;
	if (!m->spaces && (rc = spaces_new(m, &m->spaces)))
		return rc;
	to = &m->spaces->outside[e->u.device.number];
	*to = (struct device_sample){.time_ns = e->time_ns,
	    .free = e->u.device.free,
	    .total = e->u.device.total,
	    .others = e->u.device.others,
	    .own = e->u.device.own,
	    .others_known = e->u.device.named,
	    .own_known = e->u.device.own_known};
	cuda = spaces_of(m->spaces, SPACE_CUDA, e->u.device.number);
	if (cuda)
		space_take_outside(m->spaces, cuda);
	return 0;
}

struct space *spaces_find(const struct spaces *s, const char *name)
{
	for (uint32_t i = 0; s && i < s->count; i++)
		if (strcmp(s->list[i]->name, name) == 0)
			return s->list[i];
	return NULL;
}

struct space *spaces_of(const struct spaces *s, enum space_kind kind, uint32_t device)
{
	for (uint32_t i = 0; s && i < s->count; i++)
		if (s->list[i]->kind == kind && s->list[i]->device == device)
			return s->list[i];
	return NULL;
}

static void check_range(void *arg, const struct range *r)
{
	const struct spaces *s = arg;
	const struct space_block *b = spaces_block(s, (uint32_t)r->serial);

	assert(b->used);
	if (r->kind == LAYOUT_BLOCK) {
		assert(r->start == b->block.address && r->end - r->start == b->block.size);
		assert(!(b->flags & TRACE_SPACE_HANDLE));
	} else {
		assert(b->flags & TRACE_SPACE_HANDLE);
	}
	(void)b;
}

void spaces_check(const struct spaces *s)
{
	uint64_t bytes[SPACES_MAX] = {0}, blocks[SPACES_MAX] = {0};

	if (!s)
		return;
	for (uint32_t i = 0; i < s->used; i++) {
		const struct space_block *b = spaces_block(s, i);

		if (!b->used)
			continue;
		assert(b->space < s->count);
		bytes[b->space] += b->block.size;
		blocks[b->space]++;
		if (b->flags & TRACE_SPACE_HANDLE)
			assert(b->references || b->mapped);
	}
	for (uint32_t i = 0; i < s->count; i++) {
		assert(bytes[i] == s->list[i]->model->blocks.bytes);
		assert(blocks[i] == s->list[i]->model->blocks.count);
		model_check(s->list[i]->model);
	}
	ranges_each(&s->layout, check_range, (void *)s);
	(void)bytes, (void)blocks;
}

#include "model/heap/base.h"

#include "model/model.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, HEADER, 8u,
    "glibc's header of a block, which its account counts and the block's usable size does not");

void base_begin(struct model *m)
{
	uint64_t ran_ns;

	if (!m->feed.info || !feed_number(&m->feed, "attached", &ran_ns))
		return;
	m->base.attached = true;
	m->base.ran_ns = ran_ns;
}

static uint64_t level(const struct event *e, uint32_t key)
{
	uint64_t value = 0;

	event_level(e, key, &value);
	return value;
}

/* Take the account of the attach: the first one. */
static void read_account(struct base *b, const struct event *e)
{
	uint64_t mapped = level(e, TRACE_LEVEL_MALLOC_MMAP), arena, used, anonymous, data;
	uint64_t ours = level(e, TRACE_LEVEL_WHYOOM_ANON);

	arena = level(e, TRACE_LEVEL_MALLOC_ARENA);
	/* An allocator that tells one sum alone holds all of it. */
	used = event_level(e, TRACE_LEVEL_MALLOC_USED, &used) ? num_least(used, arena) : arena;
	b->blocks = used + mapped;
	if (event_level(e, TRACE_LEVEL_RSS_ANON, &anonymous))
		b->resident =
		    num_less(anonymous, ours + level(e, TRACE_LEVEL_STACKS) + arena + mapped);
	if (event_level(e, TRACE_LEVEL_DATA, &data))
		b->writable = num_less(data, ours + arena + mapped);
	b->file = level(e, TRACE_LEVEL_RSS_FILE) + level(e, TRACE_LEVEL_RSS_SHMEM);
	b->known = true;
}

void base_note(struct model *m, const struct event *e)
{
	struct base *b = &m->base;
	uint64_t rss;

	if (!b->attached)
		return;
	if (!b->known && event_level(e, TRACE_LEVEL_RSS, &rss))
		read_account(b, e);
	event_level(e, TRACE_LEVEL_BEFORE_FREED, &b->freed);
	event_level(e, TRACE_LEVEL_BEFORE_FREED_BLOCKS, &b->freed_count);
}

uint64_t base_blocks_left(const struct base *b)
{
	return num_less(
	    b->blocks, num_sum(b->freed, HEADER * num_least(b->freed_count, b->blocks / HEADER)));
}

uint64_t base_freed(const struct model *m, uint64_t time_ns)
{
	const struct allocator_reading *a = allocator_stats_at(&m->measured.malloc, time_ns);

	return a && m->base.known ? num_less(m->base.blocks, a->before) : 0;
}

uint64_t base_left(const struct base *b, bool resident)
{
	return base_blocks_left(b) + (resident ? b->resident : b->writable);
}

/*
 * late.c - late PART TRACE: judges a recording as if the recorder had been attached after that part
 * of the run (0 to 1), and writes the report as JSON. Acquisitions from before are not told, nor
 * their releases; the allocator's account and the kernel's are, as at an attach.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "verdict/verdict.h"

#define LEVELS 64u

/* A feed from a moment on. */
struct late {
	struct feed below;
	uint64_t from_ns, serial; /* of the attach; the last block before it */
	uint64_t live, count; /* bytes and blocks of malloc's at the attach */
	uint64_t mapped; /* private mappings of the program's own */
	uint64_t held_then; /* both, at the latest sample of resident bytes */
	uint64_t freed, freed_count; /* of these since */
	struct event_level base[LEVELS], levels[LEVELS + 2];
	uint32_t base_count;
	bool begun;
	struct block block, old;
	char ran[32];
	struct block *blocks; /* live ones, of the latest walk */
	uint64_t seen;
};

static void keep(struct late *l, const struct event_level *level)
{
	for (uint32_t i = 0; i < l->base_count; i++)
		if (l->base[i].key == level->key) {
			l->base[i] = *level;
			return;
		}
	if (l->base_count < LEVELS)
		l->base[l->base_count++] = *level;
}

static uint64_t base_of(const struct late *l, uint32_t key)
{
	for (uint32_t i = 0; i < l->base_count; i++)
		if (l->base[i].key == key)
			return l->base[i].value;
	return 0;
}

/* The account is as old as the last sample: bring it to what lives now. */
static void base_account(struct late *l)
{
	uint64_t held = base_of(l, TRACE_LEVEL_MALLOC_ARENA) + base_of(l, TRACE_LEVEL_MALLOC_MMAP);
	uint64_t anonymous = base_of(l, TRACE_LEVEL_RSS_ANON);

	held = held > l->live ? held : l->live;
	if (l->live + l->mapped > l->held_then)
		anonymous += l->live + l->mapped - l->held_then;
	anonymous = anonymous > held ? anonymous : held;
	keep(l, &(struct event_level){TRACE_LEVEL_MALLOC_ARENA, held});
	keep(l, &(struct event_level){TRACE_LEVEL_MALLOC_MMAP, 0});
	keep(l, &(struct event_level){TRACE_LEVEL_MALLOC_USED, l->live});
	keep(l, &(struct event_level){TRACE_LEVEL_MALLOC_FREE, held - l->live});
	keep(l, &(struct event_level){TRACE_LEVEL_RSS_ANON, anonymous});
	keep(l,
	    &(struct event_level){TRACE_LEVEL_RSS, anonymous + base_of(l, TRACE_LEVEL_RSS_FILE)});
}

static void pass_over(struct late *l, const struct event *e)
{
	if (e->kind == EV_ALLOC && e->block) {
		l->live += e->block->size;
		l->count++;
		l->serial = e->block->serial;
	} else if (e->kind == EV_FREE && e->block) {
		l->live -= e->block->size;
		l->count--;
	} else if (e->kind == EV_UNFREE && e->block) {
		l->live += e->block->size;
		l->count++;
	}
	if (e->kind == EV_MAP && !e->u.map.backing && !(e->u.map.flags & TRACE_MAP_ALLOCATOR))
		l->mapped += e->size;
	if (e->kind == EV_UNMAP && !(e->u.map.flags & TRACE_MAP_ALLOCATOR))
		l->mapped -= e->size < l->mapped ? e->size : l->mapped;
	for (uint32_t i = 0; i < e->level_count && e->space == TRACE_SPACE_HOST; i++) {
		keep(l, &e->levels[i]);
		if (e->levels[i].key == TRACE_LEVEL_RSS_ANON)
			l->held_then = l->live + l->mapped;
	}
}

/* True: the event is told. */
static bool told(struct late *l, struct event *e)
{
	e->time_ns -= l->from_ns;
	if (e->block && e->block->birth_ns < l->from_ns) {
		if (e->kind == EV_FREE) {
			l->freed += e->block->size;
			l->freed_count++;
		}
		return false;
	}
	if (e->block) {
		l->block = *e->block;
		l->block.birth_ns -= l->from_ns;
		l->block.serial -= l->serial;
		e->block = &l->block;
	}
	if (e->old && e->old->birth_ns < l->from_ns) {
		e->old = NULL;
	} else if (e->old) {
		l->old = *e->old;
		l->old.birth_ns -= l->from_ns;
		l->old.serial -= l->serial;
		e->old = &l->old;
	}
	if (e->level_count && e->space == TRACE_SPACE_HOST && e->level_count <= LEVELS) {
		memcpy(l->levels, e->levels, e->level_count * sizeof(*l->levels));
		l->levels[e->level_count++] =
		    (struct event_level){TRACE_LEVEL_BEFORE_FREED, l->freed};
		l->levels[e->level_count++] =
		    (struct event_level){TRACE_LEVEL_BEFORE_FREED_BLOCKS, l->freed_count};
		e->levels = l->levels;
	}
	return true;
}

static int next(void *self, struct event *out, struct err *err)
{
	struct late *l = self;
	int rc;

	while ((rc = l->below.next(l->below.self, out, err)) == 1) {
		if (!l->begun && out->time_ns < l->from_ns) {
			pass_over(l, out);
			continue;
		}
		/* The event that ends the past is lost: one among many. */
		if (!l->begun) {
			l->begun = true;
			base_account(l);
			*out = (struct event){
			    .kind = EV_LEVEL, .levels = l->base, .level_count = l->base_count};
			return 1;
		}
		if (told(l, out))
			return 1;
	}
	return rc;
}

static int rewind_late(void *self, struct err *err)
{
	struct late *l = self;

	l->begun = false;
	l->live = l->count = l->mapped = l->held_then = l->serial = l->freed = l->freed_count =
	    l->base_count = 0;
	return l->below.rewind(l->below.self, err);
}

static size_t symbols(void *self, uint32_t stack, const struct symbol **out)
{
	struct late *l = self;

	return l->below.symbols(l->below.self, stack, out);
}

static const char *info(void *self, const char *key)
{
	struct late *l = self;

	return strcmp(key, "attached") == 0 ? l->ran : l->below.info(l->below.self, key);
}

static const struct trace_facts *facts(void *self)
{
	struct late *l = self;

	return l->below.facts(l->below.self);
}

static const char *space(void *self, uint32_t id)
{
	struct late *l = self;

	return l->below.space ? l->below.space(l->below.self, id) : NULL;
}

static int copy_block(void *arg, const struct block *b)
{
	struct late *l = arg;
	struct block *copy;

	if (b->birth_ns < l->from_ns)
		return 0;
	if (!l->blocks) {
		l->seen++;
		return 0;
	}
	copy = &l->blocks[l->seen++];
	*copy = *b;
	copy->birth_ns -= l->from_ns;
	copy->serial -= l->serial;
	return 0;
}

/* Callers keep pointers to the blocks until the next walk. */
static int each_live(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	struct late *l = self;
	int rc;

	free(l->blocks);
	l->blocks = NULL;
	l->seen = 0;
	rc = l->below.each_live(l->below.self, copy_block, l);
	l->blocks = malloc((l->seen + 1) * sizeof(*l->blocks));
	if (rc || !l->blocks)
		return rc ? rc : -ENOMEM;
	l->seen = 0;
	rc = l->below.each_live(l->below.self, copy_block, l);
	for (uint64_t i = 0; i < l->seen && !rc; i++)
		rc = fn(arg, &l->blocks[i]);
	return rc;
}

int main(int argc, char **argv)
{
	struct late l = {0};
	struct trace_set set;
	struct verdict_result r;
	struct report_style style = {.columns = 100};
	struct str text = {0};
	struct err err = {""};
	struct feed feed;
	struct trace *subject;

	if (argc != 3) {
		fprintf(stderr, "usage: late PART TRACE\n");
		return 2;
	}
	if (trace_set_open(argv[2], &set, &err))
		goto failed;
	if (verdict_of_set(&set, NULL, &r, &err))
		goto failed;
	subject = r.trace;
	verdict_fini(&r);
	l.below = feed_of_trace(subject);
	l.from_ns = (uint64_t)(atof(argv[1]) * (double)l.below.facts(l.below.self)->last_ns);
	snprintf(l.ran, sizeof(l.ran), "%llu", (unsigned long long)l.from_ns);
	feed = (struct feed){.self = &l,
	    .next = next,
	    .rewind = rewind_late,
	    .symbols = symbols,
	    .info = info,
	    .facts = facts,
	    .space = space,
	    .each_live = each_live};
	if (verdict_of_feed(feed, NULL, &r, &err))
		goto failed;
	if (getenv("TEXT"))
		report_text(&(struct report_view){.result = &r}, &style, &text);
	else
		format_json.report(&(struct report_view){.result = &r}, &style, &text);
	fputs(str_text(&text), stdout);
	str_free(&text);
	verdict_fini(&r);
	free(l.blocks);
	trace_set_close(&set);
	return 0;
failed:
	fprintf(stderr, "late: %s\n", err.text);
	return 1;
}

/* A hundred thousand events of every kind for the model and for a second, simple one: an array
 * of blocks, an array of pages, and a copy of all stacks at each new peak or refusal. Both must
 * agree after each event. */
#include "model/read.h"

#define EVENTS 100000
#define BLOCKS 400u
#define PAGES 600u
#define PAGE 4096ull
#define STACKS 12u

struct tally {
	uint64_t bytes, count;
};

struct page {
	uint64_t mapping; /* 0: nothing there */
	uint32_t stack, kind, flags;
};

static struct second {
	struct block blocks[BLOCKS], last; /* address 0: none; the latest release */
	struct page pages[PAGES];
	struct page taken[PAGES]; /* by the latest unmapping, */
	uint64_t taken_at; /* which began at this page; UINT64_MAX: it cannot be undone */
	struct tally stats_list[STACKS][STACK_STATS_KINDS], at_peak[STACKS][STACK_STATS_KINDS],
	    at_failure[STACKS][STACK_STATS_KINDS];
	uint64_t mappings, serial, now, peak, bursts, unmatched, lost, end;
	uint64_t levels[MODEL_LEVELS], rss;
	bool known[MODEL_LEVELS];
} two;

static struct event_level rich[4];

/* Beside the kinds of mappings. */
enum { OF_ALLOCATOR = STACK_STATS_KINDS, FILES_SHARED, SUMS };

/* Mapped pages of each kind, from nothing but the pages. */
static void count_pages(uint64_t sums[SUMS], uint64_t *pieces)
{
	memset(sums, 0, SUMS * sizeof(*sums));
	*pieces = 0;
	for (uint32_t s = 0; s < STACKS; s++)
		for (uint32_t k = STACK_STATS_MAP; k < STACK_STATS_KINDS; k++)
			two.stats_list[s][k] = (struct tally){0};
	for (uint32_t i = 0; i < PAGES; i++) {
		const struct page *p = &two.pages[i];
		bool first = !i || two.pages[i - 1].mapping != p->mapping;

		if (!p->mapping)
			continue;
		if (p->flags & TRACE_MAP_ALLOCATOR) {
			sums[OF_ALLOCATOR] += PAGE;
			continue;
		}
		sums[p->kind == STACK_STATS_FILE && p->flags & TRACE_MAP_SHARED ? FILES_SHARED
										: p->kind] += PAGE;
		*pieces += (p->kind == STACK_STATS_MAP || p->kind == STACK_STATS_SHARED) && first;
		if (p->kind != STACK_STATS_STACK && p->kind != STACK_STATS_RESERVED) {
			two.stats_list[p->stack][p->kind].bytes += PAGE;
			two.stats_list[p->stack][p->kind].count += first;
		}
	}
}

static void unmap_pages(uint64_t at, uint64_t count)
{
	memset(two.taken, 0, sizeof(two.taken));
	for (uint64_t i = at; i < at + count && i < PAGES; i++) {
		two.taken[i] = two.pages[i];
		two.pages[i].mapping = 0;
	}
}

/* The first page of the one mapping that the latest unmapping took from; PAGES: none, or many. */
static uint32_t only_one_taken(void)
{
	uint32_t first = PAGES;

	for (uint32_t i = PAGES; i-- > 0;) {
		if (!two.taken[i].mapping)
			continue;
		if (first < PAGES && two.taken[first].mapping != two.taken[i].mapping)
			return PAGES;
		first = i;
	}
	return first;
}

static void random_map(struct event *e, uint64_t *seed)
{
	static const uint32_t backings[] = {TRACE_BACKING_ANON, TRACE_BACKING_ANON,
	    TRACE_BACKING_ANON, TRACE_BACKING_FILE, TRACE_BACKING_MEMFD, TRACE_BACKING_SHM};
	static const uint32_t flags[] = {0, 0, 0, 0, TRACE_MAP_ALLOCATOR, TRACE_MAP_STACK,
	    TRACE_MAP_SHARED, TRACE_MAP_FIXED, TRACE_MAP_HUGETLB | TRACE_MAP_NORESERVE};
	uint64_t at = dice(seed, PAGES), count = 1 + dice(seed, 40);
	struct page made = {.stack = e->stack};
	uint32_t moved = PAGES;

	if (count > PAGES - at)
		count = PAGES - at;
	e->kind = EV_MAP;
	e->address = at * PAGE;
	e->size = count * PAGE;
	e->api = TRACE_API_MMAP;
	e->u.map.prot = dice(seed, 6) ? 3 : 0;
	e->u.map.backing = backings[dice(seed, 6)];
	e->u.map.flags = flags[dice(seed, 9)];
	if (dice(seed, 50) == 0)
		e->api = TRACE_API_SHMAT;
	if (two.taken_at != UINT64_MAX && dice(seed, 4) == 0) {
		moved = only_one_taken();
		if (moved < PAGES)
			e->u.map.flags = TRACE_MAP_REMAP;
	}
	made.flags = e->u.map.flags;
	if (moved < PAGES) { /* as before its move */
		made.kind = two.taken[moved].kind;
		made.flags |= two.taken[moved].flags & (TRACE_MAP_ALLOCATOR | TRACE_MAP_SHARED);
	} else if (made.flags & TRACE_MAP_STACK) {
		made.kind = STACK_STATS_STACK;
	} else if (e->api == TRACE_API_SHMAT || e->u.map.backing == TRACE_BACKING_MEMFD ||
		   e->u.map.backing == TRACE_BACKING_SHM) {
		made.kind = STACK_STATS_SHARED;
	} else if (e->u.map.backing == TRACE_BACKING_FILE) {
		made.kind = made.flags & TRACE_MAP_SHARED || !e->u.map.prot ? STACK_STATS_FILE
									    : STACK_STATS_COPY;
	} else if (made.flags & TRACE_MAP_SHARED) {
		made.kind = STACK_STATS_SHARED;
	} else {
		made.kind = e->u.map.prot ? STACK_STATS_MAP : STACK_STATS_RESERVED;
	}
	unmap_pages(at, count);
	two.taken_at = UINT64_MAX;
	made.mapping = ++two.mappings;
	two.serial++; /* a mapping has its place in the order of births */
	for (uint64_t i = at; i < at + count; i++)
		two.pages[i] = made;
}

static void random_unmap(struct event *e, uint64_t *seed)
{
	uint64_t at = dice(seed, PAGES), count = 1 + dice(seed, 30);

	e->kind = EV_UNMAP;
	e->address = at * PAGE;
	e->size = count * PAGE;
	if (dice(seed, 20) == 0) { /* a call that no kernel accepts does nothing */
		e->size = dice(seed, 2) ? 0 : UINT64_MAX - dice(seed, PAGE);
		return;
	}
	unmap_pages(at, count);
	two.taken_at = at;
}

static void random_ununmap(struct event *e, uint64_t *seed)
{
	e->kind = EV_UNUNMAP;
	e->address = (two.taken_at == UINT64_MAX ? dice(seed, PAGES) : two.taken_at) * PAGE;
	e->size = PAGE;
	if (two.taken_at == UINT64_MAX || dice(seed, 5) == 0) {
		/* Not a mapping: changes nothing. No page begins there. */
		e->address += 1;
		return;
	}
	for (uint32_t i = 0; i < PAGES; i++) {
		if (!two.taken[i].mapping)
			continue;
		if (!i || two.taken[i - 1].mapping != two.taken[i].mapping) {
			two.mappings++;
			two.serial++;
		}
		two.pages[i] = two.taken[i];
		two.pages[i].mapping = two.mappings;
	}
	two.taken_at = UINT64_MAX;
}

/* A block is acquired, released, lives on after all, or was never seen. */
static void random_block(struct event *e, uint64_t *seed, struct block *was)
{
	struct block *b = &two.blocks[dice(seed, BLOCKS)];
	struct tally *t;

	if (dice(seed, 100) == 0) {
		e->kind = EV_FREE;
		two.unmatched++;
		return;
	}
	if (dice(seed, 100) == 0) { /* damage: no address space is that large */
		*was =
		    (struct block){.address = 8, .size = UINT64_MAX - dice(seed, GiB), .serial = 1};
		e->kind = dice(seed, 2) ? EV_ALLOC : EV_FREE;
		e->block = was;
		return;
	}
	if (two.last.address && !b->address && dice(seed, 10) == 0) {
		*b = two.last;
		e->kind = EV_UNFREE;
		two.last.address = 0;
	} else if (!b->address) {
		static const uint64_t sizes[] = {0, 1, 24, 100, 5000, 100000, 3000000};

		*b = (struct block){.address = 16 * ++two.serial,
		    .size = sizes[dice(seed, 7)],
		    .birth_ns = two.now,
		    .serial = two.serial,
		    .stack = e->stack};
		b->size += b->size ? dice(seed, b->size) : 0;
		e->kind = EV_ALLOC;
	} else {
		*was = two.last = *b;
		e->kind = EV_FREE;
		e->block = was;
		t = &two.stats_list[b->stack][STACK_STATS_HEAP];
		t->bytes -= b->size;
		t->count--;
		b->address = 0;
		return;
	}
	*was = *b;
	e->block = was;
	t = &two.stats_list[b->stack][STACK_STATS_HEAP];
	t->bytes += b->size;
	t->count++;
}

static void random_levels(struct event *e, uint64_t *seed)
{
	e->kind = EV_LEVEL;
	e->levels = rich;
	e->level_count = 1 + (uint32_t)dice(seed, 4);
	for (uint32_t i = 0; i < e->level_count; i++) {
		uint32_t key =
		    dice(seed, 30) ? 1 + (uint32_t)dice(seed, MODEL_LEVELS + 3) : UINT32_MAX;
		uint64_t value = dice(seed, 9) ? dice(seed, GiB) : UINT64_MAX;

		rich[i] = (struct event_level){key, value};
		if (key < MODEL_LEVELS) {
			two.levels[key] = value;
			two.known[key] = true;
		}
		if (key == TRACE_LEVEL_RSS && value > two.rss)
			two.rss = value;
	}
}

static void random_event(struct event *e, uint64_t *seed, struct block *was)
{
	uint64_t kind = dice(seed, 1000);

	two.now += dice(seed, 3) ? dice(seed, 100) : 0;
	*e = (struct event){.time_ns = two.now, .stack = (uint32_t)dice(seed, STACKS), .thread = 1};
	if (kind < 600) {
		random_block(e, seed, was);
	} else if (kind < 700) {
		random_map(e, seed);
	} else if (kind < 800) {
		random_unmap(e, seed);
	} else if (kind < 840) {
		random_ununmap(e, seed);
	} else if (kind < 900) {
		random_levels(e, seed);
	} else if (kind < 920) {
		uint64_t next = dice(seed, GiB);

		e->kind = EV_BRK;
		e->u.brk.old_end = two.end;
		e->u.brk.new_end = two.end = next;
	} else if (kind < 940) {
		e->kind = EV_NOTICE;
		e->u.notice.what = TRACE_NOTICE_LOST;
		e->u.notice.value = dice(seed, 5);
		two.lost += e->u.notice.value;
	} else if (kind < 945) {
		e->kind = EV_FAILED;
		e->size = 1 + dice(seed, 64 * MiB);
	} else {
		static const enum event_kind others[] = {
		    EV_ADVISE, EV_THREAD_EXIT, EV_FORK, EV_CHILD_END};

		e->kind = others[dice(seed, 4)];
		e->address = dice(seed, PAGES) * PAGE;
		e->size = PAGE;
	}
}

static struct tally sum_of(
    struct tally stats_list[STACKS][STACK_STATS_KINDS], enum stack_stats_kind kind)
{
	struct tally sum = {0};

	for (uint32_t s = 0; s < STACKS; s++) {
		sum.bytes += stats_list[s][kind].bytes;
		sum.count += stats_list[s][kind].count;
	}
	return sum;
}

static void compare_stacks(
    const struct model *m, enum moment at, struct tally stats_list[STACKS][STACK_STATS_KINDS])
{
	for (uint32_t stack = 0; stack < STACKS; stack++)
		for (uint32_t kind = 0; kind < STACK_STATS_KINDS; kind++) {
			const struct stack_stats *s = find_stack(m, stack, kind);
			uint64_t bytes = 0, count = 0;

			/* The mark counts blocks, the program's own mappings and shared memory. */
			if (at == AT_PEAK && kind != STACK_STATS_HEAP && kind != STACK_STATS_MAP &&
			    kind != STACK_STATS_SHARED)
				continue;
			if (s)
				model_stack_stats(m, s, at, &bytes, &count);
			assert_int_equal(bytes, stats_list[stack][kind].bytes);
			assert_int_equal(count, stats_list[stack][kind].count);
		}
}

static void compare(const struct model *m, bool stack_stats_list_too)
{
	struct tally heap = sum_of(two.stats_list, STACK_STATS_HEAP);
	uint64_t sums[SUMS], pieces, maps;

	count_pages(sums, &pieces);
	maps = sums[STACK_STATS_MAP] + sums[STACK_STATS_SHARED];
	if (heap.bytes + maps > two.peak) {
		two.peak = heap.bytes + maps;
		memcpy(two.at_peak, two.stats_list, sizeof(two.stats_list));
	}
	if (m->refusals.bursts != two.bursts) {
		two.bursts = m->refusals.bursts;
		memcpy(two.at_failure, two.stats_list, sizeof(two.stats_list));
		assert_int_equal(m->refusals.list[m->refusals.count - 1].live_bytes, heap.bytes);
		assert_int_equal(m->refusals.list[m->refusals.count - 1].live_map_bytes, maps);
	}
	assert_int_equal(m->blocks.bytes, heap.bytes);
	assert_int_equal(m->blocks.count, heap.count);
	assert_int_equal(m->maps.bytes, maps);
	assert_int_equal(m->maps.charged_shared_bytes, sums[STACK_STATS_SHARED]);
	assert_int_equal(
	    timeline_came(&m->timeline, two.now, CAME_SHARED), sums[STACK_STATS_SHARED]);
	assert_int_equal(m->maps.count, pieces);
	assert_int_equal(m->maps.shared_bytes, sums[FILES_SHARED]);
	assert_int_equal(m->maps.file_bytes, sums[STACK_STATS_FILE] + sums[STACK_STATS_COPY]);
	assert_int_equal(m->maps.stack_bytes, sums[STACK_STATS_STACK]);
	assert_int_equal(m->maps.reserved_bytes, sums[STACK_STATS_RESERVED]);
	assert_int_equal(m->maps.allocator_bytes, sums[OF_ALLOCATOR]);
	assert_int_equal(m->peak.bytes, two.peak);
	assert_int_equal(m->maps.break_bytes, two.end);
	assert_int_equal(m->run.unmatched, two.unmatched);
	assert_int_equal(m->recording.lost, two.lost);
	assert_int_equal(m->measured.peak_rss, two.rss);
	assert_int_equal(m->run.last_ns, two.now);
	if (!stack_stats_list_too)
		return;
	compare_stacks(m, AT_END, two.stats_list);
	compare_stacks(m, AT_PEAK, two.at_peak);
	if (two.bursts)
		compare_stacks(m, AT_FAILURE, two.at_failure);
	for (uint32_t key = 0; key < MODEL_LEVELS; key++) {
		uint64_t value = 0;

		assert_int_equal(levels_get(&m->measured.levels, key, &value), two.known[key]);
		assert_int_equal(value, two.known[key] ? two.levels[key] : 0);
	}
}

static void run(uint64_t seed, int events)
{
	struct feed none = {0};
	struct model *m;
	struct err err = {""};

	memset(&two, 0, sizeof(two));
	two.taken_at = UINT64_MAX;
	assert_int_equal(model_new(none, &m, &err), 0);
	for (int i = 0; i < events; i++) {
		struct block was;
		struct event e;

		random_event(&e, &seed, &was);
		assert_int_equal(model_apply(m, &e, &err), 0);
		compare(m, i % 97 == 0);
		model_check(m);
	}
	compare(m, true);
	assert_int_equal(m->run.events, events);
	assert_true(m->refusals.bursts > 1 || events < 10000); /* else nothing was shown */
	model_finish(m);
	model_free(m);
}

static void test_long(void **state)
{
	run(2026, EVENTS);
	(void)state;
}

/* From an empty process, many times over. */
static void test_short(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++)
		run(seed * 7919, (int)(seed % 60));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

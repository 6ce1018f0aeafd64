/* callsite.c - gathers stacks into call sites. Other modules read the parts of their history. */
#include "model/callsite/callsite_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/wrappers.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(uint64_t, HEADER_BYTES, 256u,
    "a header and rounding; the next layer of a model differs by a page or more");
TUNED(unsigned, WORKING_SET_MIN, 8u, "of fewer releases the longest life is chance");

#define STACKS_MAX 20000u /* are put into words; the others are reported as a sum */
_Static_assert(STACKS_MAX < UINT16_MAX, "call sites fit into what is kept of stacks");

struct weighed {
	const struct stack_stats *stats; /* as it is now */
	uint64_t weight;
	uint32_t stack;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* A cache from symbols to call sites, by the strings' addresses: many stacks have the same ones. */
#define KNOWN_WORDS 4096u
struct framework_words {
	const char *function, *file, *part, *part_file;
	uint32_t line, callsite;
};

/* What a stack says: the line to blame, the framework's part that this line called, and whether a
 * module was being imported. Strings are the feed's. */
struct callsite_words {
	const char *function, *file; /* "(unknown)" if no frame is to blame; file NULL */
	const char *part, *part_file; /* of blame_part(); NULL: none */
	uint32_t stack, line;
	enum owner owner;
	bool python, import;
};

struct builder {
	const struct model *m;
	struct callsites *p;
	const struct failure *refused; /* or NULL */
	uint32_t *table; /* open addressing: index into p->list, CALLSITE_NONE: empty */
	uint32_t table_size, room;
	struct framework_words *known; /* KNOWN_WORDS of them, by hash */
	VEC(struct step) steps; /* scratch, of one call site */
	struct callsite_member *members;
	size_t member_count;
};

static uint64_t hash_place(const struct callsite *callsite)
{
	uint64_t h = str_hash(STR_HASH ^ callsite->line, callsite->function);

	h = str_hash(str_hash(h, callsite->file), callsite->part);
	return h ^ h >> 29;
}

static bool same_callsite(const struct callsite *a, const struct callsite *b)
{
	return a->line == b->line && str_same(a->function, b->function) &&
	       str_same(a->file, b->file) && str_same(a->part, b->part) &&
	       str_same(a->part_file, b->part_file);
}

static int grow_table(struct builder *b)
{
	uint32_t size = b->table_size ? b->table_size * 2 : 256;
	uint32_t *table = malloc(size * sizeof(*table));

	if (!table)
		return -ENOMEM;
	memset(table, 0xff, size * sizeof(*table));
	for (uint32_t i = 0; i < b->p->count; i++) {
		uint64_t h = hash_place(&b->p->list[i]);
		while (table[h & (size - 1)] != CALLSITE_NONE)
			h++;
		table[h & (size - 1)] = i;
	}
	free(b->table);
	b->table = table;
	b->table_size = size;
	return 0;
}

static const struct step no_step; /* the steps of a call site that has none */

static int callsite_of_words(struct builder *b, const struct callsite_words *words, uint32_t *out)
{
	struct callsite callsite = {.function = words->function,
	    .file = words->file,
	    .line = words->line,
	    .part = words->part,
	    .part_file = words->part_file,
	    .python = words->python,
	    .owner = words->owner,
	    .facts.steps = &no_step,
	    .stack = words->stack,
	    .relations.feeds = CALLSITE_NONE,
	    .relations.index_of = CALLSITE_NONE,
	    .relations.listed_by = CALLSITE_NONE,
	    .relations.copies_of = CALLSITE_NONE};
	uint64_t h;
	uint32_t i;
	int rc;

	if (b->p->count * 2 >= b->table_size && (rc = grow_table(b)))
		return rc;
	h = hash_place(&callsite);
	for (; (i = b->table[h & (b->table_size - 1)]) != CALLSITE_NONE; h++) {
		if (same_callsite(&b->p->list[i], &callsite)) {
			*out = i;
			return 0;
		}
	}
	if (b->p->count == b->room) {
		uint32_t room = b->room ? b->room * 2 : 64;
		struct callsite *list = realloc(b->p->list, room * sizeof(*list));
		if (!list)
			return -ENOMEM;
		b->p->list = list;
		b->room = room;
	}
	b->table[h & (b->table_size - 1)] = b->p->count;
	b->p->list[b->p->count] = callsite;
	*out = b->p->count++;
	return 0;
}

/* 64 classes for each power of two; a larger weight is never in a lower class. */
#define WEIGHT_CLASSES (59u * 64u)

static uint32_t class_of(uint64_t weight)
{
	uint32_t top = weight < 64 ? 0 : 63 - (uint32_t)__builtin_clzll(weight);

	return top ? (top - 5) << 6 | (weight >> (top - 6) & 63) : (uint32_t)weight;
}

#define ASK_AHEAD 12u /* stacks */

static inline void ask_ahead(const struct model *m, size_t number)
{
	if (number + ASK_AHEAD < m->stacks.count)
		stack_stats_ask(stack_table_number(&m->stacks, number + ASK_AHEAD));
}

/* Return a stack's weight: its live bytes, or its largest block. */
static uint64_t weigh(const struct model *m, const struct stack_stats *s, enum moment moment,
    uint64_t *live, uint64_t *count)
{
	const struct stack_stats *then = model_stack_stats(m, s, moment, live, count);
	uint64_t largest = stack_stats_largest(then);

	return *live > largest ? *live : largest;
}

/* Sum up all stacks with call sites. Returns the lowest class among the heaviest STACKS_MAX. */
static uint32_t sum_up(const struct model *m, struct callsites *p, uint64_t *sum, size_t *reached)
{
	uint32_t of_class[WEIGHT_CLASSES] = {0}, least = WEIGHT_CLASSES;
	uint64_t live, count, weight;

	*sum = *reached = 0;
	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);

		ask_ahead(m, i);
		if (!model_has_callsites(m, s->kind))
			continue;
		weight = weigh(m, s, p->moment, &live, &count);
		*sum += weight;
		of_class[class_of(weight)]++;
		*(s->kind == STACK_STATS_HEAP ? &p->live_bytes : &p->map_bytes) += live;
		p->live_blocks += s->kind == STACK_STATS_HEAP ? count : 0;
		p->shared_bytes += s->kind == STACK_STATS_SHARED ? live : 0;
		p->file_bytes += stack_stats_is_file(s->kind) ? live : 0;
	}
	while (least && *reached < STACKS_MAX)
		*reached += of_class[--least];
	return least;
}

/* List the heaviest stacks, most first, and how many to keep. */
static int weigh_stacks(
    const struct model *m, struct callsites *p, struct weighed **out, size_t *keep)
{
	uint64_t sum, reached = 0, live, count, weight;
	size_t room, n = 0;
	uint32_t least = sum_up(m, p, &sum, &room);
	struct weighed *list = malloc((room + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < m->stacks.count && n < room; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);

		ask_ahead(m, i);
		if (!model_has_callsites(m, s->kind))
			continue;
		weight = weigh(m, s, p->moment, &live, &count);
		if (class_of(weight) >= least)
			list[n++] = (struct weighed){s, weight, s->stack};
	}
	qsort(list, n, sizeof(*list), by_weight);
	for (*keep = 0; *keep < n && *keep < STACKS_MAX; ++*keep) {
		if (reached > sum - sum / 256 && *keep > 512)
			break;
		reached += list[*keep].weight;
	}
	*out = list;
	return 0;
}

bool callsite_blocks_alike(uint64_t largest, uint64_t count, uint64_t live)
{
	return largest * count <= live + num_least(live / 32, count * HEADER_BYTES);
}

/* A stack at the moment. */
struct live_stack {
	const struct stack_stats *now, *then;
	uint64_t live, count; /* at the moment: bytes and blocks */
};

static void count_in(const struct model *m, const struct callsites *p, const struct live_stack *at,
    struct callsite *c)
{
	uint64_t peak, peak_count;

	model_stack_stats(m, at->now, AT_PEAK, &peak, &peak_count);
	if (!c->facts.total_count) { /* the heaviest comes first */
		c->stack = at->now->stack;
		c->facts.alike_size = stack_stats_largest(at->then);
	}
	if (stack_stats_largest(at->then) == c->facts.alike_size &&
	    callsite_blocks_alike(stack_stats_largest(at->then), at->count, at->live))
		c->facts.alike_bytes += at->live;
	c->facts.live_bytes += at->live;
	c->facts.live_count += at->count;
	c->facts.live_variance += model_stack_stats_variance(m, at->now, p->moment);
	if (at->then->kind != STACK_STATS_HEAP)
		c->facts.map_bytes += at->live;
	if (at->then->kind == STACK_STATS_SHARED)
		c->facts.shared_bytes += at->live;
	if (stack_stats_is_file(at->then->kind))
		c->facts.file_bytes += at->live;
	c->facts.peak_bytes += peak;
	c->facts.total_bytes += stack_stats_total_bytes(at->then);
	c->facts.total_count += stack_stats_total_count(at->then);
	c->facts.largest = num_most(c->facts.largest, stack_stats_largest(at->then));
	c->facts.freed_count += stack_stats_freed_count(at->then);
	c->facts.life_ns += stack_stats_life_ns(at->then);
	c->facts.longest_life_ns =
	    num_most(c->facts.longest_life_ns, stack_stats_longest_life_ns(at->then));
	c->facts.moved_count += stack_stats_moved_count(at->then);
	c->facts.regrown += stack_stats_rare(at->then)->regrown;
}

/* Note whether an import or the user's own code was at work. */
static void note_import(struct builder *b, struct callsite *callsite, bool import,
    const struct stack_stats *then, uint64_t live)
{
	uint64_t *newest = import ? &b->p->imported_ns : &b->p->own_ns;
	struct cohort own;
	uint32_t used = stack_stats_used(then);
	uint64_t last = used ? stack_stats_cohort(then, used - 1, &own)->last_ns : 0;

	if (import)
		callsite->facts.imported_bytes += live;
	if ((import || callsite->owner == OWNER_USER) && last > *newest)
		*newest = last;
}

static int by_time(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int by_callsite(const void *a, const void *b)
{
	const struct callsite_member *x = a, *y = b;
	return (x->callsite > y->callsite) - (x->callsite < y->callsite);
}

/* Return a step's weight when steps are made equal. Blocks that a checkpoint summed up weigh as one
 * other step, or all later blocks would be one step. */
static uint64_t step_weight(const struct step *s, uint64_t of_went)
{
	return s->count - s->summed_count + (s->summed_count ? of_went : 0);
}

static int keep_steps(struct builder *b, struct callsite *callsite, uint32_t count)
{
	struct step *steps;

	if (!count)
		return 0;
	steps = arena_alloc(&b->p->steps, count * sizeof(*steps));
	if (!steps)
		return -ENOMEM;
	memcpy(steps, b->steps.items, count * sizeof(*steps));
	callsite->facts.steps = steps;
	callsite->facts.step_count = count;
	callsite->facts.first_ns = steps[0].time_ns;
	callsite->facts.last_ns = steps[count - 1].last_ns;
	return 0;
}

/* Merge the cohorts of a call site's stacks, by time, into at most CALLSITE_STEPS steps. */
static int make_steps(struct builder *b, struct callsite *callsite,
    const struct callsite_member *members, size_t count)
{
	uint64_t total = 0, target, of_went, weight = 0;
	size_t n = 0, room = 0, own = 0;
	uint32_t merged = 0; /* merged steps, at the front */
	struct step *steps;

	for (size_t i = 0; i < count; i++)
		room += stack_stats_used(members[i].at);
	if (vec_reserve(&b->steps, room))
		return -ENOMEM;
	steps = b->steps.items;
	for (size_t i = 0; i < count; i++) {
		for (uint32_t c = 0, used = stack_stats_used(members[i].at); c < used; c++) {
			struct cohort one;
			const struct cohort *from = stack_stats_cohort(members[i].at, c, &one);

			if (!from->count)
				continue;
			steps[n++] = (struct step){from->serial, from->time_ns, from->last_ns,
			    from->count, from->bytes, from->max, from->min, from->freed_count,
			    from->freed_bytes, from->summed_count, from->summed_bytes};
			total += from->count - from->summed_count;
			own += from->count > from->summed_count;
		}
	}
	of_went = own ? (total + own - 1) / own : 1;
	for (size_t i = 0; i < n; i++)
		total += steps[i].summed_count ? of_went : 0;
	if (n)
		qsort(steps, n, sizeof(*steps), by_time);
	/* A step ends once it reaches half the target, so there are at most twice as many. */
	target = n <= CALLSITE_STEPS ? 1 : (total + CALLSITE_STEPS / 2 - 1) / (CALLSITE_STEPS / 2);
	for (size_t i = 0; i < n; i++) {
		struct step *last = merged ? &steps[merged - 1] : NULL;

		uint64_t more = step_weight(&steps[i], of_went);

		if (!last ||
		    (merged < CALLSITE_STEPS && weight + more > target && weight * 2 >= target)) {
			steps[merged++] = steps[i];
			weight = more;
			continue;
		}
		weight += more;
		last->last_ns = num_most(last->last_ns, steps[i].last_ns);
		last->count += steps[i].count;
		last->bytes += steps[i].bytes;
		last->freed_count += steps[i].freed_count;
		last->freed_bytes += steps[i].freed_bytes;
		last->summed_count += steps[i].summed_count;
		last->summed_bytes += steps[i].summed_bytes;
		last->max = num_most(last->max, steps[i].max);
		last->min = num_least(last->min, steps[i].min);
	}
	return keep_steps(b, callsite, merged);
}

static uint64_t mix(uint64_t h, const void *word)
{
	return (h ^ (uintptr_t)word) * 0x9e3779b97f4a7c15u;
}

static int find_callsite(struct builder *b, const struct callsite_words *words, uint32_t *out)
{
	uint64_t h = mix(mix(mix(words->line, words->function), words->file), words->part);
	struct framework_words *k = &b->known[(h ^ h >> 32) % KNOWN_WORDS];
	int rc;

	if (k->function == words->function && k->file == words->file && k->line == words->line &&
	    k->part == words->part && k->part_file == words->part_file) {
		*out = k->callsite;
		return 0;
	}
	rc = callsite_of_words(b, words, out);
	if (!rc)
		*k = (struct framework_words){
		    words->function, words->file, words->part, words->part_file, words->line, *out};
	return rc;
}

/* Stacks with close ids were seen one after the other, and share most of their frames. */
struct reading_order {
	uint32_t stack, index;
};

static int by_stack(const void *a, const void *b)
{
	const struct reading_order *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

struct writer {
	const struct blame_context *context;
	const struct reading_order *order;
	struct blame_parts parts;
	struct callsite_words *out;
};

static void put_words(
    void *arg, size_t item, const struct stack_path *path, const blame_marks_t *marks, int at)
{
	struct writer *w = arg;
	struct callsite_words *out = &w->out[w->order[item].index];
	int part = blame_part(w->context, path, at, &w->parts);
	const struct symbol *s;

	*out = (struct callsite_words){.function = "(unknown)",
	    .stack = out->stack,
	    .import = blame_is_import(&marks->items[path->count])};
	if (at < 0)
		return;
	s = &path->symbols[at];
	out->function = s->function;
	out->file = s->file;
	out->line = s->line;
	out->python = s->python;
	out->owner = blame_owner(w->context, s);
	if (part >= 0) {
		out->part = path->symbols[part].function;
		out->part_file = path->symbols[part].file;
	}
}

/* Fill words[i] for list[i], and words[keep] for the refused request, which belongs to the call
 * site of its stack's blocks. Keeps no stack's symbols as a whole. */
static int read_words(
    const struct builder *b, const struct weighed *list, size_t keep, struct callsite_words *words)
{
	struct reading_order *order = malloc((keep + 1) * sizeof(*order));
	struct wrapper_input *stacks = malloc((keep + 1) * sizeof(*stacks));
	struct writer writer = {.context = &b->p->context, .order = order, .out = words};
	uint64_t live, count;
	int rc = -ENOMEM;

	if (!order || !stacks)
		goto out;
	for (size_t i = 0; i < keep; i++)
		order[i] = (struct reading_order){list[i].stack, (uint32_t)i};
	order[keep] = (struct reading_order){b->refused ? b->refused->stack : 0, (uint32_t)keep};
	qsort(order, keep + 1, sizeof(*order), by_stack);
	for (size_t i = 0; i <= keep; i++) {
		uint32_t at = order[i].index;
		const struct stack_stats *then;

		words[at] =
		    (struct callsite_words){.function = "(unknown)", .stack = order[i].stack};
		stacks[i] = (struct wrapper_input){.stack = order[i].stack, .frame = -1};
		if (at == keep)
			continue;
		then = model_stack_stats(b->m, list[at].stats, b->p->moment, &live, &count);
		stacks[i].total_bytes = stack_stats_total_bytes(then);
		stacks[i].total_count = stack_stats_total_count(then);
		stacks[i].largest = stack_stats_largest(then);
	}
	rc = wrappers_step_out(&b->m->feed, &b->p->context, stacks, keep + 1,
	    (struct wrapper_witness){&writer, put_words});
out:
	vec_free(&writer.parts.marks);
	free(order);
	free(stacks);
	return rc;
}

static int gather(struct builder *b, const struct weighed *list, size_t keep)
{
	const struct model *m = b->m;
	const struct failure *f = b->refused;
	struct callsite_words *words = malloc((keep + 1) * sizeof(*words));
	uint64_t live, count;
	int rc = words ? read_words(b, list, keep, words) : -ENOMEM;

	if (!rc && f)
		rc = find_callsite(b, &words[keep], &b->p->failed);
	b->p->failed_import = !rc && f && words[keep].import;
	for (size_t i = 0; i < keep && !rc; i++) {
		const struct stack_stats *now = list[i].stats, *then;
		uint32_t at;

		rc = find_callsite(b, &words[i], &at);
		if (rc)
			break;
		then = model_stack_stats(m, now, b->p->moment, &live, &count);
		count_in(m, b->p, &(struct live_stack){now, then, live, count}, &b->p->list[at]);
		note_import(b, &b->p->list[at], words[i].import, then, live);
		b->p->of[now->kind][now->stack] = (uint16_t)(at + 1);
		b->members[b->member_count++] = (struct callsite_member){at, then};
	}
	free(words);
	return rc;
}

/* Allocate the tables, up to the last stack of each kind with a call site. */
static int tables(
    struct callsites *p, const struct model *m, const struct weighed *list, size_t keep)
{
	for (size_t i = 0; i < keep; i++) {
		const struct stack_stats *s = list[i].stats;

		if (s->stack >= p->limits[s->kind])
			p->limits[s->kind] = s->stack + 1u;
	}
	for (int k = 0; k < STACK_STATS_KINDS; k++) {
		if (m->stacks.limits[k] > p->stack_limit)
			p->stack_limit = m->stacks.limits[k];
		if (!p->limits[k])
			continue;
		/* Most pages of most kinds are never touched, and take no memory. */
		p->of[k] = calloc(p->limits[k], sizeof(*p->of[k]));
		if (!p->of[k])
			return -ENOMEM;
	}
	return 0;
}

static void moment_of(
    const struct model *m, enum moment moment, const struct failure *refused, struct callsites *p)
{
	p->moment = moment;
	p->moment_ns = m->run.last_ns;
	p->replaced_until_ns = replaced_until_ns(&m->feed);
	p->replaced = &m->replaced;
	p->files_charged = m->options.files_charged;
	p->first_ns = m->run.first_ns;
	p->moment_serial = m->run.serial;
	if (refused) {
		p->moment_ns = refused->time_ns;
		p->moment_serial = refused->serial;
	} else if (moment == AT_PEAK) {
		p->moment_ns = m->peak.time_ns;
		p->moment_serial = m->peak.serial;
	}
}

/* Read the parts that follow from the call site's own stacks. */
static void read_parts(
    struct callsite *c, const struct callsite_member *members, size_t count, uint64_t padding)
{
	if (!c->facts.step_count)
		return;
	sizes_read(c, members, count, padding, &c->size);
	backlog_read(c, members, count, &c->backlog);
	buildup_read(c, members, count, &c->buildup);
}

static int build(const struct model *m, enum moment moment, const struct failure *refused,
    struct callsites **out, struct err *err)
{
	struct builder b = {.m = m, .refused = refused};
	struct weighed *list = NULL;
	size_t keep = 0;
	int rc = -ENOMEM;

	b.p = calloc(1, sizeof(*b.p));
	if (!b.p)
		goto out;
	moment_of(m, moment, refused, b.p);
	b.p->failed = b.p->proportion.callsite = b.p->proportion.driver = CALLSITE_NONE;
	b.p->context =
	    (struct blame_context){.malloc_owner = m->feed.info(m->feed.self, "malloc.owner"),
		.interpreter = feed_interpreter(&m->feed),
		.memory = &b.p->memory};
	if ((rc = weigh_stacks(m, b.p, &list, &keep)) || (rc = tables(b.p, m, list, keep)))
		goto out;
	rc = -ENOMEM;
	b.members = malloc((keep + 1) * sizeof(*b.members));
	b.known = calloc(KNOWN_WORDS, sizeof(*b.known));
	if (!b.members || !b.known || (rc = gather(&b, list, keep)))
		goto out;
	qsort(b.members, b.member_count, sizeof(*b.members), by_callsite);
	for (size_t i = 0, j; i < b.member_count; i = j) {
		for (j = i; j < b.member_count && b.members[j].callsite == b.members[i].callsite;
		     j++)
			;
		rc = make_steps(&b, &b.p->list[b.members[i].callsite], &b.members[i], j - i);
		if (rc)
			goto out;
		read_parts(
		    &b.p->list[b.members[i].callsite], &b.members[i], j - i, m->options.padding);
	}
	for (uint32_t i = 0; i < b.p->count; i++)
		survivors_read(b.p, &b.p->list[i], &b.p->list[i].survivors);
	for (uint32_t i = 0; i < b.p->count; i++)
		sizes_settle(b.p, &b.p->list[i], &m->timeline, &b.p->list[i].size);
	relations_read(b.p);
	if ((rc = holders_read(&m->feed, b.p, b.members, b.member_count)))
		goto out;
	rc = -ENOMEM;
	b.p->classes = calloc(b.p->count + 1u, sizeof(*b.p->classes));
	if (!b.p->classes)
		goto out;
	*out = b.p;
	b.p = NULL;
	rc = 0;
out:
	callsites_free(b.p);
	free(list);
	free(b.table);
	free(b.known);
	vec_free(&b.steps);
	free(b.members);
	return rc ? err_set(err, rc, "no memory for the call sites") : 0;
}

int callsites_new(
    const struct model *m, enum moment moment, struct callsites **out, struct err *err)
{
	bool refused = moment == AT_FAILURE && m->refusals.count;

	return build(
	    m, moment, refused ? &m->refusals.list[m->refusals.count - 1] : NULL, out, err);
}

int callsites_refused(
    const struct model *m, const struct failure *refused, struct callsites **out, struct err *err)
{
	return build(m, AT_END, refused, out, err);
}

uint64_t callsite_unused(const struct callsite *callsite)
{
	return (uint64_t)((double)callsite->facts.map_bytes * callsite->arena_share.unused);
}

bool callsite_is_uniform(const struct callsite *p)
{
	/* A copy that fills the block may be larger by a header; another layer's by more. */
	return p->facts.live_count && p->facts.largest <= p->facts.alike_size + HEADER_BYTES &&
	       (p->facts.alike_bytes >= p->facts.live_bytes - p->facts.live_bytes / 32 ||
		   callsite_blocks_alike(
		       p->facts.largest, p->facts.live_count, p->facts.live_bytes));
}

uint64_t callsite_largest_live(const struct callsite *p)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		const struct step *s = &p->facts.steps[i];

		if (s->max > largest && s->bytes - s->freed_bytes >= s->max)
			largest = s->max;
	}
	return largest;
}

bool callsite_is_import(const struct callsite *p)
{
	return p->facts.imported_bytes > p->facts.live_bytes / 2;
}

bool callsite_is_working_set(const struct callsite *p, uint64_t moment_ns)
{
	uint64_t old = 0, survivors = 0;

	if (p->facts.freed_count < WORKING_SET_MIN)
		return false;
	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		const struct step *s = &p->facts.steps[i];

		if (moment_ns - s->last_ns <= p->facts.longest_life_ns)
			continue;
		old += s->bytes;
		survivors += s->bytes - s->freed_bytes;
	}
	return old && survivors <= old / 16;
}

const struct stack_stats *callsite_heaviest(const struct callsite_member *members, size_t count)
{
	const struct stack_stats *s = NULL;

	for (size_t i = 0; i < count; i++)
		if (!s || stack_stats_live_bytes(members[i].at) > stack_stats_live_bytes(s))
			s = members[i].at;
	return s;
}

void callsites_free(struct callsites *p)
{
	if (!p)
		return;
	for (int k = 0; k < STACK_STATS_KINDS; k++)
		free(p->of[k]);
	arena_free(&p->steps);
	vec_free(&p->memory.traits);
	free(p->list);
	free(p->classes);
	free(p);
}

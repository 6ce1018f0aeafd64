/* callsite.c - gathers sites into places; what their histories show is in history.c. */
#include "model/callsite/callsite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/callsite_words.h"
#include "model/callsite/history.h"
#include "model/callsite/tables.h"
#include "util/text/str.h"

#define STACKS_MAX 20000u /* are put into words; what is left is reported as a sum */
_Static_assert(STACKS_MAX < UINT16_MAX, "places fit into what is kept of stacks");

struct weighed {
	const struct site *site; /* as it is now */
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

/* The place of words that were seen before, told by where their text is: many stacks have the very
 * same words. */
#define KNOWN_WORDS 4096u
struct known_words {
	const char *function, *file, *part, *part_file;
	uint32_t line, place;
};

struct builder {
	const struct model *m;
	struct places *p;
	const struct failure *refused; /* or NULL */
	struct blame_context context;
	uint32_t *table; /* open addressing: index into p->list, PLACE_NONE: empty */
	uint32_t table_size, room;
	struct known_words *known; /* KNOWN_WORDS of them, by hash */
	struct step *steps; /* scratch, of one place */
	size_t step_room;
	struct member *members;
	size_t member_count;
};

static uint64_t hash_word(uint64_t h, const char *word)
{
	for (const char *p = word ? word : ""; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	return h;
}

static uint64_t hash_place(const struct place *place)
{
	uint64_t h = hash_word(1469598103934665603u ^ place->line, place->function);

	h = hash_word(h, place->file);
	h = hash_word(h, place->part);
	return h ^ h >> 29;
}

static bool same_place(const struct place *a, const struct place *b)
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
		while (table[h & (size - 1)] != PLACE_NONE)
			h++;
		table[h & (size - 1)] = i;
	}
	free(b->table);
	b->table = table;
	b->table_size = size;
	return 0;
}

static const struct step no_step; /* of a place that has none */

static int place_of_words(struct builder *b, const struct place_words *words, uint32_t *out)
{
	struct place place = {.function = words->function,
	    .file = words->file,
	    .line = words->line,
	    .part = words->part,
	    .part_file = words->part_file,
	    .python = words->python,
	    .owner = words->owner,
	    .steps = &no_step,
	    .stack = words->stack,
	    .feeds = PLACE_NONE,
	    .index_of = PLACE_NONE,
	    .listed_by = PLACE_NONE,
	    .copies_of = PLACE_NONE};
	uint64_t h;
	uint32_t i;
	int rc;

	if (b->p->count * 2 >= b->table_size && (rc = grow_table(b)))
		return rc;
	h = hash_place(&place);
	for (; (i = b->table[h & (b->table_size - 1)]) != PLACE_NONE; h++) {
		if (same_place(&b->p->list[i], &place)) {
			*out = i;
			return 0;
		}
	}
	if (b->p->count == b->room) {
		uint32_t room = b->room ? b->room * 2 : 64;
		struct place *list = realloc(b->p->list, room * sizeof(*list));
		if (!list)
			return -ENOMEM;
		b->p->list = list;
		b->room = room;
	}
	b->table[h & (b->table_size - 1)] = b->p->count;
	b->p->list[b->p->count] = place;
	*out = b->p->count++;
	return 0;
}

/* 64 classes to each doubling: a larger weight is never in a lower one. */
#define WEIGHT_CLASSES (59u * 64u)

static uint32_t class_of(uint64_t weight)
{
	uint32_t top = weight < 64 ? 0 : 63 - (uint32_t)__builtin_clzll(weight);

	return top ? (top - 5) << 6 | (weight >> (top - 6) & 63) : (uint32_t)weight;
}

#define ASK_AHEAD 12u /* sites */

static inline void ask_ahead(const struct model *m, size_t number)
{
	if (number + ASK_AHEAD < m->site_count)
		site_ask(model_site_number(m, number + ASK_AHEAD));
}

/* What lived of a site, and its weight by that. */
static uint64_t weigh(const struct model *m, const struct site *s, enum moment moment,
    uint64_t *live, uint64_t *count)
{
	const struct site *then = model_site(m, s, moment, live, count);
	uint64_t largest = site_largest(then);

	return *live > largest ? *live : largest;
}

/* The sums of all sites that have places, and the lightest class that one of the first STACKS_MAX
 * may be of: there are many more. */
static uint32_t sum_up(const struct model *m, struct places *p, uint64_t *sum, size_t *reached)
{
	uint32_t of_class[WEIGHT_CLASSES] = {0}, least = WEIGHT_CLASSES;
	uint64_t live, count, weight;

	*sum = *reached = 0;
	for (size_t i = 0; i < m->site_count; i++) {
		const struct site *s = model_site_number(m, i);

		ask_ahead(m, i);
		if (!model_has_places(m, s->kind))
			continue;
		weight = weigh(m, s, p->moment, &live, &count);
		*sum += weight;
		of_class[class_of(weight)]++;
		*(s->kind == SITE_HEAP ? &p->live_bytes : &p->map_bytes) += live;
		p->live_blocks += s->kind == SITE_HEAP ? count : 0;
		p->shared_bytes += s->kind == SITE_SHARED ? live : 0;
		p->file_bytes += site_is_file(s->kind) ? live : 0;
	}
	while (least && *reached < STACKS_MAX)
		*reached += of_class[--least];
	return least;
}

/* And these sums. */
static int weigh_sites(const struct model *m, struct places *p, struct weighed **out, size_t *keep)
{
	uint64_t sum, reached = 0, live, count, weight;
	size_t room, n = 0;
	uint32_t least = sum_up(m, p, &sum, &room);
	struct weighed *list = malloc((room + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < m->site_count && n < room; i++) {
		const struct site *s = model_site_number(m, i);

		ask_ahead(m, i);
		if (!model_has_places(m, s->kind))
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

static void count_in(struct place *place, const struct site *now, const struct site *then,
    uint64_t live, uint64_t count, const struct model *m, enum moment moment)
{
	uint64_t peak, peak_count;

	model_site(m, now, AT_PEAK, &peak, &peak_count);
	if (!place->total_count) { /* the heaviest comes first */
		place->stack = now->stack;
		place->alike_size = site_largest(then);
	}
	if (site_largest(then) == place->alike_size &&
	    site_largest(then) * count <= live + live / 32)
		place->alike_bytes += live;
	place->live_bytes += live;
	place->live_count += count;
	place->live_variance += model_site_variance(m, now, moment);
	if (then->kind != SITE_HEAP)
		place->map_bytes += live;
	if (then->kind == SITE_SHARED)
		place->shared_bytes += live;
	if (site_is_file(then->kind))
		place->file_bytes += live;
	place->peak_bytes += peak;
	place->end_bytes += site_live_bytes(now);
	place->total_bytes += site_total_bytes(then);
	place->total_count += site_total_count(then);
	if (site_largest(then) > place->largest)
		place->largest = site_largest(then);
	place->freed_count += site_freed_count(then);
	place->life_ns += site_life_ns(then);
	if (site_longest_life_ns(then) > place->longest_life_ns)
		place->longest_life_ns = site_longest_life_ns(then);
	place->regrown += site_rare(then)->regrown;
}

/* Whether a module was being imported, or code of one's own was at work. */
static void note_import(
    struct builder *b, struct place *place, bool import, const struct site *then, uint64_t live)
{
	uint64_t *newest = import ? &b->p->imported_ns : &b->p->own_ns;
	struct cohort own;
	uint32_t used = site_used(then);
	uint64_t last = used ? site_cohort(then, used - 1, &own)->last_ns : 0;

	if (import)
		place->imported_bytes += live;
	if ((import || place->owner == OWNER_USER) && last > *newest)
		*newest = last;
}

static int by_time(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int by_place(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	return (x->place > y->place) - (x->place < y->place);
}

/* By how many blocks steps are alike: those that a checkpoint tells as a sum are as many as the
 * others' steps have, or else all that came since would be one. */
static uint64_t step_weight(const struct step *s, uint64_t of_went)
{
	return s->count - s->went_count + (s->went_count ? of_went : 0);
}

/* Of the scratch. */
static int keep_steps(struct builder *b, struct place *place, uint32_t count)
{
	struct step *steps;

	if (!count)
		return 0;
	steps = arena_alloc(&b->p->steps, count * sizeof(*steps));
	if (!steps)
		return -ENOMEM;
	memcpy(steps, b->steps, count * sizeof(*steps));
	place->steps = steps;
	place->step_count = count;
	return 0;
}

/* Merges the cohorts of a place's sites, by time, into at most PLACE_STEPS steps. */
static int make_steps(
    struct builder *b, struct place *place, const struct member *members, size_t count)
{
	uint64_t total = 0, target, of_went, weight = 0;
	size_t n = 0, room = 0, own = 0;
	uint32_t merged = 0; /* of them, at their beginning */

	for (size_t i = 0; i < count; i++)
		room += site_used(members[i].at);
	if (room > b->step_room) {
		struct step *grown = realloc(b->steps, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		b->steps = grown;
		b->step_room = room;
	}
	for (size_t i = 0; i < count; i++) {
		for (uint32_t c = 0, used = site_used(members[i].at); c < used; c++) {
			struct cohort one;
			const struct cohort *from = site_cohort(members[i].at, c, &one);

			if (!from->count)
				continue;
			b->steps[n++] = (struct step){from->serial, from->time_ns, from->last_ns,
			    from->count, from->bytes, from->max, from->min, from->freed_count,
			    from->freed_bytes, from->went_count, from->went_bytes};
			total += from->count - from->went_count;
			own += from->count > from->went_count;
		}
	}
	of_went = own ? (total + own - 1) / own : 1;
	for (size_t i = 0; i < n; i++)
		total += b->steps[i].went_count ? of_went : 0;
	if (n)
		qsort(b->steps, n, sizeof(*b->steps), by_time);
	/* A step is closed from half the target on, so there can be no more than twice as many. */
	target = n <= PLACE_STEPS ? 1 : (total + PLACE_STEPS / 2 - 1) / (PLACE_STEPS / 2);
	for (size_t i = 0; i < n; i++) {
		struct step *last = merged ? &b->steps[merged - 1] : NULL;

		uint64_t more = step_weight(&b->steps[i], of_went);

		if (!last ||
		    (merged < PLACE_STEPS && weight + more > target && weight * 2 >= target)) {
			b->steps[merged++] = b->steps[i];
			weight = more;
			continue;
		}
		weight += more;
		if (b->steps[i].last_ns > last->last_ns)
			last->last_ns = b->steps[i].last_ns;
		last->count += b->steps[i].count;
		last->bytes += b->steps[i].bytes;
		last->freed_count += b->steps[i].freed_count;
		last->freed_bytes += b->steps[i].freed_bytes;
		last->went_count += b->steps[i].went_count;
		last->went_bytes += b->steps[i].went_bytes;
		if (b->steps[i].max > last->max)
			last->max = b->steps[i].max;
		if (b->steps[i].min < last->min)
			last->min = b->steps[i].min;
	}
	return keep_steps(b, place, merged);
}

static uint64_t mix(uint64_t h, const void *word)
{
	return (h ^ (uintptr_t)word) * 0x9e3779b97f4a7c15u;
}

static int find_place(struct builder *b, const struct place_words *words, uint32_t *out)
{
	uint64_t h = mix(mix(mix(words->line, words->function), words->file), words->part);
	struct known_words *k = &b->known[(h ^ h >> 32) % KNOWN_WORDS];
	int rc;

	if (k->function == words->function && k->file == words->file && k->line == words->line &&
	    k->part == words->part && k->part_file == words->part_file) {
		*out = k->place;
		return 0;
	}
	rc = place_of_words(b, words, out);
	if (!rc)
		*k = (struct known_words){
		    words->function, words->file, words->part, words->part_file, words->line, *out};
	return rc;
}

static int gather(struct builder *b, const struct weighed *list, size_t keep)
{
	const struct model *m = b->m;
	const struct failure *f = b->refused;
	struct place_site *sites = malloc((keep + 1) * sizeof(*sites));
	struct place_words *words = malloc((keep + 1) * sizeof(*words));
	uint64_t live, count;
	int rc = -ENOMEM;

	if (!sites || !words)
		goto out;
	for (size_t i = 0; i < keep; i++) {
		const struct site *then = model_site(m, list[i].site, b->p->moment, &live, &count);

		sites[i] = (struct place_site){then->stack, site_total_bytes(then),
		    site_total_count(then), site_largest(then)};
	}
	/* The refused request goes the way of its stack's blocks. */
	sites[keep] = (struct place_site){.stack = f ? f->stack : 0};
	rc = place_words_read(&m->feed, &b->context, sites, keep + 1, words);
	if (!rc && f)
		rc = find_place(b, &words[keep], &b->p->failed);
	b->p->failed_import = !rc && f && words[keep].import;
	for (size_t i = 0; i < keep && !rc; i++) {
		const struct site *now = list[i].site, *then;
		uint32_t at;

		rc = find_place(b, &words[i], &at);
		if (rc)
			break;
		then = model_site(m, now, b->p->moment, &live, &count);
		count_in(&b->p->list[at], now, then, live, count, m, b->p->moment);
		note_import(b, &b->p->list[at], words[i].import, then, live);
		b->p->of[now->kind][now->stack] = (uint16_t)(at + 1);
		b->members[b->member_count++] = (struct member){at, then};
	}
out:
	free(sites);
	free(words);
	return rc;
}

/* Up to the last stack of each kind that has a place. */
static int tables(struct places *p, const struct model *m, const struct weighed *list, size_t keep)
{
	for (size_t i = 0; i < keep; i++) {
		const struct site *s = list[i].site;

		if (s->stack >= p->limits[s->kind])
			p->limits[s->kind] = s->stack + 1u;
	}
	for (int k = 0; k < SITE_KINDS; k++) {
		if (m->limits[k] > p->stack_limit)
			p->stack_limit = m->limits[k];
		if (!p->limits[k])
			continue;
		/* Of most kinds it stays as it is nearly everywhere, and then takes no memory. */
		p->of[k] = calloc(p->limits[k], sizeof(*p->of[k]));
		if (!p->of[k])
			return -ENOMEM;
	}
	return 0;
}

static void moment_of(
    const struct model *m, enum moment moment, const struct failure *refused, struct places *p)
{
	p->moment = moment;
	p->moment_ns = m->last_ns;
	p->past_ns = past_until_ns(&m->feed);
	p->past = &m->past;
	p->files_charged = m->files_charged;
	p->first_ns = m->first_ns;
	p->moment_serial = m->serial;
	if (refused) {
		p->moment_ns = refused->time_ns;
		p->moment_serial = refused->serial;
	} else if (moment == AT_PEAK) {
		p->moment_ns = m->peak_ns;
		p->moment_serial = m->peak_serial;
	}
}

static void context_of(
    const struct model *m, struct blame_memory *memory, struct blame_context *context)
{
	context->malloc_owner = m->feed.info(m->feed.self, "malloc.owner");
	context->interpreter = feed_interpreter(&m->feed);
	context->memory = memory;
}

static int build(const struct model *m, enum moment moment, const struct failure *refused,
    struct places **out, struct err *err)
{
	struct builder b = {.m = m, .refused = refused};
	struct weighed *list = NULL;
	size_t keep = 0;
	int rc = -ENOMEM;

	b.p = calloc(1, sizeof(*b.p));
	if (!b.p)
		goto out;
	moment_of(m, moment, refused, b.p);
	b.p->failed = b.p->proportion.place = b.p->proportion.driver = PLACE_NONE;
	context_of(m, &b.p->memory, &b.context);
	b.p->context = b.context;
	if ((rc = weigh_sites(m, b.p, &list, &keep)) || (rc = tables(b.p, m, list, keep)))
		goto out;
	rc = -ENOMEM;
	b.members = malloc((keep + 1) * sizeof(*b.members));
	b.known = calloc(KNOWN_WORDS, sizeof(*b.known));
	if (!b.members || !b.known || (rc = gather(&b, list, keep)))
		goto out;
	qsort(b.members, b.member_count, sizeof(*b.members), by_place);
	for (size_t i = 0, j; i < b.member_count; i = j) {
		for (j = i; j < b.member_count && b.members[j].place == b.members[i].place; j++)
			;
		rc = make_steps(&b, &b.p->list[b.members[i].place], &b.members[i], j - i);
		if (rc)
			goto out;
		history_sizes(&b.p->list[b.members[i].place], &b.members[i], j - i, m->padding);
	}
	history_read(b.p, &m->timeline);
	if ((rc = tables_read(&m->feed, b.p, b.members, b.member_count)))
		goto out;
	*out = b.p;
	b.p = NULL;
	rc = 0;
out:
	places_free(b.p);
	free(list);
	free(b.table);
	free(b.known);
	free(b.steps);
	free(b.members);
	return rc ? err_set(err, rc, "no memory for the places") : 0;
}

int places_new(const struct model *m, enum moment moment, struct places **out, struct err *err)
{
	bool refused = moment == AT_FAILURE && m->failure_count;

	return build(m, moment, refused ? &m->failures[m->failure_count - 1] : NULL, out, err);
}

int places_refused(
    const struct model *m, const struct failure *refused, struct places **out, struct err *err)
{
	return build(m, AT_END, refused, out, err);
}

uint64_t place_unused(const struct place *place)
{
	return (uint64_t)((double)place->map_bytes * place->unused);
}

bool place_is_uniform(const struct place *p)
{
	/* The copy that a block is filled from may have a header more. */
	return p->live_count && p->largest <= p->alike_size + p->alike_size / 32 &&
	       (p->alike_bytes >= p->live_bytes - p->live_bytes / 32 ||
		   p->largest * p->live_count <= p->live_bytes + p->live_bytes / 32);
}

uint64_t place_largest_live(const struct place *p)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < p->step_count; i++) {
		const struct step *s = &p->steps[i];

		if (s->max > largest && s->bytes - s->freed_bytes >= s->max)
			largest = s->max;
	}
	return largest;
}

bool place_is_import(const struct place *p)
{
	return p->imported_bytes > p->live_bytes / 2;
}

/* So many have to have come and gone before it is a habit. */
#define WORKING_SET_MIN 8u

bool place_is_working_set(const struct place *p, uint64_t moment_ns)
{
	uint64_t old = 0, survivors = 0;

	if (p->freed_count < WORKING_SET_MIN)
		return false;
	for (uint32_t i = 0; i < p->step_count; i++) {
		const struct step *s = &p->steps[i];

		if (moment_ns - s->last_ns <= p->longest_life_ns)
			continue;
		old += s->bytes;
		survivors += s->bytes - s->freed_bytes;
	}
	return old && survivors <= old / 16;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (int k = 0; k < SITE_KINDS; k++)
		free(p->of[k]);
	arena_free(&p->steps);
	blame_memory_fini(&p->memory);
	free(p->list);
	free(p);
}

/* lanes.c - who worked when: the threads, stages and requests that the page lists, what each held
 * in each space, and where in the tree and among the call sites. */
#include "report/html/page_parts.h"

#include <stdlib.h>
#include <string.h>

#include "report/html/html.h"
#include "util/num.h"
#include "util/text/fmt.h"

#define THREADS_LISTED 64u
#define REQUESTS_LISTED 500u
#define REQUESTS_LAST 60u /* of these, the last ones, however small */
#define TABLE_ROWS 8u
/* Of a group: what has less than this share of all measures belongs to the node's caller, and to
 * the rest of the call sites; more where there are too many. */
#define SHARE_MIN 0.0005

enum lane_flag { LANE_REFUSED = 1, LANE_UNFINISHED = 2 };

typedef uint64_t sums_t[MEASURES];

static const struct work_group *group_at(
    const struct page_space *sp, enum group_kind kind, uint32_t number)
{
	const struct work_group *g =
	    number < sp->groups.list[kind].count ? &sp->groups.list[kind].items[number] : NULL;

	return g && g->count ? g : NULL;
}

/* The largest share of a space that it held, and left behind. */
static double weight_of(const struct page *page, enum group_kind kind, uint32_t number)
{
	double most = 0;

	for (uint32_t i = 0; i < page->count; i++) {
		const struct work_group *g = group_at(&page->spaces[i], kind, number);

		double size = g ? (double)g->peak + (double)g->moment : 0;

		if (size > most * (double)page->spaces[i].peak)
			most = size / (double)num_most(page->spaces[i].peak, 1);
	}
	return most;
}

struct candidate_group {
	uint32_t number;
	double weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct candidate_group *x = a, *y = b;

	if (x->weight < y->weight || x->weight > y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_group_number(const void *a, const void *b)
{
	const struct candidate_group *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static uint32_t count_of(const struct page *page, enum group_kind kind)
{
	size_t count = kind == GROUP_REQUEST ? page->work.list.count : 0;

	for (uint32_t i = 0; i < page->count && kind != GROUP_REQUEST; i++)
		count = num_most(count, page->spaces[i].groups.list[kind].count);
	return (uint32_t)count;
}

/* Above 2: it is listed in any case. */
static double request_weight(const struct page *page, uint32_t number, uint32_t count)
{
	const struct work_request *q = &page->work.list.items[number];

	if (!q->known)
		return -1;
	return weight_of(page, GROUP_REQUEST, number) + (q->refused ? 8 : 0) +
	       (number + REQUESTS_LAST >= count ? 4 : 0);
}

static int choose(struct page *page, enum group_kind kind, uint32_t most)
{
	uint32_t count = count_of(page, kind), n = 0;
	struct candidate_group *list = malloc((count + 1u) * sizeof(*list));
	int rc = list ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < count && list; i++) {
		double weight = kind == GROUP_REQUEST ? request_weight(page, i, count)
						      : weight_of(page, kind, i);

		if (kind == GROUP_REQUEST ? weight >= 0 : weight > 0)
			list[n++] = (struct candidate_group){i, weight};
	}
	if (n)
		qsort(list, n, sizeof(*list), by_weight);
	if (n > most && kind == GROUP_REQUEST)
		page->shown.requests = n - most;
	n = num_least(n, most);
	if (n)
		qsort(list, n, sizeof(*list), by_group_number);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = vec_push(&page->shown.list, (struct shown_group){kind, list[i].number});
	free(list);
	return rc;
}

int lanes_choose(struct page *page)
{
	int rc = page->grouped ? choose(page, GROUP_THREAD, THREADS_LISTED) : 0;

	if (!rc && page->grouped)
		rc = choose(page, GROUP_STAGE, ROLE_COUNT);
	return rc || !page->grouped ? rc : choose(page, GROUP_REQUEST, REQUESTS_LISTED);
}

static const struct trace_thread *thread_of(const struct page *page, uint32_t serial)
{
	const struct trace_thread *list = NULL;
	size_t count = page->r->trace ? trace_threads(page->r->trace, &list) : 0;

	for (size_t i = 0; i < count; i++)
		if (list[i].serial == serial)
			return &list[i];
	return NULL;
}

/* A thread or a stage works from its first acquisition to its last one, in any space. */
static void stretch_of(
    const struct page *page, const struct shown_group *s, uint64_t *begin_ns, uint64_t *end_ns)
{
	*begin_ns = UINT64_MAX;
	*end_ns = 0;
	for (uint32_t i = 0; i < page->count; i++) {
		const struct work_group *g = group_at(&page->spaces[i], s->kind, s->number);

		if (!g)
			continue;
		*begin_ns = num_least(*begin_ns, g->first_ns);
		*end_ns = num_most(*end_ns, g->last_ns);
	}
}

static void write_thread(struct page *page, uint32_t serial, struct str *to)
{
	const struct trace_thread *t = thread_of(page, serial);

	block_text(&page->texts, to, t ? t->name : NULL);
	block_number(to, t ? t->tid : serial);
}

static void write_lane(struct page *page, const struct shown_group *s, struct str *to)
{
	const struct work_request *q =
	    s->kind == GROUP_REQUEST ? &page->work.list.items[s->number] : NULL;
	uint64_t begin_ns = q ? q->begin_ns : 0, end_ns = q ? q->end_ns : 0;

	if (!q)
		stretch_of(page, s, &begin_ns, &end_ns);
	block_number(to, s->kind);
	block_number(to, begin_ns);
	block_number(to, num_less(q && !end_ns ? page->end_ns : end_ns, begin_ns));
	if (s->kind == GROUP_STAGE) {
		block_text(&page->texts, to, role_name((enum role)s->number));
	} else if (!q) {
		write_thread(page, s->number, to);
	} else {
		block_text(&page->texts, to, q->name);
		block_number(to, s->number + 1u);
		block_number(
		    to, (q->refused ? LANE_REFUSED : 0) | (q->end_ns ? 0 : LANE_UNFINISHED));
		write_thread(page, q->thread, to);
	}
}

void lanes_write(struct page *page, struct str *to)
{
	const struct requests *r = page->work.requests;

	block_number(to, r ? r->begun : 0);
	block_number(to, r ? r->most_at_once : 0);
	block_number(to, r && r->begun > page->work.list.count
			     ? page->shown.requests + r->begun - page->work.list.count
			     : page->shown.requests);
	block_number(to, page->shown.list.count);
	for (size_t i = 0; i < page->shown.list.count; i++)
		write_lane(page, &page->shown.list.items[i], to);
}

/* What a group has at each node of the tree, or at each call site; rooms for all of them. */
struct spread {
	const struct page_space *sp;
	const struct flame_nodes *nodes;
	sums_t *at_node, *at_place; /* the last place is the rest */
	uint32_t places; /* without the rest */
	double share;
};

static bool is_nothing(const uint64_t *sums)
{
	for (unsigned k = 0; k < MEASURES; k++)
		if (sums[k])
			return false;
	return true;
}

static bool is_small(const uint64_t *sums, const uint64_t *whole, double share)
{
	for (unsigned k = 0; k < MEASURES; k++)
		if (sums[k] && (double)sums[k] >= share * (double)whole[k])
			return false;
	return true;
}

static void move(uint64_t *from, uint64_t *to)
{
	for (unsigned k = 0; k < MEASURES; k++) {
		to[k] += from[k];
		from[k] = 0;
	}
}

static void spread_cells(struct spread *s, const struct work_group *g, uint64_t *whole)
{
	const struct page_space *sp = s->sp;

	memset(s->at_node, 0, s->nodes->count * sizeof(sums_t));
	memset(s->at_place, 0, (s->places + 1u) * sizeof(sums_t));
	for (uint32_t at = g->cells; at; at = sp->groups.cells.items[at - 1].next) {
		const struct group_cell *c = &sp->groups.cells.items[at - 1];
		const struct page_stack *stack = page_stack_find(sp, c->stack);
		uint32_t node = stack ? s->nodes->of_stack[stack - sp->stacks.items] : 0;
		uint32_t place = stack ? num_least(stack->place, s->places) : s->places;

		for (unsigned k = 0; k < MEASURES; k++) {
			s->at_node[node][k] += c->measures[k];
			s->at_place[place][k] += c->measures[k];
			whole[k] += c->measures[k];
		}
	}
}

/* Returns how many nodes and places have something. */
static uint32_t spread(struct spread *s, const struct work_group *g)
{
	sums_t whole = {0};
	uint32_t count = 0;

	spread_cells(s, g, whole);
	for (uint32_t i = s->nodes->count; i-- > 0;) {
		if (is_nothing(s->at_node[i]))
			continue;
		if (i && is_small(s->at_node[i], whole, s->share))
			move(s->at_node[i], s->at_node[s->nodes->parents[i]]);
		else
			count++;
	}
	for (uint32_t i = 0; i <= s->places; i++) {
		if (is_nothing(s->at_place[i]))
			continue;
		if (i < s->places && is_small(s->at_place[i], whole, s->share))
			move(s->at_place[i], s->at_place[s->places]);
		else
			count++;
	}
	return count;
}

/* How many have something; which, as differences; their measures. */
static void write_sums(sums_t *sums, uint32_t count, struct str *to)
{
	struct str columns[MEASURES + 1] = {{0}};
	uint32_t n = 0, before = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (is_nothing(sums[i]))
			continue;
		block_number(&columns[MEASURES], i - before);
		before = i;
		n++;
		for (unsigned k = 0; k < MEASURES; k++)
			block_number(&columns[k], sums[i][k]);
	}
	block_number(to, n);
	for (unsigned k = 0; k <= MEASURES; k++) {
		struct str *column = &columns[(k + MEASURES) % (MEASURES + 1)];

		str_add(to, str_text(column), column->length);
		to->failed |= column->failed;
		str_free(column);
	}
}

/* Cuts more off, until the nodes and places of all groups are few enough. */
static void find_share(const struct page *page, struct spread *s, uint32_t most)
{
	uint64_t count;

	s->share = SHARE_MIN / 2;
	do {
		s->share *= 2;
		count = 0;
		for (size_t i = 0; i < page->shown.list.count; i++) {
			const struct shown_group *x = &page->shown.list.items[i];
			const struct work_group *g = group_at(s->sp, x->kind, x->number);

			if (g && g->cells)
				count += spread(s, g);
		}
	} while (count > most && s->share < 1);
}

/* The requests that are not listed, together. */
static void write_others(const struct page *page, const struct page_space *sp, struct str *to)
{
	uint64_t moment = 0, total = 0;
	size_t next = 0;

	while (next < page->shown.list.count && page->shown.list.items[next].kind != GROUP_REQUEST)
		next++;
	for (uint32_t i = 0; i < sp->groups.list[GROUP_REQUEST].count; i++) {
		const struct work_group *g = &sp->groups.list[GROUP_REQUEST].items[i];

		if (next < page->shown.list.count && page->shown.list.items[next].number == i) {
			next++;
			continue;
		}
		moment += g->moment;
		total += g->total;
	}
	block_number(to, moment);
	block_number(to, total);
}

static void write_group(struct spread *s, const struct work_group *g, size_t index, struct str *to)
{
	block_number(to, index);
	block_number(to, g->peak);
	block_number(to, g->peak_ns);
	block_number(to, g->moment);
	block_number(to, g->total);
	block_number(to, g->count);
	block_number(to, g->cells > 0);
	if (!g->cells)
		return;
	spread(s, g);
	write_sums(s->at_node, s->nodes->count, to);
	write_sums(s->at_place, s->places + 1, to);
}

int lanes_space_write(struct page *page, const struct page_space *sp,
    const struct flame_nodes *nodes, uint32_t most, struct str *to)
{
	struct spread s = {
	    .sp = sp, .nodes = nodes, .places = num_least(sp->callsites->count, PAGE_PLACES)};
	struct str body = {0};
	uint32_t count = 0;

	s.at_node = malloc((nodes->count + 1u) * sizeof(*s.at_node));
	s.at_place = malloc((s.places + 1u) * sizeof(*s.at_place));
	if (s.at_node && s.at_place) {
		find_share(page, &s, most);
		for (size_t i = 0; i < page->shown.list.count; i++) {
			const struct shown_group *x = &page->shown.list.items[i];
			const struct work_group *g = group_at(sp, x->kind, x->number);

			if (!g)
				continue;
			write_group(&s, g, i, &body);
			count++;
		}
		write_others(page, sp, to);
		block_number(to, count);
		str_add(to, str_text(&body), body.length);
		to->failed |= body.failed;
	}
	str_free(&body);
	free(s.at_node);
	free(s.at_place);
	return s.at_node && s.at_place ? 0 : -ENOMEM;
}

static void table_row(const struct page *page, const struct shown_group *s, struct str *to)
{
	const struct work_group *g = group_at(&page->spaces[page->primary], s->kind, s->number);
	const struct work_request *q = &page->work.list.items[s->number];
	struct fmt a, b, c, d;

	str_puts(to, "<tr><th scope=\"row\">");
	html_text(to, q->name ? q->name : "request");
	str_printf(to, " %u%s</th><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
	    s->number + 1u, q->refused ? " <em>✕ refused</em>" : "", fmt_duration(&a, q->begin_ns),
	    q->end_ns ? fmt_duration(&b, num_less(q->end_ns, q->begin_ns)) : "unfinished",
	    fmt_size(&c, g ? g->peak : 0), fmt_size(&d, g ? g->moment : 0));
}

/* 0: it is none for the table. */
static double table_weight(const struct page *page, const struct shown_group *s)
{
	const struct page_space *sp = &page->spaces[page->primary];
	const struct work_group *g = group_at(sp, s->kind, s->number);

	if (s->kind != GROUP_REQUEST)
		return 0;
	return (g ? (double)g->peak : 0) +
	       (page->work.list.items[s->number].refused ? (double)sp->peak + 1 : 0);
}

/* Those that were refused, and the largest ones by peak in the space that the verdict is about. */
void lanes_table(const struct page *page, struct str *to)
{
	const struct requests *r = page->work.requests;
	struct candidate_group top[TABLE_ROWS];
	uint32_t n = 0;
	struct fmt a;

	for (uint32_t i = 0; i < page->shown.list.count; i++) {
		struct candidate_group new = {i, table_weight(page, &page->shown.list.items[i])};
		uint32_t at = n;

		if (new.weight <= 0 || (n == TABLE_ROWS && top[n - 1].weight >= new.weight))
			continue;
		n = num_least(n + 1, TABLE_ROWS);
		for (at = num_least(at, n - 1); at && top[at - 1].weight < new.weight; at--)
			top[at] = top[at - 1];
		top[at] = new;
	}
	if (!n)
		return;
	str_printf(to,
	    "<p>%s request%s, at most %llu at once. Those that were refused or held "
	    "most of ",
	    fmt_count(&a, r->begun), r->begun == 1 ? "" : "s", (unsigned long long)r->most_at_once);
	html_text(to, page->spaces[page->primary].name);
	str_printf(to,
	    ":</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Requests\">"
	    "<table class=\"requests\"><thead><tr><th scope=\"col\">Request</th><th "
	    "scope=\"col\">Began after</th><th scope=\"col\">Took</th><th scope=\"col\">Held at "
	    "most</th><th scope=\"col\">Live at the %s</th></tr></thead><tbody>\n",
	    page->r->failure.kind != FAILURE_NONE ? "failure" : "peak");
	for (uint32_t i = 0; i < n; i++)
		table_row(page, &page->shown.list.items[top[i].number], to);
	str_puts(to, "</tbody></table></div>\n");
}

/* page.c - see page.h. */
#include "report/html/page_parts.h"

#include <stdlib.h>
#include <string.h>

#include "model/space/space.h"
#include "util/num.h"
#include "verdict/device/device.h"
#include "verdict/ledger/classes.h"

#define PAGE_NODES 20000u /* of all trees together */
#define PAGE_CELLS 16000u /* of all groups together: of their nodes, and again of their places */
#define PLACE_FRAMES 60u /* the innermost frames of a place's stack */
/* The stretch that leads to the failure, or to the end, is drawn once more: the last fiftieth of
 * the run, but no less than two seconds; of a short run the last fifth. */
#define LATE_PART 50u
#define LATE_NS 2000000000u
#define LATE_SHORT_PART 5u
#define LATE_AFTER_PART 8u /* the part of it that is shown after the failure */

static int by_peak(const void *a, const void *b)
{
	const struct space *const *x = a, *const *y = b;
	uint64_t left = (*x)->model->peak.bytes, right = (*y)->model->peak.bytes;

	if (left != right)
		return left < right ? 1 : -1;
	return (*x)->index < (*y)->index ? -1 : 1;
}

/* By what it holds at its moment, then by what it held at the peak, then by number. */
static bool is_larger(const struct callsite *a, const struct callsite *b)
{
	if (a->facts.live_bytes != b->facts.live_bytes)
		return a->facts.live_bytes > b->facts.live_bytes;
	if (a->facts.peak_bytes != b->facts.peak_bytes)
		return a->facts.peak_bytes > b->facts.peak_bytes;
	if (a->facts.total_bytes != b->facts.total_bytes)
		return a->facts.total_bytes > b->facts.total_bytes;
	return a < b;
}

static int by_size(const void *a, const void *b, void *callsites)
{
	const struct callsites *c = callsites;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x == y ? 0 : is_larger(&c->list[x], &c->list[y]) ? -1 : 1;
}

static int number_places(struct page_space *sp)
{
	uint32_t count = sp->callsites->count;

	sp->places = calloc(count + 1u, sizeof(*sp->places));
	sp->of_place = calloc(count + 1u, sizeof(*sp->of_place));
	if (!sp->places || !sp->of_place)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sp->of_place[i] = i;
	qsort_r(sp->of_place, count, sizeof(*sp->of_place), by_size, (void *)sp->callsites);
	for (uint32_t i = 0; i < count; i++)
		sp->places[sp->of_place[i]] = i;
	return 0;
}

/* Where the space held nothing before, it begins with its first event. 0 or -ENOMEM. */
static int open_late(const struct page *page, const struct model *m, struct curve *late)
{
	bool failed = page->r->failure.kind != FAILURE_NONE;
	uint64_t end = page->end_ns + 1, until = end;
	uint64_t length = num_most(end / LATE_PART, num_least(LATE_NS, end / LATE_SHORT_PART));
	uint64_t first = m->run.events ? m->run.first_ns : 0;

	if (failed)
		until = num_least(end, page->moment_ns + length / LATE_AFTER_PART + 1);
	return curve_init(late, num_most(num_less(until, length), num_least(first, until - 1)),
	    until, CURVE_LATE_BUCKETS);
}

static int open_space(struct page *page, struct page_space *sp, struct err *err)
{
	const struct verdict_result *r = page->r;
	const struct model *m = sp->space ? sp->space->model : r->model;
	uint64_t end = page->end_ns + 1;
	int rc = 0;

	sp->page = page;
	sp->name = sp->space ? sp->space->name : "host";
	if (sp == &page->spaces[page->primary]) {
		sp->callsites = r->callsites;
		sp->request = r->failure.requested_bytes;
	} else {
		rc = callsites_new(m, AT_PEAK, &sp->own, err);
		sp->callsites = sp->own;
	}
	if (rc)
		return rc;
	sp->slices.end_ns = end;
	if (number_places(sp) || curve_init(&sp->whole, 0, end, CURVE_BUCKETS) ||
	    open_late(page, m, &sp->late))
		return err_set(err, -ENOMEM, "no memory for the page");
	moments_choose(page, sp);
	return 0;
}

/* The host first, then the spaces that held most; the one that refused and the one that is asked
 * for are among them. */
static int open_spaces(struct page *page, struct err *err)
{
	const struct spaces *s = page->r->model->spaces;
	const char *failed = page->r->failure.kind == FAILURE_CUDA_OOM && page->r->devices.first
				 ? page->r->devices.first->space
				 : NULL;
	const char *asked = page->asked ? page->asked->space : NULL;
	const struct space *list[SPACES_MAX];
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; s && i < s->count; i++)
		if (s->list[i]->model->peak.bytes || str_same(s->list[i]->name, failed) ||
		    str_same(s->list[i]->name, asked))
			list[count++] = s->list[i];
	if (count)
		qsort(list, count, sizeof(*list), by_peak);
	for (uint32_t i = PAGE_SPACES - 1; i < count; i++)
		if (str_same(list[i]->name, asked))
			list[PAGE_SPACES - 3] = list[i];
		else if (str_same(list[i]->name, failed))
			list[PAGE_SPACES - 2] = list[i];
	page->count = num_least(count + 1u, PAGE_SPACES);
	page->spaces = calloc(page->count, sizeof(*page->spaces));
	if (!page->spaces)
		return err_set(err, -ENOMEM, "no memory for the page");
	for (uint32_t i = 1; i < page->count; i++) {
		page->spaces[i].space = list[i - 1];
		if (str_same(list[i - 1]->name, failed))
			page->primary = i;
	}
	page->first = page->primary;
	for (uint32_t i = 0; i < page->count && !rc; i++)
		rc = open_space(page, &page->spaces[i], err);
	for (uint32_t i = 0; i < page->count && !rc && page->asked; i++)
		if (!strcmp(page->spaces[i].name, page->asked->space))
			page->first = i;
	return rc;
}

static int write_stack(struct page *page, uint32_t stack, struct str *to)
{
	struct stack_path path = {0};
	size_t shown;
	int rc = stack ? feed_path(&page->feed, stack, &path) : 0;

	shown = num_least(path.count, PLACE_FRAMES);
	block_number(to, shown);
	block_number(to, path.count - shown);
	for (size_t i = 0; i < shown && !rc; i++) {
		uint32_t frame = page_frame(page, &path.symbols[path.count - 1 - i]);

		if (frame == FRAME_NONE)
			rc = -ENOMEM;
		block_number(to, frame);
	}
	trace_path_fini(&path);
	return rc;
}

static int write_place(struct page *page, const struct page_space *sp, uint32_t place,
    const uint64_t *sums, struct str *to)
{
	uint32_t at = sp->of_place[place];
	const struct callsite *c = &sp->callsites->list[at];

	block_text(&page->texts, to, c->function);
	block_text(&page->texts, to, c->file);
	block_number(to, c->line);
	block_text(&page->texts, to, c->part);
	block_number(to, (unsigned)c->owner << 1 | (unsigned)c->python);
	block_number(to, sp->callsites->classes[at]);
	block_number(to, c->facts.largest);
	for (unsigned i = 0; i < MEASURES; i++)
		block_number(to, sums[i]);
	return write_stack(page, c->stack, to);
}

static int write_places(struct page *page, const struct page_space *sp, struct str *to)
{
	uint32_t count = num_least(sp->callsites->count, PAGE_PLACES);
	uint64_t(*sums)[MEASURES] = calloc(count + 1u, sizeof(*sums)); /* the rest's at last */
	int rc = sums ? 0 : -ENOMEM;

	for (size_t i = 0; i < sp->stacks.count && !rc; i++) {
		const struct page_stack *s = &sp->stacks.items[i];
		uint32_t place = num_least(s->place, count);

		for (unsigned k = 0; k < MEASURES; k++)
			sums[place][k] += s->measures[k];
	}
	block_number(to, count);
	block_number(to, sp->callsites->count - count);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = write_place(page, sp, i, sums[i], to);
	for (unsigned k = 0; k < MEASURES && !rc; k++)
		block_number(to, sums[count][k]);
	free(sums);
	return rc;
}

static void write_level(struct page *page, const struct page_level *l, struct str *to)
{
	struct block_column column = {to, 0};

	block_text(&page->texts, to, l->name);
	block_number(to, CURVE_BUCKETS);
	for (uint32_t i = 0; i < CURVE_BUCKETS; i++)
		block_next(&column, l->at[i]);
}

static const struct ledger *ledger_of(const struct page *page, const struct page_space *sp)
{
	const struct verdict_result *r = page->r;

	if (!sp->space)
		return r->ledger.space ? NULL : &r->ledger;
	for (size_t i = 0; i < r->devices.count; i++) {
		const struct device_report *d = &r->devices.list[i];

		if (d->number != sp->space->device ||
		    (sp->space->kind != SPACE_TORCH && sp->space->kind != SPACE_CUDA))
			continue;
		return r->ledger.space && d == r->devices.first ? &r->ledger : &d->ledger;
	}
	return NULL;
}

static void write_space(struct page *page, const struct page_space *sp, struct str *to)
{
	const struct ledger *l = ledger_of(page, sp);
	bool limited = l && l->limit != LIMIT_NONE && l->limit_bytes;

	block_text(&page->texts, to, sp->name);
	block_number(to, sp->space ? sp->space->kind : 0);
	block_number(to, limited ? l->limit_bytes : 0);
	block_text(&page->texts, to, limited ? limit_kind_name(l->limit) : NULL);
	block_number(to, sp->peak);
	block_number(to, sp->peak_ns);
	block_number(to, sp->at_moment);
	block_number(to, sp->request);
}

static void add(struct page *page, enum block_section section, struct str *body)
{
	block_section(&page->block, section, body);
	str_free(body);
	*body = (struct str){0};
}

static int add_space(struct page *page, const struct page_space *sp)
{
	struct flame_nodes nodes = {0};
	struct str body = {0};
	int rc;

	write_space(page, sp, &body);
	add(page, SECTION_SPACE, &body);
	curve_write(&sp->whole, &body);
	add(page, SECTION_CURVE, &body);
	curve_write(&sp->late, &body);
	add(page, SECTION_LATE, &body);
	if (sp->level.name) {
		write_level(page, &sp->level, &body);
		add(page, SECTION_LEVELS, &body);
	}
	rc = write_places(page, sp, &body);
	add(page, SECTION_PLACES, &body);
	slices_write(&sp->slices, &body);
	add(page, SECTION_SLICES, &body);
	if (!rc)
		rc = flame_write(page, sp, PAGE_NODES / page->count, &nodes, &body);
	add(page, SECTION_TREE, &body);
	if (!rc && page->shown.list.count) {
		rc = lanes_space_write(page, sp, &nodes, PAGE_CELLS / page->count, &body);
		add(page, SECTION_GROUPS, &body);
	}
	free(nodes.parents);
	free(nodes.of_stack);
	if (sp->mapped) {
		layout_write(page, &sp->map, PAGE_MAP_SEGMENTS, PAGE_MAP_PIECES, &body);
		add(page, SECTION_MAP, &body);
	}
	moments_write(page, sp);
	return rc;
}

static void write_run(struct page *page, struct str *to)
{
	const struct verdict_result *r = page->r;

	block_number(to, page->end_ns);
	block_number(to, page->moment_ns);
	block_text(&page->texts, to, r->failure.kind != FAILURE_NONE ? "failure" : "peak");
	block_number(to, page->primary);
	block_number(to, page->count);
	block_number(to, (uint64_t)r->coverage.error);
	block_number(to, CLASS_COUNT);
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		block_text(&page->texts, to, class_name((enum live_class)i));
}

static int make_block(struct page *page)
{
	struct str body = {0}, texts = {0};
	int rc = 0;

	write_run(page, &body);
	add(page, SECTION_RUN, &body);
	marks_write(page, &body);
	add(page, SECTION_MARKS, &body);
	rc = lanes_choose(page);
	lanes_write(page, &body);
	add(page, SECTION_LANES, &body);
	lanes_table(page, &page->requests);
	for (uint32_t i = 0; i < page->count && !rc; i++)
		rc = add_space(page, &page->spaces[i]);
	frame_list_write(&page->frames.list, &body);
	add(page, SECTION_FRAMES, &body);
	block_texts_write(&page->texts, &texts);
	add(page, SECTION_TEXTS, &texts);
	if (!rc)
		block_pack(&page->block, &page->packed);
	return rc || page->packed.failed ? -ENOMEM : 0;
}

static void close_spaces(struct page *page)
{
	for (uint32_t i = 0; page->spaces && i < page->count; i++) {
		struct page_space *sp = &page->spaces[i];

		callsites_free(sp->own);
		free(sp->places);
		free(sp->of_place);
		vec_free(&sp->stacks);
		vec_free(&sp->dense);
		map_free(&sp->sparse);
		curve_fini(&sp->whole);
		curve_fini(&sp->late);
		slices_fini(&sp->slices);
		groups_fini(&sp->groups);
		map_free(&sp->mappings);
		space_map_fini(&sp->map);
		moments_fini(sp);
	}
	free(page->spaces);
	page->spaces = NULL;
}

static uint64_t moment_of(const struct verdict_result *r)
{
	return r->failure.kind != FAILURE_NONE ? r->failure.time_ns : r->callsites->moment_ns;
}

/* One thread alone needs no filter. */
static int open_work(struct page *page)
{
	const struct trace_thread *threads;
	struct work *w = &page->work;

	page->threads = !page->r->trace || trace_threads(page->r->trace, &threads) > 1;
	if (work_init(w, page->r, &page->feed))
		return -ENOMEM;
	page->grouped = page->threads || w->requests || w->frames;
	return 0;
}

int page_gather_one(const struct verdict_result *r, const struct page_map *asked, struct page **out,
    struct err *err)
{
	struct page *page = calloc(1, sizeof(*page));
	int rc;

	if (!page)
		return err_set(err, -ENOMEM, "no memory for the page");
	page->r = r;
	page->asked = asked;
	page->feed = r->trace ? feed_of_trace(r->trace) : r->model->feed;
	page->end_ns = num_most(r->model->run.last_ns, page->feed.facts(page->feed.self)->last_ns);
	page->moment_ns = moment_of(r);
	page->frames.context =
	    (struct blame_context){.malloc_owner = page->feed.info(page->feed.self, "malloc.owner"),
		.interpreter = feed_interpreter(&page->feed),
		.memory = &page->frames.memory};
	rc = open_spaces(page, err);
	if (!rc && open_work(page))
		rc = err_set(err, -ENOMEM, "no memory for the page");
	if (!rc)
		rc = page_read_events(page, err);
	if (!rc && make_block(page))
		rc = err_set(err, -ENOMEM, "no memory for the page");
	str_free(&page->block);
	close_spaces(page);
	work_fini(&page->work);
	if (rc)
		page_free(page);
	else
		*out = page;
	return rc;
}

int page_gather(const struct verdict_result *r, const struct trace_set *set,
    const struct page_map *asked, struct page **out, struct err *err)
{
	struct page *page;
	int rc = page_gather_one(r, asked, &page, err);

	if (rc)
		return rc;
	if (set)
		rc = processes_gather(page, set, err);
	if (rc)
		page_free(page);
	else
		*out = page;
	return rc;
}

void page_free(struct page *page)
{
	if (!page)
		return;
	close_spaces(page);
	work_fini(&page->work);
	vec_free(&page->shown.list);
	str_free(&page->requests);
	processes_fini(page);
	str_free(&page->packed);
	block_texts_fini(&page->texts);
	map_free(&page->frames.by_id);
	frame_list_fini(&page->frames.list);
	vec_free(&page->frames.memory.traits);
	str_free(&page->block);
	str_free(&page->map_table);
	free(page);
}

void page_requests(const struct page *page, struct str *out)
{
	str_add(out, str_text(&page->requests), page->requests.length);
	out->failed |= page->requests.failed;
}

void page_map_table(const struct page *page, struct str *out)
{
	str_add(out, str_text(&page->map_table), page->map_table.length);
	out->failed |= page->map_table.failed;
}

const struct page_map *page_asked(const struct page *page)
{
	return page->asked;
}

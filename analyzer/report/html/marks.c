/* marks.c - what happened when: refusals, phases, checkpoints. */
#include "report/html/page_parts.h"
#include "util/num.h"

#define RECOVERED_MAX 200u

enum mark_kind { MARK_FAILURE, MARK_RECOVERED, MARK_PHASE, MARK_REQUEST, MARK_CHECKPOINT };

struct mark {
	enum mark_kind kind;
	uint64_t from_ns, until_ns, bytes;
	const char *name, *space; /* NULL: none; the host's */
};

static void write(struct page *page, const struct mark *m, struct str *to, uint64_t *count)
{
	block_number(to, m->kind);
	block_number(to, m->from_ns);
	block_number(to, num_less(m->until_ns, m->from_ns));
	block_number(to, m->bytes);
	block_text(&page->texts, to, m->name);
	block_text(&page->texts, to, m->space);
	++*count;
}

static void write_flow(struct page *page, struct str *to, uint64_t *count)
{
	const struct flow *f = &page->r->flow;

	for (uint32_t i = 0; i < f->phases.count; i++) {
		const struct phase *p = &f->phases.list[i];

		write(page,
		    &(struct mark){
			MARK_PHASE, p->start_ns, p->end_ns, p->live_bytes, p->name, NULL},
		    to, count);
	}
}

void marks_write(struct page *page, struct str *to)
{
	const struct verdict_result *r = page->r;
	const struct failure_view *f = &r->failure;
	struct str body = {0};
	uint64_t count = 0;

	if (f->kind != FAILURE_NONE)
		write(page,
		    &(struct mark){MARK_FAILURE, f->time_ns, f->time_ns, f->requested_bytes,
			failure_kind_name(f->kind), page->spaces[page->primary].name},
		    &body, &count);
	for (size_t i = 0; i < r->recoveries.count && i < RECOVERED_MAX; i++) {
		const struct recovered *x = &r->recoveries.list[i];

		write(page,
		    &(struct mark){MARK_RECOVERED, x->time_ns, x->time_ns, x->size,
			x->retried ? "retried" : "survived", x->space ? x->space : "host"},
		    &body, &count);
	}
	write_flow(page, &body, &count);
	if (r->coverage.checkpoint.until_ns)
		write(page,
		    &(struct mark){
			MARK_CHECKPOINT, 0, r->coverage.checkpoint.until_ns, 0, NULL, NULL},
		    &body, &count);
	block_number(to, count);
	str_add(to, str_text(&body), body.length);
	to->failed |= body.failed;
	str_free(&body);
}

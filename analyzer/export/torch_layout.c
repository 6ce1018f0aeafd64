/*
 * torch_layout.c - see torch_layout.h. A range's `kind` is what it is, `flags` whether a block has
 * been in it, `volume` its device, and `serial` its stream.
 */
#include "export/torch_layout.h"

#include <errno.h>
#include <string.h>

#include "util/vec.h"

enum kind { FIXED, GROWS, MADE }; /* MADE: nobody recorded it; it goes with its block */
#define ADDRESSES (1ull << 53) /* JavaScript's numbers are exact below */

void torch_layout_init(struct torch_layout *l)
{
	memset(l, 0, sizeof(*l));
	ranges_init(&l->driver);
	ranges_init(&l->blocks);
}

void torch_layout_fini(struct torch_layout *l)
{
	ranges_fini(&l->driver);
	ranges_fini(&l->blocks);
}

static struct torch_piece piece_of(const struct range *r)
{
	return (struct torch_piece){
	    r->start, r->end, r->serial, r->stack, r->volume, r->kind != FIXED};
}

static struct range range_of(const struct torch_piece *p, enum kind kind, bool used)
{
	return (struct range){.start = p->start,
	    .end = p->end,
	    .serial = p->stream,
	    .stack = p->stack,
	    .volume = p->device,
	    .kind = kind,
	    .flags = used};
}

static void tell(
    struct torch_layout *l, enum torch_layout_change change, const struct torch_piece *p)
{
	l->changed(l->arg, change, p);
}

static bool fits(uint64_t start, uint64_t end)
{
	return start < end && end <= ADDRESSES;
}

static void freed_block(void *arg, const struct range *r, int whole, int split)
{
	struct torch_piece p = piece_of(r);

	(void)whole, (void)split;
	tell(arg, TORCH_BLOCK_FREE, &p);
}

/* Blocks whose memory disappeared. */
struct lost {
	struct torch_layout *l;
	VEC(struct torch_piece) blocks;
	int error;
};

static void lost_block(void *arg, const struct range *r, int whole, int split)
{
	struct lost *lost = arg;
	struct torch_piece p = piece_of(r);

	(void)whole, (void)split;
	tell(lost->l, TORCH_BLOCK_FREE, &p);
	if (!lost->error)
		lost->error = vec_push(&lost->blocks, p);
}

static void lost_memory(void *arg, const struct range *r, int whole, int split)
{
	struct torch_piece p = piece_of(r);

	(void)whole, (void)split;
	if (r->flags)
		tell(arg, p.expandable ? TORCH_SEGMENT_UNMAP : TORCH_SEGMENT_FREE, &p);
}

struct span {
	uint64_t start, end;
};

static void widen(void *arg, const struct range *r)
{
	struct span *s = arg;

	s->start = r->start < s->start ? r->start : s->start;
	s->end = r->end > s->end ? r->end : s->end;
}

static void widen_fixed(void *arg, const struct range *r)
{
	if (r->kind == FIXED)
		widen(arg, r);
}

/* Blocks and fixed segments go as a whole. */
static int remove_memory(struct torch_layout *l, uint64_t start, uint64_t end, struct lost *lost)
{
	struct span s = {start, end};
	int rc;

	ranges_within(&l->driver, start, end, widen_fixed, &s);
	start = s.start;
	end = s.end;
	ranges_within(&l->blocks, start, end, widen, &s);
	rc = ranges_cut(&l->blocks, s.start, s.end, lost_block, lost);
	if (!rc)
		rc = lost->error;
	return rc ? rc : ranges_cut(&l->driver, start, end, lost_memory, l);
}

/* The blocks themselves are not released yet, as far as the trace says. */
static int restore(struct torch_layout *l, struct lost *lost, int rc)
{
	for (size_t i = 0; !rc && i < lost->blocks.count; i++)
		rc = torch_layout_block(l, &lost->blocks.items[i]);
	vec_free(&lost->blocks);
	return rc;
}

int torch_layout_no_memory(struct torch_layout *l, uint64_t start, uint64_t end)
{
	struct lost lost = {.l = l};

	if (!fits(start, end))
		return 0;
	return restore(l, &lost, remove_memory(l, start, end, &lost));
}

int torch_layout_memory(struct torch_layout *l, const struct torch_piece *piece)
{
	struct range r = range_of(piece, piece->expandable ? GROWS : FIXED, false);
	struct lost lost = {.l = l};
	int rc;

	if (!fits(piece->start, piece->end))
		return 0;
	rc = remove_memory(l, piece->start, piece->end, &lost);
	if (!rc)
		rc = ranges_add(&l->driver, &r);
	return restore(l, &lost, rc);
}

/* What lies below a new block. */
struct below {
	const struct torch_piece *block;
	struct range next; /* the first that is not used yet */
	uint64_t covered; /* up to here */
	uint64_t gap_start, gap_end; /* the first gap, if any */
	bool found, bad;
	unsigned count, fixed;
};

static void look_below(void *arg, const struct range *r)
{
	struct below *b = arg;

	b->count++;
	b->fixed += r->kind == FIXED;
	if (r->flags && (r->volume != b->block->device || r->serial != b->block->stream))
		b->bad |= r->kind != FIXED || r->volume != b->block->device;
	if (!r->flags && !b->found) {
		b->found = true;
		b->next = *r;
	}
	if (r->start > b->covered && b->gap_start == b->gap_end) {
		b->gap_start = b->covered;
		b->gap_end = r->start;
	}
	b->covered = r->end;
}

static struct below look(const struct torch_layout *l, const struct torch_piece *block)
{
	struct below b = {.block = block, .covered = block->start};

	ranges_within(&l->driver, block->start, block->end, look_below, &b);
	if (b.covered < block->end && b.gap_start == b.gap_end) {
		b.gap_start = b.covered;
		b.gap_end = block->end;
	}
	/* A block does not cross the end of a segment of a fixed size. */
	b.bad |= b.fixed && (b.count > 1 || b.gap_start != b.gap_end);
	return b;
}

/* The range becomes, or is part of, a segment of the block's stream. */
static int use(struct torch_layout *l, const struct range *r, const struct torch_piece *block)
{
	struct torch_piece p = piece_of(r);
	struct range used;
	int rc = ranges_cut(&l->driver, r->start, r->end, NULL, NULL);

	p.device = block->device;
	p.stream = block->stream;
	used = range_of(&p, r->kind, true);
	if (!rc)
		rc = ranges_add(&l->driver, &used);
	if (!rc)
		tell(l, p.expandable ? TORCH_SEGMENT_MAP : TORCH_SEGMENT_ALLOC, &p);
	return rc;
}

/* Make segments of all that lies below the block, and of what nobody recorded there. */
static int use_below(struct torch_layout *l, const struct torch_piece *block, struct below *b)
{
	int rc = 0;

	for (; !rc && (b->found || b->gap_start != b->gap_end); *b = look(l, block)) {
		struct torch_piece made = *block;
		struct range gap;

		if (b->found) {
			rc = use(l, &b->next, block);
			continue;
		}
		made.start = b->gap_start;
		made.end = b->gap_end;
		gap = range_of(&made, MADE, false);
		rc = use(l, &gap, block);
	}
	return rc;
}

static void note_any(void *arg, const struct range *r)
{
	(void)r;
	*(bool *)arg = true;
}

int torch_layout_block(struct torch_layout *l, const struct torch_piece *block)
{
	struct range r = range_of(block, FIXED, true);
	struct below b = {0};
	bool taken = false, fit = fits(block->start, block->end);
	int rc;

	if (block->start == block->end)
		return 0;
	if (fit) {
		ranges_within(&l->blocks, block->start, block->end, note_any, &taken);
		b = look(l, block);
	}
	if (!fit || taken || b.bad) {
		l->left_out++;
		l->left_out_bytes += block->end > block->start ? block->end - block->start : 0;
		return 0;
	}
	rc = use_below(l, block, &b);
	if (!rc)
		rc = ranges_add(&l->blocks, &r);
	if (!rc)
		tell(l, TORCH_BLOCK_ALLOC, block);
	return rc;
}

struct made {
	struct torch_layout *l;
	struct span span;
};

static void find_made(void *arg, const struct range *r)
{
	if (r->kind == MADE)
		widen(arg, r);
}

int torch_layout_no_block(struct torch_layout *l, uint64_t start)
{
	const struct range *r = ranges_find(&l->blocks, start);
	struct span block, made = {UINT64_MAX, 0};
	int rc;

	if (!r || r->start != start)
		return 0;
	block = (struct span){r->start, r->end};
	rc = ranges_cut(&l->blocks, block.start, block.end, freed_block, l);
	if (rc)
		return rc;
	ranges_within(&l->driver, block.start, block.end, find_made, &made);
	if (made.start >= made.end)
		return 0;
	/* Only what this block made: its neighbours' lies beside it. */
	made.start = made.start > block.start ? made.start : block.start;
	made.end = made.end < block.end ? made.end : block.end;
	return ranges_cut(&l->driver, made.start, made.end, lost_memory, l);
}

struct visiting {
	const struct torch_layout *l;
	const struct torch_layout_visit *visit;
	struct torch_piece now; /* the segment being put together */
	bool any;
};

static void visit_block(void *arg, const struct range *r)
{
	const struct visiting *v = arg;
	struct torch_piece p = piece_of(r);

	v->visit->block(v->visit->arg, &p);
}

static void visit_now(struct visiting *v)
{
	if (!v->any)
		return;
	v->visit->segment(v->visit->arg, &v->now);
	ranges_within(&v->l->blocks, v->now.start, v->now.end, visit_block, v);
}

/* Parts of expandable segments that touch are one, as in the viewer. */
static void visit_range(void *arg, const struct range *r)
{
	struct visiting *v = arg;
	struct torch_piece p = piece_of(r);

	if (!r->flags)
		return;
	if (v->any && v->now.expandable && p.expandable && v->now.end == p.start &&
	    v->now.stream == p.stream && v->now.device == p.device) {
		v->now.end = p.end;
		return;
	}
	visit_now(v);
	v->now = p;
	v->any = true;
}

void torch_layout_each(const struct torch_layout *l, const struct torch_layout_visit *visit)
{
	struct visiting v = {.l = l, .visit = visit};

	ranges_each(&l->driver, visit_range, &v);
	visit_now(&v);
}

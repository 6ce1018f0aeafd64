/*
 * eh_frame.c - see eh_frame.h. Reads tables only within the segment that holds them: a damaged one
 * ends in CFI_UNSUPPORTED, never in a fault.
 */
#include "stack/eh_frame.h"

#include <string.h>

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct cursor *c, unsigned bytes)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < bytes) {
		c->bad = true;
		c->p = c->end;
		return 0;
	}
	memcpy(&v, c->p, bytes); /* little-endian on both architectures */
	c->p += bytes;
	return v;
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t b = (uint8_t)take(c, 1);

		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
}

static int64_t take_sleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = (uint8_t)take(c, 1);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (shift < 64 && b & 0x40)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

static const uint8_t *take_block(struct cursor *c, uint64_t bytes)
{
	const uint8_t *at = c->p;

	if ((uint64_t)(c->end - c->p) < bytes) {
		c->bad = true;
		c->p = c->end;
	} else {
		c->p += bytes;
	}
	return at;
}

/* Pointer encodings: the low four bits are the format, the next three the base. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB = 0x01,
	PE_U2 = 0x02,
	PE_U4 = 0x03,
	PE_U8 = 0x04,
	PE_SLEB = 0x09,
	PE_S2 = 0x0a,
	PE_S4 = 0x0b,
	PE_S8 = 0x0c,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

static uintptr_t take_pointer(struct cursor *c, uint8_t encoding, uintptr_t data)
{
	uintptr_t at = (uintptr_t)c->p, v;

	switch (encoding & 0x0f) {
	case PE_ABSPTR:
	case PE_U8:
	case PE_S8:
		v = take(c, 8);
		break;
	case PE_ULEB:
		v = take_uleb(c);
		break;
	case PE_SLEB:
		v = (uintptr_t)take_sleb(c);
		break;
	case PE_U2:
		v = take(c, 2);
		break;
	case PE_U4:
		v = take(c, 4);
		break;
	case PE_S2:
		v = (uintptr_t)(int64_t)(int16_t)take(c, 2);
		break;
	case PE_S4:
		v = (uintptr_t)(int64_t)(int32_t)take(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case 0:
		return v;
	case PE_PCREL:
		return at + v;
	case PE_DATAREL:
		return data + v;
	default:
		c->bad = true;
		return 0;
	}
}

/* --- finding --- */

/* Takes one CIE or FDE: its body, and where the next one starts. False: terminator or no record. */
static bool take_record(struct cursor *c, struct cursor *body, const uint8_t **next)
{
	uint64_t bytes = take(c, 4);

	if (bytes == 0xffffffff)
		bytes = take(c, 8);
	if (c->bad || !bytes || bytes > (uint64_t)(c->end - c->p))
		return false;
	*body = (struct cursor){c->p, c->p + bytes, false};
	*next = c->p + bytes;
	return true;
}

static int read_cie(const struct module *m, const uint8_t *at, struct cfi_entry *out)
{
	struct cursor c = {at, m->eh_hi, false}, b;
	const uint8_t *next, *augmentation, *nul, *program;
	uint8_t version;

	if (at < m->eh_lo || at >= m->eh_hi || !take_record(&c, &b, &next) || take(&b, 4) != 0)
		return CFI_UNSUPPORTED;
	version = (uint8_t)take(&b, 1);
	if (version != 1 && version != 3 && version != 4)
		return CFI_UNSUPPORTED;
	augmentation = b.p;
	nul = memchr(b.p, 0, (size_t)(b.end - b.p));
	if (!nul)
		return CFI_UNSUPPORTED;
	b.p = nul + 1;
	if (version == 4 && (take(&b, 1) != sizeof(void *) || take(&b, 1) != 0))
		return CFI_UNSUPPORTED;
	out->code_align = take_uleb(&b);
	out->data_align = take_sleb(&b);
	out->ra = version == 1 ? (uint32_t)take(&b, 1) : (uint32_t)take_uleb(&b);
	out->encoding = PE_ABSPTR;
	out->signal = false;

	program = NULL;
	for (const uint8_t *a = augmentation; *a; a++) {
		switch (*a) {
		case 'z': {
			uint64_t bytes = take_uleb(&b);

			if (a != augmentation || bytes > (uint64_t)(b.end - b.p))
				return CFI_UNSUPPORTED;
			program = b.p + bytes;
			break;
		}
		case 'R':
			out->encoding = (uint8_t)take(&b, 1);
			break;
		case 'P': {
			uint8_t encoding = (uint8_t)take(&b, 1);

			if ((encoding & 0x70) == 0x50)
				return CFI_UNSUPPORTED;
			take_pointer(&b, encoding & 0x0f, 0);
			break;
		}
		case 'L':
			take(&b, 1);
			break;
		case 'S':
			out->signal = true;
			break;
		case 'B': /* aarch64: return addresses are signed with the B key */
		case 'G': /* aarch64: memory tagging of the stack */
			break;
		default:
			/* with 'z' the length of the unknown data is known */
			if (!program)
				return CFI_UNSUPPORTED;
			goto known;
		}
	}
known:
	if (b.bad || out->ra != CFI_RA)
		return CFI_UNSUPPORTED;
	out->cie_program = program ? program : b.p;
	out->cie_end = b.end;
	return CFI_OK;
}

/* Reads the FDE at `at`; CFI_NONE if it does not describe pc. *next: the record after it, or NULL.
 */
static int read_fde(const struct module *m, const uint8_t *at, uintptr_t pc, struct cfi_entry *out,
    const uint8_t **next)
{
	struct cursor c = {at, m->eh_hi, false}, b;
	struct cursor cie, body;
	int rc;
	const uint8_t *id_at, *unused;
	uint64_t back;

	if (at < m->eh_lo || at >= m->eh_hi || !take_record(&c, &b, next)) {
		*next = NULL;
		return CFI_NONE;
	}
	id_at = b.p;
	back = take(&b, 4);
	if (!back)
		return CFI_NONE; /* a CIE */
	if (back > (uint64_t)(id_at - m->eh_lo))
		return CFI_UNSUPPORTED;
	rc = read_cie(m, id_at - back, out);
	if (rc)
		return rc;
	if (out->encoding & PE_INDIRECT)
		return CFI_UNSUPPORTED;
	out->lo = take_pointer(&b, out->encoding, (uintptr_t)m->eh_frame_hdr);
	out->hi = out->lo + take_pointer(&b, out->encoding & 0x0f, 0);
	if (b.bad)
		return CFI_UNSUPPORTED;
	if (pc < out->lo || pc >= out->hi)
		return CFI_NONE;
	/* every CIE of gcc and clang has 'z'; without it the FDE has no augmentation data */
	cie = (struct cursor){id_at - back, m->eh_hi, false};
	take_record(&cie, &body, &unused);
	if (body.end - body.p > 5 && body.p[5] == 'z')
		take_block(&b, take_uleb(&b));
	if (b.bad)
		return CFI_UNSUPPORTED;
	out->program = b.p;
	out->end = b.end;
	return CFI_OK;
}

int cfi_find(const struct module *m, uintptr_t pc, struct cfi_entry *out)
{
	const uint8_t *hdr = m->eh_frame_hdr, *next;
	uint8_t frame_enc, count_enc, table_enc;
	struct cursor c;
	const uint8_t *frames;
	uint64_t count;

	if (!hdr)
		return CFI_NONE;
	c = (struct cursor){hdr, m->eh_hi, false};
	if (take(&c, 1) != 1)
		return CFI_UNSUPPORTED;
	frame_enc = (uint8_t)take(&c, 1);
	count_enc = (uint8_t)take(&c, 1);
	table_enc = (uint8_t)take(&c, 1);
	frames = (const uint8_t *)take_pointer(&c, frame_enc, (uintptr_t)hdr);
	count = count_enc == PE_OMIT ? 0 : take_pointer(&c, count_enc, (uintptr_t)hdr);

	if (count && table_enc == (PE_DATAREL | PE_S4)) {
		int32_t fde;
		int64_t want;
		uint64_t lo, hi;

		/* pairs of i32 (code, FDE), relative to the header, sorted by code */
		if (c.bad || count > (uint64_t)(c.end - c.p) / 8)
			return CFI_UNSUPPORTED;
		want = (int64_t)(pc - (uintptr_t)hdr);
		lo = 0;
		hi = count;
		while (lo < hi) {
			uint64_t mid = (lo + hi) / 2;
			int32_t at;

			memcpy(&at, c.p + 8 * mid, 4);
			if (at <= want)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (!lo)
			return CFI_NONE;
		memcpy(&fde, c.p + 8 * (lo - 1) + 4, 4);
		return read_fde(m, hdr + fde, pc, out, &next);
	}

	/* no table: search all records */
	if (c.bad || frame_enc == PE_OMIT)
		return CFI_UNSUPPORTED;
	for (const uint8_t *at = frames; at; at = next) {
		int rc = read_fde(m, at, pc, out, &next);

		if (rc == CFI_OK)
			return rc;
	}
	return CFI_NONE;
}

/* --- running --- */

enum {
	OP_NOP = 0x00,
	OP_SET_LOC = 0x01,
	OP_ADVANCE_LOC1 = 0x02,
	OP_ADVANCE_LOC2 = 0x03,
	OP_ADVANCE_LOC4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER_STATE = 0x0a,
	OP_RESTORE_STATE = 0x0b,
	OP_DEF_CFA = 0x0c,
	OP_DEF_CFA_REGISTER = 0x0d,
	OP_DEF_CFA_OFFSET = 0x0e,
	OP_DEF_CFA_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SF = 0x11,
	OP_DEF_CFA_SF = 0x12,
	OP_DEF_CFA_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_NEGATE_RA_STATE = 0x2d, /* aarch64; on SPARC: register windows */
	OP_GNU_ARGS_SIZE = 0x2e,
	OP_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* Ignores registers that we do not follow (vector ones). */
static void set_rule(struct cfi_rules *r, uint64_t reg, uint32_t kind, int64_t value)
{
	if (reg < CFI_REGS)
		r->reg[reg] = (struct cfi_rule){.kind = kind, .value = value};
}

static struct cfi_rule take_expression(struct cursor *c, uint32_t kind)
{
	uint64_t bytes = take_uleb(c);
	const uint8_t *expr = take_block(c, bytes);

	return (struct cfi_rule){.expr = expr, .expr_bytes = (uint32_t)bytes, .kind = kind};
}

/* Runs a program until its location passes pc, or to its end. */
static int run_program(
    const struct cfi_entry *e, struct cursor c, uintptr_t pc, uintptr_t *loc, struct cfi_work *w)
{
	struct cfi_rules *r = &w->now;
	unsigned depth = 0;

	while (c.p < c.end && !c.bad) {
		uint8_t op = *c.p++, low = op & 0x3f;
		uint64_t reg;

		switch (op >> 6) {
		case 1:
			*loc += low * e->code_align;
			if (*loc > pc)
				return CFI_OK;
			continue;
		case 2:
			set_rule(r, low, CFI_OFFSET, (int64_t)take_uleb(&c) * e->data_align);
			continue;
		case 3:
			if (low < CFI_REGS)
				r->reg[low] = w->initial.reg[low];
			continue;
		}
		switch (op) {
		case OP_NOP:
			break;
		case OP_SET_LOC:
			*loc = take_pointer(&c, e->encoding, 0);
			if (*loc > pc)
				return CFI_OK;
			break;
		case OP_ADVANCE_LOC1:
		case OP_ADVANCE_LOC2:
		case OP_ADVANCE_LOC4:
			*loc += take(&c, 1u << (op - OP_ADVANCE_LOC1)) * e->code_align;
			if (*loc > pc)
				return CFI_OK;
			break;
		case OP_OFFSET_EXTENDED:
			reg = take_uleb(&c);
			set_rule(r, reg, CFI_OFFSET, (int64_t)take_uleb(&c) * e->data_align);
			break;
		case OP_OFFSET_EXTENDED_SF:
			reg = take_uleb(&c);
			set_rule(r, reg, CFI_OFFSET, take_sleb(&c) * e->data_align);
			break;
		case OP_GNU_NEGATIVE_OFFSET_EXTENDED:
			reg = take_uleb(&c);
			set_rule(r, reg, CFI_OFFSET, -(int64_t)take_uleb(&c) * e->data_align);
			break;
		case OP_VAL_OFFSET:
			reg = take_uleb(&c);
			set_rule(r, reg, CFI_VAL_OFFSET, (int64_t)take_uleb(&c) * e->data_align);
			break;
		case OP_VAL_OFFSET_SF:
			reg = take_uleb(&c);
			set_rule(r, reg, CFI_VAL_OFFSET, take_sleb(&c) * e->data_align);
			break;
		case OP_RESTORE_EXTENDED:
			reg = take_uleb(&c);
			if (reg < CFI_REGS)
				r->reg[reg] = w->initial.reg[reg];
			break;
		case OP_UNDEFINED:
			set_rule(r, take_uleb(&c), CFI_UNDEFINED, 0);
			break;
		case OP_SAME_VALUE:
			set_rule(r, take_uleb(&c), CFI_SAME, 0);
			break;
		case OP_REGISTER:
			reg = take_uleb(&c);
			set_rule(r, reg, CFI_REGISTER, (int64_t)take_uleb(&c));
			break;
		case OP_REMEMBER_STATE:
			if (depth == CFI_REMEMBER_MAX)
				return CFI_UNSUPPORTED;
			w->remembered[depth++] = *r;
			break;
		case OP_RESTORE_STATE:
			if (!depth)
				return CFI_UNSUPPORTED;
			*r = w->remembered[--depth];
			break;
		case OP_DEF_CFA:
		case OP_DEF_CFA_SF:
			r->cfa_reg = (uint32_t)take_uleb(&c);
			r->cfa.kind = CFI_REGISTER;
			r->cfa.value = op == OP_DEF_CFA ? (int64_t)take_uleb(&c)
							: take_sleb(&c) * e->data_align;
			break;
		case OP_DEF_CFA_REGISTER:
			r->cfa_reg = (uint32_t)take_uleb(&c);
			if (r->cfa.kind != CFI_REGISTER)
				return CFI_UNSUPPORTED;
			break;
		case OP_DEF_CFA_OFFSET:
		case OP_DEF_CFA_OFFSET_SF:
			if (r->cfa.kind != CFI_REGISTER)
				return CFI_UNSUPPORTED;
			r->cfa.value = op == OP_DEF_CFA_OFFSET ? (int64_t)take_uleb(&c)
							       : take_sleb(&c) * e->data_align;
			break;
		case OP_DEF_CFA_EXPRESSION:
			r->cfa = take_expression(&c, CFI_VAL_EXPR);
			break;
		case OP_EXPRESSION:
		case OP_VAL_EXPRESSION: {
			struct cfi_rule rule;

			reg = take_uleb(&c);
			rule = take_expression(&c, op == OP_EXPRESSION ? CFI_EXPR : CFI_VAL_EXPR);
			if (reg < CFI_REGS)
				r->reg[reg] = rule;
			break;
		}
#if defined(__aarch64__)
		case OP_NEGATE_RA_STATE:
			/* readers of return addresses strip the signature anyway */
			break;
#endif
		case OP_GNU_ARGS_SIZE:
			take_uleb(&c);
			break;
		default:
			return CFI_UNSUPPORTED;
		}
	}
	return c.bad ? CFI_UNSUPPORTED : CFI_OK;
}

int cfi_run(const struct cfi_entry *e, uintptr_t pc, struct cfi_work *w)
{
	uintptr_t loc = 0;
	int rc;

	memset(&w->now, 0, sizeof(w->now));
	rc = run_program(
	    e, (struct cursor){e->cie_program, e->cie_end, false}, UINTPTR_MAX, &loc, w);
	if (rc)
		return rc;
	w->initial = w->now;
	loc = e->lo;
	rc = run_program(e, (struct cursor){e->program, e->end, false}, pc, &loc, w);
	if (rc)
		return rc;
	return w->now.cfa.kind ? CFI_OK : CFI_UNSUPPORTED;
}

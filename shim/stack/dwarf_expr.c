/*
 * dwarf_expr.c - cfi_eval() of eh_frame.h: the DWARF stack machine, on numbers or on the symbols
 * that a cached row can express. Every loop is bounded; the caller's function reads memory.
 */
#include <string.h>

#include "stack/eh_frame.h"

enum {
	DW_OP_addr = 0x03,
	DW_OP_deref = 0x06,
	DW_OP_const1u = 0x08,
	DW_OP_const8s = 0x0f,
	DW_OP_constu = 0x10,
	DW_OP_consts = 0x11,
	DW_OP_dup = 0x12,
	DW_OP_drop = 0x13,
	DW_OP_over = 0x14,
	DW_OP_pick = 0x15,
	DW_OP_swap = 0x16,
	DW_OP_rot = 0x17,
	DW_OP_abs = 0x19,
	DW_OP_and = 0x1a,
	DW_OP_div = 0x1b,
	DW_OP_minus = 0x1c,
	DW_OP_mod = 0x1d,
	DW_OP_mul = 0x1e,
	DW_OP_neg = 0x1f,
	DW_OP_not = 0x20,
	DW_OP_or = 0x21,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_shr = 0x25,
	DW_OP_shra = 0x26,
	DW_OP_xor = 0x27,
	DW_OP_bra = 0x28,
	DW_OP_eq = 0x29,
	DW_OP_ge = 0x2a,
	DW_OP_gt = 0x2b,
	DW_OP_le = 0x2c,
	DW_OP_lt = 0x2d,
	DW_OP_ne = 0x2e,
	DW_OP_skip = 0x2f,
	DW_OP_lit0 = 0x30,
	DW_OP_lit31 = 0x4f,
	DW_OP_breg0 = 0x70,
	DW_OP_breg31 = 0x8f,
	DW_OP_bregx = 0x92,
	DW_OP_deref_size = 0x94,
	DW_OP_nop = 0x96,
};

#define STEPS_MAX 1000 /* bounds loops, as branches may go back */

struct code {
	const uint8_t *begin, *p, *end;
	bool bad;
};

static uint64_t take_fixed(struct code *c, unsigned bytes, bool is_signed)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < bytes) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, bytes);
	c->p += bytes;
	if (is_signed && bytes < 8 && v >> (8 * bytes - 1))
		v |= ~UINT64_C(0) << 8 * bytes;
	return v;
}

static uint64_t take_leb(struct code *c, bool is_signed)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		if (c->p == c->end) {
			c->bad = true;
			return 0;
		}
		b = *c->p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (is_signed && shift < 64 && b & 0x40)
		v |= ~UINT64_C(0) << shift;
	return v;
}

static bool load_register(const struct cfi_expr *e, uint64_t reg, int64_t add, struct cfi_value *v)
{
	*v = (struct cfi_value){.offset = add};
	if (e->regs) {
		if (reg >= CFI_REGS || !(e->known >> reg & 1))
			return false;
		v->offset = (int64_t)(e->regs[reg] + (uint64_t)add);
		return true;
	}
#if defined(__x86_64__)
	if (reg == CFI_RA) {
		v->offset = (int64_t)(e->pc + (uint64_t)add);
		return true;
	}
#endif
	v->base = reg == CFI_SP ? CFI_BASE_SP : CFI_BASE_FP;
	return reg == CFI_SP || reg == CFI_FP;
}

static bool apply_deref(struct cfi_expr *e, struct cfi_value *v, unsigned bytes)
{
	uint64_t word = 0;

	if (v->base == CFI_CONST && e->read && bytes >= 1 && bytes <= 8) {
		if (!e->read(e->arg, (uintptr_t)v->offset, bytes, &word))
			return false;
		*v = (struct cfi_value){.offset = (int64_t)word};
		return true;
	}
	if (v->base != CFI_BASE_FP || bytes != 8)
		return false;
	*v = (struct cfi_value){.base = CFI_BASE_AT_FP, .inner = v->offset};
	return true;
}

/* Sets *a to a op b, the top two of the stack. */
static bool apply_binary(uint8_t op, struct cfi_value *a, const struct cfi_value *b)
{
	uint64_t x = (uint64_t)a->offset, y = (uint64_t)b->offset;
	int64_t sx = a->offset, sy = b->offset;

	if (op == DW_OP_plus && (a->base == CFI_CONST || b->base == CFI_CONST)) {
		if (a->base == CFI_CONST)
			*a = *b;
		a->offset = (int64_t)(x + y);
		return true;
	}
	if (op == DW_OP_minus && b->base == CFI_CONST) {
		a->offset = (int64_t)(x - y);
		return true;
	}
	if (a->base != CFI_CONST || b->base != CFI_CONST)
		return false;
	switch (op) {
	case DW_OP_and:
		x &= y;
		break;
	case DW_OP_or:
		x |= y;
		break;
	case DW_OP_xor:
		x ^= y;
		break;
	case DW_OP_mul:
		x *= y;
		break;
	case DW_OP_div:
		if (!sy || (sx == INT64_MIN && sy == -1))
			return false;
		x = (uint64_t)(sx / sy);
		break;
	case DW_OP_mod:
		if (!y)
			return false;
		x %= y;
		break;
	case DW_OP_shl:
		x = y < 64 ? x << y : 0;
		break;
	case DW_OP_shr:
		x = y < 64 ? x >> y : 0;
		break;
	case DW_OP_shra:
		x = (uint64_t)(sx >> (y < 63 ? y : 63));
		break;
	case DW_OP_eq:
		x = sx == sy;
		break;
	case DW_OP_ge:
		x = sx >= sy;
		break;
	case DW_OP_gt:
		x = sx > sy;
		break;
	case DW_OP_le:
		x = sx <= sy;
		break;
	case DW_OP_lt:
		x = sx < sy;
		break;
	case DW_OP_ne:
		x = sx != sy;
		break;
	default:
		return false;
	}
	a->offset = (int64_t)x;
	return true;
}

bool cfi_eval(struct cfi_expr *e, const uint8_t *expr, size_t bytes, const struct cfi_value *start,
    struct cfi_value *out)
{
	struct code c = {expr, expr, expr + bytes, false};
	struct cfi_value *s = e->stack, t;
	unsigned n = 0;

	if (start)
		s[n++] = *start;

	for (unsigned steps = 0; c.p < c.end && !c.bad; steps++) {
		uint8_t op = *c.p++;
		unsigned needs = op == DW_OP_over || op == DW_OP_swap ? 2 : op == DW_OP_rot ? 3 : 0;

		if (op == DW_OP_deref || op == DW_OP_deref_size || op == DW_OP_dup ||
		    op == DW_OP_drop || op == DW_OP_abs || op == DW_OP_neg || op == DW_OP_not ||
		    op == DW_OP_plus_uconst || op == DW_OP_bra)
			needs = 1;
		if (n < needs || n + 2 > CFI_EXPR_STACK || steps == STEPS_MAX)
			return false;
		if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
			s[n++] = (struct cfi_value){.offset = op - DW_OP_lit0};
			continue;
		}
		if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
			if (!load_register(
				e, op - DW_OP_breg0, (int64_t)take_leb(&c, true), &s[n++]))
				return false;
			continue;
		}
		if (op >= DW_OP_const1u && op <= DW_OP_const8s) {
			unsigned k = op - DW_OP_const1u;

			s[n++] = (struct cfi_value){
			    .offset = (int64_t)take_fixed(&c, 1u << k / 2, k & 1)};
			continue;
		}
		switch (op) {
		case DW_OP_nop:
			break;
		case DW_OP_addr:
			s[n++] = (struct cfi_value){.offset = (int64_t)take_fixed(&c, 8, false)};
			break;
		case DW_OP_constu:
		case DW_OP_consts:
			s[n++] =
			    (struct cfi_value){.offset = (int64_t)take_leb(&c, op == DW_OP_consts)};
			break;
		case DW_OP_bregx: {
			uint64_t reg = take_leb(&c, false);

			if (!load_register(e, reg, (int64_t)take_leb(&c, true), &s[n++]))
				return false;
			break;
		}
		case DW_OP_deref:
		case DW_OP_deref_size:
			if (!apply_deref(e, &s[n - 1],
				op == DW_OP_deref ? 8 : (unsigned)take_fixed(&c, 1, false)))
				return false;
			break;
		case DW_OP_dup:
			s[n] = s[n - 1];
			n++;
			break;
		case DW_OP_drop:
			n--;
			break;
		case DW_OP_over:
			s[n] = s[n - 2];
			n++;
			break;
		case DW_OP_pick: {
			uint64_t k = take_fixed(&c, 1, false);

			if (k >= n)
				return false;
			s[n] = s[n - 1 - k];
			n++;
			break;
		}
		case DW_OP_swap:
			t = s[n - 1];
			s[n - 1] = s[n - 2];
			s[n - 2] = t;
			break;
		case DW_OP_rot:
			t = s[n - 1];
			s[n - 1] = s[n - 2];
			s[n - 2] = s[n - 3];
			s[n - 3] = t;
			break;
		case DW_OP_abs:
		case DW_OP_neg:
		case DW_OP_not:
			if (s[n - 1].base != CFI_CONST)
				return false;
			if (op == DW_OP_not)
				s[n - 1].offset = ~s[n - 1].offset;
			else if (op == DW_OP_neg || s[n - 1].offset < 0)
				s[n - 1].offset = (int64_t) - (uint64_t)s[n - 1].offset;
			break;
		case DW_OP_plus_uconst:
			s[n - 1].offset =
			    (int64_t)((uint64_t)s[n - 1].offset + take_leb(&c, false));
			break;
		case DW_OP_skip:
		case DW_OP_bra: {
			int64_t by = (int64_t)take_fixed(&c, 2, true);

			if (op == DW_OP_bra) {
				if (s[--n].base != CFI_CONST)
					return false;
				if (!s[n].offset)
					break;
			}
			if (by < c.begin - c.p || by > c.end - c.p)
				return false;
			c.p += by;
			break;
		}
		default:
			if (n < 2 || !apply_binary(op, &s[n - 2], &s[n - 1]))
				return false;
			n--;
		}
	}
	if (c.bad || !n)
		return false;
	*out = s[n - 1];
	return true;
}

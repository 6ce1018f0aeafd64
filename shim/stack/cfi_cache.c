/*
 * cfi_cache.c - packs call frame information into rows. Rules that do not fit become ROW_FULL and
 * are interpreted anew at each walk, which is slow but right. Must not read the host's stack.
 */
#include "stack/cfi_cache.h"

#include <errno.h>
#include <string.h>

#include "stack/readable.h"

#define ROWS_FIRST 4096u
#define ROWS_MAX (1u << 20) /* 16 MiB; further rows are worked out each time */

static bool entry_is_live(uint64_t key)
{
	return key >> 48 && module_live((uint32_t)(key >> 48));
}

struct map cfi_cache_map = MAP_INIT(ROWS_MAX, cfi_cache_hash, entry_is_live);

int cfi_cache_init(void)
{
	return map_init(&cfi_cache_map, ROWS_FIRST) ? 0 : -ENOMEM;
}

void cfi_cache_fork_child(void)
{
	/* rows stay true in the child; a thread that was growing the map is not there */
	atomic_flag_clear_explicit(&cfi_cache_map.growing, memory_order_relaxed);
}

size_t cfi_cache_bytes(void)
{
	return map_bytes(&cfi_cache_map);
}

bool cfi_cache_is_sigreturn(uintptr_t pc)
{
#if defined(__x86_64__)
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#else
	static const uint8_t code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
#endif
	return readable_page(pc) && readable_page(pc + sizeof(code)) &&
	       !memcmp((const void *)pc, code, sizeof(code));
}

static bool fits_bits(int64_t v, unsigned bits)
{
	int64_t limit = INT64_C(1) << (bits - 1);

	return v % 8 == 0 && v / 8 >= -limit && v / 8 < limit;
}

static uint64_t pack_row(
    unsigned kind, unsigned fp, int64_t ra_offset, int64_t fp_offset, int64_t cfa_offset)
{
	return kind | fp << 3 | ROW_VALID | (uint64_t)(uint16_t)(ra_offset / 8) << 8 |
	       (uint64_t)(uint16_t)(fp_offset / 8) << 24 | (uint64_t)(cfa_offset / 8) << 40;
}

/* Evaluates an expression to base + offset; false: it is not that simple. */
static bool eval_symbolic(struct cfi_expr *e, uintptr_t pc, const struct cfi_rule *rule,
    bool with_cfa, struct cfi_value *out)
{
	const struct cfi_value cfa = {.base = CFI_BASE_CFA};

	e->regs = NULL;
	e->read = NULL;
	e->pc = pc;
	return cfi_eval(e, rule->expr, rule->expr_bytes, with_cfa ? &cfa : NULL, out);
}

static uint64_t compile_row(const struct cfi_rules *r, uintptr_t pc, struct cfi_expr *e)
{
	const struct cfi_rule *ra = &r->reg[CFI_RA], *fp = &r->reg[CFI_FP];
	const uint64_t full = ROW_FULL | ROW_VALID;
	unsigned kind, fp_kind = ROW_FP_SAME;
	int64_t cfa_offset = r->cfa.value, fp_offset = 0;
	struct cfi_value v;

	if (ra->kind == CFI_UNDEFINED)
		return ROW_ROOT | ROW_VALID;
	if (r->cfa.kind == CFI_REGISTER) {
		if (r->cfa_reg != CFI_SP && r->cfa_reg != CFI_FP)
			return full;
		kind = r->cfa_reg == CFI_SP ? ROW_SP : ROW_FP;
	} else {
		/* PLT entries depend on pc alone; realigned functions keep their CFA at a fixed
		 * distance from the frame pointer */
		if (!eval_symbolic(e, pc, &r->cfa, false, &v))
			return full;
		if (v.base == CFI_BASE_AT_FP && v.offset == 0) {
			kind = ROW_AT_FP;
			cfa_offset = v.inner;
		} else if (v.base == CFI_BASE_SP || v.base == CFI_BASE_FP) {
			kind = v.base == CFI_BASE_SP ? ROW_SP : ROW_FP;
			cfa_offset = v.offset;
		} else {
			return full;
		}
	}
	switch (fp->kind) {
	case CFI_SAME:
	case CFI_UNDEFINED:
		break;
	case CFI_OFFSET:
		fp_kind = ROW_FP_AT_CFA;
		fp_offset = fp->value;
		break;
	case CFI_EXPR:
		if (!eval_symbolic(e, pc, fp, true, &v))
			return full;
		if (v.base != CFI_BASE_FP && v.base != CFI_BASE_CFA)
			return full;
		fp_kind = v.base == CFI_BASE_FP ? ROW_FP_AT_FP : ROW_FP_AT_CFA;
		fp_offset = v.offset;
		break;
	default:
		return full;
	}
	/* the outer stack pointer is the CFA unless a rule says otherwise */
	if (r->reg[CFI_SP].kind != CFI_SAME &&
	    !(r->reg[CFI_SP].kind == CFI_VAL_OFFSET && r->reg[CFI_SP].value == 0))
		return full;
	if (ra->kind != CFI_OFFSET || !fits_bits(ra->value, 16) || !fits_bits(fp_offset, 16) ||
	    !fits_bits(cfa_offset, 24))
		return full;
	if (fp_kind == ROW_FP_SAME)
		fp_offset = ra->value;
	return pack_row(kind, fp_kind, ra->value, fp_offset, cfa_offset);
}

/*
 * Returns the row kind of a return address that no call has put there: it is the first byte of a
 * function, a signal trampoline or the start of a coroutine, so no CFI describes the byte before.
 */
static unsigned row_without_call(const struct module *m, uintptr_t pc, struct cfi_work *work)
{
	struct cfi_entry entry;

	if (cfi_cache_is_sigreturn(pc))
		return ROW_SIGNAL;
	if (!cfi_find(m, pc, &entry) && entry.lo == pc && !entry.signal &&
	    !cfi_run(&entry, pc, work) && work->now.reg[CFI_RA].kind == CFI_UNDEFINED)
		return ROW_ROOT;
	return ROW_NO_CFI;
}

uint64_t cfi_cache_make(
    uintptr_t pc, struct cfi_work *work, struct cfi_expr *expr, uint32_t *module)
{
	uint64_t before = modules_generation(), row;
	const struct module *m = module_find(pc);
	struct cfi_entry entry;

	*module = m ? m->id : 0;
	if (!m) {
		row = (cfi_cache_is_sigreturn(pc + 1) ? ROW_SIGNAL : ROW_NO_CFI) | ROW_VALID |
		      (uint64_t)(uint32_t)before << 8;
	} else {
		int rc = cfi_find(m, pc, &entry);

		if (rc == CFI_NONE)
			row = row_without_call(m, pc + 1, work) | ROW_VALID;
		else if (rc || (!entry.signal && cfi_run(&entry, pc, work)))
			row = ROW_FULL | ROW_VALID;
		else if (entry.signal)
			row = ROW_SIGNAL | ROW_VALID;
		else
			row = compile_row(&work->now, pc, expr);
	}
	/* in doubtful times the row may describe another library */
	if (!modules_doubtful() && pc <= ROW_PC_MASK)
		map_put(&cfi_cache_map, (uint64_t)pc | (uint64_t)*module << 48, row);
	return row;
}

/*
 * unwind_full.c - the slow unwinder, for frames that a row cannot express (the lazy binder has its
 * CFA in %rbx; a return address may be in a register). Interprets the rules for all registers, from
 * its own frame outwards, where it knows every callee-saved register. Must not allocate; its state
 * is in struct unwind.
 */
#include <string.h>

#include "stack/cfi_cache.h"
#include "stack/unwind.h"
#include "stack/unwind_system.h"

#define STEPS_MAX 8192u

struct full {
	struct unwind *u;
	uintptr_t regs[CFI_REGS], pc;
	uint64_t known;
	bool exact;
};

#if defined(__x86_64__)
#define SAVED (1u << 3 | 1u << 6 | 1u << 7 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15)

/* Stores the callee-saved registers as they are after the return from this function. */
__attribute__((visibility("hidden"))) void unwind_here(uintptr_t *regs, uintptr_t *pc);
__asm__(".text\n"
	".p2align 4\n"
	".hidden unwind_here\n"
	".globl unwind_here\n"
	".type unwind_here,@function\n"
	"unwind_here:\n"
	".cfi_startproc\n"
	"endbr64\n"
	"movq %rbx, 24(%rdi)\n"
	"movq %rbp, 48(%rdi)\n"
	"leaq 8(%rsp), %rax\n"
	"movq %rax, 56(%rdi)\n"
	"movq %r12, 96(%rdi)\n"
	"movq %r13, 104(%rdi)\n"
	"movq %r14, 112(%rdi)\n"
	"movq %r15, 120(%rdi)\n"
	"movq (%rsp), %rax\n"
	"movq %rax, (%rsi)\n"
	"ret\n"
	".cfi_endproc\n"
	".size unwind_here,.-unwind_here\n");

/* DWARF register number -> index in the kernel's gregs. */
static const uint8_t signal_index[17] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};

static void signal_registers(struct full *f, const uintptr_t *sp)
{
	for (unsigned i = 0; i < 17; i++)
		f->regs[i] = sp[SIGNAL_GREGS / 8 + signal_index[i]];
	f->known = (1u << 17) - 1;
	f->pc = f->regs[CFI_RA];
}
#else
#define SAVED (UINT64_C(0x1fff) << 19) /* x19 to x30 and sp */

__attribute__((visibility("hidden"))) void unwind_here(uintptr_t *regs, uintptr_t *pc);
__asm__(".text\n"
	".p2align 4\n"
	".hidden unwind_here\n"
	".globl unwind_here\n"
	".type unwind_here,%function\n"
	"unwind_here:\n"
	".cfi_startproc\n"
	"hint #34\n" /* bti c */
	"stp x19, x20, [x0, #152]\n"
	"stp x21, x22, [x0, #168]\n"
	"stp x23, x24, [x0, #184]\n"
	"stp x25, x26, [x0, #200]\n"
	"stp x27, x28, [x0, #216]\n"
	"stp x29, x30, [x0, #232]\n"
	"mov x2, sp\n"
	"str x2, [x0, #248]\n"
	"str x30, [x1]\n"
	"ret\n"
	".cfi_endproc\n"
	".size unwind_here,.-unwind_here\n");

static void signal_registers(struct full *f, const uintptr_t *sp)
{
	for (unsigned i = 0; i < 32; i++)
		f->regs[i] = sp[SIGNAL_REGS / 8 + i];
	f->known = (UINT64_C(1) << 32) - 1;
	f->pc = sp[SIGNAL_PC / 8];
}
#endif

static bool read_stack(void *arg, uintptr_t address, unsigned bytes, uint64_t *out)
{
	struct unwind *u = arg;

	*out = 0;
	if (!readable_word(&u->memory, address & ~UINT64_C(7)) ||
	    !readable_word(&u->memory, (address + bytes - 1) & ~UINT64_C(7)))
		return false;
	memcpy(out, (const void *)address, bytes);
	return true;
}

static bool rule_value(
    struct full *f, const struct cfi_rule *rule, unsigned reg, uintptr_t cfa, uintptr_t *out)
{
	struct unwind *u = f->u;
	struct cfi_value v = {.offset = (int64_t)cfa};
	uint64_t word;

	switch (rule->kind) {
	case CFI_SAME:
		*out = f->regs[reg];
		return f->known >> reg & 1;
	case CFI_OFFSET:
		if (!read_stack(u, cfa + (uintptr_t)rule->value, 8, &word))
			return false;
		*out = word;
		return true;
	case CFI_VAL_OFFSET:
		*out = cfa + (uintptr_t)rule->value;
		return true;
	case CFI_REGISTER:
		if (rule->value < 0 || rule->value >= CFI_REGS)
			return false;
		*out = f->regs[rule->value];
		return f->known >> rule->value & 1;
	case CFI_EXPR:
	case CFI_VAL_EXPR:
		u->expr.regs = f->regs;
		u->expr.known = f->known;
		u->expr.read = read_stack;
		u->expr.arg = u;
		if (!cfi_eval(&u->expr, rule->expr, rule->expr_bytes, &v, &v))
			return false;
		*out = (uintptr_t)v.offset;
		if (rule->kind == CFI_VAL_EXPR)
			return true;
		if (!read_stack(u, *out, 8, &word))
			return false;
		*out = word;
		return true;
	default:
		return false;
	}
}

static enum unwind_step full_signal(struct full *f)
{
	uintptr_t sp = f->regs[CFI_SP];

	for (uintptr_t at = sp; at <= sp + SIGNAL_PC; at += 8)
		if (!readable_word(&f->u->memory, at))
			return STEP_BAD;
	signal_registers(f, (const uintptr_t *)sp);
	f->exact = true;
	return STEP_OK;
}

static enum unwind_step full_out(struct full *f, bool *unsupported)
{
	struct unwind *u = f->u;
	uintptr_t pc = f->pc - !f->exact, cfa;
	const struct module *m = module_find(pc);
	struct cfi_entry entry;
	int rc = m ? cfi_find(m, pc, &entry) : CFI_NONE;
	uintptr_t outer[CFI_REGS], ra;
	const struct cfi_rules *r;
	uint64_t known;

	*unsupported = false;
	if (rc == CFI_NONE)
		return cfi_cache_is_sigreturn(pc + 1) ? full_signal(f) : STEP_NO_CFI;
	if (rc == CFI_OK && entry.signal)
		return full_signal(f);
	if (rc == CFI_OK)
		rc = cfi_run(&entry, pc, &u->cfi);
	if (rc) {
		*unsupported = true;
		return STEP_NO_CFI;
	}

	r = &u->cfi.now;
	if (r->reg[CFI_RA].kind == CFI_UNDEFINED)
		return STEP_ROOT;
#if defined(__x86_64__)
	f->regs[CFI_RA] = f->pc;
	f->known |= 1u << CFI_RA;
#endif
	if (r->cfa.kind == CFI_REGISTER) {
		if (r->cfa_reg >= CFI_REGS || !(f->known >> r->cfa_reg & 1))
			return STEP_BAD;
		cfa = f->regs[r->cfa_reg] + (uintptr_t)r->cfa.value;
	} else if (!rule_value(f, &r->cfa, 0, 0, &cfa)) {
		return STEP_BAD;
	}

	known = 0;
	for (unsigned i = 0; i < CFI_REGS; i++) {
		const struct cfi_rule *rule = &r->reg[i];

		/* only a rule recovers a register that calls may destroy */
		if (rule->kind == CFI_SAME && !(SAVED >> i & 1))
			continue;
		if (rule_value(f, rule, i, cfa, &outer[i]))
			known |= UINT64_C(1) << i;
	}
	if (r->reg[CFI_SP].kind == CFI_SAME)
		outer[CFI_SP] = cfa;
	known |= UINT64_C(1) << CFI_SP;
	/* only a frame that made no call still has its return address in the register */
	if (r->reg[CFI_RA].kind == CFI_SAME && !f->exact)
		return STEP_BAD;
	if (r->reg[CFI_RA].kind == CFI_SAME)
		ra = f->regs[CFI_RA];
	else if (known >> CFI_RA & 1)
		ra = outer[CFI_RA];
	else
		return STEP_BAD;
	ra = unwind_strip(ra);
	if (outer[CFI_SP] < f->regs[CFI_SP] || (outer[CFI_SP] == f->regs[CFI_SP] && !f->exact))
		return STEP_BAD;
	memcpy(f->regs, outer, sizeof(outer));
	f->known = known;
	f->pc = ra;
	f->exact = false;
	return ra ? STEP_OK : STEP_ROOT;
}

__attribute__((noinline)) enum unwind_step unwind_full_step(
    struct unwind *u, struct unwind_state *at)
{
	struct full f = {.u = u, .known = SAVED};
	bool unsupported;

	unwind_here(f.regs, &f.pc);
	u->full_walks++;
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		bool there = f.pc == at->pc && f.regs[CFI_SP] == at->sp;
		enum unwind_step rc = full_out(&f, &unsupported);

		if (unsupported)
			return unwind_system_step(at);
		if (rc != STEP_OK)
			return there ? rc : STEP_BAD;
		if (there) {
			at->pc = f.pc;
			at->sp = f.regs[CFI_SP];
			at->fp = f.known >> CFI_FP & 1 ? f.regs[CFI_FP] : 0;
			at->exact = f.exact;
			return STEP_OK;
		}
	}
	return STEP_BAD;
}

/*
 * eh_frame.h - reads DWARF call frame information from .eh_frame: finds the entry for an address
 * and runs its program up to it. Allocates and keeps nothing; the caller brings the working memory.
 * Sources: DWARF 5 section 6.4; Linux Standard Base 5.0, "Exception Frames"; "DWARF for the Arm
 * 64-bit Architecture", for the signing of return addresses.
 */
#ifndef SHIM_EH_FRAME_H
#define SHIM_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/modules.h"

/* DWARF register numbers. CFI_RA: the register of a return address that is not in memory. */
#if defined(__x86_64__)
#define CFI_REGS 17
#define CFI_FP 6
#define CFI_SP 7
#define CFI_RA 16
#elif defined(__aarch64__)
#define CFI_REGS 35
#define CFI_FP 29
#define CFI_SP 31
#define CFI_RA 30
#define CFI_RA_STATE 34 /* RA_SIGN_STATE */
#endif

#define CFI_REMEMBER_MAX 8
#define CFI_EXPR_STACK 32

/* Where the outer frame's value of a register is. */
enum cfi_rule_kind {
	CFI_SAME = 0,
	CFI_UNDEFINED, /* lost; for the return address: this is the outermost frame */
	CFI_OFFSET, /* at CFA + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_REGISTER, /* in register number `value` */
	CFI_EXPR, /* at the address that expr computes */
	CFI_VAL_EXPR, /* is what expr computes */
};

struct cfi_rule {
	union {
		int64_t value;
		const uint8_t *expr;
	};
	uint32_t expr_bytes;
	uint32_t kind;
};

struct cfi_rules {
	struct cfi_rule cfa; /* CFI_REGISTER: cfa_reg + value; CFI_VAL_EXPR */
	uint32_t cfa_reg;
	struct cfi_rule reg[CFI_REGS];
};

struct cfi_work {
	struct cfi_rules now, initial, remembered[CFI_REMEMBER_MAX];
};

struct cfi_entry {
	uintptr_t lo, hi; /* the code that it describes */
	const uint8_t *cie_program, *cie_end, *program, *end;
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra; /* the column of the return address */
	bool signal; /* the frame of a signal trampoline */
	uint8_t encoding;
};

enum {
	CFI_OK = 0,
	CFI_NONE = 1, /* no unwind information for this address */
	CFI_UNSUPPORTED = 2, /* this reader does not understand it */
};

/* Finds the entry that describes pc. Returns CFI_OK, CFI_NONE or CFI_UNSUPPORTED. */
int cfi_find(const struct module *module, uintptr_t pc, struct cfi_entry *out);

/* Sets work->now to the rules that hold at pc. Returns CFI_OK or CFI_UNSUPPORTED. */
int cfi_run(const struct cfi_entry *entry, uintptr_t pc, struct cfi_work *work);

/* The base of an expression's value. With known registers every value is CFI_CONST; with regs NULL
 * only pc is known and values stay symbolic: base + offset, or for CFI_BASE_AT_FP the word at
 * fp + inner, + offset. CFI_BASE_CFA is for the caller's start value. */
enum cfi_base { CFI_CONST = 0, CFI_BASE_SP, CFI_BASE_FP, CFI_BASE_AT_FP, CFI_BASE_CFA };

struct cfi_value {
	uint32_t base;
	int64_t offset, inner;
};

struct cfi_expr {
	const uintptr_t *regs; /* CFI_REGS of them, NULL: symbolic */
	uint64_t known; /* bit n: regs[n] is known */
	uintptr_t pc;
	/* reads `bytes` (1 to 8) at an address; false: it cannot be read */
	bool (*read)(void *arg, uintptr_t address, unsigned bytes, uint64_t *out);
	void *arg;
	struct cfi_value stack[CFI_EXPR_STACK];
};

/* Evaluates an expression to *out. `start` is pushed first unless NULL (the CFA, for register
 * rules). False: the value cannot be worked out. */
bool cfi_eval(struct cfi_expr *e, const uint8_t *expr, size_t bytes, const struct cfi_value *start,
    struct cfi_value *out);

#endif

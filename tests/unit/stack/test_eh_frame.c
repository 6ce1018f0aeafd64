/* test_eh_frame.c - reads handmade call frame information: every instruction, every kind of
 * damage, and the expressions that become rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stack/eh_frame.h"

/* An image: header, table, one CIE and one FDE, laid out as a linker would. */
struct image {
	uint8_t bytes[1024];
	size_t n;
	struct module module;
	uintptr_t code;
};

static struct cfi_work work;
static struct cfi_entry entry;

static void put(struct image *im, const void *p, size_t n)
{
	assert_true(im->n + n <= sizeof(im->bytes));
	memcpy(im->bytes + im->n, p, n);
	im->n += n;
}

static void put32(struct image *im, int64_t v)
{
	int32_t w = (int32_t)v;

	put(im, &w, 4);
}

#define CODE_AT 0x100000 /* behind the image */
#define CODE_BYTES 64

static void make(struct image *im, const char *augmentation, const uint8_t *cie, size_t cie_bytes,
    const uint8_t *fde, size_t fde_bytes)
{
	size_t at, cie_at, fde_at;
	int32_t length, fde_offset;
	uint8_t ra;

	memset(im, 0, sizeof(*im));
	im->code = (uintptr_t)im->bytes + CODE_AT;
	put(im, "\x01\x1b\x03\x3b", 4);
	put32(im, 20 - 4); /* .eh_frame begins at 20 */
	put32(im, 1);
	put32(im, CODE_AT);
	fde_at = im->n;
	put32(im, 0);

	cie_at = im->n;
	put32(im, 0);
	put32(im, 0);
	put(im, "\x01", 1);
	put(im, augmentation, strlen(augmentation) + 1);
	put(im, "\x01\x78", 2); /* code 1, data -8 */
	ra = CFI_RA;
	put(im, &ra, 1);
	put(im, "\x01\x1b", 2); /* one byte: pcrel sdata4 */
	put(im, cie, cie_bytes);
	length = (int32_t)(im->n - cie_at - 4);
	memcpy(im->bytes + cie_at, &length, 4);

	at = im->n;
	fde_offset = (int32_t)at;
	memcpy(im->bytes + fde_at, &fde_offset, 4);
	put32(im, 0);
	put32(im, (int64_t)(at + 4 - cie_at));
	put32(im, CODE_AT - (int64_t)im->n);
	put32(im, CODE_BYTES);
	put(im, "\0", 1);
	put(im, fde, fde_bytes);
	length = (int32_t)(im->n - at - 4);
	memcpy(im->bytes + at, &length, 4);
	put32(im, 0);

	im->module.eh_frame_hdr = im->bytes;
	im->module.eh_lo = im->bytes;
	im->module.eh_hi = im->bytes + im->n;
}

static int rules_at(struct image *im, unsigned offset)
{
	int rc = cfi_find(&im->module, im->code + offset, &entry);

	return rc ? rc : cfi_run(&entry, im->code + offset, &work);
}

/* CFA = sp + 8, return address at CFA - 8, as in every x86-64 CIE. */
static const uint8_t common[] = {0x0c, CFI_SP, 8, 0x80 | CFI_RA, 1};
#define RULES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void test_locations(void **state)
{
	struct image im;

	/* push fp; mov sp, fp; ...; leave; ret */
	make(&im, "zR", common, sizeof(common),
	    RULES(0x41, 0x0e, 16, 0x80 | CFI_FP, 2, 0x43, 0x0d, CFI_FP, 0x02, 20, 0x0a, 0x0c,
		CFI_SP, 8, 0xc0 | CFI_FP, 0x41, 0x0b));
	assert_int_equal(rules_at(&im, 0), CFI_OK);
	assert_int_equal(entry.lo, im.code);
	assert_int_equal(entry.hi, im.code + CODE_BYTES);
	assert_int_equal(work.now.cfa_reg, CFI_SP);
	assert_int_equal(work.now.cfa.value, 8);
	assert_int_equal(work.now.reg[CFI_RA].kind, CFI_OFFSET);
	assert_int_equal(work.now.reg[CFI_RA].value, -8);
	assert_int_equal(work.now.reg[CFI_FP].kind, CFI_SAME);

	assert_int_equal(rules_at(&im, 1), CFI_OK);
	assert_int_equal(work.now.cfa.value, 16);
	assert_int_equal(work.now.reg[CFI_FP].value, -16);
	assert_int_equal(rules_at(&im, 4), CFI_OK);
	assert_int_equal(work.now.cfa_reg, CFI_FP);
	assert_int_equal(work.now.cfa.value, 16);
	assert_int_equal(rules_at(&im, 23), CFI_OK);
	assert_int_equal(work.now.cfa_reg, CFI_FP);
	assert_int_equal(rules_at(&im, 24), CFI_OK);
	assert_int_equal(work.now.cfa_reg, CFI_SP);
	assert_int_equal(work.now.reg[CFI_FP].kind, CFI_SAME);
	assert_int_equal(rules_at(&im, 25), CFI_OK);
	assert_int_equal(work.now.cfa_reg, CFI_FP);
	assert_int_equal(work.now.reg[CFI_FP].value, -16);

	assert_int_equal(rules_at(&im, CODE_BYTES), CFI_NONE);
	assert_int_equal(cfi_find(&im.module, im.code - 1, &entry), CFI_NONE);
}

static void test_rules(void **state)
{
	struct image im;

	make(&im, "zR", common, sizeof(common),
	    RULES(0x05, 3, 4, 0x11, 12, 0x7d, 0x07, 13, 0x09, 14, 15, 0x14, 1, 2, 0x15, 2, 0x7e,
		0x2e, 0x80, 1, 0x2f, 0, 3, 0x12, 5, 0x7c, 0x08, CFI_FP, 0x80 | 60, 5, 0x05, 0x80, 2,
		1));
	assert_int_equal(rules_at(&im, 10), CFI_OK);
	assert_int_equal(work.now.reg[3].value, -32);
	assert_int_equal(work.now.reg[12].kind, CFI_OFFSET);
	assert_int_equal(work.now.reg[12].value, 24);
	assert_int_equal(work.now.reg[13].kind, CFI_UNDEFINED);
	assert_int_equal(work.now.reg[14].kind, CFI_REGISTER);
	assert_int_equal(work.now.reg[14].value, 15);
	assert_int_equal(work.now.reg[1].kind, CFI_VAL_OFFSET);
	assert_int_equal(work.now.reg[1].value, -16);
	assert_int_equal(work.now.reg[2].value, 16);
	assert_int_equal(work.now.reg[0].value, 24);
	assert_int_equal(work.now.cfa_reg, 5);
	assert_int_equal(work.now.cfa.value, 32);
}

static void test_damaged(void **state)
{
	static const uint8_t program[] = {
	    0x41, 0x0e, 16, 0x80 | CFI_FP, 2, 0x43, 0x0d, CFI_FP, 0x10, 3, 2, 0x76, 0};
	struct image im;
	unsigned r = 1;

	/* restore without remember; an unknown instruction; an offset change of an expression */
	make(&im, "zR", common, sizeof(common), RULES(0x0b));
	assert_int_equal(rules_at(&im, 0), CFI_UNSUPPORTED);
	make(&im, "zR", common, sizeof(common), RULES(0x3f));
	assert_int_equal(rules_at(&im, 0), CFI_UNSUPPORTED);
	make(&im, "zR", common, sizeof(common), RULES(0x0f, 1, 0x70, 0x0e, 8));
	assert_int_equal(rules_at(&im, 0), CFI_UNSUPPORTED);
	make(&im, "zR", common, sizeof(common), RULES(0x0f, 100, 0x70));
	assert_int_equal(rules_at(&im, 0), CFI_UNSUPPORTED);
	make(&im, "zRS", common, sizeof(common), RULES(0));
	assert_int_equal(rules_at(&im, 0), CFI_OK);
	assert_true(entry.signal);
	make(&im, "zRX", common, sizeof(common), RULES(0));
	assert_int_equal(rules_at(&im, 0), CFI_OK);
	make(&im, "X", common, sizeof(common), RULES(0));
	assert_int_equal(rules_at(&im, 0), CFI_UNSUPPORTED);

	/* any damage to any byte, and any cut, gives a result and reads nothing outside (under
	 * sanitizers) */
	for (unsigned i = 0; i < 200000; i++) {
		int rc;

		make(&im, "zR", common, sizeof(common), program, sizeof(program));
		for (unsigned k = 0; k < 1 + i % 3; k++) {
			r = r * 1103515245 + 12345;
			im.bytes[(r >> 8) % im.n] ^= (uint8_t)(1 + (r >> 20) % 255);
		}
		r = r * 1103515245 + 12345;
		im.module.eh_hi = im.bytes + (i % 2 ? im.n : (r >> 8) % im.n);
		rc = rules_at(&im, 9);
		assert_in_range(rc, CFI_OK, CFI_UNSUPPORTED);
	}
}

/* --- expressions --- */

static struct cfi_expr expr;

static bool symbolic(uintptr_t pc, const uint8_t *code, size_t n, struct cfi_value *out)
{
	memset(&expr, 0, sizeof(expr));
	expr.pc = pc;
	return cfi_eval(&expr, code, n, NULL, out);
}

static void test_plt(void **state)
{
#if defined(__x86_64__)
	/* sp + 8 + (pc % 16 >= 11) * 8, of the linker's PLT */
	static const uint8_t code[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	struct cfi_value v;
	assert_true(symbolic(0x1000, code, sizeof(code), &v));
	assert_int_equal(v.base, CFI_BASE_SP);
	assert_int_equal(v.offset, 8);
	assert_true(symbolic(0x100b, code, sizeof(code), &v));
	assert_int_equal(v.offset, 16);
#endif
}

static void test_symbols(void **state)
{
	/* the word at fp - 16: a realigned frame's CFA */
	static const uint8_t at_fp[] = {0x70 + CFI_FP, 0x70, 0x06};
	static const uint8_t other[] = {0x70 + 3, 0};
	static const uint8_t twice[] = {0x70 + CFI_FP, 0, 0x06, 0x06};
	static const uint8_t sum[] = {0x70 + CFI_FP, 0, 0x70 + CFI_SP, 0, 0x22};
	struct cfi_value v;

	assert_true(symbolic(0, at_fp, sizeof(at_fp), &v));
	assert_int_equal(v.base, CFI_BASE_AT_FP);
	assert_int_equal(v.inner, -16);
	assert_int_equal(v.offset, 0);
	/* unknown registers, and values that no row can express, are refused */
	assert_false(symbolic(0, other, sizeof(other), &v));
	assert_false(symbolic(0, twice, sizeof(twice), &v));
	assert_false(symbolic(0, sum, sizeof(sum), &v));
}

static bool read_word(void *arg, uintptr_t address, unsigned bytes, uint64_t *out)
{
	*out = 0;
	if (address < 0x1000 || bytes > 8)
		return false;
	memcpy(out, (uint8_t *)arg + (address - 0x1000), bytes);
	return true;
}

static int64_t value(const uint8_t *code, size_t n)
{
	static uint64_t memory[4] = {0x1122334455667788, 2, 3, 4};
	uintptr_t regs[CFI_REGS] = {7, 11, 0x1008};
	struct cfi_value v;

	memset(&expr, 0, sizeof(expr));
	expr.regs = regs;
	expr.known = 7;
	expr.read = read_word;
	expr.arg = memory;
	return cfi_eval(&expr, code, n, NULL, &v) ? v.offset : -999;
}
#define VALUE(...) value(RULES(__VA_ARGS__))

static void test_numbers(void **state)
{
	uint8_t many[CFI_EXPR_STACK + 8];
	unsigned r = 7;

	assert_int_equal(VALUE(0x70, 5), 12);
	assert_int_equal(VALUE(0x92, 1, 0x7f), 10);
	assert_int_equal(VALUE(0x73, 0), -999); /* not known */
	assert_int_equal(VALUE(0x72, 0, 0x06), 2);
	assert_int_equal(VALUE(0x72, 0x78, 0x94, 2), 0x7788);
	assert_int_equal(VALUE(0x30, 0x06), -999); /* not readable */
	assert_int_equal(VALUE(0x08, 200), 200);
	assert_int_equal(VALUE(0x09, 200), -56);
	assert_int_equal(VALUE(0x0a, 0, 1), 256);
	assert_int_equal(VALUE(0x0b, 0xff, 0xff), -1);
	assert_int_equal(VALUE(0x10, 0x80, 1), 128);
	assert_int_equal(VALUE(0x11, 0x7f), -1);
	assert_int_equal(VALUE(0x35, 0x33, 0x1c), 2);
	assert_int_equal(VALUE(0x35, 0x33, 0x16, 0x1c), -2);
	assert_int_equal(VALUE(0x31, 0x32, 0x33, 0x17), 2);
	assert_int_equal(VALUE(0x31, 0x32, 0x33, 0x15, 2), 1);
	assert_int_equal(VALUE(0x37, 0x32, 0x1b), 3);
	assert_int_equal(VALUE(0x37, 0x30, 0x1b), -999);
	assert_int_equal(VALUE(0x37, 0x32, 0x1d), 1);
	assert_int_equal(VALUE(0x35, 0x1f, 0x19), 5);
	assert_int_equal(VALUE(0x35, 0x20), ~5);
	assert_int_equal(VALUE(0x35, 0x1f, 0x31, 0x26), -3);
	assert_int_equal(VALUE(0x31, 0x28, 1, 0, 0x35, 0x37), 7); /* branch over a byte */
	assert_int_equal(VALUE(0x30, 0x28, 1, 0, 0x35), 5);
	assert_int_equal(VALUE(0x2f, 0xfd, 0xff), -999); /* for ever */
	assert_int_equal(VALUE(0x2f, 100, 0), -999);
	assert_int_equal(VALUE(0x22), -999);
	assert_int_equal(VALUE(0x13), -999);
	assert_int_equal(VALUE(0xf0), -999);
	memset(many, 0x31, sizeof(many));
	assert_int_equal(value(many, sizeof(many)), -999);
	for (unsigned i = 0; i < 300000; i++) {
		uint8_t code[16];

		for (unsigned k = 0; k < sizeof(code); k++) {
			r = r * 1103515245 + 12345;
			code[k] = (uint8_t)(r >> 16);
		}
		if (code[0] != 0x06) {
			struct cfi_value v;

			memset(&expr, 0, sizeof(expr));
			cfi_eval(&expr, code, sizeof(code), NULL, &v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_locations),
	    cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_plt),
	    cmocka_unit_test(test_symbols),
	    cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

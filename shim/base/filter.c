/*
 * filter.c - see filter.h. Knows the part of classic BPF that the kernel accepts for seccomp.
 */
#include "base/filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/sys.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define FILTERS_MAX 64

struct filter {
	struct sock_filter *program;
	unsigned length;
	bool removed;
};

static struct {
	struct filter each[FILTERS_MAX];
	unsigned count;
	unsigned refusals; /* while it is not 0, nothing is allowed */
} filters;

static bool alu(uint16_t code, uint32_t *a, uint32_t operand)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		*a += operand;
		return true;
	case BPF_SUB:
		*a -= operand;
		return true;
	case BPF_MUL:
		*a *= operand;
		return true;
	case BPF_DIV:
		if (!operand)
			return false;
		*a /= operand;
		return true;
	case BPF_AND:
		*a &= operand;
		return true;
	case BPF_OR:
		*a |= operand;
		return true;
	case BPF_XOR:
		*a ^= operand;
		return true;
	case BPF_LSH:
		*a = operand < 32 ? *a << operand : 0;
		return true;
	case BPF_RSH:
		*a = operand < 32 ? *a >> operand : 0;
		return true;
	case BPF_NEG:
		*a = -*a;
		return true;
	default:
		return false;
	}
}

static bool jumps(uint16_t code, uint32_t a, uint32_t operand)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == operand;
	case BPF_JGT:
		return a > operand;
	case BPF_JGE:
		return a >= operand;
	default: /* BPF_JSET */
		return a & operand;
	}
}

/* The registers of the BPF machine. */
struct machine {
	struct seccomp_data data;
	uint32_t a, x, memory[BPF_MEMWORDS];
};

/* Run an instruction that is neither a jump nor a return. False: not valid. */
static bool step(struct machine *m, const struct sock_filter *i)
{
	switch (i->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (i->k % 4 || i->k > sizeof(m->data) - 4)
			return false;
		memcpy(&m->a, (const char *)&m->data + i->k, 4);
		return true;
	case BPF_LD | BPF_W | BPF_LEN:
		m->a = sizeof(m->data);
		return true;
	case BPF_LDX | BPF_W | BPF_LEN:
		m->x = sizeof(m->data);
		return true;
	case BPF_LD | BPF_IMM:
		m->a = i->k;
		return true;
	case BPF_LDX | BPF_IMM:
		m->x = i->k;
		return true;
	case BPF_MISC | BPF_TAX:
		m->x = m->a;
		return true;
	case BPF_MISC | BPF_TXA:
		m->a = m->x;
		return true;
	default:
		break;
	}
	if (BPF_CLASS(i->code) == BPF_ALU)
		return alu(i->code, &m->a, BPF_SRC(i->code) == BPF_X ? m->x : i->k);
	if (i->k >= BPF_MEMWORDS)
		return false;
	switch (i->code) {
	case BPF_LD | BPF_MEM:
		m->a = m->memory[i->k];
		return true;
	case BPF_LDX | BPF_MEM:
		m->x = m->memory[i->k];
		return true;
	case BPF_ST:
		m->memory[i->k] = m->a;
		return true;
	case BPF_STX:
		m->memory[i->k] = m->x;
		return true;
	default:
		return false;
	}
}

uint32_t filter_run(
    const struct sock_filter *program, unsigned length, uint32_t number, const long arguments[6])
{
	struct machine m = {.data = {.nr = (int)number, .arch = ARCHITECTURE}};

	for (int i = 0; i < 6; i++)
		m.data.args[i] = (uint64_t)arguments[i];
	/* jumps only lead forward */
	for (uint64_t at = 0; at < length; at++) {
		const struct sock_filter *i = &program[at];

		if (BPF_CLASS(i->code) == BPF_RET)
			return BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
		if (i->code == (BPF_JMP | BPF_JA))
			at += i->k;
		else if (BPF_CLASS(i->code) == BPF_JMP)
			at += jumps(i->code, m.a, BPF_SRC(i->code) == BPF_X ? m.x : i->k) ? i->jt
											  : i->jf;
		else if (!step(&m, i))
			break;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static bool all_allow(long number, const long arguments[6])
{
	unsigned count = __atomic_load_n(&filters.count, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&filters.refusals, __ATOMIC_RELAXED))
		return false;
	for (unsigned i = 0; i < count; i++) {
		const struct filter *f = &filters.each[i];

		if (!__atomic_load_n(&f->removed, __ATOMIC_RELAXED) &&
		    (filter_run(f->program, f->length, (uint32_t)number, arguments) &
			SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ALLOW)
			return false;
	}
	return true;
}

bool filter_any(void)
{
	unsigned count = __atomic_load_n(&filters.count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count; i++)
		if (!__atomic_load_n(&filters.each[i].removed, __ATOMIC_RELAXED))
			return true;
	return __atomic_load_n(&filters.refusals, __ATOMIC_RELAXED);
}

bool filter_allows(long number, const long arguments[6])
{
	static const long descriptor[6] = {3};

	/* an opened file must be closed again */
	return all_allow(number, arguments) &&
	       (number != SYS_openat || all_allow(SYS_close, descriptor));
}

/* Read memory of the host that may not exist. */
static bool read_memory(void *into, const void *from, size_t bytes)
{
	struct iovec to = {into, bytes}, source = {(void *)(uintptr_t)from, bytes};
	long pid = sys_getpid();

	return sys_call(SYS_process_vm_readv, pid, (long)&to, 1, (long)&source, 1, 0) ==
	       (long)bytes;
}

int filter_add(const void *fprog)
{
	struct sock_fprog host;
	struct filter fresh = {NULL, 0, false};
	unsigned place;

	if (!fprog || !read_memory(&host, fprog, sizeof(host)) || !host.len ||
	    host.len > BPF_MAXINSNS)
		goto refuse;
	fresh.length = host.len;
	fresh.program = sys_pages(host.len * sizeof(*host.filter));
	if (!fresh.program)
		goto refuse;
	if (!read_memory(fresh.program, host.filter, host.len * sizeof(*host.filter)))
		goto free_program;
	place = filters.count;
	if (place == FILTERS_MAX)
		goto free_program;
	filters.each[place] = fresh;
	__atomic_store_n(&filters.count, place + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&sys_allows, filter_allows, __ATOMIC_RELEASE);
	return (int)place;
free_program:
	sys_pages_free(fresh.program, fresh.length * sizeof(*host.filter));
refuse:
	__atomic_fetch_add(&filters.refusals, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&sys_allows, filter_allows, __ATOMIC_RELEASE);
	return -1;
}

void filter_remove(int number)
{
	if (number < 0)
		__atomic_fetch_sub(&filters.refusals, 1, __ATOMIC_ACQ_REL);
	else /* its memory stays: another thread may be running it */
		__atomic_store_n(&filters.each[number].removed, true, __ATOMIC_RELEASE);
}

void filter_restore(int number)
{
	__atomic_store_n(&filters.each[number].removed, false, __ATOMIC_RELEASE);
}

/* test_filter.c - filters answer as in the kernel: programs with every kind of instruction are
 * installed in a child, which asks the kernel. */
#include "../under.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/filter.h"
#include "base/sys.h"

#define DATA(field) offsetof(struct seccomp_data, field)
#define LENGTH(program) (sizeof(program) / sizeof((program)[0]))
#define ERROR(n) (SECCOMP_RET_ERRNO | (n))

static long call(long number, long a, long b, long c)
{
	return syscall(number, a, b, c, 0, 0, 0);
}

/* The kernel's answer: an error number, 0 if it allows the call. */
static int kernel(const struct sock_filter *program, unsigned length, long number, long a, long b)
{
	struct sock_fprog p = {(unsigned short)length, (struct sock_filter *)(uintptr_t)program};
	int status;
	pid_t child = fork();

	if (!child) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0))
			_exit(200);
		errno = 0;
		call(number, a, b, 0);
		_exit(errno);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 200);
	return WEXITSTATUS(status);
}

static void compare(const struct sock_filter *program, unsigned length, long a, long b)
{
	const long arguments[6] = {a, b, 0, 0, 0, 0};
	uint32_t answer = filter_run(program, length, SYS_getppid, arguments);
	int error = (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO
			? (int)(answer & SECCOMP_RET_DATA)
			: 0;

	assert_int_equal(kernel(program, length, SYS_getppid, a, b), error);
}

/* The answer is a computed error number. The child can exit as usual. */
#define ONLY_GETPPID                                                                               \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(nr)),                                              \
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),                                \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define ANSWER                                                                                     \
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7f),                                                 \
	    BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_A, 0)

static void test_arithmetic(void **state)
{
	static const uint16_t operations[] = {
	    BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND, BPF_OR, BPF_XOR, BPF_LSH, BPF_RSH};
	static const uint32_t operands[] = {1, 3, 7, 31};

	for (unsigned i = 0; i < LENGTH(operations); i++)
		for (unsigned k = 0; k < LENGTH(operands); k++) {
			struct sock_filter constant[] = {ONLY_GETPPID,
			    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args[0])),
			    BPF_STMT(BPF_ALU | operations[i] | BPF_K, operands[k]), ANSWER};
			struct sock_filter other[] = {ONLY_GETPPID,
			    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args[1])),
			    BPF_STMT(BPF_MISC | BPF_TAX, 0),
			    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args[0])),
			    BPF_STMT(BPF_ALU | operations[i] | BPF_X, 0), ANSWER};

			compare(constant, LENGTH(constant), 0x12345, 0);
			compare(other, LENGTH(other), 0x6789abcd, operands[k]);
		}
}

static void test_memory(void **state)
{
	static const struct sock_filter program[] = {ONLY_GETPPID,
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args[0])), BPF_STMT(BPF_ST, 3),
	    BPF_STMT(BPF_LDX | BPF_IMM, 5), BPF_STMT(BPF_STX, 15), BPF_STMT(BPF_LD | BPF_IMM, 0),
	    BPF_STMT(BPF_LDX | BPF_MEM, 3), BPF_STMT(BPF_MISC | BPF_TXA, 0),
	    BPF_STMT(BPF_LDX | BPF_MEM, 15), BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
	    BPF_STMT(BPF_ALU | BPF_NEG, 0), BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
	    BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), ANSWER};

	for (long a = 0; a < 40; a += 13)
		compare(program, LENGTH(program), a, 0);
}

static void test_jumps(void **state)
{
	static const uint16_t tests[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};

	for (unsigned i = 0; i < LENGTH(tests); i++)
		for (long a = 3; a <= 9; a++) {
			struct sock_filter program[] = {ONLY_GETPPID,
			    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args[1])),
			    BPF_STMT(BPF_MISC | BPF_TAX, 0),
			    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(args[0])),
			    BPF_JUMP(BPF_JMP | tests[i] | BPF_K, 5, 0, 2),
			    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
			    BPF_STMT(BPF_RET | BPF_K, ERROR(1)),
			    BPF_JUMP(BPF_JMP | tests[i] | BPF_X, 0, 1, 0),
			    BPF_STMT(BPF_RET | BPF_K, ERROR(2)),
			    BPF_STMT(BPF_RET | BPF_K, ERROR(3))};

			compare(program, LENGTH(program), a, 6);
		}
}

/* Programs that the kernel rejects never allow a call and never read out of bounds. */
static void test_invalid(void **state)
{
	static const long none[6] = {0};
	static const struct sock_filter programs[][2] = {
	    {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
	    {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
	    {BPF_STMT(BPF_LD | BPF_MEM, 16), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
	    {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
	    {BPF_JUMP(BPF_JMP | BPF_JA, UINT32_MAX, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
	    {BPF_STMT(BPF_LD | BPF_IMM, 0), BPF_STMT(BPF_LD | BPF_IMM, 0)},
	};

	for (unsigned i = 0; i < LENGTH(programs); i++)
		assert_int_equal(
		    filter_run(programs[i], 2, SYS_getppid, none), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(NULL, 0, SYS_getppid, none), SECCOMP_RET_KILL_PROCESS);
}

/* sys_call() asks all installed filters; an unreadable filter allows nothing. */
static void test_asked(void **state)
{
	static const struct sock_filter no_ppid[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA(nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	static const struct sock_fprog first = {
	    LENGTH(no_ppid), (struct sock_filter *)(uintptr_t)no_ppid};
	static const struct sock_fprog empty = {0, NULL}, wild = {8, (void *)64};
	int one, two;

	assert_int_equal(sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0), getppid());
	one = filter_add(&first);
	assert_true(one >= 0);
	assert_int_equal(sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0), -EPERM);
	assert_int_equal(sys_getpid(), getpid());
	two = filter_add(&first);
	filter_remove(one);
	assert_int_equal(sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0), -EPERM);
	filter_remove(two);
	assert_int_equal(sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0), getppid());
	filter_restore(two);
	assert_int_equal(sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0), -EPERM);
	filter_remove(two);
	for (int i = 0; i < 4; i++) {
		const void *odd = i == 0   ? NULL
				  : i == 1 ? (const void *)16
				  : i == 2 ? (const void *)&empty
					   : (const void *)&wild;

		assert_int_equal(filter_add(odd), -1);
		assert_int_equal(sys_getpid(), -EPERM);
		filter_remove(-1);
		assert_int_equal(sys_getpid(), getpid());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arithmetic),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_jumps),
	    cmocka_unit_test(test_invalid),
	    cmocka_unit_test(test_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

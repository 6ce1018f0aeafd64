/*
 * agree.cc - agree.h. Each thread has its own counts, summed when it ends.
 */
#include "agree.h"

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#else
#include <unwind.h>
#endif

#include "under.h"

namespace
{

constexpr int room = 20000;
std::atomic<uint64_t> stacks, frames, bad, deepest, unfinished;

struct buffers {
	uintptr_t reference[room];
	under_frame got[room], again[room];
};

thread_local buffers *mine;

#ifndef HAVE_LIBUNWIND
/* If an interrupted function's rules are wrong (its return address is signed already, without a
 * rule for it), libgcc looks for a signal frame at a wrong caller, which may be unreadable.
 * Returns whether the walk could go on. */
thread_local sigjmp_buf *faulted;

void on_fault(int signal)
{
	if (faulted)
		siglongjmp(*faulted, 1);
	std::signal(signal, SIG_DFL);
}

[[maybe_unused]] const bool catches = [] {
	struct sigaction sa = {};
	sa.sa_handler = on_fault;
	sa.sa_flags = SA_NODEFER;
	return sigaction(SIGSEGV, &sa, nullptr) == 0 && sigaction(SIGBUS, &sa, nullptr) == 0;
}();
#endif

__attribute__((noinline)) int reference(uintptr_t *out)
{
	/* also runs in signal handlers, and reads memory by calls that may fail */
	int n = 0, saved = errno;
#ifdef HAVE_LIBUNWIND
	unw_context_t context;
	unw_cursor_t cursor;
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	while (n < room && unw_step(&cursor) > 0) {
		unw_word_t ip = 0;
		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		if (!ip)
			break;
		out[n++] = ip;
	}
#else
	struct state {
		uintptr_t *out;
		volatile int n; /* also after a fault */
	} s = {out, 0};
	sigjmp_buf back;
	faulted = &back;
	if (sigsetjmp(back, 0) == 0)
		_Unwind_Backtrace(
		    [](struct _Unwind_Context *c, void *arg) {
			    auto *s = static_cast<state *>(arg);
			    uintptr_t ip = _Unwind_GetIP(c);
			    if (!ip || s->n == room)
				    return _URC_END_OF_STACK;
			    s->out[s->n] = ip;
			    s->n = s->n + 1;
			    return _URC_NO_REASON;
		    },
		    &s);
	faulted = nullptr;
	n = s.n;
	/* the first frame is this function */
	for (int i = 1; i < n; i++)
		out[i - 1] = out[i];
	n -= n > 0;
#endif
	errno = saved;
	return n;
}

void report(const buffers *b, int n, int m, const char *what)
{
	if (bad++ >= 3)
		return;
	fprintf(stderr, "%s: reference %d frames, ours %d\n", what, n, m);
	for (int i = 0; i < (n > m ? n : m) && i < 60; i++) {
		uintptr_t ours =
		    i < m && b->got[i].type == UNDER_NATIVE ? under_address(&b->got[i]) : 0;
		const char *path = i < m ? under_module_path(b->got[i].module) : nullptr;
		fprintf(stderr, "%3d %16lx %16lx%s type %u %s\n", i,
		    i < n ? (unsigned long)b->reference[i] : 0, (unsigned long)ours,
		    i < n && ours != b->reference[i] ? " <--" : "", i < m ? b->got[i].type : 0,
		    path ? path : "-");
	}
}

} // namespace

__attribute__((noinline)) void agree_here()
{
	if (!mine) {
		mine = static_cast<buffers *>(mmap(nullptr, sizeof(buffers), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		if (mine == MAP_FAILED)
			abort();
	}
	buffers *b = mine;
	uint32_t id = under_hook(false);
	int n = reference(b->reference);
	int m = under_frames(id, b->got, room);
	/* frames of the library under test never appear */
	uintptr_t shim = reinterpret_cast<uintptr_t>(under_call);
	int all = n;
	for (int k = n = 0; k < all; k++)
		if (b->reference[k] < shim || b->reference[k] >= shim + 64)
			b->reference[n++] = b->reference[k];
	stacks++;
	frames += n;
	if ((uint64_t)n > deepest)
		deepest = n;

	/* The first frame is this function, at two different calls. */
	int i = 1, j = 1;
	bool same = m > 0 && n > 0;
	while (same && i < n && j < m && b->got[j].type == UNDER_NATIVE) {
		uintptr_t ours = under_address(&b->got[j]);
		if (b->reference[i] == ours) {
			i++;
			j++;
			continue;
		}
		same = false;
	}
	if (same && i < n && j < m && b->got[j].type == UNDER_CUT) {
		/* The outermost 2,048 must be there. */
		i += b->got[j].value;
		for (j++; same && i < n && j < m; i++, j++)
			same = b->reference[i] == under_address(&b->got[j]);
	}
	if (same && i == n && j == m - 1 && b->got[j].type == UNDER_END) {
		/* neither can go on */
		unfinished++;
	} else if (!same || (all < room && i != n) || j != m) {
		report(b, n, m, "differs");
	}

	/* a walk that reuses nothing must give the same stack */
	under_forget();
	uint32_t whole = under_hook(false);
	int k = under_frames(whole, b->again, room);
	bool equal = k == m;
	for (int f = 1; equal && f < m; f++)
		equal =
		    b->got[f].type == b->again[f].type && b->got[f].module == b->again[f].module &&
		    b->got[f].value == b->again[f].value && b->got[f].exact == b->again[f].exact;
	if (!equal)
		report(b, n, m, "reuse differs from a whole walk");
}

agree_counts agree_totals()
{
	return {stacks, frames, bad, deepest, unfinished};
}

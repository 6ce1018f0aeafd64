/*
 * trace_file_header.c - the header of the trace file: its constant part with its check, its
 * counters with their copies, and the end of the image. The order of the stores keeps the header
 * valid if the process is killed in between (docs/trace-format.md, section 8).
 */
#include "trace/trace_file.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/xxh64.h"

static uint64_t *copy_of(uint64_t *counter)
{
	return counter + TRACE_COPY_OFFSET / sizeof(*counter);
}

void trace_file_count(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_fetch_add(copy_of(counter), n, __ATOMIC_RELAXED);
}

void trace_file_flag(uint64_t flag)
{
	uint64_t *flags = &trace_file_header->flags;

	__atomic_fetch_or(flags, flag, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_fetch_or(copy_of(flags), flag, __ATOMIC_RELAXED);
}

static void check_header(struct trace_header *h)
{
	struct trace_header checked = *h;

	memcpy(checked.magic, TRACE_MAGIC, sizeof(checked.magic)); /* it may not be there yet */
	h->check = xxh64(&checked, offsetof(struct trace_header, check));
}

void trace_file_header_begin(struct trace_header *h)
{
	uint64_t magic;

	memcpy(&magic, TRACE_MAGIC, sizeof(magic));
	__atomic_store_n((uint64_t *)(void *)h->magic, magic, __ATOMIC_RELEASE);
}

void trace_file_set_mode(uint32_t mode)
{
	trace_file_header->mode = mode; /* a check that fits the other mode means: killed here */
	check_header(trace_file_header);
}

void trace_file_set_end(struct trace_header *h, uint32_t how, uint32_t code, uint64_t mono_ns)
{
	struct {
		uint32_t how, code;
		uint64_t mono_ns;
	} end = {how, code, mono_ns};

	h->end_mono_ns = mono_ns;
	h->end_code = code;
	h->end_check = xxh64(&end, sizeof(end));
	__atomic_store_n(&h->end_how, how, __ATOMIC_RELEASE);
}

void trace_file_take_back_end(struct trace_header *h)
{
	__atomic_store_n(&h->end_how, TRACE_END_NONE, __ATOMIC_RELEASE);
	h->end_code = 0;
	h->end_mono_ns = 0;
	h->end_check = 0;
}

void trace_file_header_fill(struct trace_header *h, uint32_t image, uint64_t flags)
{
	struct clock_pair now = clock_now();

	h->major = TRACE_MAJOR;
	h->minor = TRACE_MINOR;
	h->header_bytes = TRACE_HEADER_BYTES;
	h->slot_bytes = TRACE_SLOT_BYTES;
#if defined(__x86_64__)
	h->arch = TRACE_ARCH_X86_64;
#else
	h->arch = TRACE_ARCH_AARCH64;
#endif
	h->mode = TRACE_MODE_FULL;
	h->clock = tick_clock.kind;
	h->ticks_shift = tick_clock.shift;
	h->ticks_hz = tick_clock.hz;
	h->pid = (uint32_t)shim.pid;
	h->ppid = (uint32_t)sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
	h->image = image;
	h->start_mono_ns = now.mono_ns;
	h->start_ticks = now.ticks;
	h->start_real_ns = sys_clock_ns(CLOCK_REALTIME);
	h->file_bytes = TRACE_SLOT_BYTES;
	h->flags = flags;
	*copy_of(&h->flags) = h->flags;
	check_header(h);
}

/*
 * trace.h - the trace file format: what the shim writes and the analyzer reads.
 *
 * This header and the files beside it are all that the two halves share: wire structures and
 * numbers, no functions. docs/trace-format.md is normative: where the two differ, this header is
 * wrong. All fixed-width fields are little-endian. Offsets are asserted at the end of the file.
 */
#ifndef WHYOOM_TRACE_H
#define WHYOOM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "WHYOOMT\n" /* 8 bytes, no terminator on disk */
#define TRACE_MAJOR 2 /* raised for changes that older readers cannot skip */
/* TRACE_MINOR is in trace_kinds.def; it is raised for changes that older readers can skip. */

#define TRACE_HEADER_BYTES 4096u /* the file header, at offset 0 */
#define TRACE_SLOT_BYTES 65536u /* chunks start and end at multiples of it */
#define TRACE_FIRST_CHUNK_BYTES 65536u /* a thread's first chunk */
#define TRACE_CHUNK_BYTES 1048576u /* each later one */
#define TRACE_CHUNK_BYTES_MAX 67108864u /* readers refuse larger ones */
#define TRACE_SIZE_LIMIT (1ull << 48) /* a larger block or mapping of the host is damage */

enum trace_arch { TRACE_ARCH_X86_64 = 1, TRACE_ARCH_AARCH64 = 2 };
enum trace_mode { TRACE_MODE_FULL = 0, TRACE_MODE_SAMPLED = 1, TRACE_MODE_SUPERVISOR = 2 };
enum trace_clock { TRACE_CLOCK_TSC = 1, TRACE_CLOCK_CNTVCT = 2, TRACE_CLOCK_MONOTONIC = 3 };

/* How the image ended, by its own record. end_code is the exit status or the signal. */
enum trace_end {
	TRACE_END_NONE = 0, /* still running, or killed */
	TRACE_END_EXIT = 1, /* exit(), _exit() or return from main */
	TRACE_END_SIGNAL = 2, /* a fatal signal that a handler saw */
	TRACE_END_EXEC = 3, /* replaced by exec: the next image follows */
	TRACE_END_DETACHED = 4, /* the recording ended, the process goes on */
};

/* Why events were dropped: the index in trace_header.dropped[]. */
enum trace_drop {
	TRACE_DROP_NO_SPACE = 0, /* no room in the file: disk full, RLIMIT_FSIZE, no permission */
	TRACE_DROP_NO_MEMORY = 1, /* the file could not be mapped: RLIMIT_AS, no descriptors */
	TRACE_DROP_SIGNAL = 2, /* in a signal handler, when the side area was full */
	TRACE_DROP_NESTED = 3, /* inside the recorder itself */
	TRACE_DROP_BUDGET = 4, /* beyond WHYOOM_MAX_TRACE or WHYOOM_MAX_DISK: under 64 KiB */
	TRACE_DROP_DEFINITION = 5, /* a stack, code or module definition had no room */
	TRACE_DROP_NO_THREAD = 6, /* a thread without state: early start or late exit */
	TRACE_DROP_VFORK = 7, /* in a vfork child, which shares its parent's trace */
	TRACE_DROP_RIGHTS = 8, /* the process gave up the right to write the file */
	TRACE_DROP_REASONS = 16
};

/* `whyoom ctl` sends commands, the process answers. Each side writes its own half, and its counter
 * last. The process fills in its half at its start, so that a reader sees the current state. */
struct trace_control {
	uint32_t asked; /* raised with each command */
	uint32_t command; /* TRACE_CONTROL_* */
	uint64_t every, exact_from; /* of SAMPLED; 0: unchanged */
	uint32_t answered; /* the latest value of `asked` that was handled */
	uint32_t mode; /* enum trace_mode, now */
	uint32_t paused; /* 1: no new blocks are recorded */
	uint32_t reserved;
	uint64_t every_now, exact_from_now;
};
enum trace_control_command {
	TRACE_CONTROL_STATUS = 0,
	TRACE_CONTROL_PAUSE = 1,
	TRACE_CONTROL_RESUME = 2,
	TRACE_CONTROL_FULL = 3,
	TRACE_CONTROL_SAMPLED = 4,
};

/*
 * A checkpoint consists of the chunks of type 4 with its number in `tid`. It is valid once the
 * header names it, in the older of two slots. The writer stores 0 as number, then ticks and parts,
 * then the number (release).
 */
struct trace_checkpoint {
	uint32_t number; /* from 1, rising by one; 0: none */
	uint32_t parts; /* chunks, of sequence 0 to parts - 1, all sealed */
	uint64_t ticks; /* it replaces all events up to here */
};
#define TRACE_CHECKPOINT_SLOTS 2
#define TRACE_CHECKPOINT_PERIODS                                                                   \
	64u /* most CHECKPOINT events in one; then neighbours are merged                           \
	     */

/* Rights that a process may give up; without them it may not reach its files. */
enum trace_right {
	TRACE_RIGHT_UNKNOWN = 0, /* files could no longer be opened, by a call that was not seen */
	TRACE_RIGHT_USER = 1, /* setuid and similar calls */
	TRACE_RIGHT_GROUP = 2, /* setgid, setgroups and similar calls */
	TRACE_RIGHT_CAPABILITY = 3,
	TRACE_RIGHT_ROOT = 4, /* chroot, pivot_root */
	TRACE_RIGHT_NAMESPACE = 5, /* unshare, setns: of mounts or users */
	TRACE_RIGHT_SECCOMP = 6,
	TRACE_RIGHT_LANDLOCK = 7,
	TRACE_RIGHT_KINDS = 8
};
#define TRACE_RIGHT_SLOTS 16

/* The losses are `children` and dropped[TRACE_DROP_RIGHTS]. */
struct trace_rights {
	uint64_t ticks[TRACE_RIGHT_SLOTS]; /* when each was first given up; 0: kept */
	uint64_t stopped_ticks; /* events are lost from here on; 0: none, or no longer */
	uint64_t children; /* forks that could not open a trace of their own */
	uint32_t stopped; /* enum trace_right: the cause of the latest loss */
	uint32_t reserved;
};

/*
 * A program that the process started or became by exec, and that is not recorded. A writer claims
 * an entry by storing TRACE_UNRECORDED_TAKEN; the entry is valid once it holds another reason.
 */
enum trace_unrecorded_why {
	TRACE_UNRECORDED_MUSL = 1, /* linked with musl */
	TRACE_UNRECORDED_LOADER = 2, /* another loader than glibc's */
	TRACE_UNRECORDED_SANITIZER = 3, /* has a sanitizer, which replaces malloc */
	TRACE_UNRECORDED_MACHINE = 4, /* for another machine, or for 32 bit */
	TRACE_UNRECORDED_STATIC = 5, /* linked statically */
	TRACE_UNRECORDED_SETUID = 6, /* setuid, setgid or file capabilities */
	TRACE_UNRECORDED_LIBRARY = 7, /* cannot open the library: another root, or other rights */
	TRACE_UNRECORDED_DIRECTORY = 8, /* cannot write to the directory of the traces */
	TRACE_UNRECORDED_TAKEN = 255,
};
struct trace_unrecorded {
	uint32_t why; /* enum trace_unrecorded_why; 0: free entry */
	uint32_t count; /* number of starts */
	char path[120]; /* the end of a longer path; terminated */
};
#define TRACE_UNRECORDED_PLACES 16

struct trace_header {
	uint8_t magic[8];
	uint16_t major, minor;
	uint32_t header_bytes; /* TRACE_HEADER_BYTES */
	uint32_t slot_bytes; /* TRACE_SLOT_BYTES */
	uint32_t arch; /* enum trace_arch */
	uint32_t mode; /* enum trace_mode */
	uint32_t clock; /* enum trace_clock */
	uint32_t ticks_shift; /* ticks in this file are the raw counter >> ticks_shift */
	uint32_t pid, ppid; /* as the process sees them */
	uint32_t image; /* how many images this pid had before, by exec */
	uint64_t ticks_hz; /* nominal rate, 0: unknown; the chunks' pairs of times decide */
	uint64_t start_ticks, start_mono_ns, start_real_ns; /* one moment by three clocks */
	uint64_t check; /* XXH64, seed 0, of the bytes before it: see TRACE_CHECKS_FROM */
	uint8_t reserved0[16];

	/* Written while the process runs, each by one aligned store or atomic add. */
	uint64_t file_bytes; /* end of the last claimed chunk */
	uint32_t end_how; /* enum trace_end */
	uint32_t end_code;
	uint64_t end_mono_ns;
	uint64_t dropped[TRACE_DROP_REASONS];
	uint64_t dropped_bytes; /* sum of the known sizes of dropped acquisitions */
	uint64_t flags; /* TRACE_FLAG_* */
	struct trace_control control;
	struct trace_checkpoint checkpoint[TRACE_CHECKPOINT_SLOTS];
	uint64_t paused_bytes; /* of blocks that were acquired while recording was paused */
	/* After definitions used up their part of the budget: stacks that are defined with some
	 * frames only, and missing definitions (a stack counts once for each record). */
	uint64_t brief_stacks, untold;
	/* Bytes of all chunks in the file: raised after a chunk's magic is stored, lowered before a
	 * chunk is shortened or freed. If the chunks have fewer bytes, some are lost. */
	uint64_t chunk_bytes;
	uint64_t end_check; /* XXH64 of end_how, end_code and end_mono_ns, stored before end_how */
	/* XXH64 of each slot, stored before the slot's number. */
	uint64_t checkpoint_check[TRACE_CHECKPOINT_SLOTS];
	uint8_t reserved1[96];
	struct trace_rights rights;
	uint8_t reserved2[360];
	uint64_t unrecorded; /* starts of all programs that are not recorded */
	struct trace_unrecorded unrecorded_program[TRACE_UNRECORDED_PLACES];
};

/* From version 2.9 on everything has a checksum. */
#define TRACE_CHECKS_FROM 9

/* Copies of the counters from `dropped` to `flags` and from `paused_bytes` to `chunk_bytes` lie
 * this many bytes further on. A writer raises the counter first and its copy second. */
#define TRACE_COPY_OFFSET 3072u

#define TRACE_FLAG_BUDGET 1ull /* the budget was reached */
#define TRACE_FLAG_ROOT 2ull /* the process that `whyoom run` or the user started */
#define TRACE_FLAG_FORKED 4ull /* a copy of its parent: earlier blocks are inherited */
#define TRACE_FLAG_FAILED 8ull /* there is a FAILED event */
#define TRACE_FLAG_DISK 16ull /* all traces of the directory together reached their bound */

/*
 * The account of a directory: the bound and the use of disk space for all its traces. Each process
 * maps it shared. All zeros is valid: no process has filled it in yet.
 */
#define TRACE_DISK_NAME "disk.account"
#define TRACE_DISK_MAGIC "WHYOOMD\n" /* 8 bytes */
#define TRACE_DISK_VERSION 1u
#define TRACE_DISK_BYTES 4096u
struct trace_disk {
	uint64_t magic;
	uint32_t version;
	uint32_t small; /* number of the file to which small traces are appended */
	uint64_t bound; /* bytes, set once */
	int64_t held; /* bytes that traces occupy */
	uint64_t counted_s; /* CLOCK_REALTIME of the last scan of the directory, seconds */
	uint64_t reserved[3];
	/* Hints: a small trace that others may be coded against, as tag << 40 | file << 32 |
	 * offset, at index key % TRACE_SMALL_BASES. */
#define TRACE_SMALL_BASES 504u
	uint64_t bases[TRACE_SMALL_BASES];
};

/*
 * The small trace of an ended process, a record of the shared file small.N.whyooms. One write
 * appends a record, so an incomplete write costs that record alone.
 */
#define TRACE_SMALL_SUFFIX ".whyooms"
#define TRACE_SMALL_MAGIC "WHYOOMS\n" /* 8 bytes */
#define TRACE_SMALL_VERSION 1u
#define TRACE_SMALL_HEADER_BYTES 1024u /* bytes of the trace's header in the plain form */
#define TRACE_SMALL_PLAIN_MAX 65536u /* bytes of the plain form */
#define TRACE_SMALL_BYTES_MAX (2u * TRACE_SMALL_PLAIN_MAX) /* bytes of a record */
#define TRACE_SMALL_SLOTS_MAX 8u /* slots of the trace */
#define TRACE_SMALL_FILE_MAX (64u << 20) /* a file of this size is followed by the next */
struct trace_small {
	uint8_t magic[8];
	uint64_t checksum; /* XXH64, seed 0, of the record with this field 0 */
	uint32_t bytes; /* of the record */
	uint16_t version;
	uint8_t coded; /* 1: the plain form is coded; 0: it is not, and may be a base of others */
	uint8_t quantum; /* times are multiples of 1 << quantum ticks */
	uint32_t pid, image;
	uint32_t file_bytes; /* of the trace */
	uint32_t plain_bytes; /* of its plain form, without times */
	uint32_t times;
	uint32_t base; /* offset in this file of the record that it is coded against */
	uint64_t key; /* of its program: traces of one key are similar */
	uint64_t start_real_ns;
};

enum trace_chunk_type {
	TRACE_CHUNK_EVENTS = 1, /* one thread's events */
	TRACE_CHUNK_DEFINITIONS = 2, /* shared by all threads, see struct trace_def */
	TRACE_CHUNK_SHARED = 3, /* events of threads without a chunk; a SHARED_THREAD record
				   names the thread of those that follow */
	TRACE_CHUNK_CHECKPOINT = 4, /* part of a checkpoint, with events as in SHARED; no side
				       area; ticks are the header's */
};

#define TRACE_CHUNK_MAGIC 0x6b6e6843u /* "Chnk" */

struct trace_chunk {
	uint32_t magic;
	uint16_t type; /* enum trace_chunk_type */
	uint16_t header_bytes; /* 64: where the body starts */
	uint32_t bytes; /* of the whole chunk, a multiple of slot_bytes */
	uint32_t thread; /* serial number of the thread in this image, from 1; 0: shared */
	uint32_t tid; /* the kernel's, which it may use again; of CHECKPOINT: its number */
	uint32_t sequence; /* of this thread's, or this checkpoint's, chunks, from 0 */
	uint64_t ticks; /* one moment in both clocks; event times count from ticks */
	uint64_t mono_ns;
	uint32_t committed; /* bytes of the body that are valid; release store. DEFINITIONS: of the
			       valid records, together */
	uint32_t side_count; /* struct trace_side at the chunk's end; release store */
	/* XXH64, seed 0, of the committed body, once sealed. Before, of EVENTS and SHARED, the sum
	 * of the events' words, raised after `committed`: see TRACE_WORD. */
	uint64_t checksum;
	uint32_t sealed; /* 1: complete, checksum valid */
	/* The low half of XXH64 of the header's first 40 bytes, with 0 for `bytes`; just before
	 * the chunk is sealed, of its first 56 bytes, exclusive or that of the side records. */
	uint32_t check;
};
#define TRACE_CHUNK_CONSTANT 40u /* bytes of the header that never change, but for `bytes` */
#define TRACE_CHUNK_CHECKED 56u

/* An event's words are the last 8 bytes of it and the 8 bytes before those, whatever they hold. An
 * extended event has further words, back to its beginning. The first events in a chunk also count
 * words of its header: the sum so far, 0 and the check. */
#define TRACE_WORD 8u

/*
 * An allocation or release by a signal handler while its thread was writing an event. The n-th
 * record ends n * 32 bytes before the chunk's end; side_count says how many are valid.
 */
struct trace_side {
	uint64_t ticks; /* absolute */
	uint64_t address;
	uint64_t size; /* 0 for a release */
	uint32_t stack; /* 0: unknown */
	uint8_t kind; /* TRACE_ALLOC, TRACE_FREE or TRACE_UNFREE */
	uint8_t flags; /* as in the tag of that kind */
	uint16_t check; /* the low quarter of XXH64 of the bytes before it */
};
#define TRACE_SIDE_MAX 64u

/*
 * One definition in a TRACE_CHUNK_DEFINITIONS body, 8-byte aligned. A writer claims space by an
 * atomic add, stores `head` with committed = 0, writes the body, and stores `head` again with
 * committed = 1 (release). A reader steps over heads that are zero, 8 bytes at a time. The last
 * four bytes of a record are its check: the low half of XXH64 of the bytes before them, with
 * committed = 0.
 */
struct trace_def {
	uint32_t bytes; /* whole record, head included, multiple of 8 */
	uint16_t kind; /* TRACE_DEF_* */
	uint8_t committed;
	uint8_t reserved;
};
#define TRACE_DEF_CHECK_BYTES 4u

/* The kinds of definitions and events: see trace_kinds.def. Ids are fixed. */
#define TRACE_DEF(id, NAME, meaning) TRACE_DEF_##NAME = id,
enum trace_def_kind {
#include "trace_kinds.def"
};

/*
 * An event starts with a tag byte: the kind in the low four bits, flags in the high four. Kinds 1
 * to 14 are compact; their bodies never change. After kind 15 come a varint kind and a varint
 * length, then a body of that length; a reader skips unknown kinds.
 */
#define TRACE_COMPACT(id, NAME, meaning) TRACE_##NAME = id,
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) TRACE_##NAME = id,
enum trace_event_kind {
	TRACE_EXTENDED = 15,
#include "trace_kinds.def"
};

#define TRACE_TAG_KIND 0x0f
/* TRACE_ALLOC */
#define TRACE_ALLOC_SAME_STACK 0x80 /* the stack of this chunk's previous ALLOC: no stack field */
#define TRACE_ALLOC_API_SHIFT 4 /* three bits: enum trace_api */
/* TRACE_ALLOC_EXPECTED: the table has the size, too: no size field */
#define TRACE_ALLOC_SAME_SIZE TRACE_ALLOC_SAME_STACK
/* A chunk's table of what followed each stack: how many places, and the place of a stack's id. */
#define TRACE_EXPECTED_PLACES 1024
#define TRACE_EXPECTED_PLACE(stack) ((uint32_t)(stack)*UINT32_C(2654435761) >> 22)
/* TRACE_FREE */
#define TRACE_FREE_REALLOC                                                                         \
	0x10 /* the releasing half of a realloc: the thread's next ALLOC of api                    \
		REALLOC is the same block's new place, or UNFREE undoes it */

enum trace_api {
	TRACE_API_MALLOC = 0,
	TRACE_API_CALLOC = 1,
	TRACE_API_REALLOC = 2, /* realloc, reallocarray, rallocx, mi_realloc ... */
	TRACE_API_ALIGNED = 3, /* posix_memalign, aligned_alloc, memalign, valloc, pvalloc */
	TRACE_API_ALLOCATOR = 4, /* own entry points of jemalloc, tcmalloc, mimalloc */
	/* only in events with a length: */
	TRACE_API_MMAP = 8,
	TRACE_API_MREMAP = 9,
	TRACE_API_BRK = 10, /* brk, sbrk */
	TRACE_API_SHMAT = 11,
	TRACE_API_MUNMAP = 12,
	TRACE_API_SHMDT = 13,
	TRACE_API_THREAD = 14, /* pthread_create, which maps a stack; only in FAILED */
	TRACE_API_FALLOCATE = 15, /* posix_fallocate, fallocate of a file in memory; likewise */
};

/* MAP.flags, not those of mmap */
#define TRACE_MAP_ALLOCATOR 1u /* by malloc itself: blocks lie inside */
#define TRACE_MAP_SYSCALL 2u /* through syscall() */
#define TRACE_MAP_REMAP 4u /* acquiring half of mremap, with the attributes of the UNMAP before */
#define TRACE_MAP_FIXED 8u /* replaces mappings that it overlaps */
#define TRACE_MAP_SHARED 16u
#define TRACE_MAP_HUGETLB 32u
#define TRACE_MAP_NORESERVE 64u
#define TRACE_MAP_STACK 128u /* MAP_STACK or MAP_GROWSDOWN */
/* UNMAP.flags */
#define TRACE_UNMAP_REMAP 4u /* releasing half of mremap */
#define TRACE_UNMAP_SYSCALL 2u
#define TRACE_UNMAP_ALLOCATOR 1u

enum trace_backing {
	TRACE_BACKING_ANON = 0,
	TRACE_BACKING_FILE = 1,
	TRACE_BACKING_MEMFD = 2,
	TRACE_BACKING_SHM = 3, /* POSIX or System V shared memory */
	TRACE_BACKING_DEVICE = 4,
};

/* FAILED.why: how the call reported that there is no memory */
enum trace_fail {
	TRACE_FAIL_ERRNO = 1, /* returned NULL or MAP_FAILED; result is errno */
	TRACE_FAIL_DEVICE = 2, /* a device's driver or runtime; result is its error number */
	TRACE_FAIL_FRAMEWORK = 3, /* a framework's allocator, such as PyTorch's */
};

/* FAILED.flags */
#define TRACE_FAILED_ABOVE 1u /* the runtime refused it without asking the driver */
#define TRACE_FAILED_NOT_DEVICE 2u /* the driver was asked for host memory */

/* SPACE_ALLOC.flags, SPACE_FREE.flags */
#define TRACE_SPACE_HANDLE 1u /* the address is a handle: the memory has no address yet */
#define TRACE_SPACE_REFERENCE 2u /* one more reference to a known handle: no memory */
#define TRACE_SPACE_STREAM 4u /* in the order of a stream, from a pool */
#define TRACE_SPACE_CAPTURED 8u /* into a graph: allocated when the graph is launched */
#define TRACE_SPACE_ARRAY 16u
#define TRACE_SPACE_REGISTERED 32u /* the program's own memory, page-locked */
#define TRACE_SPACE_MULTICAST 64u /* an object without memory of its own */

/* SPACE_CLEAR.what */
enum trace_clear {
	TRACE_CLEAR_CONTEXT = 1, /* all blocks of this context */
	TRACE_CLEAR_DEVICE = 2, /* all blocks of the space's device */
	TRACE_CLEAR_POOL = 3,
	TRACE_CLEAR_GRAPH = 4,
};

/* NOTICE.what */
enum trace_notice {
	TRACE_NOTICE_BUDGET = 1, /* value: bytes written; later small blocks are missing */
	TRACE_NOTICE_MODE = 2, /* value: enum trace_mode from here on */
	TRACE_NOTICE_PAUSE = 3, /* value: 1 paused, 0 resumed */
	TRACE_NOTICE_LOST = 4, /* value: events of this thread that were lost just before */
	TRACE_NOTICE_PYTHON = 5, /* value: PY_VERSION_HEX when frames are recorded, else 0 */
	TRACE_NOTICE_MODULES = 6, /* value: module generation after dlopen or dlclose */
	TRACE_NOTICE_RATE = 7, /* value: growth of the trace in bytes a second; the sample is mean
				  and exact_from from here on */
	TRACE_NOTICE_THINNED = 8, /* value: live blocks of the sample without room in a checkpoint;
				     the sample is mean and exact_from from here on */
};

/* MARK.phase */
enum trace_mark {
	TRACE_MARK_BEGIN = 1, /* a request begins: the thread, or its task, works for it */
	TRACE_MARK_END = 2, /* it ends, for all threads and tasks */
	TRACE_MARK_POINT = 3, /* a point in time; id 0 */
	TRACE_MARK_ENTER = 4, /* the thread, or its task, works for this request, too */
	TRACE_MARK_LEAVE = 5, /* it stops working for the request, which goes on */
	TRACE_MARK_LENGTH = 6, /* the input has `tokens` tokens so far */
};

/* MARK.what */
enum trace_mark_what {
	TRACE_MARK_REQUEST = 0,
	TRACE_MARK_PHASE = 1, /* of the process: loading, warm-up, serving */
	TRACE_MARK_PUSHED = 2, /* NVTX: a range of the thread, nested in its other ranges */
	TRACE_MARK_RANGE = 3, /* NVTX: a range that any thread may close */
	TRACE_MARK_NVTX = 4, /* NVTX: a point */
};

/* Keys of levels, in bytes unless noted. Values are of the event's time. */
enum trace_level {
	TRACE_LEVEL_RSS = 1,
	TRACE_LEVEL_RSS_ANON = 2,
	TRACE_LEVEL_RSS_FILE = 3,
	TRACE_LEVEL_RSS_SHMEM = 4,
	TRACE_LEVEL_VSIZE = 5,
	TRACE_LEVEL_SWAP = 6,
	TRACE_LEVEL_PSS = 7,
	TRACE_LEVEL_DATA = 8, /* compared with RLIMIT_DATA */
	TRACE_LEVEL_STACKS = 9,
	TRACE_LEVEL_PRIVATE_DIRTY = 10,
	TRACE_LEVEL_PRIVATE_CLEAN = 11,
	TRACE_LEVEL_SHARED = 12, /* resident and shared with other processes */
	TRACE_LEVEL_WHYOOM = 13, /* address space of the recorder, with the mapped trace */
	TRACE_LEVEL_PAGETABLES = 14,
	TRACE_LEVEL_WHYOOM_TRACE = 15, /* the mapped trace in WHYOOM, which is resident */
	TRACE_LEVEL_VIRT_FILE = 16, /* virtual size of private file mappings */
	TRACE_LEVEL_VIRT_ANON = 17, /* of private anonymous mappings, without heap and stacks */
	TRACE_LEVEL_VIRT_SHARED = 18, /* of shared mappings */
	TRACE_LEVEL_VIRT_HEAP = 19, /* of [heap], the program break */
	TRACE_LEVEL_VIRT_STACKS = 20, /* of the main thread's stack */
	TRACE_LEVEL_THREADS = 21, /* count */
	TRACE_LEVEL_RSS_PEAK = 22, /* the largest RSS so far, by the kernel */
	TRACE_LEVEL_WHYOOM_ANON = 23, /* the private memory in WHYOOM; the rest has no pages */
	TRACE_LEVEL_VIRT_THREADS = 24, /* of stacks of threads other than the main one */
	TRACE_LEVEL_RSS_THREADS = 25,
	TRACE_LEVEL_VSIZE_PEAK = 26, /* the largest virtual size so far */
	TRACE_LEVEL_MAPPINGS = 27, /* count, by the kernel's list */
	TRACE_LEVEL_THREADS_STARTED = 28, /* count, since the process began; the ended ones, too */
	TRACE_LEVEL_CG_CURRENT = 32,
	TRACE_LEVEL_CG_MAX = 33, /* absent: no limit */
	TRACE_LEVEL_CG_ANON = 34,
	TRACE_LEVEL_CG_FILE = 35,
	TRACE_LEVEL_CG_KERNEL = 36,
	TRACE_LEVEL_CG_SHMEM = 37,
	TRACE_LEVEL_CG_INACTIVE_FILE = 38,
	TRACE_LEVEL_CG_PEAK = 39,
	TRACE_LEVEL_CG_SWAP = 40,
	TRACE_LEVEL_CG_SWAP_MAX = 41, /* absent: no limit of its own */
	TRACE_LEVEL_CG_OOM = 48, /* count */
	TRACE_LEVEL_CG_OOM_KILL = 49, /* count */
	TRACE_LEVEL_CG_HIGH = 50, /* memory.high, absent: none */
	TRACE_LEVEL_CG_HIGH_COUNT = 51, /* count: how often it was exceeded */
	TRACE_LEVEL_SYS_TOTAL = 56,
	TRACE_LEVEL_SYS_AVAILABLE = 57,
	TRACE_LEVEL_SYS_OOM_KILL = 58, /* count, of the whole machine */
	TRACE_LEVEL_SYS_SWAP_FREE = 59,
	TRACE_LEVEL_SYS_COMMIT_LIMIT = 60, /* absent: the kernel does not hold to it */
	TRACE_LEVEL_SYS_COMMITTED = 61,
	/* The allocator's own statistics. */
	TRACE_LEVEL_MALLOC_ARENA = 64, /* held for blocks without MMAP; USED and FREE are of it */
	TRACE_LEVEL_MALLOC_MMAP = 65, /* blocks with a mapping of their own, headers included */
	TRACE_LEVEL_MALLOC_USED = 66, /* with headers, rounding and caches of threads */
	TRACE_LEVEL_MALLOC_FREE = 67,
	TRACE_LEVEL_MALLOC_TRIMMABLE = 68, /* the part of FREE that could be returned at once */
	/* Blocks from before an attach that were freed since: their usable size, and their count.
	 */
	TRACE_LEVEL_BEFORE_FREED = 69,
	TRACE_LEVEL_BEFORE_FREED_BLOCKS = 70, /* count */
	/* The interpreter's arenas for small objects; the rest of them was never used. */
	TRACE_LEVEL_PYTHON_ARENAS = 72,
	TRACE_LEVEL_PYTHON_USED = 73, /* blocks, and the headers of their pools */
	TRACE_LEVEL_PYTHON_FREE = 74, /* used before */
	TRACE_LEVEL_DEV_FREE = 96, /* of the record's space */
	TRACE_LEVEL_DEV_TOTAL = 97,
	TRACE_LEVEL_DEV_OTHERS = 98,
	TRACE_LEVEL_RESERVED = 99,
	TRACE_LEVEL_ALLOCATED = 100,
	TRACE_LEVEL_DEV_FREE_BEFORE = 101, /* in SPACE_CALL: before the call */
	TRACE_LEVEL_DEV_USED = 102, /* in LEVEL_OF: that process's use of the device */
	TRACE_LEVEL_AGE_NS = 103, /* ns: age of the record's other values */
	/* A file system of fixed size in memory: in LEVEL and FAILED the latest one, in MAP the
	 * file's. */
	TRACE_LEVEL_SHM_TOTAL = 112,
	TRACE_LEVEL_SHM_FREE = 113,
	TRACE_LEVEL_SHM_DEVICE = 114, /* its device number */
	TRACE_LEVEL_SHM_FILE = 115, /* the file's inode */
	TRACE_LEVEL_SHM_WRITTEN = 116, /* memory of the file when it was mapped */
	TRACE_LEVEL_LIMIT_AS = 128, /* RLIMIT_AS, RLIMIT_DATA; absent: unlimited */
	TRACE_LEVEL_LIMIT_DATA = 129,
	TRACE_LEVEL_LIMIT_MAPPINGS = 130, /* count: vm.max_map_count */
};

/* STACK frames */
#define TRACE_FRAME_NATIVE 0u
#define TRACE_FRAME_PYTHON 1u
#define TRACE_FRAME_CUT 2u /* value: how many frames are left out here */
#define TRACE_FRAME_END 3u /* outer frames are missing; value: enum trace_frame_end */
enum trace_frame_end {
	TRACE_FRAME_END_NO_CFI = 1, /* code without unwind information (JIT, hand-written) */
	TRACE_FRAME_END_BAD = 2, /* unwind information led outside the stack */
};

#define TRACE_SPACE_HOST 0u /* the id of host memory; SPACE defines the other ids */

#define TRACE_STATIC_ASSERT(c) _Static_assert(c, #c)
TRACE_STATIC_ASSERT(sizeof(struct trace_chunk) == 64);
TRACE_STATIC_ASSERT(sizeof(struct trace_side) == 32);
TRACE_STATIC_ASSERT(sizeof(struct trace_def) == 8);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, ticks_hz) == 48);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, file_bytes) == 104);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, dropped) == 128);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, flags) == 264);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, control) == 272);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, checkpoint) == 328);
TRACE_STATIC_ASSERT(sizeof(struct trace_checkpoint) == 16);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, rights) == 512);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, unrecorded) == 1024);
TRACE_STATIC_ASSERT(sizeof(struct trace_unrecorded) == 128);
TRACE_STATIC_ASSERT(sizeof(struct trace_header) == 3080);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, check) == 80);
TRACE_STATIC_ASSERT(offsetof(struct trace_header, chunk_bytes) == 384);
TRACE_STATIC_ASSERT(offsetof(struct trace_chunk, sealed) == TRACE_CHUNK_CHECKED);
TRACE_STATIC_ASSERT(offsetof(struct trace_chunk, committed) == TRACE_CHUNK_CONSTANT);
TRACE_STATIC_ASSERT(offsetof(struct trace_side, check) == 30);
TRACE_STATIC_ASSERT(offsetof(struct trace_chunk, committed) == 40);
TRACE_STATIC_ASSERT(offsetof(struct trace_chunk, checksum) == 48);
TRACE_STATIC_ASSERT(sizeof(struct trace_disk) == TRACE_DISK_BYTES);
TRACE_STATIC_ASSERT(sizeof(struct trace_small) == 64);
/* A trace with unrecorded programs never becomes a small one. */
TRACE_STATIC_ASSERT(offsetof(struct trace_header, unrecorded) <= TRACE_SMALL_HEADER_BYTES);
#undef TRACE_STATIC_ASSERT

#endif

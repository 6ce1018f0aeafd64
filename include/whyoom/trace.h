/*
 * trace.h - the trace file format, version 1: what the shim writes and the analyzer reads.
 *
 * This header is all that the two halves share. It holds wire structures and numbers, no
 * functions. docs/trace-format.md is the normative description; where the two differ, the
 * document is right and this is a bug.
 *
 * All fixed-width fields are little-endian. Offsets are asserted at the end of the file.
 */
#ifndef WHYOOM_TRACE_H
#define WHYOOM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "WHYOOMT\n" /* 8 bytes, no terminator on disk */
#define TRACE_MAJOR 2 /* raised when older readers cannot step over what is new */
#define TRACE_MINOR 9 /* raised when they can */

#define TRACE_HEADER_BYTES 4096u /* the file header, at offset 0 */
#define TRACE_SLOT_BYTES 65536u /* chunks start at, and are, multiples of this */
#define TRACE_FIRST_CHUNK_BYTES 65536u /* a thread's first chunk */
#define TRACE_CHUNK_BYTES 1048576u /* each later one */
#define TRACE_CHUNK_BYTES_MAX 67108864u /* a reader refuses larger ones */
#define TRACE_SIZE_LIMIT (1ull << 48) /* a block or mapping of the host is smaller, or damage */

enum trace_arch { TRACE_ARCH_X86_64 = 1, TRACE_ARCH_AARCH64 = 2 };
enum trace_mode { TRACE_MODE_FULL = 0, TRACE_MODE_SAMPLED = 1, TRACE_MODE_SUPERVISOR = 2 };
enum trace_clock { TRACE_CLOCK_TSC = 1, TRACE_CLOCK_CNTVCT = 2, TRACE_CLOCK_MONOTONIC = 3 };

/* How the image ended, as far as it could say itself; end_code is the exit status or signal. */
enum trace_end {
	TRACE_END_NONE = 0, /* still running, or killed */
	TRACE_END_EXIT = 1, /* exit(), _exit() or return from main */
	TRACE_END_SIGNAL = 2, /* a fatal signal that it could see */
	TRACE_END_EXEC = 3, /* replaced by exec: the next image follows */
};

/* Why something is missing: the index into trace_header.dropped[]. */
enum trace_drop {
	TRACE_DROP_NO_SPACE = 0, /* no room in the file: disk full, RLIMIT_FSIZE, no permission */
	TRACE_DROP_NO_MEMORY = 1, /* the file could not be mapped: RLIMIT_AS, no descriptors */
	TRACE_DROP_SIGNAL = 2, /* a signal handler's allocation, the side area was full */
	TRACE_DROP_NESTED = 3, /* our own recursion guard was closed */
	TRACE_DROP_BUDGET =
	    4, /* WHYOOM_MAX_TRACE or WHYOOM_MAX_DISK reached: a block under 64 KiB */
	TRACE_DROP_DEFINITION = 5, /* a stack, code or module definition had no room */
	TRACE_DROP_NO_THREAD = 6, /* a thread without state: early start or late exit */
	TRACE_DROP_VFORK = 7, /* in a vfork child, which must not write its parent's trace */
	TRACE_DROP_RIGHTS = 8, /* rights given up: the file can no longer be reached */
	TRACE_DROP_REASONS = 16
};

/* `whyoom ctl` asks, the process answers: each side writes its own half, and its counter last. What
 * is recorded stands there from the start, for who only looks. */
struct trace_control {
	uint32_t asked; /* raised by who asks */
	uint32_t command; /* TRACE_CONTROL_* */
	uint64_t every, exact_from; /* of SAMPLED; 0: as before */
	uint32_t answered; /* the `asked` that was done last */
	uint32_t mode; /* enum trace_mode, as it is now */
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
 * A checkpoint is the chunks of type 4 that have its number in `tid`. It counts once it is in the
 * header, in the slot that was not written last: number 0, ticks, parts, and the number (release).
 */
struct trace_checkpoint {
	uint32_t number; /* from 1, each one higher than the last; 0: none */
	uint32_t parts; /* how many chunks: sequence 0 to parts - 1, all sealed */
	uint64_t ticks; /* of what happened up to here, it alone counts */
};
#define TRACE_CHECKPOINT_SLOTS 2
#define TRACE_CHECKPOINT_PERIODS 64u /* CHECKPOINT events in one: then neighbours are merged */

/* What a process gives up, after which files may be out of its reach. */
enum trace_right {
	TRACE_RIGHT_UNKNOWN = 0, /* files could not be opened any more, and no call was seen */
	TRACE_RIGHT_USER = 1, /* setuid and its kin */
	TRACE_RIGHT_GROUP = 2, /* setgid, setgroups and their kin */
	TRACE_RIGHT_CAPABILITY = 3,
	TRACE_RIGHT_ROOT = 4, /* chroot, pivot_root */
	TRACE_RIGHT_NAMESPACE = 5, /* unshare, setns: of mounts or users */
	TRACE_RIGHT_SECCOMP = 6,
	TRACE_RIGHT_LANDLOCK = 7,
	TRACE_RIGHT_KINDS = 8
};
#define TRACE_RIGHT_SLOTS 16

/* `children` and what dropped[TRACE_DROP_RIGHTS] counts are missing for it. */
struct trace_rights {
	uint64_t ticks[TRACE_RIGHT_SLOTS]; /* when each was first given up; 0: it was not */
	uint64_t stopped_ticks; /* since when events are lost for it; 0: none, or no more */
	uint64_t children; /* forks that got no trace of their own for it */
	uint32_t stopped; /* enum trace_right that events or children were last lost for */
	uint32_t reserved;
};

/*
 * A program that the process started, or became, and that is not recorded. A place is taken by
 * storing TRACE_UNRECORDED_TAKEN, and is valid once it holds another reason.
 */
enum trace_unrecorded_why {
	TRACE_UNRECORDED_MUSL = 1, /* linked with musl */
	TRACE_UNRECORDED_LOADER = 2, /* with another loader that is not glibc's */
	TRACE_UNRECORDED_SANITIZER = 3, /* has a sanitizer's runtime, which replaces malloc */
	TRACE_UNRECORDED_MACHINE = 4, /* for another machine, or for 32 bit */
	TRACE_UNRECORDED_STATIC = 5, /* linked statically */
	TRACE_UNRECORDED_SETUID = 6, /* the kernel changes its rights as it starts */
	TRACE_UNRECORDED_LIBRARY = 7, /* cannot open the library: another root, or other rights */
	TRACE_UNRECORDED_DIRECTORY = 8, /* cannot write to the directory of the traces */
	TRACE_UNRECORDED_TAKEN = 255,
};
struct trace_unrecorded {
	uint32_t why; /* enum trace_unrecorded_why; 0: a free place */
	uint32_t count; /* how often it was started */
	char path[120]; /* its end, where that is longer; terminated */
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
	uint32_t image; /* how many program images this pid had before (exec) */
	uint64_t ticks_hz; /* nominal rate of ticks, 0 when unknown; calibrations decide */
	uint64_t start_ticks, start_mono_ns, start_real_ns; /* one moment, three clocks */
	uint64_t check; /* XXH64, seed 0, of the bytes before it: see TRACE_CHECKS_FROM */
	uint8_t reserved0[16];

	/* Written while the process runs, each by one aligned store or atomic add. */
	uint64_t file_bytes; /* end of the last chunk that was claimed */
	uint32_t end_how; /* enum trace_end */
	uint32_t end_code;
	uint64_t end_mono_ns;
	uint64_t dropped[TRACE_DROP_REASONS];
	uint64_t dropped_bytes; /* sum of the sizes of dropped acquisitions, where known */
	uint64_t flags; /* TRACE_FLAG_* */
	struct trace_control control;
	struct trace_checkpoint checkpoint[TRACE_CHECKPOINT_SLOTS];
	uint64_t paused_bytes; /* of blocks that were acquired in pauses, and not recorded */
	/* Where definitions had taken their share of the budget: stacks that are defined by a part
	 * of their frames, and definitions that are missing, of a stack once for each record. */
	uint64_t brief_stacks, untold;
	/* Bytes of all chunks that are in the file: raised once a chunk's magic is stored, lowered
	 * before a chunk is shortened or becomes a hole. What is found is never less, unless it was
	 * lost. */
	uint64_t chunk_bytes;
	uint64_t end_check; /* XXH64 of end_how, end_code and end_mono_ns, stored before end_how */
	uint64_t checkpoint_check[TRACE_CHECKPOINT_SLOTS]; /* XXH64 of a slot, before its number */
	uint8_t reserved1[96];
	struct trace_rights rights;
	uint8_t reserved2[360];
	uint64_t unrecorded; /* starts of programs that are not recorded, named here or not */
	struct trace_unrecorded unrecorded_program[TRACE_UNRECORDED_PLACES];
};

/* From this minor version of 2 on, all that can be damaged has a check. */
#define TRACE_CHECKS_FROM 9

/* The counters from `dropped` to `flags` and from `paused_bytes` to `chunk_bytes` have copies, so
 * many bytes behind them: each is raised first, and then its copy. */
#define TRACE_COPY_OFFSET 3072u

#define TRACE_FLAG_BUDGET 1ull /* the budget was reached */
#define TRACE_FLAG_ROOT 2ull /* the process that `whyoom run` or the user started */
#define TRACE_FLAG_FORKED 4ull /* starts as a copy of its parent: earlier blocks are inherited */
#define TRACE_FLAG_FAILED 8ull /* at least one FAILED event: a call ran out of memory */
#define TRACE_FLAG_DISK 16ull /* all traces of the directory together had reached their bound */

/*
 * The account of a directory: what all traces in it may take of the disk, and do take. Mapped
 * shared by each process; all zeros is valid, and means that nobody has come yet.
 */
#define TRACE_DISK_NAME "disk.account"
#define TRACE_DISK_MAGIC "WHYOOMD\n" /* 8 bytes */
#define TRACE_DISK_VERSION 1u
#define TRACE_DISK_BYTES 4096u
struct trace_disk {
	uint64_t magic;
	uint32_t version;
	uint32_t small; /* number of the file that small traces are appended to */
	uint64_t bound; /* bytes, set once */
	int64_t held; /* bytes that traces have claimed and not given back */
	uint64_t counted_s; /* when the directory was looked at last, seconds of CLOCK_REALTIME */
	uint64_t reserved[3];
	/* Where a small trace lies that others may be coded against: tag << 40 | file << 32 |
	 * offset, in the place key % TRACE_SMALL_BASES; a hint, to be checked. */
#define TRACE_SMALL_BASES 504u
	uint64_t bases[TRACE_SMALL_BASES];
};

/*
 * A small trace of a process that has ended, in a file that many share, small.N.whyooms: records,
 * each appended by one write. What the last write left undone costs that record alone.
 */
#define TRACE_SMALL_SUFFIX ".whyooms"
#define TRACE_SMALL_MAGIC "WHYOOMS\n" /* 8 bytes */
#define TRACE_SMALL_VERSION 1u
#define TRACE_SMALL_HEADER_BYTES 1024u /* of the trace's header are in its plain form */
#define TRACE_SMALL_PLAIN_MAX 65536u /* bytes of the plain form */
#define TRACE_SMALL_BYTES_MAX (2u * TRACE_SMALL_PLAIN_MAX) /* of a record */
#define TRACE_SMALL_SLOTS_MAX 8u /* of the trace */
#define TRACE_SMALL_FILE_MAX (64u << 20) /* then the next file is begun */
struct trace_small {
	uint8_t magic[8];
	uint64_t checksum; /* XXH64, seed 0, of the record with this field 0 */
	uint32_t bytes; /* of the record */
	uint16_t version;
	uint8_t coded; /* the plain form is coded; 0: it is as it is, and others may build on it */
	uint8_t quantum; /* times are multiples of 1 << quantum ticks */
	uint32_t pid, image;
	uint32_t file_bytes; /* of the trace */
	uint32_t plain_bytes; /* of its plain form, without times */
	uint32_t times;
	uint32_t base; /* where in this file the record lies that this one is coded against */
	uint64_t key; /* of its program: those with the same are alike */
	uint64_t start_real_ns;
};

enum trace_chunk_type {
	TRACE_CHUNK_EVENTS = 1, /* one thread's events */
	TRACE_CHUNK_DEFINITIONS = 2, /* shared by all threads, see struct trace_def */
	TRACE_CHUNK_SHARED = 3, /* events of threads that have no chunk; each is preceded by
				   a SHARED_THREAD record when the thread changes */
	TRACE_CHUNK_CHECKPOINT = 4, /* part of a checkpoint: what still mattered of old chunks, as
				       in SHARED; no side area; ticks are the header's */
};

#define TRACE_CHUNK_MAGIC 0x6b6e6843u /* "Chnk" */

struct trace_chunk {
	uint32_t magic;
	uint16_t type; /* enum trace_chunk_type */
	uint16_t header_bytes; /* 64: where the body starts */
	uint32_t bytes; /* of the whole chunk, a multiple of slot_bytes */
	uint32_t thread; /* serial number of the thread in this image, from 1; 0: shared */
	uint32_t tid; /* the kernel's, may be used again; of CHECKPOINT: its number */
	uint32_t sequence; /* of this thread's, or this checkpoint's, chunks, from 0 */
	uint64_t ticks; /* one moment in both clocks; event times count from ticks */
	uint64_t mono_ns;
	uint32_t committed; /* bytes of the body that are valid; release store. DEFINITIONS: of
			       the records that are, together */
	uint32_t side_count; /* struct trace_side at the chunk's end; release store */
	/* XXH64, seed 0, of the committed body, once sealed; until then, of EVENTS and SHARED, the
	 * sum of the events' words, raised after `committed`: see TRACE_WORD. */
	uint64_t checksum;
	uint32_t sealed; /* 1: complete, checksum valid */
	/* The low half of XXH64 of the header's first 40 bytes, with 0 for `bytes`; from the moment
	 * before it is sealed on that of its first 56 bytes, exclusive or that of the side records.
	 */
	uint32_t check;
};
#define TRACE_CHUNK_CONSTANT 40u /* bytes of the header that never change, but for `bytes` */
#define TRACE_CHUNK_CHECKED 56u

/* An event's words are the 8 bytes before its end, and the 8 bytes before those, whatever is there;
 * of an extended one further ones, until they reach its beginning. Of the first events in a chunk
 * they are of its header, too: the sum so far, 0 and the check. */
#define TRACE_WORD 8u

/*
 * What a signal handler allocated or released while its thread was in the middle of writing an
 * event. The n-th one ends n * 32 bytes before the chunk's end; side_count says how many are valid.
 */
struct trace_side {
	uint64_t ticks; /* absolute */
	uint64_t address;
	uint64_t size; /* 0 for a release */
	uint32_t stack; /* 0: not known */
	uint8_t kind; /* TRACE_ALLOC, TRACE_FREE or TRACE_UNFREE */
	uint8_t flags; /* as in the tag of that kind */
	uint16_t check; /* the low quarter of XXH64 of the bytes before it */
};
#define TRACE_SIDE_MAX 64u

/*
 * One definition in a TRACE_CHUNK_DEFINITIONS body, 8-byte aligned. Space is claimed by an atomic
 * add, then `head` is stored with committed = 0, then the body is written, then head is stored
 * again with committed = 1 (release). A reader steps over heads that are zero, 8 bytes at a time.
 * The last four bytes of a record are its check: the low half of XXH64 of what is before them, with
 * committed = 0.
 */
struct trace_def {
	uint32_t bytes; /* whole record, head included, multiple of 8 */
	uint16_t kind; /* TRACE_DEF_* */
	uint8_t committed;
	uint8_t reserved;
};
#define TRACE_DEF_CHECK_BYTES 4u

/* The kinds of definitions and events, with fixed ids: see trace_kinds.def. */
#define TRACE_DEF(id, NAME, meaning) TRACE_DEF_##NAME = id,
enum trace_def_kind {
#include "trace_kinds.def"
};

/*
 * An event starts with a tag byte: the kind in the low four bits, flags in the high four. Kinds 1
 * to 14 are compact, their bodies are fixed for ever. Kind 15 says that a varint kind and a varint
 * length follow, then a body of that length; an unknown one is skipped.
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
/* TRACE_ALLOC_EXPECTED: what followed that stack had this size, too: no size field */
#define TRACE_ALLOC_SAME_SIZE TRACE_ALLOC_SAME_STACK
/* Places of the table of what followed each stack in a chunk, and the place of a stack's id. */
#define TRACE_EXPECTED_PLACES 1024
#define TRACE_EXPECTED_PLACE(stack) ((uint32_t)(stack)*UINT32_C(2654435761) >> 22)
/* TRACE_FREE */
#define TRACE_FREE_REALLOC                                                                         \
	0x10 /* the releasing half of a realloc: the thread's next ALLOC of api                    \
		REALLOC is the same block's new place, or UNFREE undoes it */

enum trace_api {
	TRACE_API_MALLOC = 0,
	TRACE_API_CALLOC = 1,
	TRACE_API_REALLOC = 2, /* realloc, reallocarray, rallocx, mi_realloc... */
	TRACE_API_ALIGNED = 3, /* posix_memalign, aligned_alloc, memalign, valloc, pvalloc */
	TRACE_API_ALLOCATOR = 4, /* jemalloc's, tcmalloc's, mimalloc's own entry points */
	/* only in extended records: */
	TRACE_API_MMAP = 8,
	TRACE_API_MREMAP = 9,
	TRACE_API_BRK = 10, /* brk, sbrk */
	TRACE_API_SHMAT = 11,
	TRACE_API_MUNMAP = 12,
	TRACE_API_SHMDT = 13,
	TRACE_API_THREAD = 14, /* pthread_create, which maps a stack; only refused */
	TRACE_API_FALLOCATE = 15, /* posix_fallocate, fallocate of a file in memory; only refused */
};

/* MAP.flags: ours, not mmap's */
#define TRACE_MAP_ALLOCATOR 1u /* made by malloc's owner for itself: blocks lie inside */
#define TRACE_MAP_SYSCALL 2u /* through syscall() */
#define TRACE_MAP_REMAP 4u /* acquiring half of mremap: attributes come from the UNMAP before */
#define TRACE_MAP_FIXED 8u /* replaces whatever it overlaps */
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

/* FAILED.why: how the call said that there is no memory */
enum trace_fail {
	TRACE_FAIL_ERRNO = 1, /* returned NULL or MAP_FAILED; result is errno */
	TRACE_FAIL_DEVICE = 2, /* a device's driver or runtime; result is its own number */
	TRACE_FAIL_FRAMEWORK = 3, /* PyTorch's allocator and its kin */
};

/* FAILED of why 2 and 3, the last field */
#define TRACE_FAILED_ABOVE 1u /* the runtime refused it without asking the driver */
#define TRACE_FAILED_NOT_DEVICE 2u /* host memory was asked for, of the device's driver */

/* SPACE_ALLOC.flags, SPACE_FREE.flags */
#define TRACE_SPACE_HANDLE 1u /* the address is a handle's value: memory that has no address */
#define TRACE_SPACE_REFERENCE 2u /* one more reference to a known handle: no memory */
#define TRACE_SPACE_STREAM 4u /* in the order of a stream, from a pool */
#define TRACE_SPACE_CAPTURED 8u /* into a graph: memory comes when the graph is launched */
#define TRACE_SPACE_ARRAY 16u
#define TRACE_SPACE_REGISTERED 32u /* the host's own memory, which was locked */
#define TRACE_SPACE_MULTICAST 64u /* an object without memory of its own */

/* SPACE_CLEAR.what */
enum trace_clear {
	TRACE_CLEAR_CONTEXT = 1, /* all that was allocated in this context */
	TRACE_CLEAR_DEVICE = 2, /* all of the space's device: its primary context is gone */
	TRACE_CLEAR_POOL = 3,
	TRACE_CLEAR_GRAPH = 4,
};

/* NOTICE.what */
enum trace_notice {
	TRACE_NOTICE_BUDGET = 1, /* value: bytes written; from here small blocks are missing */
	TRACE_NOTICE_MODE = 2, /* value: enum trace_mode from here on */
	TRACE_NOTICE_PAUSE = 3, /* value: 1 paused, 0 resumed */
	TRACE_NOTICE_LOST = 4, /* value: events this thread could not record just before */
	TRACE_NOTICE_PYTHON = 5, /* value: PY_VERSION_HEX when frames are recorded, else 0 */
	TRACE_NOTICE_MODULES = 6, /* value: module generation after dlopen or dlclose */
	TRACE_NOTICE_RATE = 7, /* value: bytes a second that the trace grew by; the sample's mean
				  and exact_from were changed for it, and follow */
	TRACE_NOTICE_THINNED = 8, /* value: blocks of the sample that lived and had no room in a
				     checkpoint; mean and exact_from, from here on, follow */
};

/* MARK.phase */
enum trace_mark {
	TRACE_MARK_BEGIN = 1, /* of a request: the thread, or its task, works for it from here on */
	TRACE_MARK_END = 2, /* whoever works for it: no more */
	TRACE_MARK_POINT = 3, /* something happened; id 0 */
	TRACE_MARK_ENTER = 4, /* the thread, or its task, works for this request from here on */
	TRACE_MARK_LEAVE = 5, /* and no more, though the request goes on */
	TRACE_MARK_LENGTH = 6, /* so many tokens are its input by now: a field more, at the end */
};

/* MARK.what */
enum trace_mark_what {
	TRACE_MARK_REQUEST = 0,
	TRACE_MARK_PHASE = 1, /* of the process: loading, warm-up, serving */
	TRACE_MARK_PUSHED = 2, /* NVTX: a range of the thread, nested in its others */
	TRACE_MARK_RANGE = 3, /* NVTX: a range that any thread may end */
	TRACE_MARK_NVTX = 4, /* NVTX: a point */
};

/* Keys of LEVEL and LEVEL_OF; bytes unless said. Values are as of the event's time. */
enum trace_level {
	TRACE_LEVEL_RSS = 1,
	TRACE_LEVEL_RSS_ANON = 2,
	TRACE_LEVEL_RSS_FILE = 3,
	TRACE_LEVEL_RSS_SHMEM = 4,
	TRACE_LEVEL_VSIZE = 5,
	TRACE_LEVEL_SWAP = 6,
	TRACE_LEVEL_PSS = 7,
	TRACE_LEVEL_DATA = 8, /* what RLIMIT_DATA is compared with */
	TRACE_LEVEL_STACKS = 9,
	TRACE_LEVEL_PRIVATE_DIRTY = 10,
	TRACE_LEVEL_PRIVATE_CLEAN = 11,
	TRACE_LEVEL_SHARED = 12, /* resident and shared with other processes */
	TRACE_LEVEL_WHYOOM = 13, /* our own memory and trace pages in the process */
	TRACE_LEVEL_PAGETABLES = 14,
	TRACE_LEVEL_WHYOOM_TRACE = 15, /* of WHYOOM, the mapped part of the trace: resident */
	TRACE_LEVEL_VIRT_FILE = 16, /* virtual size of private file mappings */
	TRACE_LEVEL_VIRT_ANON = 17, /* of private anonymous mappings, heap and stacks not counted */
	TRACE_LEVEL_VIRT_SHARED = 18, /* of shared mappings */
	TRACE_LEVEL_VIRT_HEAP = 19, /* of [heap], the program break */
	TRACE_LEVEL_VIRT_STACKS = 20, /* of the main thread's stack */
	TRACE_LEVEL_THREADS = 21, /* count */
	TRACE_LEVEL_RSS_PEAK = 22, /* the most that was ever resident, by the kernel's account */
	TRACE_LEVEL_WHYOOM_ANON =
	    23, /* of WHYOOM, private memory; the rest is address space only */
	TRACE_LEVEL_VIRT_THREADS = 24, /* of threads' stacks, but the main one */
	TRACE_LEVEL_RSS_THREADS = 25,
	TRACE_LEVEL_VSIZE_PEAK = 26, /* the largest virtual size that ever was */
	TRACE_LEVEL_MAPPINGS = 27, /* count, by the kernel's list */
	TRACE_LEVEL_CG_CURRENT = 32,
	TRACE_LEVEL_CG_MAX = 33, /* absent: no limit */
	TRACE_LEVEL_CG_ANON = 34,
	TRACE_LEVEL_CG_FILE = 35,
	TRACE_LEVEL_CG_KERNEL = 36,
	TRACE_LEVEL_CG_SHMEM = 37,
	TRACE_LEVEL_CG_INACTIVE_FILE = 38,
	TRACE_LEVEL_CG_PEAK = 39,
	TRACE_LEVEL_CG_SWAP = 40,
	TRACE_LEVEL_CG_OOM = 48, /* count */
	TRACE_LEVEL_CG_OOM_KILL = 49, /* count */
	TRACE_LEVEL_CG_HIGH = 50, /* memory.high, absent: none */
	TRACE_LEVEL_SYS_TOTAL = 56,
	TRACE_LEVEL_SYS_AVAILABLE = 57,
	TRACE_LEVEL_SYS_OOM_KILL = 58, /* count, of the whole machine */
	/* The allocator's own account, asked for after a call of malloc's family failed. */
	TRACE_LEVEL_MALLOC_ARENA = 64, /* held for blocks, apart from MMAP: USED and FREE of it */
	TRACE_LEVEL_MALLOC_MMAP = 65, /* blocks with a mapping of their own, headers included */
	TRACE_LEVEL_MALLOC_USED = 66, /* with headers, rounding and what threads' caches hold */
	TRACE_LEVEL_MALLOC_FREE = 67,
	TRACE_LEVEL_MALLOC_TRIMMABLE = 68, /* of FREE, what could be given back at once */
	/* Of the interpreter's arenas for small objects; what is neither was never handed out. */
	TRACE_LEVEL_PYTHON_ARENAS = 72,
	TRACE_LEVEL_PYTHON_USED = 73, /* blocks, and the headers of their pools */
	TRACE_LEVEL_PYTHON_FREE = 74, /* was used before */
	TRACE_LEVEL_DEV_FREE = 96, /* of the space named by the record */
	TRACE_LEVEL_DEV_TOTAL = 97,
	TRACE_LEVEL_DEV_OTHERS = 98,
	TRACE_LEVEL_RESERVED = 99,
	TRACE_LEVEL_ALLOCATED = 100,
	TRACE_LEVEL_DEV_FREE_BEFORE = 101, /* of SPACE_CALL: before the call */
	TRACE_LEVEL_DEV_USED = 102, /* of LEVEL_OF: what that process uses of the device */
	TRACE_LEVEL_AGE_NS = 103, /* ns: the record's other values are that much older than it */
	/* Of a file system of a fixed size whose files are memory; in LEVEL and FAILED the one of
	 * DEVICE, in MAP that of the file, with the two below. */
	TRACE_LEVEL_SHM_TOTAL = 112,
	TRACE_LEVEL_SHM_FREE = 113,
	TRACE_LEVEL_SHM_DEVICE = 114, /* its number */
	TRACE_LEVEL_SHM_FILE = 115, /* the file's number there */
	TRACE_LEVEL_SHM_WRITTEN = 116, /* what that had of memory when it was mapped */
	TRACE_LEVEL_LIMIT_AS = 128, /* RLIMIT_AS, RLIMIT_DATA at that moment; absent: unlimited */
	TRACE_LEVEL_LIMIT_DATA = 129,
	TRACE_LEVEL_LIMIT_MAPPINGS = 130, /* count: vm.max_map_count */
};

/* STACK frames */
#define TRACE_FRAME_NATIVE 0u
#define TRACE_FRAME_PYTHON 1u
#define TRACE_FRAME_CUT 2u /* value: how many frames were left out here */
#define TRACE_FRAME_END 3u /* root side is incomplete: value says why, enum trace_frame_end */
enum trace_frame_end {
	TRACE_FRAME_END_NO_CFI = 1, /* code without unwind information (JIT, hand-written) */
	TRACE_FRAME_END_BAD = 2, /* unwind information led outside the stack */
};

#define TRACE_SPACE_HOST 0u /* the space id of host memory; others are defined by SPACE */

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
/* A trace whose table of programs is not empty is not folded. */
TRACE_STATIC_ASSERT(offsetof(struct trace_header, unrecorded) <= TRACE_SMALL_HEADER_BYTES);
#undef TRACE_STATIC_ASSERT

#endif

/*
 * trace_file.c - owns the process's trace file: its path, its header page and its ranges. Each
 * operation opens the file by path and checks that it is the one this process made. A range is
 * reserved on disk before it is touched: a full disk is an error code here, never a SIGBUS in the
 * host.
 */
#include "trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/reserve.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/xxh64.h"
#include "trace/disk.h"
#include "trace/file_gaps.h"
#include "trace/rights.h"
#include "trace/small.h"
#include "trace/trace_cleanup.h"

#define PATH_BYTES 4096

/* Counts go here while there is no file; the next file begins with them. */
static union {
	struct trace_header header;
	uint8_t page[TRACE_HEADER_BYTES]; /* with the copies of its counters */
} no_file;
struct trace_header *trace_file_header __attribute__((visibility("hidden"))) = &no_file.header;

/* In the child of a fork, until it has a file of its own. */
static struct trace_header *parent_header;

static struct {
	char directory[PATH_BYTES]; /* absolute; empty: none yet */
	char path[PATH_BYTES + 64];
	uint64_t dev, ino;
	uint64_t size; /* of the file, as far as it was extended */
	uint64_t mapped; /* bytes of header and chunks */
	uint64_t disk_bytes; /* bytes on disk: claimed, less given back */
	uint64_t aside; /* reserved for the next checkpoint */
	bool checkpoints; /* they replace old chunks */
	bool root;
	bool attached; /* the recording began while the process ran */
	bool own_directory; /* the directory is named after this process: nobody asked for one */
	struct {
		uint64_t offset, bytes;
	} sealed[8]; /* the latest sealed chunks, still in the page cache */
	uint32_t sealed_next;
} trace;

/* The share of the budget that only large blocks, failures and levels may use. */
static uint64_t budget_reserve(void)
{
	uint64_t reserve = options.max_trace / 8;

	return reserve > (64u << 20) ? 64u << 20 : reserve;
}

void trace_file_expect_checkpoints(bool expected)
{
	trace.checkpoints = expected;
}

bool trace_file_expects_checkpoints(void)
{
	return trace.checkpoints;
}

uint32_t trace_file_chunk_bytes(void)
{
	uint64_t bytes = options.max_trace / 64;

	/* enough chunks for a checkpoint to find sealed ones among them */
	if (!trace.checkpoints || bytes >= TRACE_CHUNK_BYTES)
		return TRACE_CHUNK_BYTES;
	return bytes > TRACE_FIRST_CHUNK_BYTES
		   ? (uint32_t)bytes / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES
		   : TRACE_FIRST_CHUNK_BYTES;
}

void trace_file_dropped(enum trace_drop reason, uint64_t events, uint64_t bytes)
{
	trace_file_count(&trace_file_header->dropped[reason], events);
	if (bytes)
		trace_file_count(&trace_file_header->dropped_bytes, bytes);
}

const char *trace_file_directory(void)
{
	return trace.directory;
}

bool trace_file_is_root(void)
{
	return trace.root;
}

/* Open a trace directory and check it. Returns a descriptor or negative errno. */
static int directory_check(const char *path, bool made_here, const char **why)
{
	struct stat st;
	struct statfs fs;
	int fd = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	*why = fd == -ENOTDIR || fd == -ELOOP ? "the trace directory is a link or a file"
					      : "the trace directory cannot be opened";
	if (fd < 0)
		return fd;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 ||
	    sys_call(SYS_fstatfs, fd, (long)&fs, 0, 0, 0, 0) < 0)
		goto refuse;
	/* a directory of that predictable name that belongs to another user is a trap */
	*why = "the trace directory belongs to somebody else";
	if (made_here &&
	    (st.st_uid != (uid_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) || (st.st_mode & 077)))
		goto refuse;
	*why = "the trace directory is on a tmpfs, whose pages are memory: set "
	       "WHYOOM_ALLOW_TMPFS=1, or WHYOOM_DIR to a disk";
	if (!options.allow_tmpfs && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		goto refuse;
	return fd;
refuse:
	sys_close(fd);
	return -EPERM;
}

static int directory_find(const char *wanted, const char **why)
{
	char *p = trace.directory;
	const char *end = trace.directory + sizeof(trace.directory);
	bool named = wanted && *wanted, made;
	long n;

	if (!named || wanted[0] != '/') {
		n = sys_call(SYS_getcwd, (long)trace.directory, PATH_BYTES - 64, 0, 0, 0, 0);
		*why = "the current directory has no name";
		if (n <= 0 || trace.directory[0] != '/')
			return n < 0 ? (int)n : -ENOENT;
		p = text_append(trace.directory + strlen(trace.directory), end, "/");
	}
	if (named) {
		p = text_append(p, end, wanted);
		/* a trailing slash would make the kernel follow a link */
		while (p[-1] == '/' && p - 1 > trace.directory)
			*--p = 0;
	} else {
		p = text_append(p, end, "whyoom.");
		text_append_number(p, end, (uint64_t)shim.pid);
	}
	*why = "the trace directory cannot be made";
	n = sys_call(SYS_mkdirat, AT_FDCWD, (long)trace.directory, 0700, 0, 0, 0);
	made = n == 0;
	if (n < 0 && n != -EEXIST)
		return (int)n;
	return directory_check(trace.directory, made || !named, why);
}

/* Did `whyoom run` start this process, or is the directory named after it or its earlier image?
 * Neither holds for a forked child, whose environment must not be read: its first event may come
 * from within setenv(), which has just freed the array that `environ` points to; nor at an attach,
 * when other threads may be there. */
static void find_root(bool forked)
{
	const char *root =
	    forked || trace.attached ? NULL : options_variable(environ, "WHYOOM_ROOT");
	const char *id = forked || trace.attached ? NULL : trace_file_id_in(trace.directory);
	char mine[24];

	text_append_number(mine, mine + sizeof(mine), (uint64_t)sys_getpid());
	trace.own_directory = (!root || !*root) && id && !strcmp(id, mine);
	trace.root = trace.attached || trace.own_directory || (root && !strcmp(root, mine));
}

/* For a file that cannot be opened: see rights.h. */
static void *map_copy(uint64_t offset, uint64_t bytes)
{
	void *p = rights_map(offset, bytes), *range;

	if (!p) {
		reserve_refused();
		range = reserve_take(bytes);
		if (range) {
			sys_call(SYS_munmap, (long)range, (long)bytes, 0, 0, 0, 0);
			p = rights_map(offset, bytes);
		}
	}
	if (p)
		__atomic_fetch_add(&trace.mapped, bytes, __ATOMIC_RELAXED);
	return p;
}

/* Large ranges get their pages step by step, from the writer. */
static void *map_range(int fd, uint64_t offset, uint64_t bytes)
{
	enum { ACCESS = PROT_READ | PROT_WRITE };
	const int how = MAP_SHARED | (bytes <= TRACE_FIRST_CHUNK_BYTES ? MAP_POPULATE : 0);
	long p;
	void *range;

	if (fd == TRACE_FILE_MAPPED)
		return map_copy(offset, bytes);
	p = sys_call(SYS_mmap, 0, (long)bytes, ACCESS, how, fd, (long)offset);
	if (sys_failed(p)) {
		reserve_refused();
		range = reserve_take(bytes);
		if (!range)
			return NULL;
		p = sys_call(
		    SYS_mmap, (long)range, (long)bytes, ACCESS, how | MAP_FIXED, fd, (long)offset);
		if (p != (long)range) {
			reserve_give_back(range, bytes);
			return NULL;
		}
	} else {
		reserve_granted();
	}
	__atomic_fetch_add(&trace.mapped, bytes, __ATOMIC_RELAXED);
	return (void *)p;
}

static void unmap_range(void *p, uint32_t bytes)
{
	if (!reserve_keep(p, bytes))
		sys_call(SYS_munmap, (long)p, bytes, 0, 0, 0, 0);
	__atomic_fetch_sub(&trace.mapped, bytes, __ATOMIC_RELAXED);
}

uint64_t trace_file_bytes(void)
{
	return __atomic_load_n(&trace.mapped, __ATOMIC_RELAXED) + disk_bytes() + reserve_bytes();
}

/* Create the file under the first free name; trace.path ends at `number`. The file before it
 * usually belongs to the program that called exec to become this one; if that trace is trivial and
 * removed, its name is taken. */
static int open_new(char *number, const char *end, uint32_t *image, bool forked, uint32_t first)
{
	bool asked = forked || trace.attached;
	int fd;

	for (*image = first; *image < TRACE_FILE_IMAGES_MAX; ++*image) {
		text_append(text_append_number(number, end, *image), end, ".whyoom");
		if (sys_call(SYS_faccessat, AT_FDCWD, (long)trace.path, 0, 0, 0, 0) == 0)
			continue;
		if (*image > first && !asked) {
			text_append(text_append_number(number, end, *image - 1), end, ".whyoom");
			*image -= trace_cleanup_former(trace.path);
			text_append(text_append_number(number, end, *image), end, ".whyoom");
			asked = true;
		}
		fd = sys_open(trace.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

static void forget_parent(void)
{
	if (parent_header)
		sys_call(SYS_munmap, (long)parent_header, TRACE_HEADER_BYTES, 0, 0, 0, 0);
	parent_header = NULL;
}

/* Write the path up to the file's number: in the trace directory, or in its subdirectory for this
 * process's user. Returns where the number goes. */
static char *path_begin(bool place)
{
	const char *end = trace.path + sizeof(trace.path);
	char *p = text_append(text_append(trace.path, end, trace.directory), end, "/");

	if (place) {
		p = text_append(p, end, RIGHTS_DIRECTORY);
		p = text_append_number(p, end, (uint64_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0));
	}
	return p;
}

/* Write the path up to the image's number; *images: how many images of this process the trace
 * directory already holds. */
static char *path_of_process(bool place, uint32_t *images)
{
	const char *end = trace.path + sizeof(trace.path);
	char *number = text_append_number(path_begin(false), end, (uint64_t)shim.pid);

	number = text_append(number, end, ".");
	*images = 0;
	if (!place)
		return number;
	for (; *images < TRACE_FILE_IMAGES_MAX; ++*images) {
		text_append(text_append_number(number, end, *images), end, ".whyoom");
		if (sys_call(SYS_faccessat, AT_FDCWD, (long)trace.path, 0, 0, 0, 0) < 0)
			break;
	}
	number =
	    text_append_number(text_append(path_begin(true), end, "/"), end, (uint64_t)shim.pid);
	return text_append(number, end, ".");
}

/* Create the file in the subdirectory that was made for this user before the process gave up its
 * rights. Returns `error` where there is none. */
static int open_in_place(int error, uint32_t *image, bool forked, const char **why)
{
	const char *end = trace.path + sizeof(trace.path), *ignored;
	uint32_t images;
	int place;
	char *number;

	path_begin(true);
	place = directory_check(trace.path, true, &ignored);
	if (place < 0)
		return error;
	disk_open(place); /* this user cannot open the directory above */
	sys_close(place);
	*why = "no trace file can be made";
	number = path_of_process(true, &images);
	return open_new(number, end, image, forked, images);
}

int trace_file_create(const char *directory, bool forked, const char **why)
{
	const char *end = trace.path + sizeof(trace.path);
	struct trace_header *h;
	struct stat st;
	uint32_t image = 0, images;
	int fd = -1, rc;

	fd = trace.directory[0] ? directory_check(trace.directory, false, why)
				: directory_find(directory, why);
	find_root(forked);
	if (fd >= 0) {
		disk_open(fd);
		sys_close(fd);
		*why = "no trace file can be made";
		fd = open_new(path_of_process(false, &images), end, &image, forked, 0);
	}
	if (fd == -EACCES)
		fd = open_in_place(fd, &image, forked, why);
	if (fd < 0)
		return fd;
	rc = (int)sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (rc < 0)
		goto fail;
	trace.dev = st.st_dev;
	trace.ino = st.st_ino;
	options.max_trace = options.max_trace < disk_bound() ? options.max_trace : disk_bound();
	*why = "all traces together have reached their bound (WHYOOM_MAX_DISK)";
	rc = -EDQUOT;
	if (!disk_take(TRACE_SLOT_BYTES, DISK_START))
		goto fail;
	*why = "no room for a trace";
	rc = trace_file_reserve(fd, 0, TRACE_SLOT_BYTES);
	if (rc < 0)
		goto give_back;
	rc = -ENOMEM;
	trace.mapped = 0; /* the parent's mappings are gone */
	trace.disk_bytes = TRACE_SLOT_BYTES;
	trace.aside = 0;
	h = map_range(fd, 0, TRACE_HEADER_BYTES);
	if (!h)
		goto give_back;
	trace_file_header_fill(
	    h, image, (trace.root ? TRACE_FLAG_ROOT : 0) | (forked ? TRACE_FLAG_FORKED : 0));
	for (int i = 0; i < TRACE_DROP_REASONS; i++)
		trace_file_count(&h->dropped[i], no_file.header.dropped[i]);
	trace_file_count(&h->dropped_bytes, no_file.header.dropped_bytes);
	memset(&no_file, 0, sizeof(no_file));
	trace_file_header_begin(h);
	__atomic_store_n(&trace_file_header, h, __ATOMIC_RELEASE);
	sys_close(fd);
	forget_parent();
	return 0;
give_back:
	disk_give(TRACE_SLOT_BYTES);
fail:
	sys_close(fd);
	sys_call(SYS_unlinkat, AT_FDCWD, (long)trace.path, 0, 0, 0, 0);
	return rc;
}

bool trace_file_orphaned(int error)
{
	enum trace_drop why = rights_blamed(error) ? TRACE_DROP_RIGHTS : TRACE_DROP_NO_SPACE;
	bool first = false;

	if (parent_header) {
		first = !__atomic_load_n(&parent_header->dropped[why], __ATOMIC_RELAXED);
		if (why == TRACE_DROP_RIGHTS)
			rights_orphaned(parent_header);
		else
			trace_file_count(&parent_header->dropped[why], 1);
	}
	forget_parent();
	return first;
}

void trace_file_forget(void)
{
	forget_parent();
	if (trace_file_header != &no_file.header)
		parent_header = trace_file_header;
	memset(&no_file, 0, sizeof(no_file));
	trace_file_header = &no_file.header;
	trace.root = trace.own_directory = trace.attached = false;
	trace.path[0] = 0;
	memset(trace.sealed, 0, sizeof(trace.sealed));
	file_gaps_forget();
	trace.sealed_next = 0;
	rights_forked();
}

void trace_file_attach(void)
{
	trace_file_forget();
	forget_parent(); /* the earlier trace's */
	disk_close();
	trace.directory[0] = 0;
	trace.attached = true;
}

/* Put this process's traces into the file of small traces: those of its earlier images, and its
 * own. */
static void fold(void)
{
	const struct trace_header *h = trace_file_header;
	const char *end = trace.path + sizeof(trace.path);
	char *number = strrchr(trace.path, '/');
	uint32_t image = h->image;

	/* trace.path ends with ID.IMAGE.whyoom */
	number = number ? strchr(number, '.') : NULL;
	if (!number)
		return;
	for (uint32_t i = 0; i < TRACE_RIGHT_SLOTS; i++)
		if (h->rights.ticks[i]) /* a filter might not allow it */
			return;
	for (uint32_t i = 0; i < image; i++) {
		text_append(text_append_number(number + 1, end, i), end, ".whyoom");
		if (trace_cleanup_is_former(trace.path, h))
			small_fold(trace.directory, trace.path);
	}
	text_append(text_append_number(number + 1, end, image), end, ".whyoom");
	if (h->file_bytes <= TRACE_SMALL_SLOTS_MAX * TRACE_SLOT_BYTES && small_alone())
		small_fold(trace.directory, trace.path);
}

void trace_file_clean_up(uint64_t passed)
{
	bool small;

	if (trace_file_header == &no_file.header || (trace.root && !trace.own_directory))
		return;
	small = trace_file_header->file_bytes <= TRACE_SMALL_SLOTS_MAX * TRACE_SLOT_BYTES;
	if ((small && !trace_file_pass_on(trace_file_header)) ||
	    !trace_cleanup_trivial(trace.path, passed)) {
		fold();
		return;
	}
	if (sys_call(SYS_unlinkat, AT_FDCWD, (long)trace.path, 0, 0, 0, 0) == 0)
		disk_give(trace_file_disk_bytes());
	if (!trace.own_directory)
		return;
	disk_tidy(trace.directory); /* unless other processes have written there */
	sys_call(SYS_unlinkat, AT_FDCWD, (long)trace.directory, AT_REMOVEDIR, 0, 0, 0);
}

/* Returns a descriptor only for the very file that this process made. */
int trace_file_open_by_path(void)
{
	struct stat st;
	int fd = sys_open(trace.path, O_RDWR | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || st.st_dev != trace.dev ||
	    st.st_ino != trace.ino) {
		sys_close(fd);
		return -ESTALE;
	}
	return fd;
}

static bool under_own_budget(uint64_t bytes)
{
	return trace_file_disk_bytes() + bytes + budget_reserve() +
		   __atomic_load_n(&trace.aside, __ATOMIC_RELAXED) <=
	       options.max_trace;
}

bool trace_file_under_budget(uint64_t bytes)
{
	return under_own_budget(bytes) && disk_room(DISK_ORDINARY) >= bytes;
}

bool trace_file_bound_is_shared(uint64_t bytes)
{
	return under_own_budget(bytes);
}

uint64_t trace_file_limit(void)
{
	uint64_t most = trace_file_disk_bytes() + disk_room(DISK_LAST);

	return most < options.max_trace ? most : options.max_trace;
}

void trace_file_set_aside(uint64_t bytes)
{
	__atomic_store_n(&trace.aside, bytes, __ATOMIC_RELAXED);
}

uint64_t trace_file_disk_bytes(void)
{
	return __atomic_load_n(&trace.disk_bytes, __ATOMIC_RELAXED);
}

void trace_file_add_gap(uint64_t offset, uint32_t bytes)
{
	file_gaps_add(offset, bytes, false);
}

bool trace_file_punch(int fd, uint64_t offset, uint64_t bytes)
{
	trace_file_count(&trace_file_header->chunk_bytes, -bytes);
	if (!trace_file_punch_range(fd, offset, bytes)) {
		trace_file_count(&trace_file_header->chunk_bytes, bytes);
		return false;
	}
	__atomic_fetch_sub(&trace.disk_bytes, bytes, __ATOMIC_RELAXED);
	disk_give(bytes);
	file_gaps_add(offset, bytes, true);
	return true;
}

/* What a chunk of that type must leave free. */
static uint64_t aside(enum trace_chunk_type type)
{
	return type == TRACE_CHUNK_CHECKPOINT ? 0 : __atomic_load_n(&trace.aside, __ATOMIC_RELAXED);
}

/* The check of an unsealed chunk's header, whose magic is not there yet. */
static uint32_t constant_check(const struct trace_chunk *chunk)
{
	struct trace_chunk constant = *chunk;

	constant.magic = TRACE_CHUNK_MAGIC;
	constant.bytes = 0;
	return (uint32_t)xxh64(&constant, TRACE_CHUNK_CONSTANT);
}

/* Why the file could not be opened or extended. */
static enum trace_drop blame(int error)
{
	if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		return TRACE_DROP_NO_MEMORY;
	return rights_blamed(error) ? TRACE_DROP_RIGHTS : TRACE_DROP_NO_SPACE;
}

/* Return a range of the file for a chunk, reserved and mapped; NULL: *why. */
static void *claim_range(
    uint64_t *at, enum trace_chunk_type type, uint32_t bytes, bool last, enum trace_drop *why)
{
	struct trace_header *h = trace_file_header;
	uint64_t offset = 0, expected;
	bool gap, punched = false, claimed = false, held = false, taken = false;
	void *range;
	int fd, rc;

	*why = TRACE_DROP_BUDGET;
	gap = file_gaps_take(&offset, bytes, &punched);
	if ((!gap || punched) &&
	    trace_file_disk_bytes() + bytes + aside(type) + (last ? 0 : budget_reserve()) >
		options.max_trace) {
		if (gap)
			file_gaps_add(offset, bytes, punched);
		return NULL;
	}
	fd = -1;
	if (!gap || punched) {
		taken = disk_take(bytes, last ? DISK_LAST : DISK_ORDINARY);
		if (!taken) {
			trace_file_flag(TRACE_FLAG_DISK);
			goto give_back;
		}
	}
	fd = trace_file_open();
	*why = blame(fd);
	if (fd < 0)
		goto give_back;
	if (!gap) {
		offset = __atomic_fetch_add(&h->file_bytes, bytes, __ATOMIC_RELAXED);
		claimed = true;
	}
	if (!gap || punched) {
		rc = trace_file_reserve(fd, offset, bytes);
		*why = blame(rc);
		if (rc < 0)
			goto give_back;
		__atomic_fetch_add(&trace.disk_bytes, bytes, __ATOMIC_RELAXED);
		held = true;
	}
	*why = TRACE_DROP_NO_MEMORY;
	range = map_range(fd, offset, bytes);
	if (!range)
		goto give_back;
	if (fd == TRACE_FILE_MAPPED && !rights_populate(range, bytes)) {
		*why = blame(-ENOSPC);
		unmap_range(range, bytes);
		goto give_back;
	}
	trace_file_close(fd);
	*at = offset;
	return range;
give_back:
	expected = offset + bytes;
	if (held && claimed)
		__atomic_fetch_sub(&trace.disk_bytes, bytes, __ATOMIC_RELAXED);
	if (taken && (claimed || !held))
		disk_give(bytes);
	if (gap)
		file_gaps_add(offset, bytes, punched && !held);
	else if (claimed) /* unless another range was claimed behind it; then it stays empty */
		__atomic_compare_exchange_n(
		    &h->file_bytes, &expected, offset, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (fd >= 0)
		trace_file_close(fd);
	if (*why == TRACE_DROP_NO_MEMORY && rights_blamed(0))
		*why = TRACE_DROP_RIGHTS; /* a filter forbids mapping it */
	return NULL;
}

void *trace_file_take_range(int fd, uint64_t bytes, uint64_t *offset)
{
	uint64_t at, expected;
	void *range;

	if (!disk_take(bytes, DISK_ORDINARY))
		return NULL;
	at = __atomic_fetch_add(&trace_file_header->file_bytes, bytes, __ATOMIC_RELAXED);
	expected = at + bytes;
	range = trace_file_reserve(fd, at, bytes) < 0 ? NULL : map_range(fd, at, bytes);
	if (range) {
		__atomic_fetch_add(&trace.disk_bytes, bytes, __ATOMIC_RELAXED);
		*offset = at;
	} else {
		disk_give(bytes);
		__atomic_compare_exchange_n(&trace_file_header->file_bytes, &expected, at, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	return range;
}

bool trace_file_claim(struct file_chunk *out, enum trace_chunk_type type, uint32_t bytes,
    uint32_t thread, uint32_t tid, uint32_t sequence, bool last, enum trace_drop *why)
{
	struct trace_chunk *chunk = NULL;
	struct clock_pair now;
	uint64_t offset = 0;

	*why = TRACE_DROP_NO_SPACE;
	if (trace_file_header == &no_file.header)
		return false;
	*why = TRACE_DROP_RIGHTS;
	if (!shim.sandboxed)
		chunk = claim_range(&offset, type, bytes, last, why);
	if (!chunk && *why != TRACE_DROP_BUDGET)
		chunk = rights_room(&offset, bytes);
	if (!chunk) {
		if (*why == TRACE_DROP_RIGHTS)
			rights_stopped();
		return false;
	}
	rights_go_on();
	chunk->type = (uint16_t)type;
	chunk->header_bytes = sizeof(*chunk);
	chunk->bytes = bytes;
	chunk->thread = thread;
	chunk->tid = tid;
	chunk->sequence = sequence;
	now = clock_now();
	chunk->mono_ns = now.mono_ns;
	chunk->ticks = now.ticks;
	chunk->check = constant_check(chunk);
	__atomic_store_n(&chunk->magic, TRACE_CHUNK_MAGIC, __ATOMIC_RELEASE);
	trace_file_count(&trace_file_header->chunk_bytes, bytes);
	*out = (struct file_chunk){chunk, offset, bytes};
	return true;
}

bool trace_file_map(struct file_chunk *c)
{
	int fd = trace_file_open();

	if (fd < 0)
		return false;
	c->chunk = map_range(fd, c->offset, c->bytes);
	trace_file_close(fd);
	return c->chunk;
}

void trace_file_unmap(struct file_chunk *c)
{
	struct trace_chunk *chunk = c->chunk;

	c->chunk = NULL; /* before it is unmapped: see sys_pages_free() */
	if (chunk && !shim.sandboxed)
		unmap_range(chunk, c->bytes);
}

static void write_checksum(struct trace_chunk *chunk)
{
	const size_t side = chunk->side_count * sizeof(struct trace_side);
	uint32_t check;

	if (chunk->type != TRACE_CHUNK_DEFINITIONS)
		chunk->checksum = xxh64((uint8_t *)chunk + chunk->header_bytes, chunk->committed);
	check = (uint32_t)xxh64(chunk, TRACE_CHUNK_CHECKED);
	if (side)
		check ^= (uint32_t)xxh64((uint8_t *)chunk + chunk->bytes - side, side);
	__atomic_store_n(&chunk->check, check, __ATOMIC_RELEASE);
}

/* Start the write-back of a sealed chunk that is no longer mapped and drop older ones from the page
 * cache. `seal`: first mark it as sealed, through the file. */
static void let_go(const struct file_chunk *c, bool seal)
{
	static const uint32_t sealed = 1;
	enum { SYNC_WRITE = 2, KEEP = 3, ADVISE_DONTNEED = 4 };
	uint32_t slots = sizeof(trace.sealed) / sizeof(trace.sealed[0]), i;
	int fd = trace_file_open();

	if (fd == TRACE_FILE_MAPPED && seal)
		trace_file_seal_by_mapping(c->offset);
	if (fd < 0 || fd == TRACE_FILE_MAPPED) /* the kernel writes it back in its own time */
		return;
	if (seal)
		sys_call(SYS_pwrite64, fd, (long)&sealed, sizeof(sealed),
		    (long)(c->offset + offsetof(struct trace_chunk, sealed)), 0, 0);
	sys_call(SYS_sync_file_range, fd, (long)c->offset, c->bytes, SYNC_WRITE, 0, 0);
	i = __atomic_fetch_add(&trace.sealed_next, 1, __ATOMIC_RELAXED);
	/* chunks sealed some time ago are on disk by now */
	if (i >= KEEP && trace.sealed[(i - KEEP) % slots].bytes)
		sys_call(SYS_fadvise64, fd, (long)trace.sealed[(i - KEEP) % slots].offset,
		    (long)trace.sealed[(i - KEEP) % slots].bytes, ADVISE_DONTNEED, 0, 0);
	trace.sealed[i % slots].offset = c->offset;
	trace.sealed[i % slots].bytes = c->bytes;
	sys_close(fd);
}

void trace_file_seal_here(struct trace_chunk *chunk)
{
	write_checksum(chunk);
	__atomic_store_n(&chunk->sealed, 1, __ATOMIC_RELEASE);
}

void trace_file_seal(struct file_chunk *c)
{
	if (!c->chunk)
		return;
	trace_file_seal_here(c->chunk);
	trace_file_unmap(c);
	let_go(c, false);
}

bool trace_file_seal_for_next(struct file_chunk *c)
{
	const uint64_t sum = c->chunk->checksum;
	const uint32_t check = c->chunk->check;

	/* Seal only when it is certain: a sealed chunk may go at any moment. */
	write_checksum(c->chunk);
	if (!reserve_keep(c->chunk, c->bytes)) {
		c->chunk->checksum = sum;
		c->chunk->check = check;
		return false;
	}
	c->chunk = NULL;
	__atomic_fetch_sub(&trace.mapped, c->bytes, __ATOMIC_RELAXED);
	let_go(c, true);
	return true;
}

/*
 * trace_file_tree.c - which process began the tree that this one belongs to, and where a process
 * without a trace is counted.
 */
#include "trace/trace_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/text.h"
#include "trace/unrecorded.h"

const char *trace_file_id_in(const char *directory)
{
	const char *name = strrchr(directory, '/');

	name = name ? name + 1 : directory;
	return !strncmp(name, "whyoom.", 7) && name[7] ? name + 7 : NULL;
}

/* The id of the tree's first process, as the environment has it; NULL: none. */
static const char *tree_of(char *const *environment)
{
	const char *root = options_variable(environment, "WHYOOM_ROOT");
	const char *tree = options_variable(environment, TRACE_FILE_TREE);
	const char *directory = options_variable(environment, "WHYOOM_DIR");

	if (root && *root)
		return root;
	return tree && *tree ? tree : directory ? trace_file_id_in(directory) : NULL;
}

bool trace_file_is_descendant(char *const *environment)
{
	const char *id = tree_of(environment);
	char mine[24];

	text_append_number(mine, mine + sizeof(mine), (uint64_t)sys_getpid());
	return id && strcmp(id, mine) != 0;
}

bool trace_file_in_tree(char *const *environment)
{
	return tree_of(environment);
}

/* The id of the process that started this one. */
static void put_parent(char *out, const char *end)
{
	text_append_number(out, end, (uint64_t)sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0));
}

bool trace_file_started_by_run(char *const *environment)
{
	const char *id = tree_of(environment);
	char parent[24], path[4096 + 16];
	const char *end = path + sizeof(path);

	put_parent(parent, parent + sizeof(parent));
	if (!id || strcmp(id, parent) != 0)
		return false;
	text_append(text_append(path, end, trace_file_directory()), end, "/run.whyoom");
	return sys_call(SYS_faccessat, AT_FDCWD, (long)path, 0, 0, 0, 0) == 0;
}

bool trace_file_tree_has_spoken(char *const *environment)
{
	const char *tree = options_variable(environment, TRACE_FILE_TREE);

	return tree && !strcmp(tree, "0");
}

/* Map the header of a process's newest trace if it is writable; NULL: it is not. */
static struct trace_header *map_header(int dir, const char *pid)
{
	char name[64];
	const char *end = name + sizeof(name);
	char *number = text_append(text_append(name, end, pid), end, ".");
	struct trace_header *h = NULL;
	struct stat st;
	uint32_t n = 0;
	int fd = -1;
	long p;

	for (; n < TRACE_FILE_IMAGES_MAX; n++) {
		text_append(text_append_number(number, end, n), end, ".whyoom");
		if (sys_call(SYS_faccessat, dir, (long)name, 0, 0, 0, 0) < 0)
			break;
	}
	if (n) {
		text_append(text_append_number(number, end, n - 1), end, ".whyoom");
		fd = (int)sys_call(
		    SYS_openat, dir, (long)name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
	}
	if (fd < 0)
		return NULL;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= TRACE_SLOT_BYTES) {
		p = sys_call(
		    SYS_mmap, 0, TRACE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		h = sys_failed(p) ? NULL : (void *)p;
	}
	sys_close(fd);
	if (h && !memcmp(h->magic, TRACE_MAGIC, 8))
		return h;
	if (h)
		sys_call(SYS_munmap, (long)h, TRACE_HEADER_BYTES, 0, 0, 0, 0);
	return NULL;
}

/* Map the header of the tree's first process, or of the parent. */
static struct trace_header *map_first(const char *first)
{
	struct trace_header *h;
	char parent[24];
	int dir;

	if (!trace_file_directory()[0])
		return NULL;
	dir = sys_open(trace_file_directory(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return NULL;
	put_parent(parent, parent + sizeof(parent));
	h = first ? map_header(dir, first) : NULL;
	if (!h)
		h = map_header(dir, parent);
	sys_close(dir);
	return h;
}

long trace_file_orphaned_by_exec(void)
{
	struct trace_header *h = map_first(tree_of(environ));
	long before = -1;

	if (h) {
		before = (long)__atomic_load_n(&h->dropped[TRACE_DROP_NO_SPACE], __ATOMIC_RELAXED);
		trace_file_count(&h->dropped[TRACE_DROP_NO_SPACE], 1);
		sys_call(SYS_munmap, (long)h, TRACE_HEADER_BYTES, 0, 0, 0, 0);
	}
	return before;
}

bool trace_file_pass_on(struct trace_header *from)
{
	const char *first = tree_of(environ);
	struct trace_header *h;
	char mine[24];

	if (!from->unrecorded)
		return true;
	text_append_number(mine, mine + sizeof(mine), (uint64_t)sys_getpid());
	if (!first || !strcmp(first, mine))
		return false;
	h = map_first(first);
	if (!h)
		return false;
	unrecorded_pass_on(from, h);
	from->unrecorded = 0;
	memset(from->unrecorded_program, 0, sizeof(from->unrecorded_program));
	sys_call(SYS_munmap, (long)h, TRACE_HEADER_BYTES, 0, 0, 0, 0);
	return true;
}

/*
 * player_measure.c - how much memory the player has: by the kernel's account, and by its
 * allocator's.
 */
#include "replay/player/player_measure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/num.h"

static int statm = -1;
static uint64_t page, stack;

void measure_process(struct play_sample *s)
{
	char text[128];
	ssize_t n = pread(statm, text, sizeof(text) - 1, 0);
	uint64_t fields[7] = {0};
	unsigned at = 0;

	for (ssize_t i = 0; i < n && at < 7; i++) {
		if (text[i] == ' ' || text[i] == '\n')
			at++;
		else
			fields[at] = fields[at] * 10 + (uint64_t)(text[i] - '0');
	}
	s->size = fields[0] * page;
	s->resident = fields[1] > fields[2] ? (fields[1] - fields[2]) * page : 0;
	/* statm counts the main stack, which RLIMIT_DATA does not. */
	s->data = num_less(fields[5] * page, stack);
}

static uint64_t stack_bytes(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *line;

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "VmStk:");
	return line ? strtoull(line + 6, NULL, 10) * 1024 : 0;
}

/* The allocators' own accounts; whichever of them is there. */
typedef int mallctl_fn(const char *, void *, size_t *, void *, size_t);
typedef bool property_fn(const char *, size_t *);
typedef void process_info_fn(
    size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *);
static struct {
	mallctl_fn *mallctl;
	property_fn *property;
	process_info_fn *process_info;
	struct mallinfo2 (*mallinfo2)(void);
} account;

static void find_account(char *allocator, size_t room)
{
	void *(*own)(size_t) = malloc;
	Dl_info info;

	if (dladdr(*(void **)&own, &info) && info.dli_fname) {
		const char *slash = strrchr(info.dli_fname, '/');

		snprintf(allocator, room, "%s", slash ? slash + 1 : info.dli_fname);
	}
	*(void **)&account.mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	*(void **)&account.property = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
	*(void **)&account.process_info = dlsym(RTLD_DEFAULT, "mi_process_info");
	*(void **)&account.mallinfo2 = dlsym(RTLD_DEFAULT, "mallinfo2");
}

void measure_allocator(struct play_sample *s)
{
	size_t n = sizeof(size_t), value = 0, commit = 0, epoch = 1;

	if (account.mallctl) {
		account.mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
		if (!account.mallctl("stats.resident", &value, &n, NULL, 0))
			s->held = value;
		if (!account.mallctl("stats.allocated", &value, &n, NULL, 0))
			s->used = value;
	} else if (account.property) {
		if (account.property("generic.heap_size", &value))
			s->held = value;
		if (account.property("generic.current_allocated_bytes", &value))
			s->used = value;
	} else if (account.process_info) {
		size_t spare[7];

		account.process_info(&spare[0], &spare[1], &spare[2], &spare[3], &spare[4], &commit,
		    &spare[5], &spare[6]);
		s->held = commit;
	} else if (account.mallinfo2) {
		struct mallinfo2 m = account.mallinfo2();

		s->held = m.arena + m.hblkhd;
		s->used = m.uordblks + m.hblkhd;
	}
}

bool measure_begin(char *allocator, size_t room)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	stack = stack_bytes();
	find_account(allocator, room);
	return statm >= 0;
}

/* play.c - see play.h. */
#include "replay/play.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/memory.h"
#include "util/progress.h"
#include "util/unfinished.h"

static const struct play_allocator allocators[] = {
    {"glibc", "libc", {NULL}},
    {"jemalloc", "jemalloc", {"libjemalloc.so.2", "libjemalloc.so.1"}},
    {"tcmalloc", "tcmalloc",
	{"libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so",
	    "libtcmalloc.so"}},
    {"mimalloc", "mimalloc",
	{"libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so.3", "libmimalloc.so"}},
};
#define ALLOCATORS (sizeof(allocators) / sizeof(*allocators))

const char *const play_settings[] = {"GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST",
    "MALLOC_CHECK_", "MALLOC_CONF", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_PERTURB_",
    "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_", NULL};

const struct play_allocator *play_allocator(const char *name)
{
	for (size_t i = 0; i < ALLOCATORS; i++)
		if (strcmp(allocators[i].name, name) == 0)
			return &allocators[i];
	return NULL;
}

const char *play_allocator_names(void)
{
	return "glibc, jemalloc, tcmalloc, mimalloc";
}

const struct play_allocator *play_allocator_of(const char *path)
{
	const char *base = path ? strrchr(path, '/') : NULL;

	base = base ? base + 1 : path;
	for (size_t i = 0; i < ALLOCATORS && base; i++)
		if (strstr(base, allocators[i].file))
			return &allocators[i];
	return NULL;
}

int player_open(struct player *p, const char *program, int plan, uint32_t samples, struct err *err)
{
	int rc;

	memset(p, 0, sizeof(*p));
	p->program = program;
	p->plan = plan;
	p->samples = samples;
	p->bytes = sizeof(struct play) + samples * sizeof(struct play_sample);
	p->results = memfd_create("whyoom-replay", MFD_CLOEXEC);
	if (p->results >= 0 && !ftruncate(p->results, (off_t)p->bytes)) {
		p->play = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->results, 0);
		if (p->play != MAP_FAILED)
			return 0;
		p->play = NULL;
	}
	rc = err_set(err, -errno, "no room for the results of a replay: %s", strerror(errno));
	player_close(p);
	return rc;
}

void player_close(struct player *p)
{
	if (p->play)
		munmap(p->play, p->bytes);
	if (p->results > 0)
		close(p->results);
	p->play = NULL;
	p->results = -1;
}

static void forget(struct player *p)
{
	struct play *play = p->play;

	play->state = PLAY_STARTING;
	play->code = 0;
	play->op = play->requested = play->refused_again = play->ns = play->base_resident = 0;
	play->sample = play->granted_last = play->by_kernel = 0;
	play->group_version = (uint32_t)p->parent.version;
	play->later = play->lent = 0;
	memset(play->allocator, 0, sizeof(play->allocator));
	for (uint32_t i = 0; i < p->samples; i++)
		play->samples[i] = (struct play_sample){.beside = play->samples[i].beside,
		    .limit = play->samples[i].limit,
		    .due_ns = play->samples[i].due_ns};
}

static void __attribute__((noreturn))
become(const struct player *p, const char *library, int status, pid_t parent)
{
	char plan[16], results[16], group[16] = "-1";
	int error;

	int persona = personality(0xffffffff);

	memory_lift();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The same addresses each time, if the kernel allows it: a replay repeats itself. */
	if (persona >= 0)
		personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
	snprintf(plan, sizeof(plan), "%d", dup(p->plan));
	snprintf(results, sizeof(results), "%d", dup(p->results));
	unsetenv("LD_PRELOAD");
	if (library)
		setenv("LD_PRELOAD", library, 1);
	for (size_t i = 0; i < PLAY_SETTINGS; i++) {
		unsetenv(play_settings[i]);
		if (p->settings[i])
			setenv(play_settings[i], p->settings[i], 1);
	}
	if (p->group.version)
		snprintf(group, sizeof(group), "%d", open(p->group.dir, O_PATH | O_DIRECTORY));
	if (getppid() == parent && (!p->group.version || !group_enter(&p->group)))
		execl(p->program, "whyoom-player", plan, results, group, (char *)NULL);
	error = errno;
	if (write(status, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

static int start(const struct player *p, const char *library, pid_t *pid, struct err *err)
{
	int status[2], error = 0;
	pid_t parent = getpid();

	if (pipe2(status, O_CLOEXEC))
		return err_set(err, -errno, "cannot start %s: %s", p->program, strerror(errno));
	*pid = fork();
	if (*pid == 0)
		become(p, library, status[1], parent);
	if (*pid < 0)
		error = errno;
	else
		unfinished_child(*pid); /* the player would end with us, but not at once */
	close(status[1]);
	if (!error && read(status[0], &error, sizeof(error)) == sizeof(error)) {
		waitpid(*pid, NULL, 0);
		unfinished_child_done(*pid);
	}
	close(status[0]);
	return error ? err_set(err, -error, "cannot start %s: %s", p->program, strerror(error)) : 0;
}

static int await_change(const struct player *p, pid_t pid, int options, int *status)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	pid_t changed;
	int rc;

	/* An old kernel has no pidfd: poll() then waits a short time. */
	while ((changed = waitpid(pid, status, options | WNOHANG)) == 0) {
		poll(&end, 1, end.fd < 0 ? 5 : 100);
		progress_step(p->play->sample);
	}
	rc = changed < 0 ? -errno : 0;
	if (end.fd >= 0)
		close(end.fd);
	return rc;
}

static int await_end(struct player *p, pid_t pid, int *held, struct err *err)
{
	int status = 0, rc = await_change(p, pid, held ? WUNTRACED : 0, &status);

	unfinished_child_done(pid);
	if (rc)
		return err_set(err, rc, "lost the replaying process: %s", strerror(-rc));
	if (WIFSTOPPED(status)) {
		*held = pid;
		return 0;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && p->group.version &&
	    group_killed(&p->group)) {
		p->play->state = PLAY_KILLED;
		p->play->by_kernel = 1;
		return 0;
	}
	if (WIFSIGNALED(status))
		return err_set(err, -EIO, "the replay was killed by signal %d%s", WTERMSIG(status),
		    WTERMSIG(status) == SIGKILL ? ": has this machine run out of memory?" : "");
	if (p->play->state == PLAY_BROKEN)
		return err_set(
		    err, -EIO, "the replay could not go on: %s", strerror(p->play->code));
	if (p->play->state < PLAY_DONE)
		return err_set(
		    err, -EIO, "the replay could not start (status %d)", WEXITSTATUS(status));
	return 0;
}

int player_run(struct player *p, const struct play_allocator *allocator, int *pid, struct err *err)
{
	pid_t child = 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(allocator->libraries) / sizeof(*allocator->libraries); i++) {
		const char *library = allocator->libraries[i];

		if (!library && i)
			break;
		forget(p);
		strcpy(p->play->expected, allocator->file);
		if (p->play->limit_kind == PLAY_LIMIT_GROUP)
			rc = group_make(&p->parent, &p->group, err);
		if (!rc)
			rc = start(p, library, &child, err);
		if (!rc)
			rc = await_end(p, child, pid, err);
		group_remove(&p->group);
		if (rc)
			return rc;
		if (p->play->state != PLAY_OTHER_ALLOCATOR)
			return 0;
	}
	return err_set(err, -ENOENT,
	    "%s is not installed: the loader found none of its libraries (looked for %s)",
	    allocator->name, allocator->libraries[0] ? allocator->libraries[0] : "the C library's");
}

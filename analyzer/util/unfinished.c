/* unfinished.c - see unfinished.h. A handler may run between any two instructions: an entry's kind
 * is set last and cleared first, and the entry counts while it is set. */
#include "util/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES 32u
#define TRIES 100 /* for a cgroup's directory: a killed process in it may not be gone yet */
#define PAUSE_NS 10000000

enum kind { NONE, UNFINISHED_FILE, UNFINISHED_DIRECTORY, UNFINISHED_CHILD };

static struct entry {
	volatile sig_atomic_t kind; /* enum kind */
	pid_t pid;
	char path[PATH_MAX + 64];
} entries[ENTRIES];

static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
#define SIGNALS (sizeof(signals) / sizeof(*signals))

/* readdir() allocates, so a handler may not call it. */
static void remove_files(int directory)
{
	struct entry64 {
		uint64_t ino;
		int64_t offset;
		uint16_t bytes;
		uint8_t type;
		char name[];
	};
	_Alignas(8) char list[4096];
	long n;

	while ((n = syscall(SYS_getdents64, directory, list, sizeof(list))) > 0)
		for (long at = 0; at < n;) {
			const struct entry64 *e = (const void *)(list + at);

			unlinkat(directory, e->name, 0); /* not "." and ".." */
			at += e->bytes;
		}
}

static void remove_directory(const char *path)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	remove_files(fd);
	close(fd);
	for (int n = 0; n < TRIES && rmdir(path) && errno == EBUSY; n++)
		nanosleep(&pause, NULL);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void end(struct entry *e, enum kind kind)
{
	/* After the wait the pid may be another process's, so the entry is cleared first. A path is
	 * rather removed twice than never. */
	if (kind == UNFINISHED_CHILD) {
		e->kind = NONE;
		end_child(e->pid);
	} else if (kind == UNFINISHED_FILE) {
		unlink(e->path);
	} else if (kind == UNFINISHED_DIRECTORY) {
		remove_directory(e->path);
	}
	e->kind = NONE;
}

/* Make only calls that a handler may make. Processes first: they may work in a directory. */
static void clean_up(void)
{
	for (size_t i = 0; i < ENTRIES; i++)
		if (entries[i].kind == UNFINISHED_CHILD)
			end(&entries[i], UNFINISHED_CHILD);
	for (size_t i = ENTRIES; i-- > 0;)
		end(&entries[i], (enum kind)entries[i].kind);
}

static void interrupted(int signal_number)
{
	sigset_t this;

	clean_up();
	signal(signal_number, SIG_DFL);
	sigemptyset(&this);
	sigaddset(&this, signal_number);
	sigprocmask(SIG_UNBLOCK, &this, NULL);
	raise(signal_number);
}

void unfinished_watch_signal(int signal_number)
{
	struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART};

	/* The handler runs for one signal at a time. */
	for (size_t i = 0; i < SIGNALS; i++)
		sigaddset(&action.sa_mask, signals[i]);
	sigaction(signal_number, &action, NULL);
}

void unfinished_watch(void)
{
	struct sigaction before;

	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
			unfinished_watch_signal(signals[i]);
	signal(SIGXFSZ, SIG_IGN);
	atexit(clean_up);
}

/* Return a new entry behind the last: files are removed before their directory. */
static struct entry *new_entry(void)
{
	size_t last = ENTRIES;

	while (last && entries[last - 1].kind == NONE)
		last--;
	return last < ENTRIES ? &entries[last] : NULL;
}

static int add(enum kind kind, const char *path, pid_t pid)
{
	struct entry *e = new_entry();

	if (!e)
		return -ENOSPC;
	if (strlen(path) >= sizeof(e->path))
		return -ENAMETOOLONG;
	strcpy(e->path, path);
	e->pid = pid;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	e->kind = kind;
	return 0;
}

int unfinished_file(const char *path)
{
	return add(UNFINISHED_FILE, path, 0);
}

int unfinished_directory(const char *path)
{
	return add(UNFINISHED_DIRECTORY, path, 0);
}

int unfinished_child(pid_t pid)
{
	return add(UNFINISHED_CHILD, "", pid);
}

static struct entry *find(const char *path)
{
	for (size_t i = 0; i < ENTRIES; i++)
		if ((entries[i].kind == UNFINISHED_FILE ||
			entries[i].kind == UNFINISHED_DIRECTORY) &&
		    !strcmp(entries[i].path, path))
			return &entries[i];
	return NULL;
}

void unfinished_done(const char *path)
{
	struct entry *e = find(path);

	if (e)
		e->kind = NONE;
}

void unfinished_remove(const char *path)
{
	struct entry *e = find(path);

	if (e)
		end(e, (enum kind)e->kind);
}

void unfinished_child_done(pid_t pid)
{
	for (size_t i = 0; i < ENTRIES; i++)
		if (entries[i].kind == UNFINISHED_CHILD && entries[i].pid == pid)
			entries[i].kind = NONE;
}

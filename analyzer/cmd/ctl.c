/*
 * ctl.c - `whyoom ctl`: shows how a process is recorded, as the header of its trace says, and asks
 * it to pause, resume or change its mode, by words in that header. It sends no signal and writes
 * nothing else. The process follows with its next record; an idle one follows later.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/supervise/proc.h"
#include "cmd/supervise/supervisor_trace.h"
#include "trace/trace.h"
#include "util/text/fmt.h"
#include "whyoom/trace.h"

#define PATIENCE_MS 500u
#define LOOK_MS 5u

struct request {
	enum trace_control_command command;
	bool flush, status;
	uint64_t every, exact_from;
	unsigned patience_ms;
};

static bool ends_in(const char *text, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n > m && !strncmp(text + n - m, end, m);
}

/* Returns "sleep", as the kernel says; "?" if that cannot be read. */
static void name_of(const char *pid, char name[64])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, 64, f))
		strcpy(name, "?");
	name[strcspn(name, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* Reports why the process's mappings cannot be read: it has ended, or is another user's. */
static int unreadable(const char *pid, int error, struct err *err)
{
	char path[64], name[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s", pid);
	if (stat(path, &st))
		return err_set(err, -ESRCH,
		    "there is no process %s here: give the id of one that runs, or the directory "
		    "or file of its trace",
		    pid);
	name_of(pid, name);
	if (error == EACCES || error == EPERM)
		return err_set(err, -EACCES,
		    "process %s (%s) may not be looked at, it is user %u's: run whyoom ctl as that "
		    "user, for instance with sudo -u '#%u'",
		    pid, name, (unsigned)st.st_uid, (unsigned)st.st_uid);
	return err_set(err, -error, "cannot read /proc/%s/maps: %s", pid, strerror(error));
}

/* Returns whether the process is `whyoom run`, which has its own trace open, and the directory of
 * the traces. */
static bool is_supervisor(const char *pid, char dir[PATH_MAX])
{
	char path[PATH_MAX + 32], name[64];
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%s/fd", pid);
	d = opendir(name);
	while (d && !found && (e = readdir(d))) {
		struct trace_header h;
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", name, e->d_name);
		n = readlink(path, dir, PATH_MAX - 1);
		if (n <= 0 || !ends_in(dir, (size_t)n, "/" RUN_TRACE_NAME))
			continue;
		dir[n] = '\0';
		fd = open(dir, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		found = fd >= 0 && pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
			!memcmp(h.magic, TRACE_MAGIC, sizeof(h.magic)) &&
			h.mode == TRACE_MODE_SUPERVISOR;
		dir[n - (ssize_t)strlen("/" RUN_TRACE_NAME)] = '\0';
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

/* Finds the trace that the process writes, among its mappings. 1: the process is `whyoom run`, and
 * `path` is the directory of its children's traces. */
static int trace_of(const char *pid, char path[PATH_MAX], struct err *err)
{
	char name[64], line[PATH_MAX + 128];
	bool deleted = false, any = false;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%s/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return unreadable(pid, errno, err);
	path[0] = 0;
	while (!path[0] && fgets(line, sizeof(line), maps)) {
		char *file = strchr(line, '/');
		size_t n = file ? strcspn(file, "\n") : 0;

		any = true;
		deleted |= n && ends_in(file, n, ".whyoom (deleted)");
		if (n >= PATH_MAX || !n || !ends_in(file, n, ".whyoom"))
			continue;
		memcpy(path, file, n);
		path[n] = 0;
	}
	if (ferror(maps) && !any) {
		fclose(maps);
		return unreadable(pid, EACCES, err);
	}
	fclose(maps);
	if (path[0])
		return 0;
	if (is_supervisor(pid, path))
		return 1;
	name_of(pid, name);
	if (!any)
		return err_set(err, -ESRCH,
		    "process %s (%s) has ended, and nobody has waited for it yet: whyoom report "
		    "says how, from the directory of its trace",
		    pid, name);
	if (deleted)
		return err_set(err, -ENOENT,
		    "the trace of process %s (%s) has been deleted while it is written: nothing "
		    "can be asked of it any more",
		    pid, name);
	return err_set(err, -ENOENT,
	    "process %s (%s) is not being recorded, as no trace is mapped by it: start it with "
	    "whyoom run, or with LD_PRELOAD=libwhyoom.so",
	    pid, name);
}

/* Maps the header of a trace; NULL with err. All requests but status write to it, which only its
 * owner may do. */
static struct trace_header *open_header(const char *path, bool status, int *fd, struct err *err)
{
	struct trace_header *h;
	struct stat st;

	*fd = open(path, (status ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st)) {
		err_set(err, -errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < TRACE_SLOT_BYTES) {
		err_set(err, -EINVAL, "%s: no trace", path);
		return NULL;
	}
	if (!status && geteuid() && st.st_uid != geteuid()) {
		err_set(err, -EPERM,
		    "%s: not a trace of yours, but user %u's: run whyoom ctl as that user, for "
		    "instance with sudo -u '#%u'",
		    path, (unsigned)st.st_uid, (unsigned)st.st_uid);
		return NULL;
	}
	h = mmap(NULL, TRACE_HEADER_BYTES, status ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
	    *fd, 0);
	if (h == MAP_FAILED) {
		err_set(err, -errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (memcmp(h->magic, TRACE_MAGIC, sizeof(h->magic)) == 0 &&
	    h->mode != TRACE_MODE_SUPERVISOR && (h->major > 2 || (h->major == 2 && h->minor >= 3)))
		return h;
	err_set(
	    err, -EINVAL, "%s: no trace of a process, or of a whyoom before there was ctl", path);
	munmap(h, TRACE_HEADER_BYTES);
	return NULL;
}

/* Returns whether the process answered in time. */
static bool ask(struct trace_control *c, const struct request *r)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	uint32_t number = c->asked + 1;

	c->command = r->command;
	c->every = r->every;
	c->exact_from = r->exact_from;
	__atomic_store_n(&c->asked, number, __ATOMIC_RELEASE);
	for (unsigned waited = 0; waited < r->patience_ms; waited += LOOK_MS) {
		if (__atomic_load_n(&c->answered, __ATOMIC_ACQUIRE) == number)
			return true;
		nanosleep(&pause, NULL);
	}
	return __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE) == number;
}

static const char *words_of(uint32_t command)
{
	switch (command) {
	case TRACE_CONTROL_PAUSE:
		return "pause";
	case TRACE_CONTROL_RESUME:
		return "resume";
	case TRACE_CONTROL_FULL:
		return "mode full";
	case TRACE_CONTROL_SAMPLED:
		return "mode sampled";
	default:
		return "status";
	}
}

/* Prints how the process is recorded, and a request that it has not followed yet. */
static void put_state(const struct trace_header *h)
{
	const struct trace_control *c = &h->control;
	uint64_t passed = __atomic_load_n(&h->paused_bytes, __ATOMIC_RELAXED), dropped = 0;
	/* A trace of an older library has no state here before its first answer. */
	bool told = c->every_now || c->answered;
	struct fmt a, b;

	for (unsigned i = 0; i < TRACE_DROP_REASONS; i++)
		dropped += __atomic_load_n(&h->dropped[i], __ATOMIC_RELAXED);
	printf("%u: ", h->pid);
	if ((told ? c->mode : h->mode) != TRACE_MODE_SAMPLED)
		printf("full");
	else if (told)
		printf("sampled, one block for %s, all from %s on", fmt_size(&a, c->every_now),
		    fmt_size(&b, c->exact_from_now));
	else
		printf("sampled");
	if (c->paused)
		printf("; paused");
	if (passed)
		printf("; blocks of %s passed in pauses", fmt_size(&a, passed));
	printf("; trace of %s", fmt_size(&a, h->file_bytes));
	if (dropped)
		printf("; %s records dropped", fmt_count(&a, dropped));
	if (h->flags & TRACE_FLAG_BUDGET)
		printf("; --max-trace was reached");
	if (h->flags & TRACE_FLAG_FAILED)
		printf("; a request for memory failed");
	if (h->end_how)
		printf("; has ended");
	else if (__atomic_load_n(&c->answered, __ATOMIC_ACQUIRE) != c->asked &&
		 c->command != TRACE_CONTROL_STATUS)
		printf("; %s takes effect at the next event", words_of(c->command));
	putchar('\n');
}

/* One caller asks at a time. An unanswered request stays in the header, for the next event. */
static int change(struct trace_header *h, int fd, const char *path, const struct request *r)
{
	struct err err = {0};

	if (h->end_how) {
		err_set(
		    &err, -ESRCH, "%s: process %u has ended: whyoom report says how", path, h->pid);
		return cmd_error(&err);
	}
	if (flock(fd, LOCK_EX)) {
		err_set(&err, -errno, "%s: %s", path, strerror(errno));
		return cmd_error(&err);
	}
	if (ask(&h->control, r))
		put_state(h);
	else
		printf(
		    "%u: idle; %s takes effect at the next event\n", h->pid, words_of(r->command));
	return CMD_DONE;
}

/* Asks the kernel, not the process, to write the recorded pages to disk. */
static int flush(int fd, const char *path)
{
	struct err err = {0};

	if (!fsync(fd))
		return CMD_DONE;
	err_set(&err, -errno, "%s: cannot be written to its disk: %s", path, strerror(errno));
	return cmd_error(&err);
}

static int control(const char *path, const struct request *r)
{
	struct trace_header *h;
	struct err err = {0};
	int fd, rc = CMD_DONE;

	h = open_header(path, r->status, &fd, &err);
	if (!h)
		rc = cmd_error(&err);
	else if (r->status)
		put_state(h);
	else
		rc = r->flush ? flush(fd, path) : change(h, fd, path, r);
	if (h)
		munmap(h, TRACE_HEADER_BYTES);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Returns whether the trace's process runs here. */
static bool is_running(const char *path)
{
	struct trace_header h;
	struct stat st;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool yes = fd >= 0 && !fstat(fd, &st) && pread(fd, &h, sizeof(h), 0) == sizeof(h) &&
		   !h.end_how && h.mode != TRACE_MODE_SUPERVISOR &&
		   run_proc_maps_file((pid_t)h.pid, st.st_dev, st.st_ino);

	if (fd >= 0)
		close(fd);
	return yes;
}

/* Controls each trace of the directory, and of the users' directories in it, whose process runs. */
static int control_each(const char *directory, bool top, const struct request *r, int *found)
{
	DIR *d = opendir(directory);
	struct dirent *e;
	int rc = CMD_DONE, one;

	while (d && (e = readdir(d))) {
		char path[PATH_MAX];
		size_t n = strlen(e->d_name);

		if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) >=
		    sizeof(path))
			continue;
		if (top && trace_is_user_directory(e->d_name)) {
			one = control_each(path, false, r, found);
			rc = one ? one : rc;
			continue;
		}
		if (!ends_in(e->d_name, n, ".whyoom") || !is_running(path))
			continue;
		++*found;
		one = control(path, r);
		rc = one ? one : rc;
	}
	if (d)
		closedir(d);
	return rc;
}

static int control_all(const char *directory, const struct request *r)
{
	int found = 0, rc = control_each(directory, true, r, &found);
	struct err err = {0};

	if (!found) {
		err_set(&err, -ENOENT,
		    "%s: no trace of a process that runs here: whyoom report says how they ended; "
		    "of one in another container, name the file",
		    directory);
		return cmd_error(&err);
	}
	return rc;
}

/* 0; CMD_USAGE after telling the user. */
static int parse(int argc, char **argv, struct request *r)
{
	static const struct {
		const char *word;
		enum trace_control_command command;
	} words[] = {{"status", TRACE_CONTROL_STATUS}, {"pause", TRACE_CONTROL_PAUSE},
	    {"resume", TRACE_CONTROL_RESUME}, {"flush", TRACE_CONTROL_STATUS}};
	const char *word = argc > 0 ? argv[0] : "status";

	if (argc == 2 && !strcmp(word, "mode")) {
		if (strcmp(argv[1], "full") && strcmp(argv[1], "sampled"))
			return cmd_usage(&cmd_ctl, "there is no mode '%s'", argv[1]);
		r->command = argv[1][0] == 'f' ? TRACE_CONTROL_FULL : TRACE_CONTROL_SAMPLED;
		return 0;
	}
	for (size_t i = 0; argc <= 1 && i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i].word)) {
			r->command = words[i].command;
			r->flush = !strcmp(word, "flush");
			r->status = !strcmp(word, "status");
			return 0;
		}
	return cmd_usage(
	    &cmd_ctl, "pause, resume, flush, status, mode full or mode sampled are wanted");
}

static int ctl_main(int argc, char **argv)
{
	static const struct option options[] = {{"sample-every", required_argument, NULL, 's'},
	    {"exact-from", required_argument, NULL, 'e'}, {"wait", required_argument, NULL, 'w'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct request r = {.patience_ms = PATIENCE_MS};
	char path[PATH_MAX], *end;
	struct err err = {0};
	struct stat st;
	int c;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (c) {
		case 's':
		case 'e':
			if (fmt_parse_size(optarg, c == 's' ? &r.every : &r.exact_from))
				return cmd_usage(&cmd_ctl, "'%s' is not a size", optarg);
			break;
		case 'w':
			r.patience_ms = (unsigned)strtoul(optarg, &end, 10);
			if (*end || end == optarg)
				return cmd_usage(
				    &cmd_ctl, "'%s' is no number of milliseconds", optarg);
			break;
		case 'h':
			cmd_help(&cmd_ctl, stdout);
			return CMD_DONE;
		default:
			return cmd_stray(&cmd_ctl, c, argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_ctl, "which process?");
	c = parse(argc - optind - 1, argv + optind + 1, &r);
	if (c)
		return c;
	if (argv[optind][strspn(argv[optind], "0123456789")]) {
		if (!stat(argv[optind], &st) && S_ISDIR(st.st_mode))
			return control_all(argv[optind], &r);
		return control(argv[optind], &r);
	}
	c = trace_of(argv[optind], path, &err);
	if (c < 0)
		return cmd_error(&err);
	if (!c)
		return control(path, &r);
	printf("%s is whyoom run; of what it started:\n", argv[optind]);
	fflush(stdout);
	return control_all(path, &r);
}

const struct command cmd_ctl = {
    .name = "ctl",
    .arguments = "PID|TRACE [status|pause|resume|flush|mode full|mode sampled] [OPTION...]",
    .summary = "pause, resume or change a recording while it runs",
    .details =
	"TRACE is a directory of traces, for all processes in it that run, or one file. PID may\n"
	"be that of `whyoom run`: then all that it started are meant.\n\n"
	"  --sample-every SIZE  with mode sampled: one small block for so many bytes of them\n"
	"  --exact-from SIZE    with mode sampled: blocks as large as this are all recorded\n"
	"  --wait MS            how long to wait for the process to follow (500)\n\n"
	"status is read from the trace. The rest takes effect at the process' next event, when it\n"
	"allocates or maps memory. While it is paused no new blocks are recorded; releases,\n"
	"mappings, failures and the memory of GPUs are.\n",
    .main = ctl_main,
};

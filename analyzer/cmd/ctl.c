/*
 * ctl.c - `whyoom ctl`: asks a recorded process to pause, resume, change its mode or say how it is,
 * by words in the header of its trace. No signal is sent, and nothing but those words is written.
 * The process answers with its next record; one that does nothing cannot.
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
#include "trace/trace.h"
#include "util/fmt.h"
#include "whyoom/trace.h"

#define PATIENCE_MS 2000u
#define LOOK_MS 5u

struct request {
	enum trace_control_command command;
	bool flush;
	uint64_t every, exact_from;
	unsigned patience_ms;
};

/* The trace that the process writes: its mappings name it. */
static int trace_of(const char *pid, char path[PATH_MAX], struct err *err)
{
	char name[64], line[PATH_MAX + 128];
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%s/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return err_set(err, -errno, "no process %s that is ours: %s", pid, strerror(errno));
	path[0] = 0;
	while (!path[0] && fgets(line, sizeof(line), maps)) {
		char *file = strchr(line, '/');
		size_t n = file ? strcspn(file, "\n") : 0;

		if (n < 8 || n >= PATH_MAX || strncmp(file + n - 7, ".whyoom", 7) != 0)
			continue;
		memcpy(path, file, n);
		path[n] = 0;
	}
	fclose(maps);
	return path[0] ? 0 : err_set(err, -ENOENT, "process %s is not being recorded", pid);
}

/* The header of a trace that is ours, mapped; NULL with err filled. */
static struct trace_header *open_header(const char *path, int *fd, struct err *err)
{
	struct trace_header *h;
	struct stat st;

	*fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st)) {
		err_set(err, -errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || (geteuid() && st.st_uid != geteuid()) ||
	    st.st_size < TRACE_SLOT_BYTES) {
		err_set(err, -EPERM, "%s: not a trace of yours", path);
		return NULL;
	}
	h = mmap(NULL, TRACE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
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

/* Whether it was answered in time. */
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

static void put_state(const struct trace_header *h)
{
	const struct trace_control *c = &h->control;
	uint64_t passed = __atomic_load_n(&h->paused_bytes, __ATOMIC_RELAXED);
	struct fmt a, b;

	printf("%u: ", h->pid);
	if (c->mode == TRACE_MODE_SAMPLED)
		printf("sampled, one block for %s, all from %s on", fmt_size(&a, c->every_now),
		    fmt_size(&b, c->exact_from_now));
	else
		printf("full");
	if (c->paused)
		printf("; paused");
	if (passed)
		printf("; blocks of %s passed in pauses", fmt_size(&a, passed));
	putchar('\n');
}

static int control(const char *path, const struct request *r)
{
	struct trace_header *h;
	struct err err = {0};
	int fd, rc = CMD_DONE;

	h = open_header(path, &fd, &err);
	if (!h) {
		if (fd >= 0)
			close(fd);
		return cmd_error(&err);
	}
	if (flock(fd, LOCK_EX)) { /* one who asks at a time */
		err_set(&err, -errno, "%s: %s", path, strerror(errno));
		rc = cmd_error(&err);
	} else if (r->flush) {
		/* What is recorded is in the kernel's hands already: it is asked, nobody else. */
		if (fsync(fd)) {
			err_set(&err, -errno, "%s: %s", path, strerror(errno));
			rc = cmd_error(&err);
		}
	} else if (h->end_how) {
		err_set(&err, -ESRCH, "process %u has ended", h->pid);
		rc = cmd_error(&err);
	} else if (ask(&h->control, r)) {
		put_state(h);
	} else {
		err_set(&err, -ETIMEDOUT,
		    "process %u did not answer within %u ms: it is asked still, and will follow "
		    "when it "
		    "next allocates",
		    h->pid, r->patience_ms);
		rc = cmd_error(&err);
	}
	munmap(h, TRACE_HEADER_BYTES);
	close(fd);
	return rc;
}

/* Each trace of the directory, and of the users' in it, whose process has not ended. */
static int control_each(const char *directory, bool top, const struct request *r, int *found)
{
	DIR *d = opendir(directory);
	struct dirent *e;
	int rc = CMD_DONE, one;

	while (d && (e = readdir(d))) {
		char path[PATH_MAX];
		size_t n = strlen(e->d_name);
		struct trace_header h;
		int fd;

		if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) >=
		    sizeof(path))
			continue;
		if (top && trace_is_place(e->d_name)) {
			one = control_each(path, false, r, found);
			rc = one ? one : rc;
			continue;
		}
		if (n < 8 || strcmp(e->d_name + n - 7, ".whyoom") != 0)
			continue;
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.end_how ||
		    h.mode == TRACE_MODE_SUPERVISOR) {
			if (fd >= 0)
				close(fd);
			continue;
		}
		close(fd);
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

	if (!found) {
		struct err err = {0};

		err_set(&err, -ENOENT, "%s: no trace of a process that runs", directory);
		return cmd_error(&err);
	}
	return rc;
}

/* 0, or CMD_USAGE and says so. */
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
	return trace_of(argv[optind], path, &err) ? cmd_error(&err) : control(path, &r);
}

const struct command cmd_ctl = {
    .name = "ctl",
    .arguments = "PID|TRACE [status|pause|resume|flush|mode full|mode sampled] [OPTION...]",
    .summary = "pause, resume or change a recording while it runs",
    .details =
	"TRACE is a directory of traces, for all processes in it that run, or one file.\n\n"
	"  --sample-every SIZE  with mode sampled: one small block for so many bytes of them\n"
	"  --exact-from SIZE    with mode sampled: blocks as large as this are all recorded\n"
	"  --wait MS            how long to wait for the answer (2000)\n\n"
	"A process answers when it next allocates. While it is paused no new blocks are\n"
	"recorded; releases, mappings, failures and the memory of GPUs are.\n",
    .main = ctl_main,
};

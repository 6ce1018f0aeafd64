/*
 * attach.c - `whyoom attach`: has a process that runs already record its memory from now on, for a
 * time or until `whyoom detach`.
 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/refusals.h"
#include "attach/session.h"
#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/run/library.h"
#include "cmd/run/run_directory.h"
#include "cmd/run/run_options.h"
#include "util/clock_ns.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/text/note.h"

#define LONGEST_S (366.0 * 86400)

struct order {
	pid_t pid;
	uint64_t for_ns; /* 0: until it is ended by hand */
	struct run_options options;
	struct output output;
	bool quiet;
};

/* Where the trace goes. */
struct place {
	char path[PATH_MAX]; /* as the target sees it */
	char here[PATH_MAX]; /* as we see it */
	struct run_dir dir; /* fd -1: not ours to tidy */
};

/* "90", "90s", "10m", "2h", "1d". 0, or -EINVAL. */
static int parse_time(const char *text, uint64_t *ns)
{
	char *end;
	double seconds = strtod(text, &end);

	switch (*end) {
	case 'm':
		seconds *= 60;
		break;
	case 'h':
		seconds *= 3600;
		break;
	case 'd':
		seconds *= 86400;
		break;
	case 's':
	case '\0':
		break;
	default:
		return -EINVAL;
	}
	if (end == text || (*end && end[1]) || !(seconds > 0) || seconds > LONGEST_S)
		return -EINVAL;
	*ns = num_ns(seconds);
	return 0;
}

/* Takes the one argument that is no flag. */
static int take_pid(const char *word, struct order *out)
{
	char *end;
	long pid = strtol(word, &end, 10);

	if (*end || end == word || pid <= 0 || pid > INT_MAX)
		return cmd_usage(&cmd_attach, "'%s' is no process id", word);
	if (out->pid)
		return cmd_usage(&cmd_attach, "one process at a time: '%s' is one more", word);
	out->pid = (pid_t)pid;
	return 0;
}

/* Takes --for. 1: it is another flag; 0; CMD_USAGE. */
static int take_for(int argc, char **argv, int *i, struct order *out)
{
	const char *word = argv[*i], *value;

	if (strcmp(word, "--for") != 0 && strncmp(word, "--for=", 6) != 0)
		return 1;
	value = word[5] ? word + 6 : ++*i < argc ? argv[*i] : "";
	if (parse_time(value, &out->for_ns))
		return cmd_usage(
		    &cmd_attach, "--for is a time such as 90s, 10m or 2h, not '%s'", value);
	return 0;
}

/* Takes --format. 1: it is another flag; 0; CMD_USAGE. */
static int take_format(int argc, char **argv, int *i, struct order *out)
{
	const char *word = argv[*i], *value;
	const struct format *format;

	if (strcmp(word, "--format") != 0 && strncmp(word, "--format=", 9) != 0)
		return 1;
	value = word[8] ? word + 9 : ++*i < argc ? argv[*i] : "";
	format = format_find(FORMAT_OF_attach, value);
	if (!format)
		return cmd_usage(&cmd_attach, "--format is text or json, not '%s'", value);
	out->output.format = format;
	return 0;
}

/* 0; CMD_USAGE; -1: help was asked for. */
static int parse(int argc, char **argv, struct order *out)
{
	struct run_options *options = &out->options;
	struct err err = {""};
	int rc = 0;

	*out = (struct order){.output = OUTPUT_DEFAULT};
	for (int i = 1; i < argc && !rc; i++) {
		if (argv[i][0] != '-') {
			rc = take_pid(argv[i], out);
			continue;
		}
		rc = take_for(argc, argv, &i, out);
		if (rc == 1)
			rc = take_format(argc, argv, &i, out);
		if (rc != 1)
			continue;
		rc = run_options_take(argc, argv, &i, options, &err)
			 ? cmd_usage(&cmd_attach, "%s", err.text)
			 : 0;
		if (!rc && options->help)
			return -1;
	}
	if (!rc && run_options_check(options, &err))
		rc = cmd_usage(&cmd_attach, "%s", err.text);
	if (!rc &&
	    (options->given[RUN_OPTION_off] || options->given[RUN_OPTION_verbose] ||
		options->python_objects || options->nvtx || options->html || options->simgpu))
		rc = cmd_usage(&cmd_attach,
		    "--off, --verbose, --python-objects, --nvtx, --html and --simgpu are for "
		    "programs that whyoom run starts");
	if (!rc && !out->pid)
		rc = cmd_usage(&cmd_attach, "no process: give the id of one that runs");
	out->quiet = run_option_flag(options, RUN_OPTION_quiet);
	return rc;
}

/* Makes the directory in the file system that the target sees, which is not ours. */
static int make_elsewhere(
    const struct target *t, const struct order *order, struct place *out, struct err *err)
{
	const char *wish = run_option_text(&order->options, RUN_OPTION_dir);
	struct statfs fs;
	int n;

	if (*wish && *wish != '/')
		return err_set(err, -EINVAL,
		    "process %d (%s) sees other files than this command: -o must be a full path "
		    "there",
		    (int)t->pid, t->name);
	if (*wish)
		n = snprintf(out->path, sizeof(out->path), "%s", wish);
	else
		n = snprintf(out->path, sizeof(out->path), "/var/tmp/whyoom.%d", (int)t->pid);
	if (n < (int)sizeof(out->path))
		n = snprintf(
		    out->here, sizeof(out->here), "/proc/%d/root%s", (int)t->pid, out->path);
	if (n >= (int)sizeof(out->here))
		return err_set(err, -ENAMETOOLONG, "the path of the directory is too long");
	if (mkdir(out->here, 0700) ? errno != EEXIST
				   : chown(out->here, t->uid, t->gid) && t->uid != geteuid())
		return err_set(err, -errno,
		    "cannot make the directory %s in the file system of process %d (%s): %s; name "
		    "one with -o",
		    out->path, (int)t->pid, t->name, strerror(errno));
	if (!run_option_flag(&order->options, RUN_OPTION_allow_tmpfs) && !statfs(out->here, &fs) &&
	    (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return err_set(err, -EOPNOTSUPP,
		    "%s is on a tmpfs there, whose pages are memory: name a directory on a disk "
		    "with -o, or give --allow-tmpfs",
		    out->path);
	return 0;
}

/* Makes the directory, which the target's user must be able to write to. */
static int make_here(
    const struct target *t, const struct order *order, struct place *out, struct err *err)
{
	struct run_dir_wish wish = {.path = run_option_text(&order->options, RUN_OPTION_dir),
	    .pid = t->pid,
	    .allow_tmpfs = run_option_flag(&order->options, RUN_OPTION_allow_tmpfs)};
	bool named = *wish.path;
	char elsewhere[64];
	int rc;

	for (;;) {
		rc = run_dir_open(&wish, &out->dir, err);
		if (rc)
			return rc;
		if (out->dir.made && t->uid != geteuid() && fchown(out->dir.fd, t->uid, t->gid))
			rc = -errno;
		if (!rc && session_may(t->uid, t->gid, out->dir.path, W_OK | X_OK))
			break;
		rc = err_set(err, -EACCES,
		    "user %u, as whom process %d (%s) runs, cannot write to %s: name another "
		    "directory with -o",
		    (unsigned)t->uid, (int)t->pid, t->name, out->dir.path);
		run_dir_discard(&out->dir);
		if (named)
			return rc;
		snprintf(elsewhere, sizeof(elsewhere), "/var/tmp/whyoom.%d", (int)t->pid);
		wish.path = elsewhere;
		named = true;
	}
	if (*out->dir.note)
		note("%s", out->dir.note);
	snprintf(out->path, sizeof(out->path), "%s", out->dir.path);
	snprintf(out->here, sizeof(out->here), "%s", out->dir.path);
	return 0;
}

/* Waits for a time, a signal or the end of the process. True: it ended. */
static bool wait_for(pid_t pid, uint64_t ns)
{
	uint64_t end = num_sum(clock_ns(CLOCK_MONOTONIC), ns), now;
	struct pollfd ended = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
	bool gone = false, stop = false;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	while (!gone && !stop && (now = clock_ns(CLOCK_MONOTONIC)) < end) {
		uint64_t left = num_least(end - now, 200000000u);
		struct timespec pause = {0, (long)left};

		stop = sigtimedwait(&wanted, NULL, &pause) > 0;
		gone = ended.fd >= 0 ? poll(&ended, 1, 0) > 0 : kill(pid, 0) && errno == ESRCH;
	}
	if (ended.fd >= 0)
		close(ended.fd);
	return gone;
}

/* Print what was done, at once, since --for waits after it. 0; negative errno with err. */
static int say(const struct order *order, const struct target *t, const struct place *place,
    const struct attach_done *done, struct err *err)
{
	struct attached_view view = {.pid = (int)t->pid,
	    .name = t->name,
	    .begun = place != NULL,
	    .for_ns = place ? order->for_ns : 0,
	    .thread = (int)done->thread,
	    .pause_ns = done->pause_ns,
	    .asleep = done->how == SAFE_POINT_ASLEEP,
	    .own_thread = done->apart};
	struct report_style style = output_style(&order->output);
	struct str text = {0};
	int rc;

	if (place) {
		view.mode = run_option_text(&order->options, RUN_OPTION_mode);
		view.trace = place->path;
		view.trace_here = place->here;
	}
	order->output.format->attach(&view, &style, &text);
	rc = output_write(&text, NULL, err);
	fflush(stdout); /* main() says whether it could be written */
	str_free(&text);
	return rc;
}

static int attach(const struct order *order, struct err *err)
{
	struct place place = {.dir = {.fd = -1}};
	struct attach_done done = {0};
	char library[PATH_MAX];
	struct str settings = {0};
	struct target target;
	int rc = target_read(order->pid, &target, err);

	if (!rc)
		rc = refusals_check(&target, REFUSALS_ATTACH, err);
	if (!rc)
		rc = run_library_find(NULL, library, err);
	if (!rc && *refusals_warning(&target))
		note(
		    "process %d (%s): %s", (int)target.pid, target.name, refusals_warning(&target));
	if (!rc)
		rc = session_is_elsewhere(&target) ? make_elsewhere(&target, order, &place, err)
						   : make_here(&target, order, &place, err);
	if (!rc) {
		run_options_settings(&order->options, place.path, &settings);
		rc = settings.failed ? err_set(err, -ENOMEM, "out of memory") : 0;
	}
	if (!rc)
		rc = session_begin(&target, library, settings.text, settings.length, &done, err);
	if (rc && place.dir.fd >= 0)
		run_dir_discard(&place.dir);
	if (!rc && !order->quiet)
		rc = say(order, &target, &place, &done, err);
	if (!rc && order->for_ns && !wait_for(order->pid, order->for_ns)) {
		rc = session_end(order->pid, &done, err);
		if (!rc && !order->quiet)
			rc = say(order, &target, NULL, &done, err);
	}
	if (!rc && place.dir.fd >= 0)
		run_dir_close(&place.dir);
	str_free(&settings);
	target_fini(&target);
	return rc;
}

static int attach_main(int argc, char **argv)
{
	struct order order;
	struct err err = {""};
	sigset_t signals;
	int rc = parse(argc, argv, &order);

	if (rc == -1)
		cmd_help(&cmd_attach, stdout);
	if (rc) {
		run_options_fini(&order.options);
		return rc == -1 ? CMD_DONE : rc;
	}
	/* Between attaching and detaching nothing interrupts it. */
	progress_unwatch();
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (order.for_ns)
		sigprocmask(SIG_BLOCK, &signals, NULL);
	rc = attach(&order, &err) ? cmd_error(&err) : CMD_DONE;
	run_options_fini(&order.options);
	return rc;
}

const struct command cmd_attach = {
    .name = "attach",
    .arguments = "[OPTION...] PID",
    .summary = "record a process that runs already",
    .result = FORMAT_OF_attach,
    .details =
	"Opens the recording library in a running process, at a moment at which that is safe, "
	"and\n"
	"has it record what the process allocates from then on. Returns at once; `whyoom detach\n"
	"PID` ends it. Needs the rights of a debugger: the same user, or CAP_SYS_PTRACE.\n\n"
	"  --for TIME            stay, and detach after that time, such as 90s, 10m or 2h; Ctrl-C\n"
	"                        detaches earlier\n"
	"  --format FORMATS\n"
	"  -o DIR                the directory for the trace (default: whyoom.PID)\n",
    .more = run_options_help_attach,
    .main = attach_main,
};

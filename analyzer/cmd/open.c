/*
 * open.c - `whyoom open`: the report as a page, in the user's browser. The page goes to a private
 * folder for temporary files and stays there, because a browser reads it when it likes.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/traces.h"
#include "cmd/report.h"

#define OPENER "xdg-open"

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int parse(int argc, char **argv)
{
	int opt;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (opt != 'h')
			return cmd_stray(&cmd_open, opt, argv[optind - 1]);
		cmd_help(&cmd_open, stdout);
		return -1;
	}
	return cmd_wants_trace(&cmd_open, argc);
}

/* No limit of ours binds a browser. */
static void lift_limits(void)
{
	static const int kinds[] = {RLIMIT_AS, RLIMIT_DATA};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!getrlimit(kinds[i], &limit)) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(kinds[i], &limit);
		}
}

/* Returns whether a browser was asked to show the file; there is none without a screen. */
static bool show_in_browser(const char *path)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	int status, null;
	pid_t pid;

	if (!(x && *x) && !(wayland && *wayland))
		return false;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return false;
	if (pid == 0) {
		lift_limits();
		null = open("/dev/null", O_RDWR);
		if (null >= 0) {
			dup2(null, STDIN_FILENO);
			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
		}
		execlp(OPENER, OPENER, path, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Makes a folder that only this user can enter. */
static int make_folder(char path[PATH_MAX], struct err *err)
{
	const char *base = getenv("TMPDIR");

	if (!base || *base != '/')
		base = "/tmp";
	if (snprintf(path, PATH_MAX, "%s/whyoom-XXXXXX", base) >= PATH_MAX - 16)
		return err_set(err, -ENAMETOOLONG, "%s: the name is too long", base);
	if (!mkdtemp(path))
		return err_set(
		    err, -errno, "%s: %s (set TMPDIR to another folder)", base, strerror(errno));
	return 0;
}

static int show(const struct trace_set *set, const void *request, struct err *err)
{
	char folder[PATH_MAX], path[PATH_MAX + 16];
	struct str text = {0};
	int rc = make_folder(folder, err);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/report.html", folder);
	rc = report_page(set, path, err);
	if (rc) {
		rmdir(folder);
		return rc;
	}
	str_safe(&text, path);
	printf("%s\n", str_text(&text));
	str_free(&text);
	if (!show_in_browser(path))
		fprintf(
		    stderr, "whyoom: no browser could be started here; open that file in one\n");
	return 0;
}

static int open_main(int argc, char **argv)
{
	return traces_show(parse(argc, argv), argc, argv, show, NULL);
}

const struct command cmd_open = {
    .name = "open",
    .arguments = "TRACE...",
    .summary = "show the report as a page in the browser",
    .details = CMD_TRACE
    "\n"
    "Prints where the page is. It loads nothing and sends nothing, and can be given to others;\n"
    "`whyoom report --format html -o FILE` writes it to a file of your choice.\n"
    "\n"
    "  -h, --help               this help\n",
    .main = open_main,
};

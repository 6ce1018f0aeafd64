/*
 * run.c - `whyoom run`: starts a program with the recording library in front, watches it from
 * outside, and exits as it did. After a failure it says why, in a few lines on stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/limit.h"
#include "cmd/report.h"
#include "cmd/run/child.h"
#include "cmd/run/library.h"
#include "cmd/run/program.h"
#include "cmd/run/run_directory.h"
#include "cmd/run/run_options.h"
#include "cmd/run/spare.h"
#include "cmd/run/termination.h"
#include "util/simgpu.h"
#include "util/text/note.h"

#define EXIT_CANNOT_RUN 126 /* as shells and env(1) do */
#define EXIT_NOT_FOUND 127

static bool quiet;
static struct termination termination;

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	va_list args;

	if (quiet)
		return;
	flockfile(stderr);
	fputs("whyoom: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}

/* A verdict that is wanted: on the traces in `dir`. */
struct wish {
	const char *dir;
	bool killed; /* even if nothing else failed */
	bool earlier; /* of the run before this one */
	const char *page; /* NULL: none */
};

static void leave_last_word(const struct wish *wish, const char *text)
{
	struct err err = {""};

	if (*text && termination_write(&termination, text, wish->earlier, &err))
		say("%s", err.text);
}

/* In a process of its own. */
static void judge(const struct wish *wish)
{
	struct str last_word = {0}, safe = {0};
	const struct report_end end = {.out = quiet ? NULL : stderr,
	    .always = wish->killed,
	    .page = wish->page,
	    .last_word = termination.path ? &last_word : NULL};
	struct err err = {""};

	/* A program without a trace (a static one) that ended by itself needs no words. */
	if (report_after_run(wish->dir, &end, &err) && (wish->killed || wish->page)) {
		note("no verdict: %s", err.text);
		str_safe(&safe, err.text);
		if (!last_word.length && wish->killed)
			str_printf(&last_word, "whyoom: killed by SIGKILL; no verdict: %s",
			    str_text(&safe));
	}
	leave_last_word(wish, str_text(&last_word));
	fflush(stderr);
	_exit(0);
}

/* The judge was killed, too, so its container is short of memory. */
static void judge_died(const struct wish *wish)
{
	struct str last_word = {0};

	if (wish->killed && termination.path) {
		str_puts(&last_word,
		    "whyoom: killed by SIGKILL; making the verdict failed for lack of memory. "
		    "More: whyoom report ");
		str_safe(&last_word, wish->dir);
		leave_last_word(wish, str_text(&last_word));
	}
	str_free(&last_word);
}

/* In a process of its own: whatever happens to the analysis, and whatever memory it wants, does not
 * touch the exit status that we owe our caller. A signal that ends it is left in *taken. */
static void report_apart(const struct wish *wish, siginfo_t *taken)
{
	struct rlimit limit;
	sigset_t wanted;
	pid_t pid, self = getpid();
	int fd, sig, status = 0;

	fflush(stderr);
	pid = fork();
	if (pid < 0)
		return;
	if (pid == 0) {
		sigset_t none;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGINT, SIG_DFL);
		if (!getrlimit(RLIMIT_AS, &limit)) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(RLIMIT_AS, &limit);
		}
		limit_by_default();
		/* If the container is short of memory, this is the process to spare. */
		fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			if (write(fd, "1000", 4) < 0)
				fd = -1;
		}
		judge(wish);
	}
	/* Until its end there is somebody whom the OOM killer may take. */
	run_spare_begin();
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGQUIT);
	for (;;) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		sig = sigwaitinfo(&wanted, taken);
		if (sig > 0 && sig != SIGCHLD) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			run_spare_end();
			return;
		}
	}
	run_spare_end();
	if (WIFSIGNALED(status))
		judge_died(wish);
	taken->si_signo = 0;
}

/* The helper program that samples the GPUs, and the library that it asks; empty: no GPUs. */
struct gpu_sampling {
	char helper[PATH_MAX], library[PATH_MAX];
};

static void find_gpus(const char *library, const char *simgpu, struct gpu_sampling *out)
{
	if (!simgpu && !run_nvml_present())
		return;
	if (run_library_nvml(library, out->helper))
		snprintf(out->library, sizeof(out->library), "%s",
		    simgpu ? simgpu : "libnvidia-ml.so.1");
	else
		out->helper[0] = '\0';
}

/* NVTX loads a single tool; one that the user already chose stays. */
static int prepare_nvtx(const char *library, struct err *err)
{
	char path[PATH_MAX];
	int rc = run_library_nvtx(library, path, err);

	if (!rc && setenv("NVTX_INJECTION64_PATH", path, 0))
		rc = err_set(err, -ENOMEM, "out of memory");
	return rc;
}

static int prepare_environment(const struct run_options *options, const struct run_dir *dir,
    bool preload, struct gpu_sampling *gpus, struct err *err)
{
	char library[PATH_MAX], simgpu[PATH_MAX], *all, *beneath = NULL;
	int rc = run_options_export(options);

	if (!rc && setenv("WHYOOM_DIR", dir->path, 1))
		rc = -ENOMEM;
	if (rc)
		return err_set(err, rc, "out of memory");
	if (!preload)
		return 0;
	rc = run_library_find(NULL, library, err);
	if (!rc && options->nvtx)
		rc = prepare_nvtx(library, err);
	if (rc)
		return rc;
	if (options->simgpu) {
		rc = run_library_simgpu(library, simgpu, err);
		if (rc)
			return rc;
		beneath = run_library_preload(simgpu, getenv("LD_PRELOAD"));
	}
	find_gpus(library, options->simgpu ? simgpu : NULL, gpus);
	all = run_library_preload(library, beneath ? beneath : getenv("LD_PRELOAD"));
	rc = !all || (options->simgpu && !beneath) || setenv("LD_PRELOAD", all, 1) ? -ENOMEM : 0;
	free(beneath);
	free(all);
	return rc ? err_set(err, rc, "out of memory") : 0;
}

static void describe(
    struct run_trace *trace, const struct run_options *options, const struct run_program *program)
{
	char cwd[PATH_MAX];

	run_trace_info(trace, "whyoom.version", WHYOOM_VERSION);
	run_trace_info(trace, "exe", program->path);
	if (getcwd(cwd, sizeof(cwd)))
		run_trace_info(trace, "cwd", cwd);
	if (run_option_flag(options, RUN_OPTION_cmdline))
		run_trace_info_list(trace, "cmdline", options->program);
}

/* Prints the verdict, unless nothing failed. */
static void conclude(
    const struct run_child *child, const struct run_dir *dir, const char *page, int trouble)
{
	const struct wish wish = {.dir = dir->path,
	    .killed = child->code != CLD_EXITED && child->status == SIGKILL,
	    .page = page};
	siginfo_t taken;

	if (trouble)
		say("the supervisor could not write all of its samples: %s", strerror(trouble));
	termination_forget_earlier(&termination);
	if ((quiet && !page && !termination.path) || child->relayed_kill)
		return;
	if (wish.killed)
		say("killed by SIGKILL");
	if (wish.killed || child->group_short || run_dir_failed(dir))
		report_apart(&wish, &taken);
}

/* Removes the simulated machine that the processes of this run shared. */
static void forget_simgpu(const struct run_options *options)
{
	const char *machine = getenv("WHYOOM_SIMGPU_MACHINE");
	char own[32];

	snprintf(own, sizeof(own), "run-%d", (int)getpid());
	if (!options->simgpu || !machine || strcmp(machine, own))
		return;
	simgpu_forget(own);
}

static int run_program(struct run_options *options, char **argv, struct err *err)
{
	struct run_dir_wish wish = {.path = run_option_text(options, RUN_OPTION_dir),
	    .allow_tmpfs = run_option_flag(options, RUN_OPTION_allow_tmpfs),
	    .inherited = !options->given[RUN_OPTION_dir]};
	struct gpu_sampling gpus = {.helper = "", .library = ""};
	struct run_trace *trace = NULL;
	struct run_program program;
	struct run_child child;
	struct run_dir dir;
	int rc, status = CMD_ERROR, trouble;

	run_program_look(options->program[0], &program);
	if (program.error) {
		err_set(err, -program.error, "cannot run '%s': %s", options->program[0],
		    strerror(program.error));
		cmd_error(err);
		return program.error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	if (run_dir_open(&wish, &dir, err))
		return cmd_error(err);
	if (termination_find(options->termination_log, &termination, err))
		say("%s", err->text);
	if (*dir.note)
		say("%s", dir.note);
	if (*dir.killed)
		say("the previous run in %s was killed; its traces are now in %s", dir.path,
		    dir.killed);
	if (run_program_warning(program.kind))
		say("%s %s", program.file, run_program_warning(program.kind));
	/* Blocks all signals from here on, SIGXFSZ included. */
	run_child_prepare(&child, argv);
	rc = run_trace_new(dir.fd, &trace, err);
	if (!rc)
		rc = prepare_environment(
		    options, &dir, run_program_preloadable(program.kind), &gpus, err);
	if (rc)
		goto fail;
	if (*dir.killed && (!quiet || termination.path)) {
		const struct wish last = {.dir = dir.killed, .killed = true, .earlier = true};
		siginfo_t taken = {0};

		report_apart(&last, &taken);
		run_child_keep(&child, &taken);
	}
	rc = run_child_start(&child, &program, options->program, err);
	if (rc) {
		status = rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
		goto fail;
	}
	run_child_let_go((const int[]){run_trace_fd(trace), dir.fd, -1});
	describe(trace, options, &program);
	if (*gpus.helper)
		child.nvml = run_nvml_start(gpus.helper, gpus.library);
	status = run_child_wait(&child, trace, dir.fd, run_option_flag(options, RUN_OPTION_off));
	run_spare_end();
	run_nvml_stop(child.nvml);
	trouble = run_trace_trouble(trace);
	run_trace_close(trace, status);
	run_witness_stop(&child.witness);
	run_dir_tidy(&dir);
	forget_simgpu(options);
	conclude(&child, &dir, options->html, trouble);
	run_dir_close(&dir);
	return status;
fail:
	run_child_restore(&child);
	cmd_error(err);
	run_trace_close(trace, status);
	run_dir_discard(&dir);
	return status;
}

static int run_main(int argc, char **argv)
{
	struct run_options options;
	struct err err = {""};
	int rc = run_options_parse(argc, argv, &options, &err);

	if (rc == -EINVAL)
		return cmd_usage(&cmd_run, "%s", err.text);
	if (rc)
		return cmd_error(&err);
	if (options.help) {
		cmd_help(&cmd_run, stdout);
		rc = CMD_DONE;
	} else {
		quiet = run_option_flag(&options, RUN_OPTION_quiet);
		rc = run_program(&options, argv, &err);
	}
	run_options_fini(&options);
	return rc;
}

const struct command cmd_run = {
    .name = "run",
    .arguments = "[OPTION...] [--] PROGRAM [ARGUMENT...]",
    .summary = "run a program and record its memory; if it runs out, say why",
    .details =
	"Records the allocations of PROGRAM and of every process that it starts, and samples "
	"their\n"
	"memory from outside. The traces go to the directory whyoom.PID, which `whyoom report`\n"
	"reads. Exits with the status of PROGRAM, or 128 + N if signal N killed it; 126 or 127 if\n"
	"it could not be started.\n\n"
	"  -o DIR                the directory for the traces; those of an earlier run there are\n"
	"                        moved to DIR/earlier, which keeps the newest three\n"
	"  --html FILE           when memory ran out, also write the report as a page for a "
	"browser\n"
	"  --termination-log FILE  write the verdict there in one line; without the option, to\n"
	"                        /dev/termination-log where Kubernetes has made one\n"
	"  --python-objects      record every Python object (PYTHONMALLOC=malloc), not only "
	"arenas\n"
	"  --nvtx                record the program's NVTX ranges, unless another tool does\n"
	"  --simgpu WHICH        run on a simulated GPU: its memory (4GiB), several (2x24GiB), or "
	"a\n"
	"                        model (A100-80GB, H100, L4, RTX4090); kernels do nothing\n",
    .more = run_options_help,
    .starts = true,
    .main = run_main,
};

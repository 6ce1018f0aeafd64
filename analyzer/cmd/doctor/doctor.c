/*
 * doctor.c - `whyoom doctor`: will whyoom work here, and for this program? Runs nothing but a shell
 * as a trial, and leaves nothing behind.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/doctor/machine.h"
#include "cmd/doctor/programs.h"
#include "cmd/doctor/trial.h"
#include "cmd/run/library.h"

enum { DOCTOR_DIR = 0x2000, DOCTOR_ALLOW_TMPFS };
enum { DOCTOR_WITH_LIMITS = 3 }; /* beside enum cmd_status, whose 2 is wrong usage */

struct request {
	struct output output;
	const char *dir;
	bool allow_tmpfs;
	char *const *command; /* NULL-terminated; empty: none */
};

static int parse(int argc, char **argv, struct request *out)
{
	static const struct option options[] = {OUTPUT_OPTIONS,
	    {"dir", required_argument, NULL, DOCTOR_DIR},
	    {"allow-tmpfs", no_argument, NULL, DOCTOR_ALLOW_TMPFS}, {NULL, 0, NULL, 0}};
	const char *allowed = getenv("WHYOOM_ALLOW_TMPFS");
	int opt, rc = 0;

	*out = (struct request){.output = OUTPUT_DEFAULT};
	out->dir = getenv("WHYOOM_DIR");
	out->allow_tmpfs = allowed && !strcmp(allowed, "1");
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, "+" OUTPUT_SHORT, options, NULL)) != -1) {
		if (opt == DOCTOR_DIR)
			out->dir = optarg;
		else if (opt == DOCTOR_ALLOW_TMPFS)
			out->allow_tmpfs = true;
		else
			rc = output_option(&cmd_doctor, opt, argv, &out->output);
	}
	out->command = argv + optind;
	return rc;
}

static void look_at_switch(struct diagnosis *d)
{
	const char *off = getenv("WHYOOM_OFF");

	if (!off || strcmp(off, "1"))
		return;
	diagnosis_add(d, "switch", DIAGNOSIS_WARN,
	    "WHYOOM_OFF is 1 in the environment: nothing is recorded from inside");
	diagnosis_way_out(d, "unset WHYOOM_OFF, or `whyoom run` without --off");
}

static void examine(const struct request *request, struct diagnosis *d)
{
	char library[PATH_MAX], helper[PATH_MAX], folder[PATH_MAX];
	bool named = *request->command != NULL;
	struct run_program program = {.error = 0};
	struct err err = {""};
	int missing = run_library_find(NULL, library, &err);

	if (named) {
		snprintf(d->program, sizeof(d->program), "%s", request->command[0]);
		doctor_resolve(request->command, &program);
		doctor_program(d, request->command[0], &program);
	}
	doctor_libc(d, "", named && *program.interpreter ? program.interpreter : NULL);
	if (missing) {
		diagnosis_add(d, "library", DIAGNOSIS_FAIL, "%s", err.text);
		diagnosis_way_out(d, "install whyoom whole: its bin and lib belong together");
	} else if (access(library, R_OK)) {
		diagnosis_add(d, "library", DIAGNOSIS_FAIL, "%.300s cannot be read", library);
		diagnosis_way_out(d, "chmod a+r, and a+x on the directories above it");
	} else {
		diagnosis_add(d, "library", DIAGNOSIS_OK, "%.300s", library);
	}
	doctor_disk(d, request->dir, request->allow_tmpfs, folder);
	doctor_seccomp(d, "");
	if (!missing && *folder)
		doctor_trial(d, library, folder);
	look_at_switch(d);
	doctor_preload(d, "", getenv("LD_PRELOAD"), missing ? NULL : library);
	doctor_python(d, named ? &program : NULL);
	doctor_gpu(d, "", !missing && run_library_nvml(library, helper) ? helper : NULL);
	doctor_kernel(d, "");
	doctor_cgroup(d, "", getpid());
	doctor_limits(d);
	doctor_memory(d, "");
	doctor_shm(d, "/dev/shm");
	doctor_attach(d, "");
}

static int doctor_main(int argc, char **argv)
{
	static const int status[] = {[DIAGNOSIS_OK] = CMD_DONE,
	    [DIAGNOSIS_WARN] = DOCTOR_WITH_LIMITS,
	    [DIAGNOSIS_FAIL] = CMD_ERROR};
	struct diagnosis *d;
	struct request request;
	struct report_style style;
	struct err err = {""};
	struct str text = {0};
	int rc = parse(argc, argv, &request);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	d = calloc(1, sizeof(*d));
	if (!d) {
		err_set(&err, -1, "out of memory");
		return cmd_error(&err);
	}
	examine(&request, d);
	style = output_style(&request.output);
	request.output.format->doctor(d, &style, &text);
	rc = output_write(&text, request.output.path, &err);
	rc = rc ? cmd_error(&err) : status[diagnosis_worst(d)];
	str_free(&text);
	free(d);
	return rc;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .arguments = "[OPTION...] [--] [PROGRAM [ARGUMENT...]]",
    .summary = "say whether whyoom will work here, and for that program",
    .result = FORMAT_OF_doctor,
    .details =
	"Looks at the C library, the kernel, the container's limits, the disk, Python, the GPU's\n"
	"driver and PROGRAM, which it does not run; records a shell as a trial; and says for each\n"
	"obstacle the way out. The first line says what follows.\n\n"
	"      --dir DIR        where the traces shall go, as `whyoom run -o DIR`\n"
	"      --allow-tmpfs    that may be a tmpfs, whose pages are memory\n"
	"      --format FORMATS\n"
	"  -o, --output FILE    write there instead of to stdout\n"
	"  -h, --help           this help\n\n"
	"Exit status: 0 all is well, 3 it works with limits, 1 it will not work, 2 wrong usage.\n",
    .starts = true,
    .main = doctor_main,
};

/*
 * run_options.c - parses the flags of `whyoom run`. Everything about a flag comes from options.def;
 * only what is not the library's (-o, --html, --termination-log, --python-objects, --nvtx,
 * --simgpu) is known here by name.
 */
#include "cmd/run/run_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/text/fmt.h"

enum type { TYPE_FLAG, TYPE_SIZE, TYPE_TEXT, TYPE_CHOICE };

static const struct row {
	const char *name; /* with underscores */
	enum type type;
	const char *value, *choices, *help;
} rows[] = {
#define OPTION(name, type, value, help) {#name, TYPE_##type, value, NULL, help},
#define OPTION_CHOICE(name, value, choices, help) {#name, TYPE_CHOICE, value, choices, help},
#include "whyoom/options.def"
#undef OPTION
#undef OPTION_CHOICE
};

static const struct size_row {
	const char *name, *smallest, *largest;
} sizes[] = {
#define OPTION_SIZE(name, smallest, largest) {#name, smallest, largest},
#include "whyoom/option_sizes.def"
#undef OPTION_SIZE
};

/* Is a size that can be read one that the option can have? */
static int check_size(
    const struct row *row, const char *flag, const char *value, uint64_t bytes, struct err *err)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t smallest, largest;

		if (strcmp(sizes[i].name, row->name) != 0 ||
		    fmt_parse_size(sizes[i].smallest, &smallest) ||
		    fmt_parse_size(sizes[i].largest, &largest))
			continue;
		if (bytes < smallest)
			return err_set(err, -EINVAL, "--%s %s is too small: the smallest is %s",
			    flag, value, sizes[i].smallest);
		if (bytes > largest)
			return err_set(err, -EINVAL, "--%s %s is too large: the largest is %s",
			    flag, value, sizes[i].largest);
	}
	return 0;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	for (const char *p = choices; *p; p += *p == '|') {
		size_t m = strcspn(p, "|");

		if (n == m && !memcmp(p, value, n))
			return true;
		p += m;
	}
	return false;
}

/* "max_trace" against "max-trace", of n bytes. */
static bool same_name(const char *row, const char *flag, size_t n)
{
	if (strlen(row) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (flag[i] != (row[i] == '_' ? '-' : row[i]))
			return false;
	return true;
}

/* Further labels join those that were given before. */
static int store_labels(struct run_options *out, const char *value, struct err *err)
{
	char *before = out->given[RUN_OPTION_label], *joined = NULL;

	for (const char *p = value; *p; p += strcspn(p, ","), p += *p == ',') {
		size_t name =
		    strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

		if (!name || isdigit((unsigned char)*p) || p[name] != '=')
			return err_set(err, -EINVAL,
			    "--label is NAME=VALUE, with a name of letters, digits and _, not '%s'",
			    p);
	}
	if (asprintf(&joined, "%s%s%s", before ? before : "", before ? "," : "", value) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	free(before);
	out->given[RUN_OPTION_label] = joined;
	return strlen(joined) < 1024
		   ? 0
		   : err_set(err, -EINVAL, "the labels take more than 1023 bytes");
}

static int store(struct run_options *out, size_t option, const char *value, struct err *err)
{
	const struct row *row = &rows[option];
	char number[24], flag[64];
	uint64_t bytes;
	int rc;

	switch (row->type) {
	case TYPE_FLAG:
		if (strcmp(value, "0") && strcmp(value, "1"))
			return err_set(err, -EINVAL, "--%s is 0 or 1, not '%s'", row->name, value);
		break;
	case TYPE_SIZE:
		if (fmt_parse_size(value, &bytes))
			return err_set(err, -EINVAL,
			    "'%s' is not a size: bytes, or a number with KiB, MiB, GiB or TiB",
			    value);
		snprintf(flag, sizeof(flag), "%s", row->name);
		for (char *p = flag; *p; p++)
			*p = *p == '_' ? '-' : *p;
		rc = check_size(row, flag, value, bytes, err);
		if (rc)
			return rc;
		snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
		value = number;
		break;
	case TYPE_CHOICE:
		if (!is_choice(row->choices, value))
			return err_set(err, -EINVAL, "'%s' is not one of %s", value, row->choices);
		break;
	case TYPE_TEXT:
		if (!*value)
			return err_set(err, -EINVAL, "--%s needs a value", row->name);
		if (option == RUN_OPTION_label)
			return store_labels(out, value, err);
		break;
	}
	free(out->given[option]);
	out->given[option] = strdup(value);
	return out->given[option] ? 0 : err_set(err, -ENOMEM, "out of memory");
}

int run_options_take(int argc, char **argv, int *i, struct run_options *out, struct err *err)
{
	const char *flag = argv[*i], *value = NULL;
	size_t n;

	if (!strcmp(flag, "--help") || !strcmp(flag, "-h")) {
		out->help = true;
		return 0;
	}
	if (!strcmp(flag, "--python-objects")) {
		out->python_objects = true;
		return 0;
	}
	if (!strcmp(flag, "--nvtx")) {
		out->nvtx = true;
		return 0;
	}
	if (!strcmp(flag, "--html") || !strncmp(flag, "--html=", 7)) {
		out->html = flag[6] ? flag + 7 : ++*i < argc ? argv[*i] : "";
		return *out->html ? 0 : err_set(err, -EINVAL, "--html needs a file");
	}
	if (!strcmp(flag, "--termination-log") || !strncmp(flag, "--termination-log=", 18)) {
		out->termination_log = flag[17] ? flag + 18 : ++*i < argc ? argv[*i] : "";
		return *out->termination_log
			   ? 0
			   : err_set(err, -EINVAL, "--termination-log needs a file");
	}
	if (!strcmp(flag, "--simgpu") || !strncmp(flag, "--simgpu=", 9)) {
		out->simgpu = flag[8] ? flag + 9 : ++*i < argc ? argv[*i] : "";
		if (!*out->simgpu)
			return err_set(err, -EINVAL, "--simgpu needs a size or the name of a GPU");
		return 0;
	}
	if (!strncmp(flag, "-o", 2)) {
		value = flag[2] ? flag + 2 : ++*i < argc ? argv[*i] : "";
		if (!*value)
			return err_set(err, -EINVAL, "-o needs a directory");
		return store(out, RUN_OPTION_dir, value, err);
	}
	if (strncmp(flag, "--", 2))
		return err_set(err, -EINVAL, "unknown option '%s'", flag);
	flag += 2;
	n = strcspn(flag, "=");
	if (flag[n])
		value = flag + n + 1;
	for (size_t option = 0; option < RUN_OPTIONS; option++) {
		bool is_flag = rows[option].type == TYPE_FLAG;

		if (same_name(rows[option].name, flag, n)) {
			if (!value && is_flag)
				value = "1";
			else if (!value && ++*i < argc)
				value = argv[*i];
			if (!value)
				return err_set(err, -EINVAL, "--%s needs a value", flag);
			return store(out, option, value, err);
		}
		if (is_flag && !value && n > 3 && !memcmp(flag, "no-", 3) &&
		    same_name(rows[option].name, flag + 3, n - 3))
			return store(out, option, "0", err);
	}
	return err_set(err, -EINVAL, "unknown option '--%.*s'", (int)n, flag);
}

int run_options_check(const struct run_options *options, struct err *err)
{
	if (options->given[RUN_OPTION_max_rate] &&
	    strcmp(options->given[RUN_OPTION_max_rate], "0") &&
	    strcmp(run_option_text(options, RUN_OPTION_mode), "sampled") != 0)
		return err_set(
		    err, -EINVAL, "--max-rate needs --mode sampled: mode full records every block");
	return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *out, struct err *err)
{
	int i, rc;

	*out = (struct run_options){0};
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		rc = run_options_take(argc, argv, &i, out, err);
		if (rc) {
			run_options_fini(out);
			return rc;
		}
		if (out->help)
			return 0;
	}
	if (i >= argc) {
		run_options_fini(out);
		return err_set(err, -EINVAL, "no program to run");
	}
	rc = run_options_check(out, err);
	if (rc) {
		run_options_fini(out);
		return rc;
	}
	out->program = argv + i;
	return 0;
}

void run_options_fini(struct run_options *options)
{
	for (size_t i = 0; i < RUN_OPTIONS; i++)
		free(options->given[i]);
	*options = (struct run_options){0};
}

static void variable(size_t option, char name[64])
{
	snprintf(name, 64, "WHYOOM_%s", rows[option].name);
	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
}

const char *run_option_text(const struct run_options *options, enum run_option option)
{
	char name[64];
	const char *value;

	if (options->given[option])
		return options->given[option];
	variable(option, name);
	value = getenv(name);
	return value && *value ? value : rows[option].value;
}

bool run_option_flag(const struct run_options *options, enum run_option option)
{
	const char *value = run_option_text(options, option);

	/* The library says that a wrong value was given; the default holds. */
	if (strcmp(value, "0") && strcmp(value, "1"))
		value = rows[option].value;
	return *value == '1';
}

/* Unless the caller named a machine, each run has one of its own. */
static int export_simgpu(const char *devices)
{
	char machine[32];

	snprintf(machine, sizeof(machine), "run-%d", (int)getpid());
	return setenv("WHYOOM_SIMGPU", devices, 1) || setenv("WHYOOM_SIMGPU_MACHINE", machine, 0)
		   ? -ENOMEM
		   : 0;
}

int run_options_export(const struct run_options *options)
{
	for (size_t i = 0; i < RUN_OPTIONS; i++) {
		char name[64];

		variable(i, name);
		if (options->given[i] && setenv(name, options->given[i], 1))
			return -ENOMEM;
	}
	/* pymalloc's arenas hide the objects in them; malloc shows each. */
	if (options->python_objects && setenv("PYTHONMALLOC", "malloc", 1))
		return -ENOMEM;
	return options->simgpu ? export_simgpu(options->simgpu) : 0;
}

/* A process that runs already is recorded, and started by nobody. */
static bool is_for_starts(size_t option)
{
	return option == RUN_OPTION_off || option == RUN_OPTION_verbose;
}

void run_options_settings(const struct run_options *options, const char *dir, struct str *out)
{
	for (size_t i = 0; i < RUN_OPTIONS; i++) {
		const char *value = options->given[i];
		char name[64];

		variable(i, name);
		value = i == RUN_OPTION_dir ? dir : value ? value : getenv(name);
		if (!value || !*value || is_for_starts(i))
			continue;
		str_printf(out, "%s=%s", name, value);
		str_add(out, "", 1);
	}
}

/* Prints `text` wrapped at `width`, every line after the first indented. */
static void wrapped(FILE *out, const char *text, size_t indent, size_t width)
{
	size_t column = indent;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > indent && column + 1 + n > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)n, text);
		column += n;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

static void print_help(FILE *out, bool starts)
{
	for (size_t i = 0; i < RUN_OPTIONS; i++) {
		const struct row *row = &rows[i];
		bool negative = row->type == TYPE_FLAG && *row->value == '1';
		char flag[64], help[256];

		if (!starts && is_for_starts(i))
			continue;
		snprintf(flag, sizeof(flag), "--%s%s%s", negative ? "no-" : "", row->name,
		    row->type == TYPE_FLAG     ? ""
		    : row->type == TYPE_SIZE   ? " SIZE"
		    : row->type == TYPE_CHOICE ? " WHICH"
		    : i == RUN_OPTION_dir      ? " DIR"
					       : " TEXT");
		for (char *p = flag; *p; p++)
			if (*p == '_')
				*p = '-';
		snprintf(help, sizeof(help), "%s%s%s%s%s%s%s%s",
		    i == RUN_OPTION_dir ? "as -o: " : "", negative ? "do not " : "", row->help,
		    row->type == TYPE_CHOICE ? " (" : "",
		    row->type == TYPE_CHOICE ? row->choices : "",
		    row->type == TYPE_CHOICE ? ")" : "",
		    row->type == TYPE_SIZE || row->type == TYPE_CHOICE ? "; default " : "",
		    row->type == TYPE_SIZE || row->type == TYPE_CHOICE ? row->value : "");
		fprintf(out, "  %-20s  ", flag);
		wrapped(out, help, 24, 96);
	}
}

void run_options_help(FILE *out)
{
	print_help(out, true);
	fputs("\nEach --NAME is also the variable WHYOOM_NAME, which LD_PRELOAD alone obeys as "
	      "well.\n",
	    out);
}

void run_options_help_attach(FILE *out)
{
	print_help(out, false);
	fputs("\nEach --NAME is also the variable WHYOOM_NAME.\n", out);
}

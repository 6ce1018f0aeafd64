/* output.c - see output.h. */
#include "cmd/common/output.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/new_file.h"

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int output_option(const struct command *command, int opt, char *const *argv, struct output *output)
{
	struct str names = {0};

	switch (opt) {
	case OUTPUT_FORMAT:
		output->format = format_find(command->result, optarg);
		if (output->format)
			return 0;
		format_names(command->result, " or ", &names);
		cmd_usage(command, "--format is %s, not '%s'", str_text(&names), optarg);
		str_free(&names);
		return CMD_USAGE;
	case 'o':
		output->path = optarg;
		return 0;
	case 'v':
		output->verbose = true;
		return 0;
	case OUTPUT_NATIVE:
		output->native = true;
		return 0;
	case 'h':
		cmd_help(command, stdout);
		return -1;
	default:
		return cmd_stray(command, opt, argv[optind - 1]);
	}
}

struct report_style output_style(const struct output *output)
{
	struct report_style style = report_style_of(output->path ? -1 : STDOUT_FILENO);

	style.verbose = output->verbose;
	style.native = output->native;
	return style;
}

int output_write(const struct str *text, const char *path, struct err *err)
{
	struct new_file f = {.fd = -1};
	struct stat st;
	int rc;

	if (text->failed)
		return err_set(err, -ENOMEM, "no memory for the output");
	if (!path || strcmp(path, "-") == 0) {
		fwrite(str_text(text), 1, text->length, stdout);
		return 0; /* main() checks that stdout took it */
	}
	/* Only a regular file can be replaced; a terminal, a pipe or /dev/null is written to. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		FILE *out = fopen(path, "w");

		rc = out ? 0 : -errno;
		if (out) {
			fwrite(str_text(text), 1, text->length, out);
			rc = fflush(out) || ferror(out) ? -EIO : 0;
			fclose(out);
		}
		return rc ? err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
	}
	rc = new_file_begin(&f, path);
	if (!rc)
		rc = write_all(f.fd, str_text(text), text->length);
	if (!rc && fchmod(f.fd, new_file_mode()))
		rc = -errno;
	if (!rc)
		rc = new_file_commit(&f, path);
	new_file_abort(&f);
	return rc ? err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

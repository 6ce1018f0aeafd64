/* output.c - see output.h. */
#include "cmd/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int output_begin(struct output_stream *s, const char *path, struct err *err)
{
	struct stat st;
	int rc = 0;

	*s = (struct output_stream){.fd = STDOUT_FILENO, .file.fd = -1, .target = path};
	if (!path || strcmp(path, "-") == 0) {
		s->target = NULL;
		return 0;
	}
	/* Only a regular file can be replaced; a terminal, a pipe or /dev/null is written to. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		s->fd = open(path, O_WRONLY | O_CLOEXEC);
		rc = s->fd < 0 ? -errno : 0;
	} else {
		rc = new_file_begin(&s->file, path);
		s->fd = s->file.fd;
		s->path = s->file.path;
	}
	return rc ? err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

int output_commit(struct output_stream *s, struct err *err)
{
	const char *target = s->target;
	int rc = 0;

	if (s->path) {
		if (fchmod(s->fd, new_file_mode()))
			rc = -errno;
		if (!rc)
			rc = new_file_commit(&s->file, target);
	} else if (target && close(s->fd)) {
		rc = -errno;
	}
	if (!s->path)
		s->target = NULL;
	output_abort(s);
	return rc ? err_set(err, rc, "%s: %s", target, strerror(-rc)) : 0;
}

void output_abort(struct output_stream *s)
{
	if (s->path)
		new_file_abort(&s->file);
	else if (s->target)
		close(s->fd);
	s->path = s->target = NULL;
	s->fd = -1;
}

int output_write(const struct str *text, const char *path, struct err *err)
{
	struct output_stream s;
	int rc;

	if (text->failed)
		return err_set(err, -ENOMEM, "no memory for the output");
	if (!path || strcmp(path, "-") == 0) {
		fwrite(str_text(text), 1, text->length, stdout);
		return 0; /* main() checks that stdout took it */
	}
	rc = output_begin(&s, path, err);
	if (rc)
		return rc;
	rc = write_all(s.fd, str_text(text), text->length);
	if (!rc)
		return output_commit(&s, err);
	output_abort(&s);
	return err_set(err, rc, "%s: %s", path, strerror(-rc));
}

/* output.c - see output.h. */
#include "cmd/common/output.h"

#include <errno.h>
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

int output_write(const struct str *text, const char *path, struct err *err)
{
	struct new_file f = {.fd = -1};
	struct stat st;
	int rc;

	if (text->failed)
		return err_set(err, -ENOMEM, "no memory for the output");
	if (!path || strcmp(path, "-") == 0) {
		fwrite(str_text(text), 1, text->length, stdout);
		return 0; /* main() sees whether stdout took it */
	}
	/* What is no plain file (a terminal, a pipe, /dev/null) cannot be replaced. */
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

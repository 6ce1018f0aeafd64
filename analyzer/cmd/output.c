/* output.c - see output.h. A file is written beside its place and renamed into it. */
#include "cmd/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

int output_write(const struct str *text, const char *path, struct err *err)
{
	struct str beside = {0};
	struct stat st;
	mode_t mask;
	int fd, rc;

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
	str_printf(&beside, "%s.XXXXXX", path);
	if (beside.failed)
		return err_set(err, -ENOMEM, "no memory for the output");
	fd = mkstemp(beside.text);
	if (fd < 0) {
		rc = -errno;
		goto out;
	}
	mask = umask(0);
	umask(mask);
	rc = write_all(fd, str_text(text), text->length);
	if (!rc && fchmod(fd, 0666 & ~mask))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(beside.text, path))
		rc = -errno;
	if (rc)
		unlink(beside.text);
out:
	if (rc)
		err_set(err, rc, "%s: %s", path, strerror(-rc));
	str_free(&beside);
	return rc;
}

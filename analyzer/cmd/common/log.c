/* log.c - see log.h. */
#include "cmd/common/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int log_read(
    const char *path, const struct knowledge *knowledge, struct explanation *out, struct err *err)
{
	bool named = path && strcmp(path, "-") != 0;
	FILE *in = named ? fopen(path, "re") : stdin;
	struct stat st;
	int rc;

	if (!in)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode))
		rc = err_set(err, -EISDIR, "%s is a directory; `whyoom report` reads traces",
		    named ? path : "stdin");
	else
		rc = explain_stream(in, knowledge, out, err);
	if (named)
		fclose(in);
	return rc;
}

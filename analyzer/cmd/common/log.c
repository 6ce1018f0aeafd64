/* log.c - see log.h. */
#include "cmd/common/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int log_open(struct log *log, const char *path, struct err *err)
{
	bool named = path && strcmp(path, "-") != 0;
	struct stat st;
	FILE *in;
	int rc;

	*log = (struct log){.knowledge = knowledge_open()};
	if (!log->knowledge)
		return err_set(err, -ENOMEM, "no memory for the knowledge files");
	in = named ? fopen(path, "re") : stdin;
	if (!in)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode))
		rc = err_set(err, -EISDIR, "%s is a directory; `whyoom report` reads traces",
		    named ? path : "stdin");
	else
		rc = explain_stream(in, log->knowledge, &log->explanation, err);
	if (named)
		fclose(in);
	log->read = rc == 0;
	return rc;
}

void log_close(struct log *log)
{
	if (log->read)
		explain_fini(&log->explanation);
	knowledge_free(log->knowledge);
}

/* explain.c - see explain.h. */
#include "explain/explain.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "explain/judge.h"
#include "explain/scan.h"
#include "explain/story.h"
#include "util/progress.h"

#define PIECE (64u << 10)

static int finish(struct scan *scan, const struct knowledge *knowledge, struct explanation *out)
{
	int rc = scan_end(scan);

	if (rc)
		return rc;
	story_tell(out);
	return judge_log(out, knowledge);
}

static int fail(int rc, struct explanation *out, struct err *err)
{
	explain_fini(out);
	return rc == -ENOMEM ? err_set(err, rc, "no memory to read the log") : rc;
}

int explain_stream(
    FILE *in, const struct knowledge *knowledge, struct explanation *out, struct err *err)
{
	struct scan *scan = NULL;
	char *piece = malloc(PIECE);
	uint64_t read = 0;
	struct stat st;
	size_t n;
	int rc;

	*out = (struct explanation){0};
	rc = piece ? scan_new(knowledge, out, &scan, err) : -ENOMEM;
	/* A pipe's length is unknown. */
	progress_begin("reading the log",
	    !fstat(fileno(in), &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
	while (!rc && (n = fread(piece, 1, PIECE, in)) > 0) {
		rc = scan_feed(scan, piece, n);
		progress_step(read += n);
	}
	progress_end();
	if (!rc && ferror(in))
		rc = err_set(err, errno ? -errno : -EIO, "cannot read the log: %s",
		    strerror(errno ? errno : EIO));
	if (!rc)
		rc = finish(scan, knowledge, out);
	scan_free(scan);
	free(piece);
	return rc ? fail(rc, out, err) : 0;
}

int explain_buffer(const char *text, size_t bytes, const struct knowledge *knowledge,
    struct explanation *out, struct err *err)
{
	struct scan *scan = NULL;
	int rc;

	*out = (struct explanation){0};
	rc = scan_new(knowledge, out, &scan, err);
	if (!rc)
		rc = scan_feed(scan, text, bytes);
	if (!rc)
		rc = finish(scan, knowledge, out);
	scan_free(scan);
	return rc ? fail(rc, out, err) : 0;
}

void explain_fini(struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		fields_free(&e->messages[i].fields);
	free(e->messages);
	arena_free(&e->arena);
	*e = (struct explanation){0};
}

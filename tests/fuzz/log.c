/* log.c - fuzz target: logs, alone and beside a trace; their explanation as text and as JSON. */
#include <glob.h>
#include <stdlib.h>

#include "explain/explain.h"
#include "report/format.h"
#include "target.h"

/* Preparing the search for all messages takes far longer than the search: mostly a part of the
 * shipped ones is enough. */
#define PARTS 8u

static struct knowledge *parts[PARTS + 1];

static void read_parts(void)
{
	struct err err;
	glob_t files;

	if (glob(FUZZ_KNOWLEDGE "/*.know", 0, NULL, &files))
		abort();
	for (size_t i = 0; i <= PARTS; i++) {
		parts[i] = knowledge_new();
		if (!parts[i])
			abort();
		for (size_t k = 0; k < files.gl_pathc; k++)
			if ((i == PARTS || k % PARTS == i) &&
			    knowledge_add(parts[i], files.gl_pathv[k], &err))
				abort();
	}
	globfree(&files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct report_style style = {.columns = 80, .verbose = true, .unicode = bytes & 1};
	struct explanation explanation;
	struct str text = {0};
	struct err err;

	if (!*parts)
		read_parts();
	if (explain_buffer((const char *)data, bytes, parts[bytes % 61 ? bytes / 2 % PARTS : PARTS],
		&explanation, &err))
		return 0;
	explain_text(&explanation, &style, &text);
	str_clear(&text);
	explain_json(&explanation, NULL, &text);
	str_free(&text);
	/* The report takes longer than the log. */
	if (explanation.count && bytes % 32 == 0) {
		const char *line[] = {"report", "--log", "*", FUZZ_TRACE, NULL};

		target_run(line, target_file(data, bytes));
	}
	explain_fini(&explanation);
	return 0;
}

/* known.h - knowledge for one test: the shipped one, or a file written for it. */
#ifndef TESTS_UNIT_EXPLAIN_KNOWN_H
#define TESTS_UNIT_EXPLAIN_KNOWN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain/explain.h"

static inline struct knowledge *known_shipped(void)
{
	struct knowledge *k = knowledge_new();

	assert_non_null(k);
	assert_int_equal(knowledge_add_dir(k, getenv("WHYOOM_TEST_KNOWLEDGE")), 0);
	return k;
}

static inline struct knowledge *known_text(const char *text)
{
	struct knowledge *k = knowledge_new();
	char path[] = "/tmp/whyoom-known-XXXXXX";
	int fd = mkstemp(path);
	struct err err = {""};
	FILE *out;

	assert_non_null(k);
	assert_true(fd >= 0);
	out = fdopen(fd, "w");
	fputs(text, out);
	fclose(out);
	if (knowledge_add(k, path, &err))
		fail_msg("%s", err.text);
	unlink(path);
	return k;
}

static inline struct explanation known_explain(const struct knowledge *k, const char *log)
{
	struct explanation e;
	struct err err = {""};

	if (explain_buffer(log, strlen(log), k, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

#endif

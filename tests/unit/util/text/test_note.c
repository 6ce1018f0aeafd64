#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "util/text/note.h"

static char heard[2048];

static void hear(void *arg, const char *text)
{
	snprintf(heard, sizeof(heard), "%s%s", (const char *)arg, text);
}

static void goes_where_it_is_sent(void **state)
{
	char path[] = "/tmp/whyoom-note-XXXXXX", line[100] = "";
	int fd = mkstemp(path), saved;
	FILE *file;

	note_redirect(hear, "> ");
	note("%d files", 3);
	assert_string_equal(heard, "> 3 files");
	note_redirect(NULL, NULL);

	/* And to stderr with its mark and a newline. */
	assert_true(fd >= 0);
	fflush(stderr);
	saved = dup(2);
	dup2(fd, 2);
	note("left out: %s", "x");
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	file = fdopen(fd, "r");
	rewind(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_string_equal(line, "whyoom: left out: x\n");
	assert_string_equal(heard, "> 3 files");
	fclose(file);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(goes_where_it_is_sent)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

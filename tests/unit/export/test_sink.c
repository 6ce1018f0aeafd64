/* The sink writes all bytes in order, compresses on request, and keeps its first error. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "export/sink.h"

#define LINES 100000u

static void fill(struct sink *s)
{
	struct str text = {0};

	for (unsigned i = 0; i < LINES; i++) {
		sink_puts(s, "line ");
		sink_printf(s, "%u", i);
		str_puts(&text, "\n");
		sink_str(s, &text);
	}
	str_free(&text);
}

static void check(int fd)
{
	gzFile in;
	char line[64], expected[64];

	/* zlib reads plain files as they are. */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	in = gzdopen(fd, "rb");
	assert_non_null(in);
	for (unsigned i = 0; i < LINES; i++) {
		snprintf(expected, sizeof(expected), "line %u\n", i);
		assert_non_null(gzgets(in, line, sizeof(line)));
		assert_string_equal(line, expected);
	}
	assert_null(gzgets(in, line, sizeof(line)));
	gzclose(in);
}

static void writes(bool gzip)
{
	char path[] = "/tmp/whyoom-sink-XXXXXX";
	int fd = mkstemp(path);
	struct sink s;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(sink_init(&s, fd, gzip), 0);
	fill(&s);
	assert_int_equal(sink_finish(&s), 0);
	if (gzip)
		assert_true(lseek(fd, 0, SEEK_CUR) < (off_t)s.bytes / 2);
	else
		assert_int_equal(lseek(fd, 0, SEEK_CUR), s.bytes);
	sink_fini(&s);
	check(fd);
}

static void writes_plain(void **state)
{
	writes(false);
	(void)state;
}

static void writes_gzip(void **state)
{
	writes(true);
	(void)state;
}

static void keeps_the_error(void **state)
{
	for (int gzip = 0; gzip < 2; gzip++) {
		int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		struct sink s;

		assert_true(fd >= 0);
		assert_int_equal(sink_init(&s, fd, gzip), 0);
		fill(&s);
		assert_int_equal(sink_finish(&s), -ENOSPC);
		assert_int_equal(s.failed, -ENOSPC);
		sink_fini(&s);
		close(fd);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(writes_plain),
	    cmocka_unit_test(writes_gzip),
	    cmocka_unit_test(keeps_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "trace/directory/source.h"

static void reads_and_says_how_much(void **state)
{
	char path[] = "/tmp/whyoom-source-XXXXXX", buffer[16];
	int fd = mkstemp(path);
	struct source s;
	struct err err;
	size_t got;

	assert_int_equal(write(fd, "0123456789", 10), 10);
	assert_int_equal(source_open(&s, path, NULL, NULL, &err), 0);
	assert_int_equal(s.size, 10);
	assert_int_equal(source_read(&s, 2, buffer, 4, &got, &err), 0);
	assert_int_equal(got, 4);
	assert_memory_equal(buffer, "2345", 4);
	assert_int_equal(source_read(&s, 8, buffer, 16, &got, &err), 0);
	assert_int_equal(got, 2);
	assert_int_equal(source_read(&s, UINT64_MAX - 3, buffer, 16, &got, &err), 0);
	assert_int_equal(got, 0);
	/* The descriptor can be closed and reopened; the file may have grown. */
	source_release(&s);
	assert_int_equal(s.fd, -1);
	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(source_refresh(&s, &err), 0);
	assert_int_equal(s.size, 12);
	/* But not be another one. */
	source_release(&s);
	assert_int_equal(unlink(path), 0);
	int keep = fd;
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_int_equal(source_read(&s, 0, buffer, 1, &got, &err), -ESTALE);
	assert_non_null(strstr(err.text, path));
	source_close(&s);
	close(fd);
	close(keep);
	unlink(path);
}

static void refuses_what_is_no_file(void **state)
{
	char dir[] = "/tmp/whyoom-source-XXXXXX", fifo[64];
	struct source s;
	struct err err;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(source_open(&s, dir, NULL, NULL, &err), -EISDIR);
	assert_non_null(strstr(err.text, dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(
	    source_open(&s, fifo, NULL, NULL, &err), -EINVAL); /* and does not wait for a writer */
	unlink(fifo);
	assert_int_equal(source_open(&s, fifo, NULL, NULL, &err), -ENOENT);
	rmdir(dir);
}

static void holes_are_stepped_over(void **state)
{
	char path[] = "/tmp/whyoom-source-XXXXXX";
	int fd = mkstemp(path);
	struct source s;
	struct err err;
	uint64_t at;

	assert_int_equal(pwrite(fd, "x", 1, 1 << 30), 1);
	assert_int_equal(source_open(&s, path, NULL, NULL, &err), 0);
	at = source_next_data(&s, 65536);
	assert_true(at <= 1 << 30); /* at the latest where data begin; a file system may not tell */
	assert_int_equal(source_next_data(&s, 1 << 30), 1 << 30);
	assert_int_equal(source_next_data(&s, (1 << 30) + 1), s.size);
	source_close(&s);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reads_and_says_how_much),
	    cmocka_unit_test(refuses_what_is_no_file),
	    cmocka_unit_test(holes_are_stepped_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

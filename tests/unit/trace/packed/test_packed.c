/* Packed bytes come back from any offset; damage is reported, and never read as data. */
#include "trace/packed/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../util/unit.h"

#define SIZE (3u * PACKED_FRAME_MAX + 12345)

static uint8_t *plain;

/* A packed file of it, and its length. */
static int pack(size_t bytes, uint64_t *packed)
{
	int from = memfd_create("plain", 0), to = memfd_create("packed", 0);
	struct err err;

	assert_int_equal(write(from, plain, bytes), bytes);
	assert_int_equal(packed_write(from, bytes, to, &err), 0);
	close(from);
	*packed = (uint64_t)lseek(to, 0, SEEK_END);
	return to;
}

static void test_any_place(void **state)
{
	uint8_t *got = malloc(SIZE);
	struct packed *p;
	struct err err;
	uint64_t bytes;
	size_t n;
	int fd = pack(SIZE, &bytes);

	assert_true(bytes < SIZE);
	assert_int_equal(packed_open(fd, bytes, "x", &p, &err), 0);
	assert_non_null(p);
	assert_int_equal(packed_size(p), SIZE);
	assert_int_equal(packed_file_bytes(p), bytes);
	assert_int_equal(packed_read(p, fd, 0, got, SIZE, &n, &err), 0);
	assert_int_equal(n, SIZE);
	assert_memory_equal(got, plain, SIZE);
	for (size_t at = 0; at < SIZE + 999; at += 7777) {
		size_t want = at > SIZE ? 0 : SIZE - at < 300000 ? SIZE - at : 300000;

		assert_int_equal(packed_read(p, fd, SIZE - want, got, 300000, &n, &err), 0);
		assert_int_equal(n, want);
		assert_memory_equal(got, plain + SIZE - want, want);
		if (at % 5 == 0)
			packed_release(p);
	}
	assert_int_equal(packed_read(p, fd, UINT64_MAX, got, 10, &n, &err), 0);
	assert_int_equal(n, 0);
	packed_close(p);
	close(fd);
	free(got);
}

static void test_nothing(void **state)
{
	struct packed *p;
	struct err err;
	uint64_t bytes;
	uint8_t byte;
	size_t n;
	int fd = pack(0, &bytes);

	assert_int_equal(packed_open(fd, bytes, "x", &p, &err), 0);
	assert_int_equal(packed_size(p), 0);
	assert_int_equal(packed_read(p, fd, 0, &byte, 1, &n, &err), 0);
	assert_int_equal(n, 0);
	packed_close(p);
	close(fd);
}

/* Another file is no error here: it may be a trace. */
static void test_others(void **state)
{
	struct packed *p;
	struct err err;
	int fd = memfd_create("other", 0);

	assert_int_equal(packed_open(fd, 0, "x", &p, &err), 0);
	assert_null(p);
	assert_int_equal(write(fd, plain, 5000), 5000);
	assert_int_equal(packed_open(fd, 5000, "x", &p, &err), 0);
	assert_null(p);
	close(fd);
}

static void test_cut_off(void **state)
{
	struct packed *p;
	struct err err;
	uint64_t bytes;
	int fd = pack(SIZE, &bytes);

	for (uint64_t n = 24; n < bytes; n += n < 100 || n + 100 > bytes ? 1 : 997) {
		assert_int_equal(packed_open(fd, n, "x.whyoom", &p, &err), -EINVAL);
		assert_null(p);
		assert_non_null(strstr(err.text, "x.whyoom: a packed trace, but "));
	}
	close(fd);
}

/* Every byte is flipped: the file is refused, or each read is right or an error. */
static void test_flipped(void **state)
{
	uint8_t *got = malloc(SIZE);
	unsigned refused = 0, errors = 0;
	uint64_t bytes;
	int fd = pack(5000, &bytes);

	for (uint64_t at = 20; at < bytes; at++) {
		struct packed *p;
		struct err err;
		uint8_t byte;
		size_t n;
		int rc;

		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		byte ^= 0x41;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		rc = packed_open(fd, bytes, "x", &p, &err);
		refused += rc != 0;
		if (!rc && p) {
			rc = packed_read(p, fd, 0, got, SIZE, &n, &err);
			errors += rc == -EIO;
			if (!rc)
				assert_memory_equal(got, plain, n);
			packed_close(p);
		}
		byte ^= 0x41;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	}
	assert_true(refused > 20);
	assert_true(errors > 1000);
	close(fd);
	free(got);
}

static void test_newer(void **state)
{
	struct packed *p;
	struct err err;
	uint64_t bytes;
	int fd = pack(100, &bytes);

	assert_int_equal(pwrite(fd, "\x03", 1, 16), 1);
	assert_int_equal(packed_open(fd, bytes, "x", &p, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "format 3"));
	close(fd);
}

/* A table with larger frames than allowed. */
static void test_bomb(void **state)
{
	const uint32_t much = 1u << 30;
	struct packed *p;
	struct err err;
	uint64_t bytes;
	int fd = pack(PACKED_FRAME_MAX, &bytes);

	assert_int_equal(pwrite(fd, &much, 4, (off_t)bytes - 9 - 12 + 4), 4);
	assert_int_equal(packed_open(fd, bytes, "x", &p, &err), -EINVAL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_any_place),
	    cmocka_unit_test(test_nothing),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_cut_off),
	    cmocka_unit_test(test_flipped),
	    cmocka_unit_test(test_newer),
	    cmocka_unit_test(test_bomb),
	};
	uint32_t x = 1;

	plain = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		plain[i] = (uint8_t)(x >> 28);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

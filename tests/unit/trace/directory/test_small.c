/* test_small.c - files of small traces: which records are whole, and their bytes. The shim's
 * coder makes the records here. */
#include "../events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/directory/small.h"
#include "trace/small_code.h" /* the shim's */
#include "trace/xxh64.h"

static char path[64];
static uint8_t file[1 << 20];
static size_t file_bytes;
static struct err err;

static void put(uint8_t *to, size_t *at, const void *bytes, size_t n)
{
	memcpy(to + *at, bytes, n);
	*at += n;
}

/* A trace of one chunk of definitions and one of three events. */
static size_t plain_of(uint8_t *to, uint32_t pid, const uint8_t *defs, uint32_t defs_bytes)
{
	struct trace_header h = {.major = TRACE_MAJOR,
	    .header_bytes = TRACE_HEADER_BYTES,
	    .slot_bytes = TRACE_SLOT_BYTES,
	    .pid = pid,
	    .end_how = TRACE_END_EXIT};
	struct trace_chunk c = {.magic = TRACE_CHUNK_MAGIC,
	    .type = TRACE_CHUNK_DEFINITIONS,
	    .header_bytes = 64,
	    .bytes = TRACE_SLOT_BYTES};
	/* without their times: ALLOC, FREE and an extended one of two fields */
	static const uint8_t events[] = {1, 0x80, 1, 24, 5, 2, 0x7f, 15, 30, 2, 1, 77};
	size_t at = 0;
	uint32_t slot = 1;

	memcpy(h.magic, TRACE_MAGIC, 8);
	memset(to, 0, TRACE_SMALL_HEADER_BYTES);
	memcpy(to, &h, sizeof(h));
	at = TRACE_SMALL_HEADER_BYTES;
	put(to, &at, &slot, 4);
	put(to, &at, &c, sizeof(c));
	put(to, &at, &defs_bytes, 4);
	put(to, &at, defs, defs_bytes);
	slot = 3;
	c.type = TRACE_CHUNK_SHARED;
	c.committed = sizeof(events);
	put(to, &at, &slot, 4);
	put(to, &at, &c, sizeof(c));
	put(to, &at, events, sizeof(events));
	return at;
}

static const uint32_t times[3] = {0, 1, 100};

/* Append a record; return its offset. */
static uint32_t append(uint32_t pid, const uint8_t *defs, uint32_t defs_bytes, int64_t base)
{
	static uint8_t window[2 * TRACE_SMALL_PLAIN_MAX];
	struct small_coder *coder = calloc(1, small_coder_bytes());
	struct trace_small h = {.version = TRACE_SMALL_VERSION,
	    .coded = base >= 0,
	    .quantum = 4,
	    .pid = pid,
	    .image = 2,
	    .file_bytes = 4 * TRACE_SLOT_BYTES,
	    .times = 3,
	    .base = base >= 0 ? (uint32_t)base : 0,
	    .start_real_ns = 1000 + pid};
	uint32_t begin = (uint32_t)file_bytes, base_bytes = 0;
	size_t at = file_bytes + sizeof(h), n;
	struct trace_small of_base;
	struct xxh64 x;

	memcpy(h.magic, TRACE_SMALL_MAGIC, 8);
	if (base >= 0) {
		memcpy(&of_base, file + base, sizeof(of_base));
		base_bytes = of_base.plain_bytes;
		memcpy(window, file + base + sizeof(h), base_bytes);
	}
	h.plain_bytes = (uint32_t)plain_of(window + base_bytes, pid, defs, defs_bytes);
	if (base < 0)
		put(file, &at, window, h.plain_bytes);
	n = small_encode(coder, window, base_bytes,
	    base < 0 ? base_bytes : base_bytes + h.plain_bytes, times, 3, file + at,
	    sizeof(file) - at);
	assert_true(n);
	free(coder);
	h.bytes = (uint32_t)(at + n - begin);
	memcpy(file + begin, &h, sizeof(h));
	xxh64_init(&x);
	xxh64_add(&x, file + begin, h.bytes);
	h.checksum = xxh64_done(&x);
	memcpy(file + begin, &h, sizeof(h));
	file_bytes = begin + h.bytes;
	return begin;
}

static void save(size_t bytes)
{
	FILE *f = fopen(path, "w");

	fwrite(file, 1, bytes, f);
	fclose(f);
}

static struct small_list list(void)
{
	struct small_list l;

	assert_int_equal(small_list_read(path, &l, &err), 0);
	return l;
}

static int begin(void **state)
{
	int fd;

	strcpy(path, "/tmp/whyoom-small-XXXXXX");
	fd = mkstemp(path);
	file_bytes = 0;
	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	return unlink(path);
}

static uint8_t defs[500];

static void some_defs(void)
{
	for (size_t i = 0; i < sizeof(defs); i++)
		defs[i] = (uint8_t)(i * i >> 3);
}

/* The bytes of its own file. */
static void check(const struct small_place *place, const uint8_t *expected_defs, size_t defs_bytes)
{
	static const uint8_t events[] = {1, 0, 0x80, 1, 24, 5, /* */ 2, 16, 0x7f, /* */
	    15, 30, 4, 0xc0, 12, 1, 77};
	static uint8_t all[5 * TRACE_SLOT_BYTES], piece[100];
	struct trace_header h;
	struct trace_chunk c;
	struct small *s;
	size_t got;
	int fd = open(path, O_RDONLY);

	assert_int_equal(small_open(fd, path, place, &s, &err), 0);
	small_read(s, 0, all, sizeof(all), &got);
	assert_int_equal(got, 4 * TRACE_SLOT_BYTES);
	memcpy(&h, all, sizeof(h));
	assert_int_equal(h.pid, place->pid);
	memcpy(&c, all + TRACE_SLOT_BYTES, sizeof(c));
	assert_int_equal(c.type, TRACE_CHUNK_DEFINITIONS);
	assert_memory_equal(all + TRACE_SLOT_BYTES + 64, expected_defs, defs_bytes);
	memcpy(&c, all + 3 * TRACE_SLOT_BYTES, sizeof(c));
	assert_int_equal(c.committed, sizeof(events));
	assert_memory_equal(all + 3 * TRACE_SLOT_BYTES + 64, events, sizeof(events));
	for (size_t i = sizeof(h); i < TRACE_SLOT_BYTES; i++)
		assert_int_equal(all[i], 0);
	for (uint64_t at = 0; at < sizeof(all); at += 37) { /* in any pieces */
		size_t want = at + sizeof(piece) < got ? sizeof(piece) : at < got ? got - at : 0;
		size_t n;

		small_read(s, at, piece, sizeof(piece), &n);
		assert_int_equal(n, want);
		assert_memory_equal(piece, all + at, n);
	}
	small_close(s);
	close(fd);
}

static void test_read(void **state)
{
	uint32_t first, second;
	struct small_list l;

	some_defs();
	first = append(10, defs, sizeof(defs), -1);
	second = append(11, defs + 3, sizeof(defs) - 3, first);
	append(12, defs, 8, first);
	save(file_bytes);
	l = list();
	assert_int_equal(l.places.count, 3);
	assert_int_equal(l.torn.count, 0);
	assert_int_equal(l.places.items[1].offset, second);
	assert_int_equal(l.places.items[1].pid, 11);
	assert_int_equal(l.places.items[1].image, 2);
	assert_int_equal(l.places.items[1].start_real_ns, 1011);
	assert_true(l.places.items[1].record_bytes < l.places.items[0].record_bytes / 2);
	check(&l.places.items[0], defs, sizeof(defs));
	check(&l.places.items[1], defs + 3, sizeof(defs) - 3);
	check(&l.places.items[2], defs, 8);
	small_list_free(&l);
}

/* An unfinished last write costs no other record, before or after it. */
static void test_torn(void **state)
{
	uint32_t second;
	size_t whole;

	some_defs();
	append(10, defs, sizeof(defs), -1);
	second = append(11, defs, 20, -1);
	whole = file_bytes;
	for (size_t cut = second; cut < whole; cut += 7) {
		struct small_list l;

		file_bytes = cut;
		append(12, defs, 4, 0);
		save(file_bytes);
		l = list();
		assert_int_equal(l.places.count, 2);
		assert_int_equal(l.torn.count, cut > second);
		if (cut > second) {
			assert_int_equal(l.torn.items[0].bytes, cut - second);
			if (cut - second >= sizeof(struct trace_small))
				assert_int_equal(l.torn.items[0].pid, 11);
		}
		assert_int_equal(l.places.items[1].pid, 12);
		assert_int_equal(l.places.items[1].offset, cut);
		check(&l.places.items[1], defs, 4);
		small_list_free(&l);
		/* restore the cut part */
		file_bytes = second;
		append(11, defs, 20, -1);
	}
}

/* Each changed byte costs that record, and those that build on it, at most. */
static void test_damaged(void **state)
{
	size_t whole;

	some_defs();
	append(10, defs, 60, -1);
	append(11, defs, 70, 0);
	append(12, defs, 80, -1);
	whole = file_bytes;
	for (size_t i = 0; i < whole; i++) {
		struct small_list l;
		int fd;

		file[i] ^= 0x55;
		save(whole);
		l = list();
		assert_int_equal(l.places.count, 2);
		fd = open(path, O_RDONLY);
		for (size_t k = 0; k < l.places.count; k++) {
			struct small *s = NULL;
			int r = small_open(fd, path, &l.places.items[k], &s, &err);

			if (l.places.items[k].pid == 11 && l.places.items[0].pid != 10)
				assert_int_equal(r, -EINVAL);
			else
				assert_int_equal(r, 0);
			small_close(s);
		}
		close(fd);
		small_list_free(&l);
		file[i] ^= 0x55;
	}
}

/* A record with impossible claims, though its checksum is right. */
static void test_contradictions(void **state)
{
	struct small_list l;
	struct small *s;
	int fd;

	some_defs();
	append(10, defs, 60, -1);
	append(11, defs, 60, 0);
	append(12, defs, 60, 0);
	save(file_bytes);
	l = list();
	assert_int_equal(l.places.count, 3);
	fd = open(path, O_RDONLY);
	l.places.items[2].offset += 1;
	assert_int_equal(small_open(fd, path, &l.places.items[2], &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "contradicts itself"));
	l.places.items[2].offset = file_bytes + 5;
	assert_int_equal(small_open(fd, path, &l.places.items[2], &s, &err), -EINVAL);
	close(fd);
	small_list_free(&l);
	assert_int_equal(small_list_read("/nonexistent", &l, &err), -ENOENT);
	assert_int_equal(small_list_read("/tmp", &l, &err), -EINVAL);
}

/* More than is read at once. */
static void test_many(void **state)
{
	struct small_list l;
	size_t n = 0;

	some_defs();
	while (file_bytes < sizeof(file) - 16384) {
		append(100 + (uint32_t)n, defs, sizeof(defs), n % 3 ? 0 : -1);
		n++;
	}
	for (int i = 0; i < 3; i++) {
		FILE *f = fopen(path, i ? "a" : "w");

		fwrite(file, 1, file_bytes, f);
		fclose(f);
	}
	l = list();
	assert_int_equal(l.places.count, 3 * n);
	assert_int_equal(l.torn.count, 0);
	small_list_free(&l);
}

static void test_names(void **state)
{
	assert_true(small_is_name("small.0.whyooms"));
	assert_true(small_is_name("small.17.whyooms"));
	assert_false(small_is_name("1.0.whyoom"));
	assert_false(small_is_name(".small.0.whyooms"));
	assert_false(small_is_name(".whyooms"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_read, begin, end),
	    cmocka_unit_test_setup_teardown(test_torn, begin, end),
	    cmocka_unit_test_setup_teardown(test_damaged, begin, end),
	    cmocka_unit_test_setup_teardown(test_contradictions, begin, end),
	    cmocka_unit_test_setup_teardown(test_many, begin, end),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

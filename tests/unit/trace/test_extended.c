/* test_extended.c - each kind of event with a length: fields are read in the order of
 * trace_kinds.def, fields that a record may lack are 0, and an event keeps all values. */
#include "trace/extended.h"

#include <stdlib.h>

#include "events.h"
#include "trace/writer.h"

/* One element for each row. */
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) id,
static const uint32_t rows[] = {
#include "whyoom/trace_kinds.def"
};

/* Fields 1, 2, 3 and so on, except those that decide which others there are; 2 levels. */
static unsigned sample(unsigned kind, uint64_t *fields, uint64_t *bytes)
{
	unsigned n = 0, at = 0;

	for (; trace_field_types[kind][n] != TRACE_FIELD_END; n++) {
		fields[n] = n + 1;
		if (n == 0 && kind == TRACE_NOTICE)
			fields[n] = TRACE_NOTICE_MODE;
		if (n == 0 && kind == TRACE_MARK)
			fields[n] = TRACE_MARK_LENGTH;
		if ((trace_field_types[kind][n] & ~TRACE_FIELD_LATER) != TRACE_FIELD_LEVELS) {
			bytes[at++] = fields[n];
			continue;
		}
		fields[n] = 2;
		for (unsigned i = 0; i < 5; i++)
			bytes[at++] = (const uint64_t[]){2, 71, 81, 72, 82}[i];
	}
	return at;
}

/* All are below 128, and so a byte each. */
static bool read_bytes(
    unsigned kind, const uint64_t *bytes, unsigned count, struct extended_body *body)
{
	static uint8_t raw[64]; /* the levels are read from it later */
	struct cursor c;

	for (unsigned i = 0; i < count; i++)
		raw[i] = (uint8_t)bytes[i];
	c = cursor_of(raw, count);
	return extended_read(kind, &c, body);
}

static void test_order(void **state)
{
	uint64_t fields[TRACE_FIELDS_MAX], bytes[64];
	unsigned known = 0;

	for (unsigned kind = 0; kind < TRACE_KINDS + 2; kind++) {
		struct extended_body body;
		struct extended *x;
		unsigned n, shortest = 0;

		if (!extended_is_known(kind))
			continue;
		known++;
		n = sample(kind, fields, bytes);
		assert_true(read_bytes(kind, bytes, n, &body));
		for (unsigned i = 0; trace_field_types[kind][i] != TRACE_FIELD_END; i++)
			assert_int_equal(((uint64_t *)&body.fields)[i], fields[i]);
		x = extended_new(kind, &body);
		assert_int_equal(x->kind, kind);
		for (uint32_t i = 0; i < x->level_count; i++) {
			assert_int_equal(x->levels[i].key, 71 + i);
			assert_int_equal(x->levels[i].value, 81 + i);
		}
		free(x);
		/* A newer version may add fields; a cut record contradicts the format. */
		bytes[n] = 5;
		assert_true(read_bytes(kind, bytes, n + 1, &body));
		for (unsigned cut = 0; cut < n; cut++)
			shortest += read_bytes(kind, bytes, cut, &body);
		assert_int_equal(shortest, kind == TRACE_MAP || kind == TRACE_LEVEL_OF ||
					       kind == TRACE_NOTICE || kind == TRACE_MARK);
	}
	assert_int_equal(known, sizeof(rows) / sizeof(rows[0]));
}

static void test_later(void **state)
{
	struct extended_body body;

	/* NOTICE 3 has no mean, whatever follows. */
	assert_true(read_bytes(TRACE_NOTICE, (uint64_t[]){3, 1, 9, 9}, 4, &body));
	assert_int_equal(body.fields.NOTICE.mean, 0);
	/* FAILED of errno has no call. */
	assert_true(read_bytes(
	    TRACE_FAILED, (uint64_t[]){0, 0, TRACE_FAIL_ERRNO, 12, 8, 0, 0, 3, 0, 9}, 10, &body));
	assert_int_equal(body.fields.FAILED.call, 0);
	assert_true(body.has_stack);
	assert_int_equal(body.stack, 3);
	/* Nor is there room for more levels than there are bytes. */
	assert_false(read_bytes(TRACE_LEVEL, (uint64_t[]){0, 2, 1, 1, 1}, 5, &body));
	/* MARK without its length. */
	assert_true(
	    read_bytes(TRACE_MARK, (uint64_t[]){TRACE_MARK_BEGIN, 1, 2, 3, 4, 5, 9}, 7, &body));
	assert_int_equal(body.fields.MARK.domain, 5);
	assert_int_equal(body.fields.MARK.tokens, 0);
}

/* Kinds that are no event of their own, and are not written again. */
static bool is_left_out(unsigned kind)
{
	return kind == TRACE_SHARED_THREAD || kind == TRACE_TASK || kind == TRACE_TASK_END ||
	       kind == TRACE_ALLOC_WIDE || kind == TRACE_FREE_WIDE || kind == TRACE_SAMPLED_ALLOC ||
	       kind == TRACE_CHECKPOINT || kind == TRACE_WENT;
}

/* Into an event and back: no field is forgotten or mixed up. */
static void test_events(void **state)
{
	uint64_t fields[TRACE_FIELDS_MAX], bytes[64];
	struct trace_writer *w;
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	for (unsigned i = 1; i <= TRACE_FIELDS_MAX; i++)
		def_string(&c, i, (char[]){(char)('a' + i), 0});
	compose_end(&c);
	t = open_composed(&c);
	w = trace_writer_new(t);
	for (unsigned kind = 0; kind < TRACE_KINDS; kind++) {
		struct extended_body body;
		union trace_fields again = {0};
		struct event e = {0};
		struct extended *x;

		if (!extended_is_known(kind) || is_left_out(kind))
			continue;
		assert_true(read_bytes(kind, bytes, sample(kind, fields, bytes), &body));
		x = extended_new(kind, &body);
		assert_true(extended_to_event(t, x, &e));
		assert_int_equal(extended_of_event(w, &e, &again), kind);
		for (unsigned i = 0; trace_field_types[kind][i] != TRACE_FIELD_END; i++) {
			uint64_t now = ((uint64_t *)&again)[i];
			unsigned type = trace_field_types[kind][i] & ~(unsigned)TRACE_FIELD_LATER;

			if (type == TRACE_FIELD_STRING)
				assert_true(now > 0);
			else if (type == TRACE_FIELD_NUMBER && (kind != TRACE_NOTICE || i < 2) &&
				 (kind != TRACE_SIGNAL || i != 1))
				assert_int_equal(now, fields[i]);
		}
		free(x);
	}
	trace_writer_free(w);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_later),
	    cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

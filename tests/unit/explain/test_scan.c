/* Finding messages: in any pieces, anywhere in a long log, the longest of two that overlap, with
 * repetitions counted, and in logs that are made to be slow. */
#include "../util/unit.h"

#include <time.h>

#include "explain/scan.h"
#include "known.h"
#include "util/text/note.h"
#include "util/text/str.h"

#define MESSAGE(name, needle, pattern)                                                             \
	"[message " name "]\nkind = failure\nneedle = " needle "\npattern = " pattern              \
	"\nmeaning = it\n"

static const char text_of[] = "framework = t\n" MESSAGE("short", "out of memory", "out of memory")
    MESSAGE("long", "out of memory", "(?:CUDA )?out of memory\\. Tried (?<n_n>\\d+)")
	MESSAGE("lines", "begin", "begin\\n(?:row (?:\\d+)\\n)*end")
	    MESSAGE("any", "memory", "(?m)^[^\\n]*memory[^\\n]*") "fallback = yes\n";

static struct explanation pieces(
    const struct knowledge *k, const char *log, size_t bytes, size_t piece)
{
	struct explanation e = {0};
	struct scan *scan;

	assert_int_equal(scan_new(k, &e, &scan, NULL), 0);
	for (size_t at = 0; at < bytes; at += piece)
		assert_int_equal(
		    scan_feed(scan, log + at, bytes - at < piece ? bytes - at : piece), 0);
	assert_int_equal(scan_end(scan), 0);
	scan_free(scan);
	return e;
}

static void test_longest(void **state)
{
	struct knowledge *k = known_text(text_of);
	const char *log = "a\nCUDA out of memory. Tried 5 x\nout of memory\n";
	struct explanation e = pieces(k, log, strlen(log), 1);

	assert_int_equal(e.count, 2);
	assert_string_equal(e.messages[0].known->name, "long");
	assert_string_equal(e.messages[0].text, "CUDA out of memory. Tried 5");
	assert_int_equal(e.messages[0].line, 2);
	assert_int_equal(fields_find(&e.messages[0].fields, "n")->integer, 5);
	assert_string_equal(e.messages[1].known->name, "short");
	assert_int_equal(e.messages[1].line, 3);
	assert_int_equal(e.lines, 3);
	assert_int_equal(e.bytes, strlen(log));
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* A fallback gives way to what it overlaps, however short, before it or after. */
static void test_fallback(void **state)
{
	struct knowledge *k = known_text(text_of);
	const char *log = "an error: out of memory, it says\nno memory here\n";
	struct explanation e = pieces(k, log, strlen(log), 7);

	assert_int_equal(e.count, 2);
	assert_string_equal(e.messages[0].known->name, "short");
	assert_string_equal(e.messages[1].known->name, "any");
	assert_string_equal(e.messages[1].text, "no memory here");
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* The same at any borders of pieces, and anywhere in a long log; lines of any length. */
static void test_callsites(void **state)
{
	struct knowledge *k = known_text(text_of);
	size_t size = 3u << 20;
	char *log = malloc(size);
	static const size_t at[] = {
	    0, 1000, 131070, 262143, 262400, 393200, 458740, 1048570, 2097151};
	static const char message[] = "CUDA out of memory. Tried 77 bytes";

	for (int wide = 0; wide < 2; wide++) {
		struct explanation e;
		uint64_t line = 1;

		memset(log, 'x', size);
		for (size_t i = 0; !wide && i < size; i += 100)
			log[i] = '\n';
		for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
			memcpy(log + at[i], message, sizeof(message) - 1);
			log[at[i] + 26] = (char)('0' + i); /* texts that differ */
		}
		for (size_t piece = 4093; piece < size; piece *= 6) {
			size_t done = 0;

			e = pieces(k, log, size, piece);
			for (size_t i = 0; i < e.count; i++)
				done += e.messages[i].count;
			assert_int_equal(done, sizeof(at) / sizeof(*at));
			for (size_t i = 0; i < at[4]; i++)
				line += log[i] == '\n';
			assert_int_equal(e.messages[4].line, line);
			assert_int_equal(e.count, sizeof(at) / sizeof(*at));
			line = 1;
			explain_fini(&e);
		}
	}
	free(log);
	knowledge_free(k);
	(void)state;
}

static void test_many_lines(void **state)
{
	struct knowledge *k = known_text(text_of);
	struct str log = {0};
	struct explanation e;

	str_puts(&log, "begin\n");
	for (int i = 0; i < 3000; i++)
		str_printf(&log, "row %d\n", i);
	str_puts(&log, "end\n");
	e = pieces(k, str_text(&log), log.length, 1000);
	assert_int_equal(e.count, 1);
	assert_string_equal(e.messages[0].known->name, "lines");
	assert_true(strlen(e.messages[0].text) <= 4096);
	explain_fini(&e);
	str_free(&log);
	knowledge_free(k);
	(void)state;
}

static void test_repeated(void **state)
{
	struct knowledge *k = known_text(text_of);
	struct str log = {0};
	struct explanation e;
	uint64_t all = 0;

	for (int i = 0; i < 5000; i++)
		str_printf(&log, "CUDA out of memory. Tried %d\nout of memory\n", i % 1000);
	e = pieces(k, str_text(&log), log.length, 7777);
	assert_int_equal(e.count, 17);
	for (size_t i = 0; i < e.count; i++)
		all += e.messages[i].count;
	assert_int_equal(all, 10000);
	assert_int_equal(e.messages[1].count, 5000);
	assert_int_equal(e.messages[1].line, 2);
	assert_int_equal(e.messages[1].last_line, 10000);
	explain_fini(&e);
	str_free(&log);
	knowledge_free(k);
	(void)state;
}

static unsigned notes;

static void on_note(void *arg, const char *text)
{
	(void)arg;
	(void)text;
	notes++;
}

/* A needle everywhere, and the message nowhere. */
static void test_in_vain(void **state)
{
	struct knowledge *k = known_text("framework = t\n" MESSAGE(
	    "slow", "needle", "(?:\\w+\\s?)*needle(?:[^\\n]*,){3}[^\\n]*z"));
	size_t bytes = 8u << 20;
	char *log = malloc(bytes);
	struct timespec from, to;
	struct explanation e;

	for (size_t i = 0; i < bytes; i++)
		log[i] = "needle ,"[i % 8];
	notes = 0;
	note_redirect(on_note, NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	e = pieces(k, log, bytes, 65536);
	clock_gettime(CLOCK_MONOTONIC, &to);
	note_redirect(NULL, NULL);
	assert_int_equal(e.count, 0);
	assert_int_equal(notes, 1);
	assert_true(to.tv_sec - from.tv_sec < 60);
	explain_fini(&e);
	free(log);
	knowledge_free(k);
	(void)state;
}

/* One line without an end: a search for one needle is not repeated for the next. */
static void test_one_long_line(void **state)
{
	struct knowledge *k = known_text(
	    "framework = t\n" MESSAGE("late", "needle", "[^\\n]{0,80}needle (?:here|there)"));
	size_t bytes = 2u << 20;
	char *log = malloc(bytes);
	clock_t from = clock();
	struct explanation e;

	for (size_t i = 0; i < bytes; i++)
		log[i] = "needle ,"[i % 8];
	memcpy(log + bytes - 100, "needle there", 12);
	e = pieces(k, log, bytes, 65536);
	assert_int_equal(e.count, 1);
	assert_true(clock() - from < 6 * CLOCKS_PER_SEC);
	explain_fini(&e);
	free(log);
	knowledge_free(k);
	(void)state;
}

/* A pattern with a mistake is reported, and the others go on. */
static void test_bad_pattern(void **state)
{
	struct knowledge *k = known_text(
	    "framework = t\n" MESSAGE("bad", "abcd", "ab(cd") MESSAGE("good", "abcd", "abcd"));
	struct explanation e;

	notes = 0;
	note_redirect(on_note, NULL);
	e = pieces(k, "abcd", 4, 4);
	note_redirect(NULL, NULL);
	assert_int_equal(notes, 1);
	assert_int_equal(e.count, 1);
	assert_string_equal(e.messages[0].known->name, "good");
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* A message takes the time of its line, or of the nearest line before it. */
static void test_times(void **state)
{
	struct knowledge *k = known_text(text_of);
	const char *log = "2026-05-01 10:00:00 start\n"
			  "Traceback (most recent call last):\n"
			  "  File \"/app/a.py\", line 3, in f\n"
			  "CUDA out of memory. Tried 1\n"
			  "2026-05-01 11:00:00 out of memory at 2026-05-01 12:00:00\n";
	struct explanation e = pieces(k, log, strlen(log), 10);

	assert_int_equal(e.count, 2);
	assert_string_equal(e.messages[0].time, "2026-05-01 10:00:00");
	assert_string_equal(e.messages[1].time, "2026-05-01 11:00:00");
	assert_string_equal(e.messages[0].traceback.own.function, "f");
	/* The traceback belongs to the first message after it. */
	assert_int_equal(e.messages[1].traceback.frames, 0);
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_longest),
	    cmocka_unit_test(test_fallback),
	    cmocka_unit_test(test_callsites),
	    cmocka_unit_test(test_many_lines),
	    cmocka_unit_test(test_repeated),
	    cmocka_unit_test(test_in_vain),
	    cmocka_unit_test(test_one_long_line),
	    cmocka_unit_test(test_bad_pattern),
	    cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

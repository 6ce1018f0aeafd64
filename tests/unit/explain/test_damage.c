/* Logs are data: real ones with bytes changed, lines cut, doubled and mixed, and garbage,
 * through the whole explanation. Reproducible by the printed seed. WHYOOM_TEST_ROUNDS asks for
 * more. */
#include "../util/unit.h"

#include <dirent.h>

#include "known.h"
#include "util/text/note.h"
#include "util/text/str.h"

#define LOGS_MAX 512
#define DAMAGED_MAX (256u << 10)

static char *logs[LOGS_MAX];
static size_t sizes[LOGS_MAX], log_count;

static void quiet(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static void read_logs(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)) && log_count < LOGS_MAX) {
		char path[1024];
		FILE *in;

		if (!strstr(entry->d_name, ".log"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		in = fopen(path, "r");
		logs[log_count] = malloc(DAMAGED_MAX);
		sizes[log_count] = fread(logs[log_count], 1, DAMAGED_MAX, in);
		log_count += sizes[log_count] > 0;
		fclose(in);
	}
	if (d)
		closedir(d);
}

static void damage(struct str *s, unsigned *seed)
{
	for (int n = rand_r(seed) % 30; n > 0 && s->length > 2; n--) {
		size_t at = (size_t)rand_r(seed) % s->length;
		size_t bytes = (size_t)rand_r(seed) % (s->length - at);

		switch (rand_r(seed) % 4) {
		case 0:
			s->text[at] = (char)rand_r(seed);
			break;
		case 1:
			s->text[at] = "0123456789.,-: \n()%"[rand_r(seed) % 19];
			break;
		case 2:
			memmove(s->text + at, s->text + at + bytes / 8, s->length - at - bytes / 8);
			s->length -= bytes / 8;
			break;
		default:
			for (size_t i = 0; i < bytes && s->length < DAMAGED_MAX; i++)
				str_putc(s, s->text[at + i]);
		}
	}
}

static void one(const struct knowledge *k, const struct str *s)
{
	struct explanation e;

	assert_int_equal(explain_buffer(str_text(s), s->length, k, &e, NULL), 0);
	assert_true(e.verdict.cause < CAUSE_COUNT);
	assert_non_null(e.verdict.summary);
	for (size_t i = 0; i < e.count; i++)
		assert_non_null(e.messages[i].meaning);
	explain_fini(&e);
}

static void test_damaged_logs(void **state)
{
	const char *asked = getenv("WHYOOM_TEST_ROUNDS");
	long rounds = asked ? atol(asked) : 400;
	struct knowledge *k = known_shipped();
	unsigned seed = 20260501;

	read_logs(getenv("WHYOOM_TEST_LOGS"));
	assert_true(log_count > 0);
	note_redirect(quiet, NULL);
	print_message("seed %u, %ld rounds, %zu logs\n", seed, rounds, log_count);
	for (long i = 0; i < rounds; i++) {
		struct str s = {0};

		for (int n = 1 + rand_r(&seed) % 4; n > 0; n--) {
			size_t which = (size_t)rand_r(&seed) % log_count;

			str_add(&s, logs[which], sizes[which]);
		}
		damage(&s, &seed);
		one(k, &s);
		str_free(&s);
	}
	note_redirect(NULL, NULL);
	while (log_count)
		free(logs[--log_count]);
	knowledge_free(k);
	(void)state;
}

static void test_garbage(void **state)
{
	struct knowledge *k = known_shipped();
	struct str s = {0};
	unsigned seed = 1;

	for (int i = 0; i < 1 << 20; i++)
		str_putc(&s, (char)rand_r(&seed));
	one(k, &s);
	str_clear(&s);
	for (int i = 0; i < 1 << 20; i++)
		str_putc(&s, '\0');
	one(k, &s);
	str_free(&s);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_damaged_logs),
	    cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

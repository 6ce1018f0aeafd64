#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../events.h"
#include "util/text/note.h"

static char dir[64], notes[4096];

static void hear(void *arg, const char *text)
{
	strncat(notes, text, sizeof(notes) - strlen(notes) - 2);
	strcat(notes, "\n");
}

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/whyoom-set-XXXXXX");
	notes[0] = 0;
	note_redirect(hear, NULL);
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[100];

	note_redirect(NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void put_file(const char *name, uint32_t pid, uint32_t image, uint64_t start, unsigned end)
{
	char path[128];
	struct compose c;

	compose_begin(&c);
	compose_header(&c)->pid = pid;
	compose_header(&c)->image = image;
	compose_header(&c)->start_real_ns = start;
	compose_header(&c)->end_how = end;
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 10, 0x1000, 1, 0);
	compose_save(&c);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(rename(c.path, path), 0);
	c.path[0] = 0;
	compose_free(&c);
}

static void put_garbage(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	fputs("this is no trace", f);
	fclose(f);
}

static void put_supervisor(void)
{
	char path[128];
	struct compose c;

	compose_begin(&c);
	compose_header(&c)->mode = TRACE_MODE_SUPERVISOR;
	compose_header(&c)->start_real_ns = 1000;
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	PUT_EVENT(&c, 100, TRACE_CHILD_END, 10, 2, 9, 0); /* killed */
	PUT_EVENT(&c, 200, TRACE_CHILD_END, 20, 1, 3, 1);
	PUT_EVENT(&c, 300, TRACE_CHILD_END, 999, 1, 0, 0); /* no such process */
	PUT_EVENT(&c, 500, TRACE_CHILD_END, 30, 7, 0, 0); /* ended in a way that does not exist */
	compose_save(&c);
	snprintf(path, sizeof(path), "%s/run.whyoom", dir);
	assert_int_equal(rename(c.path, path), 0);
	c.path[0] = 0;
	compose_free(&c);
}

static void orders_and_says_how_they_ended(void **state)
{
	struct trace_set set;
	struct err err = {""};
	struct event e;

	put_file("20.0.whyoom", 20, 0, 1050, 0);
	put_file("10.1.whyoom", 10, 1, 1040, 0);
	put_file("10.0.whyoom", 10, 0, 1000, TRACE_END_EXEC);
	put_file("30.0.whyoom", 30, 0, 1040, TRACE_END_EXIT);
	put_garbage("notes.txt"); /* not named like a trace: ignored */
	put_supervisor();
	assert_int_equal(trace_set_open(dir, &set, &err), 0);
	assert_int_equal(set.count, 4);
	assert_non_null(set.supervisor);
	assert_int_equal(trace_facts(set.images[0])->end_how, TRACE_END_EXEC);
	assert_int_equal(trace_facts(set.images[1])->image, 1);
	assert_int_equal(trace_facts(set.images[1])->end_how, TRACE_END_SIGNAL);
	assert_int_equal(trace_facts(set.images[1])->end_code, 9);
	assert_int_equal(trace_facts(set.images[2])->pid, 30);
	assert_int_equal(trace_facts(set.images[2])->end_how, TRACE_END_EXIT);
	assert_int_equal(trace_facts(set.images[3])->end_code, 3);
	assert_false(trace_facts(set.images[3])->running);
	/* The supervisor's events can still be read. */
	assert_int_equal(trace_next(set.supervisor, &e, &err), 1);
	assert_int_equal(e.u.child.pid, 10);
	assert_string_equal(notes, "");
	trace_set_close(&set);
}

static void leaves_out_what_cannot_be_read(void **state)
{
	struct trace_set set;
	struct err err = {""};

	put_file("20.0.whyoom", 20, 0, 1050, 1);
	put_garbage("21.0.whyoom");
	put_garbage("22.0.whyoom");
	assert_int_equal(trace_set_open(dir, &set, &err), 0);
	assert_int_equal(set.count, 1);
	assert_non_null(strstr(notes, "21.0.whyoom: offset 0: not a whyoom trace"));
	assert_non_null(strstr(notes, "22.0.whyoom: offset 0: not a whyoom trace"));
	trace_set_close(&set);
}

/* A user's directory holds the user's files, which may be anything. */
static void finds_those_of_users(void **state)
{
	char inner[128], link[140];
	struct trace_set set;
	struct err err = {""};

	snprintf(inner, sizeof(inner), "%s/uid.65534", dir);
	snprintf(link, sizeof(link), "%s/40.0.whyoom", inner);
	assert_int_equal(mkdir(inner, 0700), 0);
	put_supervisor();
	snprintf(inner, sizeof(inner), "%s/run.whyoom", dir);
	assert_int_equal(rename(inner, strcat(strcpy(notes, dir), "/uid.65534/run.whyoom")), 0);
	notes[0] = 0;
	put_file("20.0.whyoom", 20, 0, 1000, 1);
	put_file("25.0.whyoom", 25, 0, 1010, 0);
	put_file("26.0.whyoom", 26, 0, 1020, 0);
	put_file("uid.65534/30.0.whyoom", 30, 0, 1040, 1);
	put_file("uid.65534/25.1.whyoom", 25, 1, 1050, 0);
	put_file("uid.65534/26.1.whyoom", 26, 1, 9000000000, 0); /* a number that was used again */
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_int_equal(trace_set_open(dir, &set, &err), 0);
	assert_int_equal(set.count, 6);
	assert_int_equal(trace_facts(set.images[1])->pid, 25);
	assert_int_equal(trace_facts(set.images[1])->end_how, TRACE_END_EXEC);
	assert_int_equal(trace_facts(set.images[2])->end_how, TRACE_END_NONE);
	assert_int_equal(trace_facts(set.images[3])->pid, 30);
	assert_int_equal(trace_facts(set.images[4])->end_how, TRACE_END_NONE);
	assert_null(set.supervisor);
	assert_string_equal(notes, "");
	trace_set_close(&set);
}

static void unless_none_remains(void **state)
{
	struct trace_set set;
	struct err err = {""};

	assert_int_equal(trace_set_open(dir, &set, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no traces in this directory"));
	put_garbage("21.0.whyoom");
	assert_int_equal(trace_set_open(dir, &set, &err), -EINVAL);
	assert_non_null(strstr(err.text, "21.0.whyoom: offset 0"));
	put_garbage("22.0.whyoom");
	assert_int_equal(trace_set_open(dir, &set, &err), -EINVAL);
	assert_non_null(strstr(err.text, "1 more"));
	assert_int_equal(trace_set_open("/nonexistent/x", &set, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
}

static void one_file_and_a_fifo(void **state)
{
	struct trace_set set;
	struct err err = {""};
	char path[128];

	put_file("20.0.whyoom", 20, 0, 1050, 1);
	snprintf(path, sizeof(path), "%s/20.0.whyoom", dir);
	assert_int_equal(trace_set_open(path, &set, &err), 0);
	assert_int_equal(set.count, 1);
	assert_null(set.supervisor);
	assert_string_equal(set.path, path);
	trace_set_close(&set);
	snprintf(path, sizeof(path), "%s/9.0.whyoom", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(trace_set_open(dir, &set, &err), 0); /* does not wait for a writer */
	assert_int_equal(set.count, 1);
	assert_non_null(strstr(notes, "not a regular file"));
	trace_set_close(&set);
}

/* More traces than descriptors. */
static void many_files(void **state)
{
	struct trace_set set;
	struct err err = {""};
	struct event e;
	char name[32];

	for (uint32_t i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "%u.0.whyoom", i + 1);
		put_file(name, i + 1, 0, i, 1);
	}
	assert_int_equal(trace_set_open(dir, &set, &err), 0);
	assert_int_equal(set.count, 1200);
	for (size_t i = 0; i < set.count; i++) {
		assert_int_equal(trace_next(set.images[i], &e, &err), 1);
		assert_int_equal(trace_next(set.images[i], &e, &err), 0);
	}
	trace_set_close(&set);
}

static struct trace_account after(const void *bytes, size_t n)
{
	struct trace_account account;
	struct trace_set set;
	struct err err;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/" TRACE_DISK_NAME, dir);
	f = fopen(path, "w");
	fwrite(bytes, 1, n, f);
	fclose(f);
	assert_int_equal(trace_set_open(dir, &set, &err), 0);
	account = set.account;
	trace_set_close(&set);
	return account;
}

/* disk.account: the space of all traces, as their processes counted it. */
static void reads_the_account(void **state)
{
	struct trace_disk d = {.version = TRACE_DISK_VERSION, .bound = 1000, .held = 300};
	struct trace_account a;

	put_file("10.0.whyoom", 10, 0, 1000, TRACE_END_EXIT);
	assert_false(after("", 0).known);
	memcpy(&d.magic, TRACE_DISK_MAGIC, 8);
	a = after(&d, sizeof(d));
	assert_true(a.known);
	assert_int_equal(a.bound, 1000);
	assert_int_equal(a.held, 300);
	d.held = -5; /* more was given back than counted */
	assert_int_equal(after(&d, sizeof(d)).held, 0);
	for (size_t n = 0; n < offsetof(struct trace_disk, counted_s); n++)
		assert_false(after(&d, n).known);
	d.bound = 0;
	assert_false(after(&d, sizeof(d)).known);
	d.bound = UINT64_MAX;
	assert_false(after(&d, sizeof(d)).known);
	d.bound = 1;
	d.version = 2;
	assert_false(after(&d, sizeof(d)).known);
	d.version = TRACE_DISK_VERSION;
	d.magic++;
	assert_false(after(&d, sizeof(d)).known);
}

/* Return how many losses a directory shows with an empty file of small traces, a process's own file
 * and an account that holds `more` bytes than there are. */
static size_t lost_with(unsigned how_ended, uint64_t more)
{
	struct trace_disk d = {.version = TRACE_DISK_VERSION, .bound = 1 << 30};
	struct trace_set set;
	struct stat st;
	struct err err;
	char path[128];
	size_t lost;

	put_file("10.0.whyoom", 10, 0, 1000, how_ended);
	snprintf(path, sizeof(path), "%s/10.0.whyoom", dir);
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/small.0" TRACE_SMALL_SUFFIX, dir);
	fclose(fopen(path, "w"));
	memcpy(&d.magic, TRACE_DISK_MAGIC, 8);
	d.held = (int64_t)((uint64_t)st.st_size + more);
	after(&d, sizeof(d));
	assert_int_equal(trace_set_open(dir, &set, &err), 0);
	lost = set.left_out;
	trace_set_close(&set);
	return lost;
}

/* An emptied file of small traces shows in the account; so does a claim that was never written. */
static void tells_a_loss_from_a_claim(void **state)
{
	assert_int_equal(lost_with(TRACE_END_NONE, 0), 0);
	assert_int_equal(lost_with(TRACE_END_NONE, 3001), 1);
	assert_int_equal(lost_with(TRACE_END_EXIT, 3001), 0);
	assert_int_equal(lost_with(TRACE_END_EXIT, TRACE_SMALL_BYTES_MAX + 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(orders_and_says_how_they_ended, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(leaves_out_what_cannot_be_read, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(finds_those_of_users, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(unless_none_remains, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(one_file_and_a_fifo, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(many_files, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(reads_the_account, make_dir, remove_dir),
	    cmocka_unit_test_setup_teardown(tells_a_loss_from_a_claim, make_dir, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

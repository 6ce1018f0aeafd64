/* Every event of every golden trace, read, written and read again: the same events, of the same
 * stacks, strings, spaces and facts. */
#include "model/unit.h"

#include <dirent.h>
#include <unistd.h>

#include "compose.h"
#include "trace/reader.h"
#include "trace/writer.h"

static void same_text(const char *a, const char *b)
{
	if (!a || !b)
		assert_true(a == b);
	else
		assert_string_equal(a, b);
}

static void same_stack(struct trace *a, struct trace *b, uint32_t x, uint32_t y)
{
	const struct symbol *of_a, *of_b;
	size_t n = trace_symbols(a, x, &of_a);

	assert_int_equal(trace_symbols(b, y, &of_b), n);
	for (size_t i = 0; i < n; i++) {
		same_text(of_a[i].function, of_b[i].function);
		same_text(of_a[i].file, of_b[i].file);
		assert_int_equal(of_a[i].line, of_b[i].line);
		assert_int_equal(of_a[i].address, of_b[i].address);
		assert_int_equal(of_a[i].python, of_b[i].python);
	}
}

static void same_rest(const struct event *a, const struct event *b)
{
	switch (a->kind) {
	case EV_MAP:
		assert_int_equal(a->u.map.prot, b->u.map.prot);
		assert_int_equal(a->u.map.flags, b->u.map.flags);
		assert_int_equal(a->u.map.backing, b->u.map.backing);
		assert_int_equal(a->u.map.offset, b->u.map.offset);
		same_text(a->u.map.name, b->u.map.name);
		break;
	case EV_FAILED:
		assert_int_equal(a->u.failed.why, b->u.failed.why);
		assert_int_equal(a->u.failed.result, b->u.failed.result);
		assert_int_equal(a->u.failed.old_address, b->u.failed.old_address);
		assert_int_equal(a->u.failed.retry, b->u.failed.retry);
		assert_int_equal(a->u.failed.flags, b->u.failed.flags);
		same_text(a->u.failed.api, b->u.failed.api);
		break;
	case EV_SPACE_ALLOC:
	case EV_SPACE_FREE:
	case EV_SPACE_MAP:
	case EV_SPACE_CALL:
	case EV_SPACE_CLEAR:
		assert_int_equal(a->u.space.stream, b->u.space.stream);
		assert_int_equal(a->u.space.context, b->u.space.context);
		assert_int_equal(a->u.space.handle, b->u.space.handle);
		assert_int_equal(a->u.space.offset, b->u.space.offset);
		assert_int_equal(a->u.space.flags, b->u.space.flags);
		assert_int_equal(a->u.space.what, b->u.space.what);
		assert_int_equal(a->u.space.result, b->u.space.result);
		same_text(a->u.space.api, b->u.space.api);
		same_text(a->u.space.label, b->u.space.label);
		break;
	case EV_MARK:
		assert_int_equal(a->u.mark.phase, b->u.mark.phase);
		assert_int_equal(a->u.mark.what, b->u.mark.what);
		assert_int_equal(a->u.mark.id, b->u.mark.id);
		assert_int_equal(a->u.mark.tokens, b->u.mark.tokens);
		same_text(a->u.mark.name, b->u.mark.name);
		same_text(a->u.mark.domain, b->u.mark.domain);
		break;
	case EV_LEVEL:
	case EV_FORK:
	case EV_CHILD_END:
		assert_int_equal(a->u.child.pid, b->u.child.pid);
		assert_int_equal(a->u.child.how, b->u.child.how);
		assert_int_equal(a->u.child.code, b->u.child.code);
		break;
	case EV_BRK:
		assert_int_equal(a->u.brk.new_end, b->u.brk.new_end);
		break;
	case EV_ADVISE:
		assert_int_equal(a->u.advise.advice, b->u.advise.advice);
		break;
	default:
		break;
	}
}

static void same_event(
    struct trace *t, struct trace *u, const struct event *a, const struct event *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->api, b->api);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->thread, b->thread);
	assert_int_equal(a->task, b->task);
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->size, b->size);
	/* Two of one time are a nanosecond apart. */
	assert_true(b->time_ns >= a->time_ns && b->time_ns - a->time_ns < 1000);
	assert_int_equal(!a->block, !b->block);
	assert_int_equal(!a->old, !b->old);
	assert_int_equal(a->level_count, b->level_count);
	for (uint32_t i = 0; i < a->level_count; i++) {
		assert_int_equal(a->levels[i].key, b->levels[i].key);
		assert_int_equal(a->levels[i].value, b->levels[i].value);
	}
	same_text(
	    a->space ? trace_space(t, a->space) : NULL, b->space ? trace_space(u, b->space) : NULL);
	same_stack(t, u, a->stack, b->stack);
	same_rest(a, b);
}

static void same_facts(struct trace *t, struct trace *u)
{
	const struct trace_facts *a = trace_facts(t), *b = trace_facts(u);

	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->start_real_ns, b->start_real_ns);
	assert_int_equal(a->end_how, b->end_how);
	assert_int_equal(a->end_code, b->end_code);
	assert_int_equal(a->dropped_total, b->dropped_total);
	assert_int_equal(b->torn_chunks + b->bad_checksums + b->unknown_records, 0);
	for (size_t i = 0; i < t->defs.infos.count; i++)
		same_text(t->defs.infos.items[i].value, trace_info(u, t->defs.infos.items[i].key));
}

/* The reader repairs an acquisition over a live block: written in repaired form, it needs no
 * repair. */
static bool is_whole(const struct event *e)
{
	return !(e->flags & EVENT_REPAIRED);
}

static void rewrite(const char *path)
{
	char copy[] = "/tmp/whyoom-writer-XXXXXX";
	struct trace_writer *w;
	struct trace *t, *u;
	struct event a, b;
	struct err err;
	bool whole = true;

	assert_int_equal(trace_open(path, &t, &err), 0);
	w = trace_writer_new(t);
	assert_non_null(w);
	while (trace_next(t, &a, &err) == 1) {
		whole &= is_whole(&a);
		assert_int_equal(trace_writer_add(w, &a, &err), 0);
	}
	assert_int_not_equal(trace_writer_save(w, path, &err), 0); /* it is there */
	close(mkstemp(copy));
	unlink(copy);
	assert_int_equal(trace_writer_save(w, copy, &err), 0);
	trace_writer_free(w);
	assert_int_equal(trace_open(copy, &u, &err), 0);
	trace_rewind(t);
	while (whole && trace_next(t, &a, &err) == 1) {
		assert_int_equal(trace_next(u, &b, &err), 1);
		same_event(t, u, &a, &b);
	}
	while (!whole && trace_next(u, &b, &err) == 1)
		assert_true(is_whole(&b) || !b.block);
	assert_int_equal(trace_next(u, &b, &err), 0);
	same_facts(t, u);
	trace_close(t);
	trace_close(u);
	unlink(copy);
}

static unsigned rewrite_all(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[1024];
		const char *end = strstr(entry->d_name, ".whyoom");

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (end && !end[7]) {
			rewrite(path);
			n++;
		} else if (!strchr(entry->d_name, '.')) {
			n += rewrite_all(path);
		}
	}
	closedir(dir);
	return n;
}

static void test_golden(void **state)
{
	assert_true(rewrite_all(GOLDEN) >= 9);
}

/* Large numbers in a file take no memory by their size. */
static void test_large_numbers(void **state)
{
	struct compose c;

	compose_begin(&c);
	compose_chunk(&c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	def_space(&c, UINT32_MAX, "cuda:0");
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 4000000000u, 0, 100, TRACE_SLOT_BYTES);
	put_alloc(&c, 110, 0x10000, 64, 0);
	PUT_EVENT(&c, 120, TRACE_SPACE_ALLOC, UINT32_MAX, 0, 0x7000000, 4096, 0, 0, 0, 0, 0, 0);
	compose_end(&c);
	rewrite(compose_save(&c));
	compose_free(&c);
}

/* In place of the other's name. */
static void test_info(void **state)
{
	char copy[] = "/tmp/whyoom-writer-XXXXXX";
	struct trace_writer *w;
	struct trace *t, *u;
	struct err err;

	assert_int_equal(trace_open(GOLDEN "/kinds/4711.0.whyoom", &t, &err), 0);
	w = trace_writer_new(t);
	assert_int_equal(trace_writer_info(w, "limit.as", "12345"), 0);
	close(mkstemp(copy));
	unlink(copy);
	assert_int_equal(trace_writer_save(w, copy, &err), 0);
	trace_writer_free(w);
	trace_close(t);
	assert_int_equal(trace_open(copy, &u, &err), 0);
	assert_string_equal(trace_info(u, "limit.as"), "12345");
	trace_close(u);
	unlink(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_golden),
	    cmocka_unit_test(test_large_numbers),
	    cmocka_unit_test(test_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

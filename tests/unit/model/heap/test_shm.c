/* The free bytes of a file system in memory, and the bytes that may be written there. */
#include "model/unit.h"

#include "model/heap/shm.h"

static struct event_level levels[5];

static struct event told(enum event_kind kind, uint64_t device, uint64_t free, uint64_t written)
{
	struct event e = {.kind = kind, .levels = levels, .level_count = 5, .size = 8 * MiB};

	levels[0] = (struct event_level){TRACE_LEVEL_SHM_TOTAL, 64 * MiB};
	levels[1] = (struct event_level){TRACE_LEVEL_SHM_FREE, free};
	levels[2] = (struct event_level){TRACE_LEVEL_SHM_DEVICE, device};
	levels[3] = (struct event_level){TRACE_LEVEL_SHM_FILE, 1};
	levels[4] = (struct event_level){TRACE_LEVEL_SHM_WRITTEN, written};
	return e;
}

static uint32_t map(struct shm *s, uint64_t device, uint64_t free, uint64_t written)
{
	struct event e = told(EV_MAP, device, free, written);
	uint32_t number = shm_note(s, &e);

	shm_moved(s, number, 8 * MiB);
	return number;
}

static void look(struct shm *s, uint64_t device, uint64_t free)
{
	struct event e = told(EV_LEVEL, device, free, 0);

	e.level_count = 3;
	shm_note(s, &e);
}

static void test_pending(void **state)
{
	struct shm s = {0};
	uint32_t number = map(&s, 5, 40 * MiB, 0);
	const struct shm_volume *v = shm_find(&s, 5);

	assert_int_equal(number, 1);
	assert_int_equal(v->others, 24 * MiB);
	assert_int_equal(v->pending, 8 * MiB);
	assert_false(shm_is_short(v));
	/* Half of it was written. */
	look(&s, 5, 36 * MiB);
	assert_int_equal(v->pending, 4 * MiB);
	/* Others take all but 3 MiB: that much cannot be written any more, whoever took it. */
	look(&s, 5, 3 * MiB);
	assert_int_equal(v->pending, 0);
	/* Bytes that anyone wrote before are not written again. */
	map(&s, 5, 3 * MiB, 8 * MiB);
	assert_false(shm_is_short(v));
	map(&s, 5, 3 * MiB, 0);
	assert_int_equal(v->pending, 8 * MiB);
	assert_true(shm_is_short(v) && !shm_is_full(v));
	assert_int_equal(v->others, 24 * MiB); /* as it was before the first */
	assert_int_equal(v->mapped, 24 * MiB);
	/* And it no longer exists. */
	shm_moved(&s, number, -24 * (int64_t)MiB);
	assert_int_equal(v->pending, 0);
	assert_false(shm_is_short(v));
	look(&s, 5, MiB / 2);
	assert_true(shm_is_full(v));
	assert_int_equal(v->others, 64 * MiB - MiB / 2);
	(void)state;
}

/* Others beside it, more than there is room for, and one without information. */
static void test_many(void **state)
{
	struct shm s = {0};
	struct event e = told(EV_MAP, 1, 0, 0);

	e.level_count = 2; /* no device */
	assert_int_equal(shm_note(&s, &e), 0);
	for (uint64_t i = 0; i < 2 * SHM_VOLUMES; i++)
		assert_int_equal(map(&s, 100 + i, 60 * MiB, 0), i < SHM_VOLUMES ? i + 1 : 0);
	assert_int_equal(s.count, SHM_VOLUMES);
	assert_null(shm_find(&s, 100 + SHM_VOLUMES));
	/* More free than the size: damage. */
	look(&s, 100, UINT64_MAX);
	assert_int_equal(shm_find(&s, 100)->free, 64 * MiB);
	shm_moved(&s, 77, 1);
	shm_moved(&s, 1, INT64_MIN + 1);
	assert_int_equal(s.list[0].mapped, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pending),
	    cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

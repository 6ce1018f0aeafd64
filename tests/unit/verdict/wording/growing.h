/*
 * growing.h - the server of test_words.c whose memory grew: with the prompt, by a leak, in a store.
 */
#ifndef TESTS_UNIT_VERDICT_WORDING_GROWING_H
#define TESTS_UNIT_VERDICT_WORDING_GROWING_H

#include "server.h"

#include "verdict/judge/decide.h"

static void growing(void)
{
	p->size.grows = true;
	p->size.start = p->size.first = 4 * MiB;
	p->size.last = p->facts.largest = 232 * MiB;
	p->facts.total_count = 115;
}

static void growing_and_kept(void)
{
	growing();
	f->bytes = 232 * MiB;
	evidence(FACT_GROWTH_KEPT, 278 * KiB);
}

static void growing_on_device(void)
{
	growing();
	on_device();
}

static void growing_and_killed(void)
{
	growing();
	killed(FAILURE_KILLED, true);
	r.kill.outlook.first = LIMIT_SYSTEM;
	r.kill.outlook.first_bytes = 24 * GiB;
	r.kill.outlook.full_soonest_ns = 228000000000;
	r.kill.outlook.full_latest_ns = 288000000000;
}

static void growing_unseen(void)
{
	growing();
	killed(FAILURE_KILLED, false);
	r.kill.outlook.first = LIMIT_CGROUP;
	r.kill.outlook.first_bytes = 24 * GiB;
	r.kill.outlook.full_soonest_ns = r.kill.outlook.full_latest_ns = 288000000000;
}

static void proportional(void)
{
	sites.proportion.callsite = 0;
	sites.proportion.target = 427 * MiB;
	sites.proportion.input = 4 * MiB;
	sites.proportion.typical = 1 * MiB;
}

static void building_up(void)
{
	p->buildup.grows = true;
	p->buildup.first = 3 * MiB;
	p->buildup.now = 190 * MiB;
}

static void nothing(void)
{
}

static void leaking(void)
{
	p->survivors.count = p->facts.total_count = 5412;
	p->survivors.bytes = p->facts.live_bytes = p->facts.alike_bytes = 300 * MiB;
	p->facts.largest = p->facts.alike_size = 56 * KiB;
	p->facts.live_count = 5412;
}

static void leaking_some(void)
{
	leaking();
	p->survivors.count = 5007;
	p->survivors.bytes = 200 * MiB;
	p->facts.alike_bytes = 0;
	p->facts.largest = 2 * MiB;
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
}

static void leaking_on_two_lines(void)
{
	leaking();
	p->survivors.bytes = 180 * MiB;
	r.verdict.blame.bytes = 300 * MiB;
}

static void leaking_since_checkpoint(void)
{
	leaking();
	sites.replaced_until_ns = 1;
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_NONE;
	r.failure.usage_bytes = 590 * MiB;
}

static void doubling(void)
{
	f->form = FORM_DOUBLING;
	list[0].size.grows = list[0].size.geometric = true;
	list[0].size.start = list[0].size.first = 2 * MiB;
	list[0].size.last = list[0].facts.largest = 256 * MiB;
	r.failure.requested_bytes = 512 * MiB;
}

static void stuck(void)
{
	f->form = FORM_STUCK;
	evidence(FACT_STUCK, 304);
	evidence(FACT_STUCK_AGE, 9000000000);
	evidence(FACT_ENDED, 621);
	evidence(FACT_ENDED_LIFE, 12000000);
	evidence(FACT_AT_ONCE_BYTES, 279 * MiB);
}

static void threads_left(void)
{
	f->form = FORM_STACKS;
	evidence(FACT_THREADS, 64);
	evidence(FACT_STACKS, 512 * MiB);
}

static void threads_unjoined(void)
{
	f->form = FORM_UNJOINED;
	evidence(FACT_THREADS_ENDED, 612);
	evidence(FACT_STACKS_LEFT, 4896 * MiB);
}

static void files_left(void)
{
	f->form = FORM_FILES;
	evidence(FACT_FILES_LEFT, 61 * MiB);
	evidence(FACT_FILES_EACH, 512 * KiB);
	r.volume = &volume;
	volume.directory = "/dev/shm";
	r.failure.kind = FAILURE_BUS;
	r.failure.limit = LIMIT_SHM;
	r.failure.limit_bytes = 64 * MiB;
}

static void small_objects(enum fact fact)
{
	decide_fact(&r.verdict, fact, 100 * MiB);
}

static void arrays_with_arenas(void)
{
	small_objects(FACT_ARENA_ARRAYS);
}

static void table_with_arenas(void)
{
	small_objects(FACT_ARENA_TABLE);
}

static void other_arenas(void)
{
	small_objects(FACT_ARENA_OTHER);
}

static void arenas_in_common(void)
{
	small_objects(FACT_ARENA_COMMON);
}

static void files_written(void)
{
	f->form = FORM_FILES;
	f->blame = CALLSITE_NONE;
	evidence(FACT_FILES_LEFT, 193 * MiB);
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
}

static void leaking_into_swap(void)
{
	leaking();
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
	r.failure.swap_bytes = 88 * MiB;
}

static void leaking_and_stalled(void)
{
	leaking();
	r.failure.kind = FAILURE_STALLED;
	r.failure.limit = LIMIT_CGROUP_HIGH;
	r.failure.held_back = 1734;
}

static void storing(void)
{
	p->survivors.count = 2698;
}

static void copying(void)
{
	p->survivors.count = 178;
	p->relations.copies_of = 1;
	p->size.grows = true;
	p->size.first = 75 * KiB;
	p->facts.largest = 2 * MiB;
}

static void copying_blocks(void)
{
	p->survivors.count = 253512;
	p->relations.copies_of = 1;
	r.kill.at_limit = true;
}

#endif

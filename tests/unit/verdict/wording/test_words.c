/* test_words.c - every sentence that a verdict can be, with one example each. docs/verdicts.md
 * shows them: run tests/unit/verdict/wording/verdicts.py --write after a change. */
#include "growing.h"

static void asking(void)
{
	f->request_bytes = r.failure.requested_bytes = r.verdict.blame.refused = 320 * MiB;
}

static void asking_alone(void)
{
	asking();
	on_device();
	sites.live_bytes = 0;
}

static void asking_on_device(void)
{
	asking();
	on_device();
}

static void copied(void)
{
	f->copied = true;
	f->bytes = 0;
	finding_claim(f, 1, RULE_KEEP_BYTES, 0, 300 * MiB);
}

static void copied_by_itself(void)
{
	f->copied = true;
	evidence(FACT_CALL_BYTES, 300 * MiB);
}

static void nearly_all(void)
{
	f->bytes = 338 * MiB;
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
	r.failure.limit_bytes = 300 * MiB;
}

static void one_call(void)
{
	p->call.open = OPEN_CALL_YES;
}

static void one_call_inside(void)
{
	static const struct symbol outer = {
	    .function = "Chat.load", .file = "/srv/load.py", .line = 8};

	one_call();
	p->call.function = &outer;
}

static void loading(void)
{
	p->facts.live_bytes = 300 * MiB;
}

static void loading_elsewhere(void)
{
	p->facts.live_bytes = 128 * MiB;
}

static void loading_late(void)
{
	f->late = true;
	loading();
	on_device();
}

static void loading_again(void)
{
	f->late = true;
	loading();
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
}

static void first_weight(void)
{
	f->bytes = 0;
	f->request_bytes = r.verdict.blame.refused = r.failure.requested_bytes;
}

static void pooling(void)
{
	static struct step step;

	p->facts.live_bytes = p->facts.total_bytes = 240 * MiB;
	p->facts.live_count = p->facts.total_count = step.count = 40;
	p->facts.largest = step.min = step.max = 6 * MiB;
	step.bytes = 240 * MiB;
	p->facts.steps = &step;
	p->facts.step_count = 1;
	f->bytes = 240 * MiB;
}

static void pooling_elsewhere(void)
{
	pooling();
	f->bytes = 480 * MiB;
}

static void overlapping(void)
{
	evidence(FACT_AT_ONCE, 36);
	evidence(FACT_AT_ONCE_BYTES, 161 * MiB);
	evidence(FACT_AT_ONCE_LARGEST, 5 * MiB);
}

static void overlapping_with_refused(void)
{
	overlapping();
	evidence(FACT_AT_ONCE_REFUSED, 5 * MiB);
}

static void overlapping_tasks(void)
{
	static const struct lane lane = {.task = 1};
	static struct held_request held = {.lane = &lane};

	overlapping();
	r.flow.held.list = &held;
	r.flow.held.alike = 1;
}

static void queueing(void)
{
	f->form = FORM_BACKLOG;
	p->backlog.bytes = 243 * MiB;
	p->backlog.count = 1695;
}

static void pool_of_workers(void)
{
	f->form = FORM_WORKERS;
	f->workers = 4;
	f->other_bytes = 1 * GiB;
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
	r.failure.limit_bytes = 1400 * MiB;
}

static void holes(void)
{
	f->slack_bytes = 229 * MiB;
	evidence(FACT_HOLE_BYTES, 229 * MiB);
	evidence(FACT_HOLE_LARGEST, 24 * MiB);
	evidence(FACT_LIVE, 23 * MiB);
}

static void small_holes(void)
{
	holes();
	f->evidence_count = 0;
	evidence(FACT_HOLE_BYTES, 229 * MiB);
	evidence(FACT_HOLE_LARGEST, 10 * KiB);
	evidence(FACT_LIVE, 23 * MiB);
}

static void holes_on_device(void)
{
	holes();
	on_device();
}

static void holes_in_arenas(void)
{
	holes();
	evidence(FACT_HOLE_ARENAS, 200 * MiB);
}

static void reserved(void)
{
	f->slack_bytes = 512 * MiB;
	evidence(FACT_LIVE, 3 * MiB);
}

static void mappings(void)
{
	leaking();
	r.failure.limit = LIMIT_MAPPINGS;
	r.failure.mappings = 65530;
}

static void others(void)
{
	f->other_bytes = 3 * GiB;
	on_device();
}

static void too_low(void)
{
	f->steady = true;
}

static void too_low_and_killed(void)
{
	too_low();
	r.failure.kind = FAILURE_OOM_KILL;
	r.failure.limit = LIMIT_CGROUP;
}

static void stacks(void)
{
	too_low();
	f->form = FORM_STACKS;
	f->other_bytes = 500 * MiB;
	sites.live_bytes = 9 * MiB;
}

static void volume_full(void)
{
	leaking();
	r.volume = &volume;
	volume.directory = "/dev/shm";
	r.failure.kind = FAILURE_BUS;
	r.failure.limit = LIMIT_SHM;
	r.failure.limit_bytes = 64 * MiB;
	r.tree.elsewhere.device = 1;
}

static void killed_while_healthy(void)
{
	healthy();
	killed(FAILURE_NONE, true);
}

static void on_and_on(void)
{
	healthy();
	snprintf(device.device, sizeof(device.device), "cuda:0");
	device.ledger.limit = LIMIT_DEVICE;
	device.ledger.limit_bytes = 4 * GiB;
	device.ledger.row_count = 0;
	ledger_row(&device.ledger, "free", 1536 * MiB);
	r.devices.list = &device;
	r.devices.count = 1;
	r.recoveries.total = 4;
}

static void still_growing(void)
{
	healthy();
	r.ranking.count = 1;
	r.ranking.list[0].admissible = true;
	f->cause = CAUSE_LEAK;
	p->survivors.stays = true;
}

static void undecided(void)
{
	f->cause = CAUSE_LEAK;
	r.ranking.count = 2;
	r.ranking.list[1].finding = (struct finding){.cause = CAUSE_STATE_RETENTION, .blame = 1};
}

static void undecided_between_none(void)
{
	undecided();
	r.ranking.count = 0;
}

static void undecided_with_most(void)
{
	undecided();
	f->bytes = 7 * MiB;
	r.ranking.count = 1;
	p->facts.live_bytes = 290 * MiB;
}

static void not_recorded(void)
{
	r.coverage.gap = "allocations by Python were not recorded";
}

static void killed_unexplained(void)
{
	r.failure.kind = FAILURE_NONE;
	r.kill = (struct kill_view){
	    .killed = true, .seen = true, .rising = true, .counter = KILL_COUNTER_ROSE};
	undecided();
	r.ranking.count = 1;
}

static void near_limit(void)
{
	r.failure.kind = FAILURE_NONE;
	r.kill.at_limit = true;
	r.ranking.count = 0;
}

static void asking_for_more(void)
{
	asking_on_device();
	r.failure.limit = LIMIT_TORCH;
	r.verdict.blame.bytes = 580 * MiB;
}

static void asking_beside_nothing(void)
{
	asking();
	r.verdict.blame.bytes = 660 * MiB;
}

static void loading_killed(void)
{
	loading();
	killed(FAILURE_KILLED, true);
	r.kill.outlook.full_latest_ns = 0;
}

static void pooling_and_more(void)
{
	pooling();
	r.failure.requested_bytes = 128 * MiB;
	sites.failed = 1;
}

static void external_or_leak(void)
{
	undecided();
	r.ranking.list[1] = r.ranking.list[0];
	r.ranking.list[0].finding =
	    (struct finding){.cause = CAUSE_EXTERNAL, .blame = CALLSITE_NONE};
}

static void attached(uint64_t before)
{
	r.coverage.attach.any = true;
	r.ledger.limit = r.failure.limit;
	r.ledger.limit_bytes = r.failure.limit_bytes;
	ledger_row(&r.ledger, LEDGER_BEFORE, before);
}

static void attached_late(void)
{
	undecided_between_none();
	attached(512 * MiB);
}

static void attached_while_loading(void)
{
	f->cause = CAUSE_OVERSIZED_MODEL;
	attached(20 * MiB);
}

static void detached(void)
{
	static struct process process = {.how = END_DETACHED, .seconds = 600};

	still_growing();
	r.tree.processes = &process;
	r.tree.count = 1;
	r.kill.outlook.full_soonest_ns = 228000000000;
	r.kill.outlook.full_latest_ns = 288000000000;
	r.kill.outlook.first = LIMIT_AS;
	r.kill.outlook.first_bytes = r.failure.limit_bytes;
	attached(200 * MiB);
}

/* verdicts.py reads these rows. */
static const struct {
	enum cause cause;
	void (*set)(void);
	const char *sentence;
} examples[] = {
    {CAUSE_PROMPT_GROWTH, growing,
	"300 MiB grow with the prompt: Chat.answer (chat.py:31) allocates larger and larger "
	"blocks: 4.00 MiB at first, 232 MiB at the 115th. A request for 8.00 MiB then failed at "
	"the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_PROMPT_GROWTH, growing_and_kept,
	"Chat.answer (chat.py:31) allocates larger and larger blocks: 4.00 MiB at first, 232 "
	"MiB at the 115th; the 278 KiB that it builds from are kept. A request for 8.00 MiB "
	"then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_PROMPT_GROWTH, growing_on_device,
	"300 MiB grow with the prompt: Chat.answer (chat.py:31) allocates larger and larger "
	"blocks: 4.00 MiB at first, 232 MiB at the 115th. A request for 8.00 MiB then failed on "
	"the device of 4.00 GiB."},
    {CAUSE_PROMPT_GROWTH, growing_and_killed,
	"300 MiB grow with the prompt: Chat.answer (chat.py:31) allocates larger and larger "
	"blocks: 4.00 MiB at first, 232 MiB at the 115th. Memory had not run out: SIGKILL ended "
	"it with 20.0 GiB free. At this pace the machine's memory of 24.0 GiB would have been "
	"full 3 min 48 s to 4 min 48 s later."},
    {CAUSE_PROMPT_GROWTH, growing_unseen,
	"300 MiB grow with the prompt: Chat.answer (chat.py:31) allocates larger and larger "
	"blocks: 4.00 MiB at first, 232 MiB at the 115th. Memory had not run out: 20.0 GiB were "
	"free where its record ends. At this pace the cgroup's memory of 24.0 GiB would have "
	"been full about 4 min 48 s later."},
    {CAUSE_PROMPT_GROWTH, proportional,
	"Chat.answer (chat.py:31) allocates in proportion to its input: 427 MiB for the last one, "
	"of 4.00 MiB, and 1.00 MiB for a typical one before. A request for 8.00 MiB then failed at "
	"the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_PROMPT_GROWTH, building_up,
	"Chat.answer (chat.py:31) holds more at once on each call, and then frees all of it: 3.00 "
	"MiB at first, 190 MiB at the end. A request for 8.00 MiB then failed at the limit of 600 "
	"MiB (RLIMIT_AS)."},
    {CAUSE_PROMPT_GROWTH, doubling,
	"Chat.answer (chat.py:31) enlarges one block by a factor whenever it is full, from 2.00 "
	"MiB to 256 MiB, and holds the old one until the new one is filled. A request for 512 MiB "
	"then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_PROMPT_GROWTH, nothing,
	"Chat.answer (chat.py:31) keeps 300 MiB, and each step goes through all of it again. A "
	"request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, leaking,
	"300 MiB leaked in Chat.answer (chat.py:31): all its 5,412 blocks are still there, of "
	"56.0 KiB each. A request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, leaking_some,
	"300 MiB leaked, 200 MiB of it in Chat.answer (chat.py:31): 5,007 of its 5,412 blocks "
	"are still there, of 40.9 KiB each on average. It was killed at the limit of 600 MiB "
	"(cgroup memory.max)."},
    {CAUSE_LEAK, leaking_on_two_lines,
	"300 MiB leaked in Chat.answer, 180 MiB at chat.py:31: all the 5,412 blocks of that "
	"line are still there, of 56.0 KiB each. A request for 8.00 MiB then failed at the "
	"limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, leaking_since_checkpoint,
	"300 MiB leaked in Chat.answer (chat.py:31): 5,412 blocks are still there, of 56.0 KiB "
	"each. It was killed with 590 MiB resident."},
    {CAUSE_LEAK, mappings,
	"300 MiB leaked in Chat.answer (chat.py:31): all its 5,412 blocks are still there, of "
	"56.0 KiB each. A request for 8.00 MiB then failed: the process has 65,530 mappings, as "
	"many as vm.max_map_count allows."},
    {CAUSE_LEAK, volume_full,
	"300 MiB leaked in Chat.answer (chat.py:31): all its 5,412 blocks are still there, of "
	"56.0 KiB each. Process 4711 was killed by SIGBUS because one more page did not fit on "
	"/dev/shm, which has 64.0 MiB (tmpfs size)."},
    {CAUSE_LEAK, threads_left,
	"64 threads have not ended, most of them started by Chat.answer (chat.py:31): their stacks "
	"take 512 MiB. A request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, threads_unjoined,
	"4.78 GiB of stacks are left of threads that have ended, and that nobody joined or "
	"detached: 612 have ended, most of them started by Chat.answer (chat.py:31). A request for "
	"8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, files_left,
	"61.0 MiB of files in memory were closed and not removed, of 512 KiB each, most of them "
	"made by Chat.answer (chat.py:31). It was killed by SIGBUS because one more page did not "
	"fit on /dev/shm, which has 64.0 MiB (tmpfs size)."},
    {CAUSE_LEAK, files_written,
	"193 MiB of files in memory (a tmpfs, as /dev/shm) were written while it ran, and not "
	"removed; hardly anybody else is in its cgroup. It was killed at the limit of 600 MiB "
	"(cgroup memory.max)."},
    {CAUSE_LEAK, arrays_with_arenas,
	"300 MiB leaked, most of it probably in Chat.answer (chat.py:31): small objects, and the "
	"arrays made there grew with them. A request for 8.00 MiB then failed at the limit of 600 "
	"MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, table_with_arenas,
	"300 MiB leaked, most of it probably in Chat.answer (chat.py:31): small objects, and the "
	"table enlarged there grew with them. A request for 8.00 MiB then failed at the limit of "
	"600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, other_arenas,
	"300 MiB leaked, most of it probably in Chat.answer (chat.py:31): small objects, and the "
	"line that asked for most memory gives back what it makes. A request for 8.00 MiB then "
	"failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, arenas_in_common,
	"300 MiB leaked, most of it probably in Chat.answer (chat.py:31) or in what it calls: "
	"small objects, and which line keeps them is not recorded (--python-objects shows it). A "
	"request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_LEAK, leaking_into_swap,
	"300 MiB leaked in Chat.answer (chat.py:31): all its 5,412 blocks are still there, of "
	"56.0 KiB each. It was killed when 512 MiB of memory (cgroup memory.max) and 88.0 MiB "
	"of swap were full."},
    {CAUSE_LEAK, leaking_and_stalled,
	"300 MiB leaked in Chat.answer (chat.py:31): all its 5,412 blocks are still there, of "
	"56.0 KiB each. The kernel held it back at the limit of 600 MiB (cgroup memory.high) "
	"1,734 times, where it stands still rather than dies."},
    {CAUSE_STATE_RETENTION, storing,
	"Chat.answer (chat.py:31) keeps 300 MiB without a bound: 2,698 blocks in a store. A "
	"request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_STATE_RETENTION, copying,
	"Chat.answer (chat.py:31) keeps 300 MiB without a bound: 178 copies of what Chat.say "
	"(chat.py:12) holds, 75.0 KiB each at first and 2.00 MiB now. A request for 8.00 MiB then "
	"failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_STATE_RETENTION, copying_blocks,
	"Chat.answer (chat.py:31) keeps 300 MiB without a bound: 253,512 blocks, in copies of what "
	"Chat.say (chat.py:12) holds. It ended with an error while only 6.00 MiB of 600 MiB "
	"(RLIMIT_AS) were left."},
    {CAUSE_OVERSIZED_INTERMEDIATE, asking,
	"Chat.answer (chat.py:31) asked for 320 MiB at once; everything else took 594 MiB. The "
	"limit is 600 MiB (RLIMIT_AS)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, asking_on_device,
	"Chat.answer (chat.py:31) asked for 320 MiB at once; everything else took 340 MiB. The "
	"device has 4.00 GiB."},
    {CAUSE_OVERSIZED_INTERMEDIATE, asking_alone,
	"Chat.answer (chat.py:31) asked for 320 MiB at once. The device has 4.00 GiB."},
    {CAUSE_OVERSIZED_INTERMEDIATE, asking_for_more,
	"Chat.answer (chat.py:31) asked for 320 MiB beside the 260 MiB that it held; everything "
	"else took 80.0 MiB. The limit is 4.00 GiB (PyTorch memory fraction)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, asking_beside_nothing,
	"Chat.answer (chat.py:31) asked for 320 MiB beside the 340 MiB that it held. The limit is "
	"600 MiB (RLIMIT_AS)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, one_call,
	"300 MiB of the 340 MiB in use were allocated by one call of Chat.answer (chat.py:31) that "
	"had not returned. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, one_call_inside,
	"300 MiB of the 340 MiB in use were allocated by one call of Chat.load (load.py:8), in "
	"Chat.answer (chat.py:31), and it had not returned. A request for 8.00 MiB then failed at "
	"the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, copied,
	"Chat.answer (chat.py:31) makes one large object, which is then copied: the copies take "
	"300 MiB of the 340 MiB in use. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, copied_by_itself,
	"300 MiB of the 340 MiB in use were allocated by one call of Chat.answer (chat.py:31) "
	"that had not returned. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_OVERSIZED_INTERMEDIATE, nearly_all,
	"Chat.answer (chat.py:31) allocated 338 MiB, nearly all that was in use. It was killed "
	"at the limit of 300 MiB (cgroup memory.max), before it had touched all that it had "
	"allocated."},
    {CAUSE_OVERSIZED_INTERMEDIATE, nothing,
	"Chat.answer (chat.py:31) allocated 300 MiB of the 340 MiB in use. A request for 8.00 MiB "
	"then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_OVERSIZED_MODEL, loading,
	"The model does not fit: 300 MiB were loaded by Chat.answer (chat.py:31), before the first "
	"request was served. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_OVERSIZED_MODEL, loading_elsewhere,
	"The model does not fit: 300 MiB were loaded, 128 MiB of it by Chat.answer (chat.py:31), "
	"before the first request was served. A request for 8.00 MiB then failed at the limit of "
	"600 MiB (RLIMIT_AS)."},
    {CAUSE_OVERSIZED_MODEL, loading_late,
	"The model does not fit: 300 MiB were loaded by Chat.answer (chat.py:31), beside 40.0 MiB "
	"already in use. A request for 8.00 MiB then failed on the device of 4.00 GiB."},
    {CAUSE_OVERSIZED_MODEL, loading_again,
	"The model does not fit: 300 MiB were loaded by Chat.answer (chat.py:31), which had "
	"loaded before, beside 40.0 MiB already in use. It was killed at the limit of 600 MiB "
	"(cgroup memory.max)."},
    {CAUSE_OVERSIZED_MODEL, loading_killed,
	"Most of the memory is the model's: 300 MiB were loaded by Chat.answer (chat.py:31), "
	"before the first request was served. Memory had not run out: SIGKILL ended it with 20.0 "
	"GiB free."},
    {CAUSE_OVERSIZED_MODEL, first_weight,
	"The model does not fit: Chat.answer (chat.py:31) asked for 8.00 MiB of it at once; "
	"everything else took 594 MiB. The limit is 600 MiB (RLIMIT_AS)."},
    {CAUSE_BATCH_PREALLOC, pooling,
	"Chat.answer (chat.py:31) took 240 MiB up front, in 40 blocks of 6.00 MiB, and has "
	"given none of it back. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_BATCH_PREALLOC, pooling_and_more,
	"Chat.answer (chat.py:31) took 240 MiB up front, in 40 blocks of 6.00 MiB, and has "
	"given none of it back. A request for 128 MiB by Chat.say (chat.py:12) then failed at "
	"the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_BATCH_PREALLOC, pooling_elsewhere,
	"Chat.answer (chat.py:31) took 240 MiB up front, in 40 blocks of 6.00 MiB, and has "
	"given none of it back; with the pools of other lines it is 480 MiB. A request for 8.00 "
	"MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_BATCH_PREALLOC, asking,
	"Chat.answer (chat.py:31) asked for 320 MiB up front, in one block; everything else "
	"took 594 MiB. The limit is 600 MiB (RLIMIT_AS)."},
    {CAUSE_CONCURRENCY, overlapping,
	"36 threads held 161 MiB at once, up to 5.00 MiB each, most of it in Chat.answer "
	"(chat.py:31). A request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_CONCURRENCY, overlapping_with_refused,
	"36 threads needed 161 MiB at once, the refused request included, up to 5.00 MiB each, "
	"most of it in Chat.answer (chat.py:31). A request for 8.00 MiB then failed at the "
	"limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_CONCURRENCY, overlapping_tasks,
	"36 tasks held 161 MiB at once, up to 5.00 MiB each, most of it in Chat.answer "
	"(chat.py:31). A request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_CONCURRENCY, stuck,
	"304 threads do not end: the oldest is 9.00 s old, while 621 others took 12.0 ms. They "
	"hold 279 MiB, most of it in Chat.answer (chat.py:31). A request for 8.00 MiB then failed "
	"at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_CONCURRENCY, queueing,
	"243 MiB wait in a queue, in 1,695 blocks: Chat.answer (chat.py:31) produces them faster "
	"than they are processed. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_CONCURRENCY, pool_of_workers,
	"4 processes of one pool worked at once: this one held 340 MiB, most of it in Chat.answer "
	"(chat.py:31), and the others 1.00 GiB. It was killed at the limit of 1.37 GiB (cgroup "
	"memory.max)."},
    {CAUSE_FRAGMENTATION, holes,
	"229 MiB are free inside the allocator, which cannot give them back; 23.0 MiB are in use, "
	"most of it in blocks of Chat.answer (chat.py:31). A request for 8.00 MiB then failed at "
	"the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_FRAGMENTATION, small_holes,
	"229 MiB are free inside the allocator, but in holes of at most 10.0 KiB between live "
	"blocks; 23.0 MiB are in use, most of it in blocks of Chat.answer (chat.py:31). A "
	"request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_FRAGMENTATION, holes_in_arenas,
	"229 MiB are free in the interpreter's arenas, but a few objects in each arena keep it "
	"from being given back; 23.0 MiB are in use, most of it in blocks of Chat.answer "
	"(chat.py:31). A request for 8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_FRAGMENTATION, reserved,
	"The allocator holds 512 MiB of address space, most of it reserved to grow into; 3.00 MiB "
	"are in use, most of it in blocks of Chat.answer (chat.py:31). A request for 8.00 MiB then "
	"failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_FRAGMENTATION, holes_on_device,
	"229 MiB are free, but in holes of at most 24.0 MiB between live blocks, most of them next "
	"to blocks of Chat.answer (chat.py:31). A request for 8.00 MiB then failed on the device "
	"of 4.00 GiB."},
    {CAUSE_EXTERNAL, others,
	"Other processes hold 3.00 GiB of the memory, this process 340 MiB. A request for 8.00 MiB "
	"then failed on the device of 4.00 GiB."},
    {CAUSE_EXTERNAL, too_low,
	"The limit of 600 MiB (RLIMIT_AS) is too low for this process, which does not grow: 340 "
	"MiB were in use. A request for 8.00 MiB then failed."},
    {CAUSE_EXTERNAL, too_low_and_killed,
	"The limit of 600 MiB (cgroup memory.max) is too low for this process, which does not "
	"grow: 340 MiB were in use. It was killed at that limit."},
    {CAUSE_EXTERNAL, stacks,
	"Threads' stacks take 500 MiB of the limit of 600 MiB (RLIMIT_AS), all else 9.00 MiB. The "
	"limit is too low for this process, which does not grow. A request for 8.00 MiB then "
	"failed."},
    {CAUSE_HEALTHY, healthy_without_limit, "Nothing ran out: at most 340 MiB were in use at once."},
    {CAUSE_HEALTHY, healthy,
	"Nothing ran out: at most 340 MiB were in use at once, and 240 MiB of the limit of 600 MiB "
	"(RLIMIT_AS) stayed free."},
    {CAUSE_HEALTHY, on_and_on,
	"Nothing ran out: 1.50 GiB of the 4.00 GiB of cuda:0 stayed free; on the host at most 340 "
	"MiB were in use at once, and 240 MiB of the limit of 600 MiB (RLIMIT_AS) stayed free. The "
	"program went on after 4 refused requests."},
    {CAUSE_HEALTHY, still_growing,
	"Nothing ran out: at most 340 MiB were in use at once, and 240 MiB of the limit of 600 MiB "
	"(RLIMIT_AS) stayed free. But Chat.answer (chat.py:31) was still growing at the end: 300 "
	"MiB. A longer run shows whether that ends."},
    {CAUSE_HEALTHY, killed_while_healthy,
	"SIGKILL ended it with 20.0 GiB free: memory had not run out. At most 340 MiB were in use "
	"at once, and 240 MiB of the limit of 600 MiB (RLIMIT_AS) stayed free."},
    {CAUSE_HEALTHY, detached,
	"It was recorded for 10 min 00 s and went on. Nothing ran out: at most 340 MiB were in use "
	"at "
	"once of what came since the attach, beside 200 MiB from before, and 240 MiB of the limit "
	"of 600 MiB (RLIMIT_AS) stayed free. But Chat.answer (chat.py:31) was still growing at the "
	"end: 300 MiB. At this pace RLIMIT_AS of 600 MiB will be full 3 min 48 s to 4 min 48 s "
	"later."},
    {CAUSE_UNKNOWN, undecided,
	"The evidence does not decide the cause: perhaps leak in Chat.answer (chat.py:31), 300 "
	"MiB, "
	"or state-retention in Chat.say (chat.py:12). A request for 8.00 MiB then failed at the "
	"limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_UNKNOWN, external_or_leak,
	"The evidence does not decide the cause: perhaps external, or leak in Chat.answer "
	"(chat.py:31), 300 MiB. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_UNKNOWN, undecided_between_none,
	"The evidence does not decide the cause. A request for 8.00 MiB then failed at the limit "
	"of 600 MiB (RLIMIT_AS)."},
    {CAUSE_UNKNOWN, undecided_with_most,
	"The evidence does not decide the cause; 290 MiB of the 340 MiB in use were allocated "
	"by Chat.answer (chat.py:31). A request for 8.00 MiB then failed at the limit of 600 "
	"MiB (RLIMIT_AS)."},
    {CAUSE_UNKNOWN, attached_late,
	"The evidence does not decide the cause: 512 MiB of the limit of 600 MiB (RLIMIT_AS) were "
	"there before whyoom came; attach earlier, or start it with `whyoom run`. A request for "
	"8.00 MiB then failed at the limit of 600 MiB (RLIMIT_AS)."},
    {CAUSE_UNKNOWN, attached_while_loading,
	"The evidence does not decide the cause: Chat.answer (chat.py:31) took and kept 300 MiB "
	"since the attach; only a recording from the start, by `whyoom run`, tells what is put in "
	"place there from what leaks. A request for 8.00 MiB then failed at the limit of 600 MiB "
	"(RLIMIT_AS)."},
    {CAUSE_UNKNOWN, not_recorded,
	"The cause is not known: allocations by Python were not recorded."},
    {CAUSE_UNKNOWN, killed_unexplained,
	"SIGKILL ended it; the kernel's OOM killer struck on this machine while it ran, perhaps at "
	"another process, and memory was still rising, in a shape that no cause explains (at most "
	"340 MiB were in use): perhaps leak in Chat.answer (chat.py:31), 300 MiB."},
    {CAUSE_UNKNOWN, near_limit,
	"It ended with an error while only 6.00 MiB of 600 MiB (RLIMIT_AS) were left, but no "
	"refused request was recorded."},
};

static void test_examples(void **state)
{
	bool worded[CAUSE_COUNT] = {false};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		const char *said;

		stage(examples[i].cause);
		examples[i].set();
		said = words_summary(&r);
		worded[examples[i].cause] = true;
		if (strcmp(said, examples[i].sentence) != 0) {
			print_error(
			    "example %zu:\n  %s\nis to be\n  %s\n", i, said, examples[i].sentence);
			wrong++;
		}
		arena_free(&r.arena);
	}
	assert_int_equal(wrong, 0);
	for (enum cause c = CAUSE_UNKNOWN; c < CAUSE_COUNT; c++)
		if (!worded[c])
			fail_msg("%s has no example", cause_name(c));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

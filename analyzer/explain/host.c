/* host.c - see host.h. */
#include "explain/host.h"

#include <string.h>

#include "explain/meaning.h"
#include "explain/shortage.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

TUNED(uint64_t, REQUEST_SMALL, 64ull << 20, "allocators ask for as much to have it in stock");
TUNED(uint64_t, POOL_SMALL_PART, 10, "a tenth: what is larger may be too large by itself");
TUNED(size_t, POOL_MIN, 3, "two processes of one name are a parent and its child");
TUNED(uint64_t, POOL_PART, 2, "half: the pool is then more than all others together");
TUNED(uint64_t, VICTIM_PART, 2, "half: a victim with more filled the memory itself");

/* The message names one request alone: the larger it is, the likelier it is the cause by itself. */
static void one_request(
    const struct explain_message *m, uint64_t requested, struct votes *votes, struct str *words)
{
	enum size_class size = shortage_size_class(requested);
	struct fmt a;

	shortage_vote_of_request(requested, votes);
	if (size == SIZE_IMPOSSIBLE) {
		str_printf(words,
		    "One request of %s: no process can address that much. Memory is not what was "
		    "short, the size was computed wrongly.",
		    fmt_size(&a, requested));
	} else if (size == SIZE_ABSURD) {
		str_printf(words,
		    "One request of %s: more than a machine has. One huge array, or a size that "
		    "was computed wrongly.",
		    fmt_size(&a, requested));
	} else if (size == SIZE_LARGE) {
		str_printf(words,
		    "One request of %s, at once: a large array or buffer, made whole.",
		    fmt_size(&a, requested));
	} else if (*m->known->space && strcmp(m->known->space, "host") == 0) {
		str_printf(words,
		    "A request of %s%s was refused, so the memory, or what a limit leaves of "
		    "it, was full before: what filled it the message does not say.",
		    requested < REQUEST_SMALL ? "only " : "", fmt_size(&a, requested));
	}
}

/* Writes the name and the number of a process. */
static void put_process(struct str *words, const struct fields *process)
{
	const struct field *comm = fields_find(process, "comm"), *pid = fields_find(process, "pid");

	str_puts(words, comm && comm->type == FIELD_TEXT ? comm->text : "a process");
	if (pid && pid->type == FIELD_INTEGER)
		str_printf(words, " (pid %lld)", (long long)pid->integer);
}

static void killed(const struct explain_message *m, uint64_t anon, struct str *words)
{
	const struct field *scope = fields_find(&m->fields, "scope");
	struct fmt a;

	str_puts(words, "The kernel killed ");
	put_process(words, &m->fields);
	if (anon)
		str_printf(words, ", which had %s in memory", fmt_size(&a, anon));
	if (scope && scope->type == FIELD_TEXT)
		str_puts(words, strstr(scope->text, "cgroup")
				    ? ", as its cgroup (container, service) was at its limit"
				    : ", as the machine's memory was full");
	str_puts(words, ".");
}

/* Returns the resident bytes of all tasks in the kernel's table, and the largest task. */
static uint64_t sum_tasks(const struct field_rows *tasks, const struct fields **largest)
{
	uint64_t sum = 0, most = 0, bytes;

	for (size_t i = 0; i < tasks->count; i++) {
		if (!fields_bytes(&tasks->items[i], "resident_bytes", &bytes))
			continue;
		sum += bytes;
		if (bytes > most) {
			most = bytes;
			*largest = &tasks->items[i];
		}
	}
	return sum;
}

/* Finds tasks of one name and about equal size, the workers of a pool. Sets *workers to their
 * number and *bytes to their memory together. */
static const struct field *largest_pool(
    const struct field_rows *tasks, size_t *workers, uint64_t *bytes)
{
	const struct field *name = NULL;

	*bytes = 0;
	for (size_t i = 0; i < tasks->count; i++) {
		const struct field *comm = fields_find(&tasks->items[i], "comm");
		uint64_t most, have, sum = 0;
		size_t count = 0;

		if (!comm || comm->type != FIELD_TEXT ||
		    !fields_bytes(&tasks->items[i], "resident_bytes", &most))
			continue;
		for (size_t k = 0; k < tasks->count; k++) {
			const struct field *other = fields_find(&tasks->items[k], "comm");

			if (!other || other->type != FIELD_TEXT ||
			    strcmp(other->text, comm->text) != 0 ||
			    !fields_bytes(&tasks->items[k], "resident_bytes", &have) ||
			    have < most / 2 || have > most)
				continue;
			sum += have;
			count++;
		}
		if (count >= POOL_MIN && sum > *bytes) {
			*bytes = sum;
			*workers = count;
			name = comm;
		}
	}
	return name;
}

/* One worker would have fitted, all of them did not. False: no pool has most of the tasks'
 * memory. */
static bool pool_filled_it(
    const struct field_rows *tasks, uint64_t sum, struct votes *votes, struct str *words)
{
	uint64_t pool;
	size_t workers;
	const struct field *name = largest_pool(tasks, &workers, &pool);
	struct fmt a, b;

	if (!name || pool < sum / POOL_PART)
		return false;
	votes_add(votes, CAUSE_CONCURRENCY, HOST_VOTE_OF_TABLE);
	str_printf(words,
	    " %zu of %s had about as much each, %s of %s in all: one would have fitted.", workers,
	    name->text, fmt_size(&a, pool), fmt_size(&b, sum));
	return true;
}

/* Shared memory and tmpfs are charged to the group, and to no task of the table. */
static uint64_t shared_of(const struct explain_message *stats)
{
	uint64_t shared = 0;

	if (stats)
		fields_bytes(&stats->fields, "shmem_bytes", &shared);
	return shared;
}

enum cause host_vote_of_kill(const struct explain_message *kill,
    const struct explain_message *table, const struct explain_message *stats, struct votes *votes,
    struct str *words)
{
	const struct field *tasks = fields_find(&table->fields, "tasks"), *comm;
	const struct fields *largest = NULL;
	uint64_t sum, victim, shared = shared_of(stats);
	struct fmt a, b;

	if (!tasks || tasks->type != FIELD_LIST ||
	    !fields_bytes(&kill->fields, "anon_bytes", &victim))
		return CAUSE_UNKNOWN;
	sum = sum_tasks(tasks->rows, &largest);
	if (!largest || victim >= sum / VICTIM_PART)
		return CAUSE_UNKNOWN;
	str_puts(words, kill->meaning);
	if (shared <= sum && pool_filled_it(tasks->rows, sum, votes, words))
		return CAUSE_CONCURRENCY;
	votes_add(votes, CAUSE_EXTERNAL, HOST_VOTE_OF_TABLE);
	str_printf(words,
	    " It was not the one that filled it: the processes under that limit had %s in all",
	    fmt_size(&a, sum));
	comm = fields_find(largest, "comm");
	fields_bytes(largest, "resident_bytes", &victim);
	if (comm && comm->type == FIELD_TEXT)
		str_printf(words, ", %s alone %s", comm->text, fmt_size(&b, victim));
	str_putc(words, '.');
	if (shared > sum)
		str_printf(words,
		    " Most of it belongs to no process: %s are shared memory, files in /dev/shm or "
		    "another tmpfs.",
		    fmt_size(&a, shared));
	return CAUSE_EXTERNAL;
}

static void monitored(const struct explain_message *m, const struct field *tasks,
    struct votes *votes, struct str *words)
{
	const struct fields *largest = NULL;
	uint64_t sum = sum_tasks(tasks->rows, &largest);
	struct str pool = {0};

	if (largest && pool_filled_it(tasks->rows, sum, votes, &pool)) {
		meaning_write(words, m->known->meaning, &m->fields);
		str_puts(words, str_text(&pool));
	}
	str_free(&pool);
}

bool host_pool_was_full(
    const struct explain_message *m, const struct explain_message *stats, struct str *words)
{
	uint64_t requested, limit, in_use;
	struct fmt a, b;

	if (!stats || m->kind != MESSAGE_FAILURE ||
	    !fields_bytes(&m->fields, "requested_bytes", &requested) ||
	    !fields_bytes(&stats->fields, "limit_bytes", &limit) ||
	    !fields_bytes(&stats->fields, "in_use_bytes", &in_use) ||
	    requested >= limit / POOL_SMALL_PART || in_use > limit || limit - in_use >= requested)
		return false;
	meaning_write(words, m->known->meaning, &m->fields);
	str_printf(words,
	    " The allocator had %s of its %s in use; the message does not say by what.",
	    fmt_size(&a, in_use), fmt_size(&b, limit));
	return true;
}

/* The table alone does not say who was killed, nor for which limit. */
static void tabled(const struct field *tasks, struct str *words)
{
	const struct fields *largest = NULL;
	uint64_t sum = sum_tasks(tasks->rows, &largest), most = 0;
	struct fmt a, b;

	if (!largest)
		return;
	fields_bytes(largest, "resident_bytes", &most);
	put_process(words, largest);
	str_printf(words, " had the most memory of the listed processes: %s of %s.",
	    fmt_size(&a, most), fmt_size(&b, sum));
}

/* The message names its pool: a small request says nothing where the pool was full before. */
static bool small_for_its_pool(const struct explain_message *m, uint64_t requested)
{
	uint64_t allowed, held;

	return fields_bytes(&m->fields, "allowed_bytes", &allowed) &&
	       fields_bytes(&m->fields, "allocated_bytes", &held) &&
	       requested < allowed / POOL_SMALL_PART;
}

void host_vote(const struct explain_message *m, struct votes *votes, struct str *words)
{
	const struct field *tasks = fields_find(&m->fields, "tasks");
	uint64_t bytes;

	if (tasks && tasks->type == FIELD_LIST && m->kind == MESSAGE_FAILURE)
		monitored(m, tasks, votes, words);
	else if (tasks && tasks->type == FIELD_LIST)
		tabled(tasks, words);
	else if (m->kind != MESSAGE_FAILURE)
		return;
	else if (fields_bytes(&m->fields, "anon_bytes", &bytes))
		killed(m, bytes, words);
	else if (!m->known->cause_count && fields_bytes(&m->fields, "requested_bytes", &bytes) &&
		 !small_for_its_pool(m, bytes))
		one_request(m, bytes, votes, words);
}

/* host.c - see host.h. */
#include "explain/host.h"

#include <string.h>

#include "util/fmt.h"

/* One request, and nothing else is said: the larger it is, the likelier it is the cause by itself.
 */
static void one_request(
    const struct explain_message *m, uint64_t requested, struct votes *votes, struct str *words)
{
	struct fmt a;

	if (requested >= 1ull << 40) {
		votes_add(votes, "oversized-intermediate", 0.8);
		str_printf(words,
		    "One request of %s: more than a machine has. One huge array, or a size that "
		    "was "
		    "computed wrongly.",
		    fmt_size(&a, requested));
	} else if (requested >= 1ull << 30) {
		votes_add(votes, "oversized-intermediate", requested >= 8ull << 30 ? 0.65 : 0.5);
		str_printf(words,
		    "One request of %s, at once: a large array or buffer, made whole.",
		    fmt_size(&a, requested));
	} else if (*m->known->space && strcmp(m->known->space, "host") == 0) {
		str_printf(words,
		    "A request of only %s was refused, so the memory was full before: what filled "
		    "it the message does not say.",
		    fmt_size(&a, requested));
	}
}

static void killed(const struct explain_message *m, uint64_t anon, struct str *words)
{
	const struct field *comm = fields_find(&m->fields, "comm");
	struct fmt a;

	str_printf(words, "The kernel killed %s, which had %s in memory.",
	    comm && comm->type == FIELD_TEXT ? comm->text : "a process", fmt_size(&a, anon));
}

/* All that the kernel's table of tasks has in memory, and the largest of them. */
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

void host_vote_of_kill(const struct explain_message *kill, const struct explain_message *table,
    struct votes *votes, struct str *words)
{
	const struct field *tasks = fields_find(&table->fields, "tasks"), *comm;
	const struct fields *largest = NULL;
	uint64_t sum, victim;
	struct fmt a, b;

	if (!tasks || tasks->type != FIELD_LIST ||
	    !fields_bytes(&kill->fields, "anon_bytes", &victim))
		return;
	sum = sum_tasks(tasks->rows, &largest);
	if (!largest || victim >= sum / 2)
		return;
	votes_add(votes, "external", 0.55);
	str_printf(words,
	    "%s It was not the one that filled it: the processes under that limit had %s "
	    "in all",
	    kill->meaning, fmt_size(&a, sum));
	comm = fields_find(largest, "comm");
	fields_bytes(largest, "resident_bytes", &victim);
	if (comm && comm->type == FIELD_TEXT)
		str_printf(words, ", %s alone %s", comm->text, fmt_size(&b, victim));
	str_putc(words, '.');
}

void host_vote(const struct explain_message *m, struct votes *votes, struct str *words)
{
	uint64_t bytes;

	if (fields_bytes(&m->fields, "anon_bytes", &bytes))
		killed(m, bytes, words);
	else if (!m->known->cause_count && fields_bytes(&m->fields, "requested_bytes", &bytes))
		one_request(m, bytes, votes, words);
}

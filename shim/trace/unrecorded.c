/* unrecorded.c - see unrecorded.h. */
#include "trace/unrecorded.h"

#include <stdbool.h>
#include <string.h>

/* Keep the end of a path that is too long. */
static const char *end_of(const char *path)
{
	size_t n = strlen(path), room = sizeof(((struct trace_unrecorded *)0)->path) - 1;

	return n > room ? path + n - room : path;
}

static bool holds(const struct trace_unrecorded *p, uint32_t why, const char *path)
{
	return __atomic_load_n(&p->why, __ATOMIC_ACQUIRE) == why &&
	       !strncmp(p->path, path, sizeof(p->path));
}

/* Return the program's entry, or a new one if `make`; NULL: none. */
static struct trace_unrecorded *entry_of(
    struct trace_header *h, uint32_t why, const char *path, bool make)
{
	for (unsigned i = 0; i < TRACE_UNRECORDED_PLACES; i++) {
		struct trace_unrecorded *p = &h->unrecorded_program[i];
		uint32_t none = 0;

		if (holds(p, why, path))
			return p;
		if (!make || !__atomic_compare_exchange_n(&p->why, &none, TRACE_UNRECORDED_TAKEN,
				 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		p->path[0] = 0;
		strncat(p->path, path, sizeof(p->path) - 1);
		__atomic_store_n(&p->why, why, __ATOMIC_RELEASE);
		return p;
	}
	return NULL;
}

static void add(struct trace_header *h, uint32_t why, const char *path, uint32_t count)
{
	struct trace_unrecorded *p = entry_of(h, why, path, true);

	__atomic_fetch_add(&h->unrecorded, count, __ATOMIC_RELAXED);
	if (p)
		__atomic_fetch_add(&p->count, count, __ATOMIC_RELAXED);
}

void unrecorded_add(struct trace_header *h, enum trace_unrecorded_why why, const char *path)
{
	add(h, why, end_of(path), 1);
}

void unrecorded_take_back(struct trace_header *h, enum trace_unrecorded_why why, const char *path)
{
	struct trace_unrecorded *p = entry_of(h, why, end_of(path), false);

	__atomic_fetch_sub(&h->unrecorded, 1, __ATOMIC_RELAXED);
	if (p)
		__atomic_fetch_sub(&p->count, 1, __ATOMIC_RELAXED);
}

void unrecorded_pass_on(const struct trace_header *from, struct trace_header *to)
{
	uint64_t named = 0;

	for (unsigned i = 0; i < TRACE_UNRECORDED_PLACES; i++) {
		const struct trace_unrecorded *p = &from->unrecorded_program[i];

		if (!p->why || p->why == TRACE_UNRECORDED_TAKEN || !p->count ||
		    !memchr(p->path, 0, sizeof(p->path)))
			continue;
		add(to, p->why, p->path, p->count);
		named += p->count;
	}
	if (from->unrecorded > named)
		__atomic_fetch_add(&to->unrecorded, from->unrecorded - named, __ATOMIC_RELAXED);
}

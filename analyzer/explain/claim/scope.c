/* scope.c - see scope.h. */
#include "explain/claim/scope.h"

#include <stddef.h>

#include "explain/claim/phrase.h"

/* The first row whose phrase is in the text decides. Rows about a limit that is too low come first,
 * as such a text also names what the limit is for. A phrase begins where a word begins. */
static const struct {
	enum scope scope;
	const char *phrase;
} phrases[] = {
    {SCOPE_LIMIT, "limit too low"},
    {SCOPE_LIMIT, "limit is too low"},
    {SCOPE_LIMIT, "limit too small"},
    {SCOPE_LIMIT, "limit is too small"},
    {SCOPE_LIMIT, "limit could be too low"},
    {SCOPE_LIMIT, "unable to set memory limit"},
    {SCOPE_LIMIT, "minimum memory limit"},
    {SCOPE_LIMIT, "below the minimum"},
    {SCOPE_LIMIT, "less than the minimum"},
    {SCOPE_LIMIT, "virtual memory used"},
    {SCOPE_LIMIT, "exceeds its request of"},
    {SCOPE_LIMIT, "maintenance_work_mem is"},
    {SCOPE_WEIGHTS, "model weight"},
    {SCOPE_WEIGHTS, "model requires"},
    {SCOPE_WEIGHTS, "model needs"},
    {SCOPE_WEIGHTS, "model is too large"},
    {SCOPE_WEIGHTS, "model too large"},
    {SCOPE_WEIGHTS, "model does not fit"},
    {SCOPE_WEIGHTS, "model doesn't fit"},
    {SCOPE_WEIGHTS, "load the model"},
    {SCOPE_WEIGHTS, "load model"},
    {SCOPE_WEIGHTS, "loading model"},
    {SCOPE_WEIGHTS, "for model and"},
    {SCOPE_WEIGHTS, "model layers"},
    {SCOPE_REQUESTS, "too many concurrent"},
    {SCOPE_REQUESTS, "in_flight_requests"},
    {SCOPE_REQUESTS, "in-flight requests"},
    {SCOPE_REQUESTS, "active requests"},
    {SCOPE_START, "buffer pool"},
    {SCOPE_START, "shared_buffers"},
    {SCOPE_START, "preallocat"},
    {SCOPE_START, "pre-allocat"},
    {SCOPE_START, "enough space for object heap"},
    {SCOPE_START, "enough space for the card"},
    {SCOPE_START, "at startup"},
    {SCOPE_START, "initial pool"},
    {SCOPE_STORE, "fielddata"},
    {SCOPE_STORE, "'maxmemory'"},
    {SCOPE_STORE, "cache is full"},
    {SCOPE_STORE, "cache full"},
    {SCOPE_STORE, "memtable"},
    {SCOPE_REQUEST, "for query"},
    {SCOPE_REQUEST, "per query"},
    {SCOPE_REQUEST, "canceling query"},
    {SCOPE_REQUEST, "cancelling query"},
    {SCOPE_REQUEST, "per-query"},
    {SCOPE_REQUEST, "-limited: memory budget"},
    {SCOPE_REQUEST, "query exceeded"},
    {SCOPE_REQUEST, "query memory limit"},
    {SCOPE_REQUEST, "query used"},
    {SCOPE_REQUEST, "memory limit of the query"},
    {SCOPE_REQUEST, "single query"},
    {SCOPE_REQUEST, "single request"},
    {SCOPE_REQUEST, "[request]"},
    {SCOPE_REQUEST, "sort exceeded"},
    {SCOPE_REQUEST, "$group exceeded"},
    {SCOPE_REQUEST, "stage exceeded"},
    {SCOPE_REQUEST, "sort buffer"},
    {SCOPE_REQUEST, "sort memory"},
    {SCOPE_REQUEST, "sorter"},
    {SCOPE_REQUEST, "externalsort"},
    {SCOPE_REQUEST, "external sort"},
    {SCOPE_REQUEST, "topk["},
    {SCOPE_REQUEST, "hash join"},
    {SCOPE_REQUEST, "hashjoin"},
    {SCOPE_REQUEST, "hash table"},
    {SCOPE_REQUEST, "hash aggregat"},
    {SCOPE_REQUEST, "hashaggregat"},
    {SCOPE_REQUEST, "groupedhashaggregat"},
    {SCOPE_REQUEST, "aggregatingtransform"},
    {SCOPE_REQUEST, "mergesortingtransform"},
    {SCOPE_REQUEST, "group by"},
    {SCOPE_REQUEST, "cross join"},
    {SCOPE_REQUEST, "result set"},
    {SCOPE_REQUEST, "result buffer"},
    {SCOPE_REQUEST, "materializ"},
    {SCOPE_REQUEST, "query execution"},
    {SCOPE_REQUEST, "order by operat"},
    {SCOPE_REQUEST, "sort operations"},
    {SCOPE_REQUEST, "orderbyoperator"},
    {SCOPE_REQUEST, "execute query"},
    {SCOPE_REQUEST, "hashjoininput"},
    {SCOPE_REQUEST, "data points across"},
    {SCOPE_REQUEST, "response size"},
};

enum scope scope_read(const char *text)
{
	for (size_t i = 0; i < sizeof(phrases) / sizeof(*phrases); i++)
		if (has_phrase(text, phrases[i].phrase))
			return phrases[i].scope;
	return SCOPE_UNKNOWN;
}

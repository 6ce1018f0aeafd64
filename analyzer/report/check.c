/* check.c - see check.h. Has the facts that the text and the JSON of `whyoom check` share. */
#include "report/check.h"

static const struct {
	const char *key, *words;
} drops[] = {
    [TRACE_DROP_NO_SPACE] = {"no_space", "there was no room for the trace (disk full, a file size "
					 "limit, or a directory that could not be written)"},
    [TRACE_DROP_NO_MEMORY] = {"no_memory", "the trace could not be mapped into the process (limit "
					   "on the address space, or no descriptors)"},
    [TRACE_DROP_SIGNAL] = {"signal",
	"signal handlers allocated more than the recorder can buffer for them"},
    [TRACE_DROP_NESTED] = {"nested", "they happened while another event was being recorded"},
    [TRACE_DROP_BUDGET] = {"budget", "the trace reached its largest size (WHYOOM_MAX_TRACE); from "
				     "then on blocks under 64 KiB are missing"},
    [TRACE_DROP_DEFINITION] = {"definition",
	"there was no room for the definitions of their stacks"},
    [TRACE_DROP_NO_THREAD] = {"no_thread", "their threads were just starting or already ending"},
    [TRACE_DROP_VFORK] = {"vfork", "they happened between vfork and exec"},
    [TRACE_DROP_RIGHTS] = {"rights", ""}, /* trace_rights_why() has the words */
};
#define DROPS_KNOWN (sizeof(drops) / sizeof(drops[0]))

const char *check_drop_key(size_t reason)
{
	return reason < DROPS_KNOWN ? drops[reason].key : NULL;
}

const char *check_drop_words(size_t reason)
{
	return reason < DROPS_KNOWN ? drops[reason].words : NULL;
}

bool check_is_whole(const struct trace_facts *f, const struct check_tally *tally)
{
	return !tally->cut && !f->damage.count && !f->torn_chunks && !f->bad_checksums &&
	       !f->checkpoint.damaged;
}

bool check_is_complete(const struct trace_facts *f, const struct check_tally *tally)
{
	return !f->dropped_total && !f->budget && !f->checkpoint.until_ns && !f->brief_stacks &&
	       !f->untold && check_is_whole(f, tally);
}

size_t check_trace_count(const struct trace_set *set)
{
	return set->count + (set->supervisor != NULL);
}

struct trace *check_trace(const struct trace_set *set, size_t index)
{
	return index < set->count ? set->images[index] : set->supervisor;
}

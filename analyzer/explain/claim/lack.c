/* lack.c - see lack.h. */
#include "explain/claim/lack.h"

#include "explain/claim/space.h"
#include "explain/claim/vocabulary.h"

/* "exit code 137", "returned a non-zero code: 137", "signal 9" */
static bool has_kill_status(const struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		const struct lexeme *x = lexeme(s, i);

		if (word_is(s, i, "sigkill"))
			return true;
		if (x->type != LEXEME_NUMBER || (x->value != 137 && x->value != 9) || x->joined)
			continue;
		for (size_t back = 1; back <= 3 && back <= i - s->from; back++) {
			bool status =
			    word_is(s, i - back, "code") || word_is(s, i - back, "status") ||
			    word_is(s, i - back, "exited") || word_is(s, i - back, "errno");

			if (x->value == 137 ? status
					    : word_is(s, i - back, "signal") ||
						  (status && lexeme(s, i - 1)->mark == '-'))
				return true;
		}
	}
	return false;
}

bool lack_is_locked(const struct sentence *line)
{
	return any_word(line, "memlock") || any_word(line, "mlock") || any_word(line, "mlockall") ||
	       any_word(line, "ibv") || any_word(line, "rdma") ||
	       any_two(line, "locked", "memory") || any_two(line, "lock", "memory") ||
	       any_two(line, "locked", "in") || any_two(line, "memory", "lock") ||
	       (any_two(line, "reg", "mr") && !any_flag(line, WORD_DEVICE)) ||
	       any_two(line, "register", "mr") || any_two(line, "register", "memory") ||
	       any_two(line, "register", "local") || any_two(line, "memory", "registration");
}

/* "mmap failed: Operation not permitted", "pthread_create failed: Permission denied" */
static bool is_denied(const struct sentence *s)
{
	return (any_two(s, "not", "permitted") || any_two(s, "permission", "denied")) &&
	       any_flag(s, WORD_ALLOCATE | WORD_MEMORY | WORD_SHARED | WORD_THREADS) &&
	       any_flag(s, WORD_FAIL);
}

/* "queue is full", "exceeds maximum queue size", "the model is overloaded" */
static bool is_queue(const struct sentence *s)
{
	return ((any_word(s, "queue") || any_word(s, "queues")) &&
		   (any_word(s, "full") ||
		       ((any_two(s, "queue", "size") || any_two(s, "queue", "capacity")) &&
			   any_flag(s, WORD_OVER | WORD_FAIL)))) ||
	       any_word(s, "overloaded") ||
	       (any_word(s, "pool") && any_flag(s, WORD_COUNTED | WORD_THREADS) &&
		   (any_word(s, "exhausted") || any_two(s, "pool", "limit") ||
		       any_two(s, "timed", "out")));
}

static bool is_recursion(const struct sentence *s)
{
	return any_two(s, "stack", "overflow") ||
	       (any_two(s, "out", "of") && any_word(s, "stack")) ||
	       (any_two(s, "stack", "limit") && any_flag(s, WORD_OVER)) ||
	       any_two(s, "recursion", "depth") || any_two(s, "call", "stack") ||
	       any_two(s, "overflowed", "its");
}

/* "1 leaked semaphore objects", "Possible EventEmitter memory leak detected" */
static bool is_leak(const struct sentence *s)
{
	return (any_word(s, "leaked") || any_two(s, "memory", "leak") ||
		   any_two(s, "memory", "leaks")) &&
	       !any_flag(s, WORD_KILL) && !any_two(s, "out", "of") && !any_two(s, "no", "memory");
}

/* What reads like a lack of memory. */
enum claim_kind lack_of(struct sentence *s)
{
	bool size = any_size(s);

	s->at = s->to;
	if (any_two(s, "map", "count") || any_two(s, "memory", "mappings") ||
	    any_two(s, "memory", "areas"))
		return any_flag(s, WORD_LIMIT) || any_two(s, "too", "low") || any_word(s, "max")
			   ? CLAIM_MAPS
			   : CLAIM_NONE;
	if ((any_flag(s, WORD_DISK) && !any_flag(s, WORD_MEMORY) &&
		(any_word(s, "full") || any_two(s, "no", "space") || any_two(s, "out", "of") ||
		    any_two(s, "not", "enough") || any_word(s, "insufficient") ||
		    any_two(s, "quota", "exceeded"))) ||
	    (any_two(s, "no", "space") && any_two(s, "left", "on") && !space_is_shared(s)) ||
	    (any_two(s, "not", "enough") && any_two(s, "free", "space")) ||
	    (any_word(s, "database") && any_two(s, "space", "exceeded")))
		return CLAIM_DISK;
	if (!size &&
	    ((any_word(s, "quota") &&
		 (any_flag(s, WORD_OVER | WORD_SHORT) || any_word(s, "insufficient"))) ||
		(any_two(s, "rate", "limit") &&
		    (any_flag(s, WORD_OVER) || any_word(s, "reached"))) ||
		any_two(s, "too", "many")) &&
	    (any_word(s, "quota") || any_word(s, "rate") || any_word(s, "requests")))
		return CLAIM_QUOTA;
	if (!size && any_flag(s, WORD_TOKENS) && !any_two(s, "kv", "cache") &&
	    !any_flag(s, WORD_MEMORY) &&
	    (any_word(s, "tokens") || any_word(s, "context") || any_word(s, "prompt") ||
		any_word(s, "sequence") || any_two(s, "input", "length")) &&
	    (any_two(s, "too", "long") || any_two(s, "longer", "than") ||
		any_two(s, "more", "than") || any_word(s, "exceed") || any_word(s, "exceeds") ||
		any_word(s, "exceeded") || any_word(s, "exceeding") ||
		any_two(s, "larger", "than") || any_two(s, "greater", "than") ||
		any_two(s, "context", "length")))
		return any_two(s, "per", "min") || any_two(s, "per", "minute") ? CLAIM_QUOTA
									       : CLAIM_PROMPT;
	if (any_flag(s, WORD_THREADS) && !size && !any_flag(s, WORD_MEMORY) && !is_denied(s) &&
	    (any_two(s, "temporarily", "unavailable") ||
		((any_word(s, "create") || any_word(s, "start") || any_word(s, "spawn") ||
		     any_word(s, "creation")) &&
		    any_flag(s, WORD_FAIL)) ||
		any_two(s, "too", "many") || any_two(s, "pids", "controller")))
		return CLAIM_THREADS;
	if (any_two(s, "segmentation", "fault") || any_word(s, "sigsegv") ||
	    any_word(s, "segfault") || any_two(s, "access", "violation") ||
	    any_two(s, "illegal", "memory") || any_two(s, "misaligned", "address") ||
	    any_two(s, "side", "assert") || any_two(s, "page", "size"))
		return CLAIM_FAULT;
	/* "failed to set RLIMIT_MEMLOCK" */
	if (any_word(s, "memlock") && any_flag(s, WORD_FAIL))
		return CLAIM_LOCKED;
	if (is_denied(s))
		return CLAIM_DENIED;
	if (has_kill_status(s))
		return CLAIM_SIGKILL;
	if (is_queue(s))
		return CLAIM_QUEUE;
	if (is_recursion(s))
		return CLAIM_STACK;
	if (is_leak(s))
		return CLAIM_LEAK;
	if ((any_word(s, "heartbeat") || any_word(s, "heartbeats")) &&
	    (any_two(s, "timed", "out") || any_word(s, "timeout") || any_word(s, "missed") ||
		any_word(s, "lost")))
		return CLAIM_LOST;
	if ((any_word(s, "worker") || any_word(s, "executor") || any_word(s, "actor") ||
		any_word(s, "node") || any_word(s, "process") || any_word(s, "container") ||
		any_word(s, "replica") || any_word(s, "daemon") || any_word(s, "server") ||
		any_word(s, "runner") || any_word(s, "job") || any_word(s, "session")) &&
	    !any_two(s, "time", "limit") &&
	    (any_word(s, "died") || any_word(s, "unexpectedly") || any_word(s, "disappeared") ||
		any_word(s, "abruptly") || any_word(s, "unreachable") ||
		any_two(s, "was", "killed") || any_two(s, "signal", "9")))
		return CLAIM_LOST;
	if (any_two(s, "device", "lost") && !any_word(s, "may"))
		return CLAIM_LOST;
	return CLAIM_NONE;
}

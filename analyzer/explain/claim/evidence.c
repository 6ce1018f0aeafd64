/* evidence.c - see evidence.h. */
#include "explain/claim/evidence.h"

#include "explain/claim/mood.h"
#include "explain/claim/says.h"
#include "explain/claim/space.h"
#include "util/tuned.h"

TUNED(size_t, CODE_NEAR, 3, "\"returned error code: -12\"");
TUNED(size_t, NEAR, 6, "further apart, the failure and the memory are two matters");
TUNED(
    size_t, OBJECT_NEAR, 4, "\"failed to parse the memory limit\": what a verb acts on follows it");

/* Error codes for a lack of memory. A number means that only beside the name of its interface. */
static const struct {
	const char *whose; /* the interface's name, a word of the sentence; "": the C library */
	int64_t code;
	bool device;
} codes[] = {
    {"", 12, false}, /* ENOMEM */
    {"vk", -1, false}, /* VK_ERROR_OUT_OF_HOST_MEMORY */
    {"vk", -2, true}, /* VK_ERROR_OUT_OF_DEVICE_MEMORY */
    {"cl", -4, true}, /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    {"cl", -5, true}, /* CL_OUT_OF_RESOURCES */
    {"cl", -6, false}, /* CL_OUT_OF_HOST_MEMORY */
    {"cuda", 2, true}, /* cudaErrorMemoryAllocation */
    {"cu", 2, true}, /* CUDA_ERROR_OUT_OF_MEMORY */
    {"hip", 2, true}, /* hipErrorOutOfMemory */
    {"sqlstate", 53200, false}, /* out_of_memory */
    {"hresult", 0x8007000e, false}, /* E_OUTOFMEMORY */
    {"ntstatus", 0xc0000017, false}, /* STATUS_NO_MEMORY */
    {"winerror", 1455, false}, /* ERROR_COMMITMENT_LIMIT */
};

/* "errno 12", "error code: 2", "ret: -12", "VkResult -2": a number that is somebody's answer. */
static bool is_code(const struct sentence *s, size_t i)
{
	static const char *const names[] = {"errno", "error", "ret", "rc", "err", "code", "status",
	    "returned", "result", "sqlstate", "hresult", "ntstatus", "winerror", "failed"};

	if (lexeme(s, i)->type != LEXEME_NUMBER || lexeme(s, i)->unit != UNIT_NONE)
		return false;
	for (size_t back = 1; back <= CODE_NEAR && back <= i - s->from; back++)
		for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
			if (word_is(s, i - back, names[n]))
				return true;
	return false;
}

/* The code of a number: with the sign, which the C library's may have, too. */
static int64_t code_at(const struct sentence *s, size_t i)
{
	int64_t value = (int64_t)lexeme(s, i)->value;
	bool minus = i > s->from && lexeme(s, i - 1)->mark == '-' &&
		     lexeme(s, i - 1)->at + 1 == lexeme(s, i)->at;

	return minus ? -value : value;
}

/* Somebody's code for a lack of memory is in the sentence. */
static bool has_code(struct sentence *s, bool *device)
{
	s->at = find_word(s, "enomem");
	*device = false;
	if (s->at < s->to)
		return true;
	for (size_t i = s->from; i < s->to; i++) {
		if (!is_code(s, i))
			continue;
		for (size_t c = 0; c < sizeof(codes) / sizeof(*codes); c++) {
			bool own = !codes[c].whose[0];
			int64_t code = code_at(s, i);

			if (own ? (code != -codes[c].code &&
				      !(code == codes[c].code && any_word(s, "errno")))
				: (code != codes[c].code || !any_word(s, codes[c].whose)))
				continue;
			*device = codes[c].device;
			s->at = i;
			return true;
		}
	}
	return false;
}

/* "too many", "too small": of something there is another measure than is needed. */
static bool is_lack(const struct sentence *s, size_t i)
{
	if (has_flag(s, i, WORD_SHORT))
		return true;
	return word_is(s, i, "too") && (word_is(s, i + 1, "many") || word_is(s, i + 1, "much") ||
					   word_is(s, i + 1, "little") ||
					   word_is(s, i + 1, "small") || word_is(s, i + 1, "low"));
}

/* "failed to free memory", "could not parse the memory limit": it is no request that failed. */
static bool acts_otherwise(const struct sentence *s, size_t fail)
{
	size_t verb = fail + 1, noun;

	if (word_is(s, verb, "to"))
		verb++;
	else if (!word_is(s, fail, "cannot") && !word_is(s, fail, "can't") &&
		 !word_is(s, fail, "not") && !word_is(s, fail, "couldn't"))
		return false;
	noun = find_flag(s, verb + 1, verb + 1 + OBJECT_NEAR, MEMORY_NOUNS);
	return noun < s->to && !has_flag(s, verb, WORD_ALLOCATE | WORD_TAKE);
}

/* The memory is damaged, touched wrongly, given back twice: it did not run out. */
static bool is_damage(const struct sentence *line)
{
	static const char *const words[] = {"corrupt", "corrupted", "corruption", "fault", "faults",
	    "segfault", "illegal", "violation", "misaligned", "leak", "leaks", "leaked", "double",
	    "ecc", "parity", "checksum", "mismatch", "poisoned", "bounds", "uninitialized", "freed",
	    "freeing", "unmap", "deprecated", "access", "missing", "undefined", "unknown",
	    "warning", "profiler", "debug", "trace", "unreachable", "unsupported"};

	return any_of(line, words, sizeof(words) / sizeof(*words));
}

/* Where `i` stands for memory: "heap", "allocator", a pool if the line has a size of bytes. */
static bool is_memory(const struct sentence *s, size_t i, bool size)
{
	if (has_flag(s, i, WORD_DISK | WORD_TOKENS | WORD_THREADS))
		return false;
	if (has_flag(s, i, MEMORY_NOUNS | WORD_ALLOCATE))
		return true;
	/* CUSPARSE_STATUS_INSUFFICIENT_RESOURCES */
	if ((word_is(s, i, "resources") || word_is(s, i, "resource")) && any_flag(s, WORD_DEVICE))
		return true;
	return size && has_flag(s, i, WORD_POOL);
}

/* "memory.peak = 1.4G", "heap used: 93 %": a statistic that somebody prints. */
static bool is_statistic(const struct sentence *s, size_t noun)
{
	if (has_flag(s, noun, WORD_ALLOCATE))
		return false;
	for (size_t i = noun + 1; i <= noun + 4 && i < s->to; i++) {
		if (lexeme(s, i)->type == LEXEME_NUMBER)
			return true;
		if (lexeme(s, i)->type == LEXEME_MARK ? !strchr(".=:(", lexeme(s, i)->mark)
						      : !has_flag(s, i, WORD_USED | WORD_LIMIT))
			return false;
	}
	return false;
}

/* Of one name, and not of a file's: "cudaErrorMemoryAllocation", "MEM_ALLOC_FAILED". */
static bool same_name(const struct sentence *s, size_t a, size_t b)
{
	size_t first = a < b ? a : b, last = a < b ? b : a, end = last + 1;

	for (size_t i = first + 1; i <= last; i++)
		if (!lexeme(s, i)->joined)
			return false;
	while (lexeme(s, end)->joined)
		end++;
	return lexeme(s, end)->mark != '.';
}

/* A failure or a lack that stands beside memory. */
static bool has_both(struct sentence *s, bool size)
{
	/* "[ERROR] memory limit of 8 GiB not exceeded" */
	for (size_t i = s->from; i < s->to; i++)
		if (has_flag(s, i, WORD_OVER | WORD_SHORT | WORD_FAIL) && negated(s, i))
			return false;
	for (size_t f = s->from; f < s->to; f++) {
		size_t begin = f > s->from + NEAR ? f - NEAR : s->from;
		bool fails = refuses(s, f) || has_flag(s, f, WORD_ERROR);

		if ((!fails && !is_lack(s, f)) || negated(s, f) || acts_otherwise(s, f))
			continue;
		for (size_t m = begin; m <= f + NEAR && m < s->to; m++) {
			if (m == f || !is_memory(s, m, size) || is_statistic(s, m) ||
			    says_topic(s, m + 1) || !is_together(s, m, f))
				continue;
			if ((is_part(s, f) || is_part(s, m)) && !same_name(s, f, m))
				continue;
			s->at = m < f ? m : f;
			return true;
		}
	}
	return false;
}

enum claim_kind evidence_of(struct sentence *s, const struct sentence *line)
{
	bool device = false, code, over;

	if (is_damage(line) || any_flag(line, WORD_RETRY) || says_collection(line) ||
	    says_message_size(s))
		return CLAIM_NONE;
	code = has_code(s, &device) && any_flag(line, WORD_FAIL | WORD_ERROR | WORD_ALLOCATE);
	over = !code && any_flag(s, WORD_LIMIT | WORD_OVER) && says_used_over(s, false);
	if (!code && !over && !has_both(s, any_size(s)))
		return CLAIM_NONE;
	if ((!code && !over && says_other_matter(s, s->at)) || mood_hypothetical(s) ||
	    mood_got_over(s, line->to))
		return CLAIM_NONE;
	return device || space_of(line, false) == CLAIM_DEVICE ? CLAIM_UNSURE_DEVICE : CLAIM_UNSURE;
}

/* setting.c - see setting.h. */
#include "explain/claim/setting.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "util/tuned.h"

TUNED(size_t, NAME_MIN, 4, "shorter names are words, or options for anything");
TUNED(size_t, NAME_MAX_BYTES, 80, "a longer one is a path or a key of something else");
TUNED(size_t, VERB_BEFORE, 7, "\"please set a smaller number for `--max-running-requests`\"");
TUNED(size_t, VERB_BEHIND, 3, "\"dbms.memory.transaction.total.max threshold reached\"");

static const char *const raises[] = {"increase", "increasing", "raise", "raising", "larger",
    "higher", "bigger", "more", "enlarge", "bump", "boost", "boosting", "grow", "expand"};
static const char *const lowers[] = {"decrease", "decreasing", "reduce", "reducing", "lower",
    "lowering", "smaller", "fewer", "less", "shrink", "shorten"};
static const char *const changes[] = {"set", "setting", "adjust", "change", "configure", "consider",
    "tune", "using", "use", "enable", "disable", "pass", "specify", "modify", "via"};
static const char *const reached[] = {
    "threshold", "exceeded", "reached", "exceeds", "low", "small", "insufficient"};
/* Names of memory and of what takes it. */
static const char *const stems[] = {"mem", "limit", "size", "batch", "len", "cache", "fraction",
    "util", "pool", "buffer", "worker", "thread", "concurr", "parallel", "quota", "heap", "ctx",
    "context", "token", "seq", "layers", "threshold", "chunk", "spill", "disk", "overhead",
    "java_opts", "partition", "reserv", "prefetch", "request", "rows", "quant", "offload", "xmx",
    "shm"};
/* Names of errors, and parts of code. */
static const char *const others[] = {"error", "exception", "exceed", "exhaust", "fail", "oom",
    "out_of", "outof", "std.", "self.", "torch.", "java.", "org.", "com.", "www.", "insufficient",
    "killed"};
static const char *const endings[] = {".py", ".cc", ".cpp", ".c", ".h", ".hpp", ".go", ".java",
    ".rs", ".js", ".ts", ".rb", ".php", ".cs", ".cu", ".so", ".log", ".md", ".html", ".json",
    ".scala", ".ex", ".bin", ".gguf", ".safetensors"};

struct token {
	const char *at;
	size_t bytes;
};

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == ':';
}

/* Returns the next run of bytes of a name, without marks of the sentence around it. */
static struct token next_token(const char *text, size_t bytes, size_t *at)
{
	size_t begin, end;

	while (*at < bytes && !is_name_byte(text[*at]))
		(*at)++;
	begin = *at;
	while (*at < bytes && is_name_byte(text[*at]))
		(*at)++;
	end = *at;
	while (end > begin && strchr(".:-", text[end - 1]))
		end--;
	while (begin < end && strchr(".:", text[begin]))
		begin++;
	return (struct token){text + begin, end - begin};
}

static bool contains(const struct token *t, const char *part)
{
	size_t n = strlen(part);

	for (size_t i = 0; i + n <= t->bytes; i++)
		if (strncasecmp(t->at + i, part, n) == 0)
			return true;
	return false;
}

static bool contains_any(const struct token *t, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (contains(t, parts[i]))
			return true;
	return false;
}

#define CONTAINS_ANY(t, parts) contains_any(t, parts, sizeof(parts) / sizeof(*(parts)))

static bool is_one_of(const struct token *t, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (t->bytes == strlen(words[i]) && strncasecmp(t->at, words[i], t->bytes) == 0)
			return true;
	return false;
}

#define IS_ONE_OF(t, words) is_one_of(t, words, sizeof(words) / sizeof(*(words)))

static bool ends_a_file(const struct token *t)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t n = strlen(endings[i]);

		if (t->bytes > n && strncasecmp(t->at + t->bytes - n, endings[i], n) == 0)
			return true;
	}
	return false;
}

/* A name as no prose has: joined by marks, or with a capital inside. */
static bool is_shaped(const struct token *t)
{
	bool letter = false, joint = false, colon = false;
	size_t dashes = 0;

	if (t->bytes > 2 && t->at[0] == '-' && (t->at[1] == '-' || t->at[1] == 'X'))
		return isalpha((unsigned char)t->at[2]);
	if (t->at[0] == '-') /* Go's flags: -memory.allowedPercent */
		return t->bytes > 1 && is_shaped(&(struct token){t->at + 1, t->bytes - 1});
	for (size_t i = 0; i < t->bytes; i++) {
		char c = t->at[i];

		letter |= isalpha((unsigned char)c) != 0;
		colon |= c == ':';
		dashes += c == '-';
		joint |= (c == '_' || c == '.') && i > 0 && i + 1 < t->bytes;
		joint |= isupper((unsigned char)c) && i > 1 &&
			 islower((unsigned char)t->at[i - 1]) && islower((unsigned char)t->at[0]);
	}
	/* cache-max-memory-size; two dashes also join words of prose */
	return letter && (joint || dashes >= 3) && !colon && isalpha((unsigned char)t->at[0]);
}

static bool is_setting(const struct token *t, const char *end)
{
	const char *behind = t->at + t->bytes;

	if (t->bytes < NAME_MIN || t->bytes > NAME_MAX_BYTES || !is_shaped(t))
		return false;
	if (behind < end && (*behind == '(' || *behind == '/' || *behind == '\\'))
		return false;
	if (contains(t, "jvmargs")) /* org.gradle.jvmargs */
		return true;
	return CONTAINS_ANY(t, stems) && !CONTAINS_ANY(t, others) && !ends_a_file(t);
}

/* A sentence ends between two tokens. */
static bool ends_between(const char *from, const char *to)
{
	for (const char *c = from; c + 1 < to; c++)
		if ((*c == '.' || *c == ';') && isspace((unsigned char)c[1]))
			return true;
	return false;
}

#define TOKENS_MAX 400u

/* Returns what the words near a setting say to do with it; SETTING_CHANGES: nothing. */
static enum setting_change change_of(const struct token *list, size_t count, size_t i)
{
	enum setting_change found = SETTING_CHANGES;

	for (size_t k = i; k-- > 0 && i - k <= VERB_BEFORE;) {
		if (ends_between(list[k].at + list[k].bytes, list[k + 1].at))
			break;
		/* "must be larger than block_size": a measure, and no advice */
		if (list[k + 1].bytes == 4 && memcmp(list[k + 1].at, "than", 4) == 0)
			continue;
		if (IS_ONE_OF(&list[k], raises))
			return SETTING_RAISE;
		if (IS_ONE_OF(&list[k], lowers))
			return SETTING_LOWER;
		if (IS_ONE_OF(&list[k], changes))
			found = SETTING_CHANGE;
	}
	/* "realloc_buffer: tried to grow": who speaks, or a key before its value */
	if (i + 1 < count && list[i].at[list[i].bytes] == ':' &&
	    isspace((unsigned char)list[i].at[list[i].bytes + 1]))
		return found;
	for (size_t k = i + 1; k < count && k <= i + VERB_BEHIND; k++) {
		if (ends_between(list[k - 1].at + list[k - 1].bytes, list[k].at))
			break;
		if (IS_ONE_OF(&list[k], reached) && found == SETTING_CHANGES)
			return SETTING_RAISE;
		if (IS_ONE_OF(&list[k], raises))
			return SETTING_RAISE;
		if (IS_ONE_OF(&list[k], lowers))
			return SETTING_LOWER;
	}
	return found;
}

size_t settings_read(const char *text, size_t bytes, struct setting *out)
{
	struct token list[TOKENS_MAX];
	size_t count = 0, found = 0, at = 0;

	while (count < TOKENS_MAX && at < bytes) {
		list[count] = next_token(text, bytes, &at);
		if (list[count].bytes)
			count++;
	}
	for (size_t i = 0; i < count && found < SETTINGS_MAX; i++) {
		enum setting_change change;
		bool again = false;

		if (!is_setting(&list[i], text + bytes))
			continue;
		change = change_of(list, count, i);
		for (size_t k = 0; k < found; k++)
			again |= out[k].bytes == list[i].bytes &&
				 memcmp(out[k].name, list[i].at, list[i].bytes) == 0;
		if (change != SETTING_CHANGES && !again)
			out[found++] = (struct setting){change, list[i].at, list[i].bytes};
	}
	return found;
}

enum setting_of setting_of(const char *name, size_t bytes)
{
	static const char *const workers[] = {"num_seqs", "num-seqs", "running", "concurr",
	    "parallel", "worker", "thread", "connections", "max_requests", "max-requests"};
	static const char *const lengths[] = {"model-len", "model_len", "ctx", "context", "seq_len",
	    "seq-len", "max_len", "max-len", "total-tokens", "total_tokens", "prefill", "kv",
	    "cache_max", "cache-max", "max_length", "max-length"};
	static const char *const shares[] = {
	    "gpu_mem", "gpu-mem", "mem-fraction", "mem_fraction", "utilization"};
	static const char *const limits[] = {
	    "limit", "max_mem", "max-mem", "memory.max", "heap", "xmx", "quota", "overhead"};
	struct token t = {name, bytes};

	if (CONTAINS_ANY(&t, workers))
		return SETTING_OF_WORKERS;
	if (CONTAINS_ANY(&t, shares))
		return SETTING_OF_SHARE;
	if (CONTAINS_ANY(&t, lengths))
		return SETTING_OF_LENGTH;
	if (contains(&t, "batch"))
		return SETTING_OF_BATCH;
	return CONTAINS_ANY(&t, limits) ? SETTING_OF_LIMIT : SETTING_OF_UNKNOWN;
}

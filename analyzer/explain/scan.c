/* scan.c - see scan.h. */
#include "explain/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain/claim/claim.h"
#include "explain/claim/setting.h"
#include "explain/needles.h"
#include "explain/pattern.h"
#include "util/map.h"
#include "util/text/note.h"
#include "util/text/str.h"
#include "util/tuned.h"

#define AHEAD (64u << 10) /* a message is at most this long */
#define LINE 4096u /* it begins at most two of these before its needle */
#define BACK (128u << 10) /* kept before the position looked at */
#define PIECE (256u << 10)
#define TRACEBACK (32u << 10) /* looked at before a message */
#define ACTIVITY_NEAR (2u << 10) /* looked at before and behind a message for what was done */
#define CLAIM_MAX 2000u /* bytes of a line that are read for a claim */
#define KEY_LINE_MAX 120u /* a longer line is no key with its number */
#define ADVICE_LINES 5u /* behind a claim that are read for what it says to change */
#define TIMES 8u /* lines before a message that are searched for a time */
#define TEXT_MAX 4096u /* bytes of a message that are kept */
#define KEPT 16u /* distinct messages of one kind that are kept */
#define ROWS_MAX 4096u /* rows of a repeated part */
/* A message is no longer looked for after this many vain tries, so that a log made of needles does
 * not take for ever. A try that takes long counts as many. */
TUNED(unsigned, VAIN_MAX, 1000000, "bounds the time for a hostile log; no real log comes near");
TUNED(unsigned, VAIN_LONG, 500, "a match that runs into its limit takes as long as 500 others");

#define NO_OWNER SIZE_MAX /* of a needle of claims */

struct known {
	const struct knowledge_message *message;
	struct pattern *pattern, *each; /* NULL until a needle is found */
	bool broken; /* its pattern is none */
	uint64_t next; /* no match begins before this offset: all before was tried, or matched */
	unsigned vain, kept;
	size_t last; /* index of the last one kept */
};

struct candidate {
	size_t known;
	uint64_t begin, end; /* offsets in the log */
};

struct scan {
	const struct knowledge *knowledge;
	struct explanation *out;
	VEC(struct explain_message) messages;
	VEC(struct known) known;
	VEC(size_t) owners; /* by needle: index in known */
	VEC(const char *) texts; /* the needles */
	struct needles *needles;
	size_t claims[CLAIM_COUNT]; /* by what ran out: index in known, or NO_OWNER */
	uint64_t claim_next; /* lines before that offset were read for claims */
	unsigned claim_vain;
	uint32_t state;
	char *buffer;
	size_t filled, scanned; /* bytes in the buffer, and how many of them were searched */
	uint64_t base; /* the log's offset of buffer[0] */
	uint64_t counted, lines; /* newlines before that offset */
	uint64_t told; /* end of the last message */
	VEC(struct candidate) pending; /* by offset, without overlaps */
	struct map seen; /* hash of a text to the index of its message + 1 */
	struct whens *whens;
};

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "no memory to read the log");
}

static int add_known(struct scan *s, const struct knowledge_message *m)
{
	struct known known = {.message = m};

	for (int kind = 1; m->claim && kind < CLAIM_COUNT; kind++)
		if (strcmp(m->claim, claim_name((enum claim_kind)kind)) == 0)
			s->claims[kind] = s->known.count;
	for (size_t i = 0; i < m->needle_count; i++)
		if (vec_push(&s->owners, s->known.count) || vec_push(&s->texts, m->needles[i]))
			return -ENOMEM;
	return vec_push(&s->known, known) ? -ENOMEM : 0;
}

/* Patterns are many and most logs need few: each is compiled where a needle of it is found first.
 * 0 or -ENOMEM; k->broken: the text is no pattern. */
static int compile(struct known *k)
{
	const struct knowledge_message *m = k->message;
	struct err words = {"no memory"};
	int rc;

	if (k->pattern || k->broken)
		return 0;
	rc = pattern_new(m->pattern, &k->pattern, &words);
	if (!rc && m->each)
		rc = pattern_new(m->each, &k->each, &words);
	if (!rc)
		return 0;
	k->broken = true;
	if (rc != -EINVAL)
		return -ENOMEM;
	note("%s:%u: message '%s' is left out: %s", m->framework->path, m->line, m->name,
	    words.text);
	return 0;
}

/* The needles of claims belong to no message. */
static int add_claim_needles(struct scan *s)
{
	for (const char *const *needle = claim_needles; *needle; needle++)
		if (vec_push(&s->owners, NO_OWNER) || vec_push(&s->texts, *needle))
			return -ENOMEM;
	return 0;
}

int scan_new(const struct knowledge *knowledge, struct explanation *explanation, struct scan **out,
    struct err *err)
{
	const struct knowledge_message *const *messages;
	size_t count = knowledge_messages(knowledge, &messages);
	struct scan *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return no_memory(err);
	s->knowledge = knowledge;
	s->out = explanation;
	s->buffer = malloc(BACK + PIECE + AHEAD);
	s->whens = whens_new();
	map_seed();
	for (size_t i = 0; i < CLAIM_COUNT; i++)
		s->claims[i] = NO_OWNER;
	for (size_t i = 0; i < count && !rc; i++)
		rc = add_known(s, messages[i]);
	if (!rc)
		rc = add_claim_needles(s);
	if (!rc)
		rc = needles_new(s->texts.items, s->texts.count, &s->needles);
	if (rc == -E2BIG) {
		err_set(err, rc, "the knowledge files hold too many messages");
	} else if (rc || !s->buffer || !s->whens) {
		rc = no_memory(err);
	}
	if (rc)
		scan_free(s);
	else
		*out = s;
	return rc;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->known.count; i++) {
		pattern_free(s->known.items[i].pattern);
		pattern_free(s->known.items[i].each);
	}
	for (size_t i = 0; i < s->messages.count; i++)
		fields_free(&s->messages.items[i].fields);
	vec_free(&s->messages);
	vec_free(&s->known);
	vec_free(&s->owners);
	vec_free(&s->texts);
	vec_free(&s->pending);
	needles_free(s->needles);
	map_free(&s->seen);
	whens_free(s->whens);
	free(s->buffer);
	free(s);
}

/* Offsets never go back behind one that was counted. */
static uint64_t line_of(struct scan *s, uint64_t offset)
{
	const char *p = s->buffer + (s->counted - s->base);
	const char *end = s->buffer + (offset - s->base), *next;

	while (p < end && (next = memchr(p, '\n', (size_t)(end - p)))) {
		s->lines++;
		p = next + 1;
	}
	if (offset > s->counted)
		s->counted = offset;
	return s->lines + 1;
}

/* At most `most` bytes before `at`. */
static size_t line_begin(const struct scan *s, size_t at, size_t most)
{
	size_t least = at > most ? at - most : 0;
	const char *newline = memrchr(s->buffer + least, '\n', at - least);

	return newline ? (size_t)(newline - s->buffer) + 1 : least;
}

/* Takes the time of the message's line, else of the nearest line before that names one. */
static void read_time(struct scan *s, struct explain_message *m, size_t begin)
{
	for (size_t tries = 0, end = begin; tries <= TIMES; tries++) {
		size_t line = line_begin(s, end, LINE);
		const char *p = s->buffer + line;

		if (whens_read(s->whens, p, end - line, &m->when)) {
			m->time = arena_copy(&s->out->arena, p + m->when.at, m->when.bytes);
			return;
		}
		if (line == 0)
			return;
		end = line - 1;
	}
}

static int read_rows(
    struct scan *s, const struct known *k, const struct candidate *c, struct explain_message *m)
{
	struct field_rows *rows =
	    fields_add_rows(&m->fields, k->message->each_name, &s->out->arena);
	size_t at = (size_t)(c->begin - s->base), end = (size_t)(c->end - s->base);
	struct pattern_match match;

	if (!rows)
		return -ENOMEM;
	while (at < end && rows->count < ROWS_MAX &&
	       pattern_find(k->each, s->buffer, end, at, end, &match)) {
		struct fields row = {0};

		if (fields_of_match(&row, &match, &s->out->arena) || vec_push(rows, row)) {
			fields_free(&row);
			return -ENOMEM;
		}
		at = match.end > at ? match.end : at + 1;
	}
	return 0;
}

/* Adds the numbers that are listed behind a message which has none: "  Size: 33554432". */
static void read_list(const struct scan *s, size_t end, struct amounts *out)
{
	for (size_t line = 0; line < ADVICE_LINES && end < s->filled; line++) {
		const char *text = s->buffer + end + 1;
		const char *newline = memchr(text, '\n', s->filled - end - 1);
		size_t next = newline ? (size_t)(newline - s->buffer) : s->filled;

		if (next <= end + 1 || next - end > KEY_LINE_MAX ||
		    !claim_read_key(text, next - end - 1, out))
			return;
		end = next;
	}
}

/* What the words next to its numbers say. */
static int read_claim(struct scan *s, const struct candidate *c, struct explain_message *m)
{
	static const char *const names[AMOUNT_COUNT] = {
	    "requested_bytes", "used_bytes", "limit_bytes", "free_bytes", "piece_bytes"};
	struct claim claim;
	int rc = 0;

	claim_read(s->buffer + (c->begin - s->base), (size_t)(c->end - c->begin), &claim);
	if (!claim.amounts.sizes && m->known->claim)
		read_list(s, (size_t)(c->end - s->base), &claim.amounts);
	/* A refused request has its size alone, often without a word for it. */
	if (!claim.amounts.said[AMOUNT_ASKED] && claim.amounts.other_said &&
	    claim.amounts.sizes == 1) {
		claim.amounts.said[AMOUNT_ASKED] = true;
		claim.amounts.bytes[AMOUNT_ASKED] = claim.amounts.other;
	}
	for (size_t i = 0; i < AMOUNT_COUNT && !rc; i++)
		if (claim.amounts.said[i])
			rc = fields_add_bytes(&m->fields, names[i], claim.amounts.bytes[i]);
	return rc;
}

/* A known failure that takes over a runtime's own words has the numbers in them. */
static bool lacks_amounts(const struct explain_message *m)
{
	const struct field *what = fields_find(&m->fields, "what");

	return !m->known->claim && m->kind == MESSAGE_FAILURE && m->fields.list.count == 1 &&
	       what && what->type == FIELD_TEXT;
}

/* The lines behind a message may belong to it: "1. You can set a larger ...". A blank line ends it.
 */
static size_t advice_end(const struct scan *s, size_t end)
{
	for (size_t line = 0; line < ADVICE_LINES && end < s->filled; line++) {
		const char *newline = memchr(s->buffer + end + 1, '\n', s->filled - end - 1);
		size_t next = newline ? (size_t)(newline - s->buffer) : s->filled;

		if (next <= end + 1 || next - end > TEXT_MAX)
			break;
		end = next;
	}
	return end;
}

/* Adds the settings that the message itself names, one field for each direction. */
static int read_settings(struct scan *s, size_t begin, size_t end, struct explain_message *m)
{
	static const char *const names[SETTING_CHANGES] = {"raise", "lower", "change"};
	struct setting found[SETTINGS_MAX];
	size_t count = settings_read(s->buffer + begin, advice_end(s, end) - begin, found);
	int rc = 0;

	for (unsigned c = 0; c < SETTING_CHANGES && !rc; c++) {
		struct str list = {0};

		for (size_t i = 0; i < count; i++)
			if (found[i].change == c)
				str_printf(&list, "%s%.*s", list.length ? " or " : "",
				    (int)found[i].bytes, found[i].name);
		if (list.length)
			rc = list.failed ? -ENOMEM
					 : fields_add_text(&m->fields, names[c], str_text(&list),
					       list.length, &s->out->arena);
		str_free(&list);
	}
	return rc;
}

static enum activity activity_near(const struct scan *s, size_t begin, size_t bytes)
{
	size_t from = begin > ACTIVITY_NEAR ? begin - ACTIVITY_NEAR : 0;
	size_t to =
	    s->filled - (begin + bytes) > ACTIVITY_NEAR ? begin + bytes + ACTIVITY_NEAR : s->filled;

	return activity_read(s->buffer + from, begin - from, begin + bytes - from, to - from);
}

static int read_message(
    struct scan *s, const struct known *k, const struct candidate *c, struct explain_message *m)
{
	size_t begin = (size_t)(c->begin - s->base), bytes = (size_t)(c->end - c->begin);
	size_t before = (size_t)(c->begin - (s->told > s->base ? s->told : s->base));
	struct pattern_match match;
	int rc = 0;

	m->text =
	    arena_copy(&s->out->arena, s->buffer + begin, bytes < TEXT_MAX ? bytes : TEXT_MAX);
	if (!m->text)
		return -ENOMEM;
	m->activity = activity_near(s, begin, bytes);
	if (k->message->claim)
		rc = read_claim(s, c, m);
	else if (pattern_find(k->pattern, s->buffer, begin + bytes, begin, begin, &match))
		rc = fields_of_match(&m->fields, &match, &s->out->arena);
	if (!rc && lacks_amounts(m))
		rc = read_claim(s, c, m);
	if (!rc && k->each)
		rc = read_rows(s, k, c, m);
	if (!rc && k->message->claim && m->kind == MESSAGE_FAILURE)
		rc = read_settings(s, begin, begin + bytes, m);
	if (before > TRACEBACK)
		before = TRACEBACK;
	if (!rc)
		rc = traceback_read(&m->traceback, s->buffer + begin - before, before, s->knowledge,
		    &s->out->arena);
	read_time(s, m, begin);
	return rc;
}

/* Adds a message that no longer one can displace. */
static int tell(struct scan *s, const struct candidate *c)
{
	struct known *k = &s->known.items[c->known];
	const char *text = s->buffer + (c->begin - s->base);
	uint64_t key = map_hash_bytes(text, (size_t)(c->end - c->begin)) + c->known;
	uint64_t line = line_of(s, c->begin), *seen = map_find(&s->seen, key);
	struct explain_message m = {.known = k->message,
	    .kind = k->message->kind,
	    .line = line,
	    .last_line = line,
	    .count = 1};
	int rc;

	if (seen || k->kept == KEPT) {
		struct explain_message *same =
		    &s->messages.items[seen ? (size_t)*seen - 1 : k->last];

		same->count++;
		same->last_line = line;
		s->told = c->end;
		return 0;
	}
	rc = read_message(s, k, c, &m);
	if (!rc)
		seen = map_put(&s->seen, key);
	if (rc || !seen || vec_push(&s->messages, m)) {
		fields_free(&m.fields);
		return -ENOMEM;
	}
	k->kept++;
	k->last = s->messages.count - 1;
	*seen = s->messages.count;
	s->told = c->end;
	return 0;
}

static int tell_until(struct scan *s, uint64_t offset)
{
	size_t done = 0;
	int rc = 0;

	while (done < s->pending.count && s->pending.items[done].end <= offset && !rc)
		rc = tell(s, &s->pending.items[done++]);
	s->pending.count -= done;
	if (done)
		memmove(s->pending.items, s->pending.items + done,
		    s->pending.count * sizeof(*s->pending.items));
	return rc;
}

/* A claim says more than a mere error code; not a claim that is none the wiser. */
static bool yields_to(const struct knowledge_message *m, const struct knowledge_message *claim)
{
	return m->yields && claim->claim && claim->kind != MESSAGE_HINT &&
	       !(claim->kind == MESSAGE_NOT_MEMORY &&
		   strcmp(claim->claim, claim_name(CLAIM_DISK)) == 0);
}

/* Of two messages that overlap, the longer counts; one that is a fallback counts for nothing. */
static bool outranks(const struct scan *s, const struct candidate *a, const struct candidate *b)
{
	const struct knowledge_message *x = s->known.items[a->known].message;
	const struct knowledge_message *y = s->known.items[b->known].message;
	bool fallback = x->fallback;

	if (yields_to(y, x) || yields_to(x, y))
		return x->claim;
	if (fallback != s->known.items[b->known].message->fallback)
		return !fallback;
	return a->end - a->begin > b->end - b->begin;
}

/* Adds the candidate if it outranks all that it overlaps, and drops those. */
static int add_candidate(struct scan *s, struct candidate c)
{
	size_t first = s->pending.count, last, more;

	while (first > 0 && s->pending.items[first - 1].end > c.begin)
		first--;
	for (last = first; last < s->pending.count && s->pending.items[last].begin < c.end; last++)
		if (!outranks(s, &c, &s->pending.items[last]))
			return 0;
	if (vec_push(&s->pending, c))
		return -ENOMEM;
	more = s->pending.count - 1 - last;
	memmove(&s->pending.items[first + 1], &s->pending.items[last],
	    more * sizeof(*s->pending.items));
	s->pending.items[first] = c;
	s->pending.count = first + 1 + more;
	return 0;
}

/* A line may be wrapped: the next one goes on with a blank or a small letter. */
static bool goes_on(const struct scan *s, size_t at)
{
	char c = at < s->filled ? s->buffer[at] : '\n';

	return c == ' ' || c == '\t' || (c >= 'a' && c <= 'z');
}

static size_t claim_end(const struct scan *s, size_t from, size_t at)
{
	size_t most = s->filled - from < CLAIM_MAX ? s->filled : from + CLAIM_MAX;
	const char *newline = memchr(s->buffer + at, '\n', most > at ? most - at : 0);

	return newline ? (size_t)(newline - s->buffer) : most;
}

/* `unsure`: where a line was read that only hints at memory; a longer reading may say more. */
static int try_claim(struct scan *s, size_t from, size_t to, struct candidate *unsure, bool *found)
{
	struct claim claim;
	struct candidate c;

	*found = to > from && claim_read(s->buffer + from, to - from, &claim) &&
		 s->claims[claim.kind] != NO_OWNER;
	if (!*found)
		return 0;
	c = (struct candidate){s->claims[claim.kind], s->base + from, s->base + to};
	if (claim_is_unsure(claim.kind)) {
		*found = false;
		if (!unsure->end && !memchr(s->buffer + from, '\n', to - from))
			*unsure = c;
		return 0;
	}
	s->claim_next = c.end;
	return add_candidate(s, c);
}

static bool is_what(const struct scan *s, size_t at)
{
	static const char what[] = "what():";

	while (at < s->filled && s->buffer[at] == ' ')
		at++;
	return s->filled - at >= strlen(what) && memcmp(s->buffer + at, what, strlen(what)) == 0;
}

/* "  what():  out of memory": the exception's type is in the line before. */
static size_t with_type(const struct scan *s, size_t line)
{
	size_t before = line ? line_begin(s, line - 1, CLAIM_MAX / 2) : 0;

	if (line == 0)
		return line;
	/* "what():  file.hpp(42):", and the message on a line of its own */
	if (is_what(s, before) && line > 1 && before > 0 && s->buffer[line - 2] == ':')
		before = line_begin(s, before - 1, CLAIM_MAX / 2);
	else if (!is_what(s, line))
		return line;
	return s->base + before >= s->claim_next ? before : line;
}

/* Reads the needle's line as what an unknown program says, else with the line that it goes on in,
 * or goes on from. */
static int on_claim(struct scan *s, size_t needle)
{
	size_t line = line_begin(s, needle, CLAIM_MAX / 2), end = claim_end(s, line, needle), more;
	struct candidate unsure = {0};
	bool found;
	int rc;

	if (s->base + needle < s->claim_next || s->claim_vain >= VAIN_MAX)
		return 0;
	line = with_type(s, line);
	rc = try_claim(s, line, end, &unsure, &found);
	if (!rc && !found && end < s->filled && goes_on(s, end + 1)) {
		more = claim_end(s, line, end + 1);
		rc = try_claim(s, line, more, &unsure, &found);
	}
	if (!rc && !found && line > 0 && goes_on(s, line)) {
		more = line_begin(s, line - 1, CLAIM_MAX / 2);
		if (s->base + more >= s->claim_next || more == 0)
			rc = try_claim(s, more, end, &unsure, &found);
	}
	if (!found) {
		s->claim_next = s->base + end;
		s->claim_vain += !unsure.end;
	}
	if (!rc && !found && unsure.end)
		rc = add_candidate(s, unsure);
	return rc;
}

static int on_needle(void *arg, size_t id, size_t end)
{
	struct scan *s = arg;
	size_t index = s->owners.items[id];
	size_t needle = s->scanned + end - strlen(s->texts.items[id]);
	struct known *k;
	size_t line = line_begin(s, needle, LINE), bytes = s->filled;
	size_t from = line ? line_begin(s, line - 1, LINE) : 0;
	struct pattern_match match;
	struct candidate c;
	int rc;

	if (index == NO_OWNER)
		return on_claim(s, needle);
	k = &s->known.items[index];
	if (s->base + needle < k->next || k->vain >= VAIN_MAX)
		return 0;
	rc = compile(k);
	if (rc || k->broken)
		return rc;
	/* Where lines are wrapped, a match may begin a line earlier. */
	if (s->base + from < k->next)
		from = (size_t)(k->next - s->base);
	if (bytes > needle + AHEAD)
		bytes = needle + AHEAD;
	if (!pattern_find(k->pattern, s->buffer, bytes, from, needle, &match)) {
		k->next = s->base + needle + 1;
		k->vain += match.gave_up ? VAIN_LONG : 1;
		if (k->vain >= VAIN_MAX)
			note("too many places look like the start of message '%s' and are not it: "
			     "it is no longer looked for",
			    k->message->name);
		return 0;
	}
	c = (struct candidate){index, s->base + match.begin, s->base + match.end};
	k->next = c.end;
	return add_candidate(s, c);
}

/* Searches the buffer up to `until`, then adds the messages that are certain. */
static int look(struct scan *s, size_t until)
{
	uint64_t settled;
	int rc = needles_scan(
	    s->needles, &s->state, s->buffer + s->scanned, until - s->scanned, on_needle, s);

	if (rc)
		return rc;
	s->scanned = until;
	settled = s->base + until;
	return tell_until(s, settled > 4 * LINE ? settled - 4 * LINE : 0);
}

static void make_room(struct scan *s)
{
	size_t drop = s->scanned > BACK ? s->scanned - BACK : 0;

	line_of(s, s->base + drop);
	memmove(s->buffer, s->buffer + drop, s->filled - drop);
	s->base += drop;
	s->filled -= drop;
	s->scanned -= drop;
}

int scan_feed(struct scan *s, const char *text, size_t bytes)
{
	while (bytes) {
		size_t n = BACK + PIECE + AHEAD - s->filled;
		int rc;

		if (n > bytes)
			n = bytes;
		memcpy(s->buffer + s->filled, text, n);
		s->filled += n;
		text += n;
		bytes -= n;
		if (s->filled < BACK + PIECE + AHEAD)
			continue;
		rc = look(s, s->filled - AHEAD);
		if (rc)
			return rc;
		make_room(s);
	}
	return 0;
}

int scan_end(struct scan *s)
{
	int rc = look(s, s->filled);

	if (!rc)
		rc = tell_until(s, UINT64_MAX);
	if (rc)
		return rc;
	s->out->bytes = s->base + s->filled;
	s->out->lines = line_of(s, s->out->bytes) - 1;
	if (s->filled && s->buffer[s->filled - 1] != '\n')
		s->out->lines++;
	s->out->messages = s->messages.items;
	s->out->count = s->messages.count;
	s->messages.items = NULL;
	s->messages.count = s->messages.capacity = 0;
	return 0;
}

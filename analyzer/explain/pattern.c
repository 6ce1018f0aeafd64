/* pattern.c - see pattern.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "explain/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "util/text/str.h"
#include "util/tuned.h"

/* A match that needs more counts as none. */
TUNED(unsigned, MATCH_LIMIT, 50000, "every known message needs far less");
TUNED(unsigned, DEPTH_LIMIT, 5000, "as MATCH_LIMIT");
TUNED(unsigned, HEAP_LIMIT_KIB, 1024, "as MATCH_LIMIT; a hostile log must not take our memory");
TUNED(size_t, JIT_STACK_MAX, 512u << 10, "as MATCH_LIMIT; PCRE2's own default is 32 KiB");

struct pattern {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	const unsigned char *names; /* PCRE2's table: two bytes of number, then the name */
	uint32_t name_count, name_size;
};

static const struct {
	const char *name, *text;
} macros[] = {
    {"{SIZE}", "\\d{1,15}(?:\\.\\d{0,6}|,\\d{1,2}(?!\\d))?[ ]?(?:bytes?|[KMGT]i?B|B)"},
    {"{NUM}", "\\d{1,15}(?:\\.\\d{1,9})?"},
    {"{INT}", "\\d{1,3}(?:,\\d{3}){1,6}|\\d{1,19}"},
    {"{NL}", "(?:[ \\t]*\\r?\\n[ \\t]*|\\\\n[ \\t]*)"},
    {"{LOG}", "[^\\n]{0,200}?"},
};

/* Blanks, or the end of a line that was wrapped for a terminal or a quotation. */
#define BLANK "(?:[ \\t]++|[ \\t]*+\\r?\\n[ \\t>|]*+)"

/* Writes what the macro at `text` stands for. Returns the macro's length; 0: there is none. */
static size_t expand_macro(const char *text, struct str *out)
{
	for (size_t i = 0; i < sizeof(macros) / sizeof(*macros); i++) {
		size_t bytes = strlen(macros[i].name);

		if (strncmp(text, macros[i].name, bytes) == 0) {
			str_printf(out, "(?:%s)", macros[i].text);
			return bytes;
		}
	}
	return 0;
}

static int expand(const char *text, struct str *out)
{
	bool class = false; /* between [ and ] a blank is a plain one */

	while (*text) {
		size_t macro = expand_macro(text, out);

		text += macro;
		if (macro)
			continue;
		if (*text == '\\' && text[1])
			str_putc(out, *text++);
		else if (*text == '[')
			class = true;
		else if (*text == ']')
			class = false;
		else if (*text == ' ' && !class) {
			str_puts(out, BLANK);
			text++;
			continue;
		}
		str_putc(out, *text++);
	}
	return out->failed ? -ENOMEM : 0;
}

static int set_limits(struct pattern *p)
{
	uint32_t jit = 0;

	p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->context = pcre2_match_context_create(NULL);
	if (!p->data || !p->context)
		return -ENOMEM;
	pcre2_set_match_limit(p->context, MATCH_LIMIT);
	pcre2_set_depth_limit(p->context, DEPTH_LIMIT);
	pcre2_set_heap_limit(p->context, HEAP_LIMIT_KIB);
	/* Without a JIT, or where the system forbids writable code, the interpreter matches. */
	if (pcre2_config(PCRE2_CONFIG_JIT, &jit) >= 0 && jit &&
	    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0) {
		p->stack = pcre2_jit_stack_create(32u << 10, JIT_STACK_MAX, NULL);
		if (p->stack)
			pcre2_jit_stack_assign(p->context, NULL, p->stack);
	}
	return 0;
}

int pattern_new(const char *text, struct pattern **out, struct err *err)
{
	struct pattern *p = calloc(1, sizeof(*p));
	struct str expanded = {0};
	unsigned char words[128];
	size_t at;
	int rc = p ? expand(text, &expanded) : -ENOMEM, code;

	if (rc)
		goto out;
	p->code = pcre2_compile((PCRE2_SPTR)str_text(&expanded), expanded.length,
	    PCRE2_USE_OFFSET_LIMIT, &code, &at, NULL);
	if (!p->code) {
		pcre2_get_error_message(code, words, sizeof(words));
		rc = err_set(
		    err, -EINVAL, "%s, at '%.40s'", (char *)words, str_text(&expanded) + at);
		goto out;
	}
	rc = set_limits(p);
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMETABLE, &p->names);
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMECOUNT, &p->name_count);
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMEENTRYSIZE, &p->name_size);
out:
	str_free(&expanded);
	if (rc)
		pattern_free(p);
	else
		*out = p;
	return rc;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->context);
	pcre2_match_data_free(p->data);
	pcre2_jit_stack_free(p->stack);
	pcre2_code_free(p->code);
	free(p);
}

bool pattern_find(const struct pattern *p, const char *subject, size_t bytes, size_t from,
    size_t last, struct pattern_match *out)
{
	PCRE2_SIZE *spans;
	int n;

	pcre2_set_offset_limit(p->context, last);
	n = pcre2_match(p->code, (PCRE2_SPTR)subject, bytes, from, 0, p->data, p->context);
	*out = (struct pattern_match){.gave_up = n < 0 && n != PCRE2_ERROR_NOMATCH};
	if (n <= 0)
		return false;
	spans = pcre2_get_ovector_pointer(p->data);
	/* \K and lookaheads can swap the bounds. */
	if (spans[0] > spans[1])
		return false;
	out->begin = spans[0];
	out->end = spans[1];
	for (uint32_t i = 0; i < p->name_count; i++) {
		const unsigned char *entry = p->names + (size_t)i * p->name_size;
		unsigned number = (unsigned)entry[0] << 8 | entry[1];

		if (number >= (unsigned)n || spans[2 * number] == PCRE2_UNSET ||
		    out->group_count == PATTERN_GROUPS_MAX)
			continue;
		out->groups[out->group_count++] = (struct pattern_group){
		    .name = (const char *)entry + 2,
		    .text = subject + spans[2 * number],
		    .bytes = spans[2 * number + 1] - spans[2 * number],
		};
	}
	return true;
}

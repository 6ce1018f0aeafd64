/* names.c - see names.h. */
#include "diff/names.h"

#include <ctype.h>
#include <string.h>

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Return the length of a suffix that a compiler adds to the name of a copy or a part; 0: none. */
static size_t suffix_of_compiler(const char *text)
{
	static const char *const suffixes[] = {".constprop", ".isra", ".part", ".cold", ".lto_priv",
	    ".llvm", ".clone", ".ipa", ".localalias", ".resolver"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (!starts(text, suffixes[i]) || isalpha((unsigned char)text[n]))
			continue;
		while (text[n] == '.' ? isdigit((unsigned char)text[n + 1]) != 0
				      : isdigit((unsigned char)text[n]) != 0)
			n++;
		return n;
	}
	return 0;
}

/* Return the length of Rust's "::h" and 16 digits at the end of a name; 0: none. */
static size_t hash_of_rust(const char *text)
{
	size_t n = 3;

	if (!starts(text, "::h"))
		return 0;
	while (isxdigit((unsigned char)text[n]))
		n++;
	return n == 19 && !isalnum((unsigned char)text[n]) && text[n] != '_' ? n : 0;
}

/* Return the length of "[clone .cold]" or "[abi:cxx11]"; 0: none. */
static size_t bracket(const char *text)
{
	const char *end;

	if (!starts(text, "[clone ") && !starts(text, " [clone ") && !starts(text, "[abi:"))
		return 0;
	end = strchr(text, ']');
	return end ? (size_t)(end + 1 - text) : 0;
}

/* Return the length of the number of a lambda, "#2"; 0: none. */
static size_t number_of_lambda(const char *text)
{
	size_t n = 1;

	if (text[0] != '#')
		return 0;
	while (isdigit((unsigned char)text[n]))
		n++;
	return n > 1 ? n : 0;
}

/* Return the length of "operator<" and the like, in which "<" opens nothing; 0: none. */
static size_t operator_name(const char *text)
{
	size_t n = 8;

	if (!starts(text, "operator"))
		return 0;
	n += strspn(text + n, "<>=-");
	return n;
}

/* Return the length of template arguments; 0: these brackets do not close. */
static size_t arguments(const char *text)
{
	size_t depth = 0, n = 0;

	do {
		if (text[n] == '<')
			depth++;
		else if (text[n] == '>' && (n == 0 || text[n - 1] != '-'))
			depth--;
		else if (!text[n])
			return 0;
		n++;
	} while (depth);
	return n;
}

void names_function(struct str *to, const char *function)
{
	size_t n;

	/* Python's "<lambda>", Rust's "<T as Trait>::f" and "<unknown>" begin so: these are names.
	 */
	if (*function == '<') {
		str_putc(to, '<');
		function++;
	}
	for (const char *p = function; *p; p += n) {
		if ((n = suffix_of_compiler(p)) || (n = hash_of_rust(p)) || (n = bracket(p)) ||
		    (n = number_of_lambda(p)))
			continue;
		n = p == function || !isalnum((unsigned char)p[-1]) ? operator_name(p) : 0;
		if (n) {
			str_add(to, p, n);
			continue;
		}
		/* Python's "f.<locals>.g" and "<listcomp>" are parts of a name. */
		if (*p == '<' && (p == function || p[-1] != '.') && (n = arguments(p)))
			continue;
		str_putc(to, *p);
		n = 1;
	}
}

void names_module(struct str *to, const char *path)
{
	const char *base = str_base_name(path), *so = base ? strstr(base, ".so.") : NULL;

	if (base)
		str_add(to, base, so ? (size_t)(so + 3 - base) : strlen(base));
}

struct names names_of(const struct symbol *s, const char *program, struct str *scratch)
{
	struct names names = {0};

	str_clear(scratch);
	/* "libfoo.so+0x1234": the number is an address. */
	if (!s->known && !s->python)
		str_putc(scratch, '?');
	else if (s->function)
		names_function(scratch, s->function);
	names.function = str_hash(STR_HASH ^ s->python, str_text(scratch));
	if (s->file) {
		names.file = str_hash(STR_HASH, str_base_name(s->file));
		names.all = str_hash(names.function ^ 1, str_base_name(s->file));
		return names;
	}
	str_clear(scratch);
	if (s->module && !str_same(s->module, program))
		names_module(scratch, s->module);
	names.all = str_hash(names.function ^ 2, str_text(scratch));
	return names;
}

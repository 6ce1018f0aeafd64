/*
 * cmd.c - help and errors, worded alike for every subcommand. Knows no subcommand.
 */
#include "cmd/cmd.h"
#include "util/text/note.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

void cmd_help(const struct command *command, FILE *out)
{
	if (command) {
		const char *stop = strchr(command->summary, '?') ? "" : ".";

		fprintf(out, "Usage: whyoom %s %s\n\n%c%s%s\n\n%s", command->name,
		    command->arguments, toupper((unsigned char)command->summary[0]),
		    command->summary + 1, stop, command->details);
		if (command->more)
			command->more(out);
		if (!command->starts)
			fputs(
			    "\nEvery command that reads takes --max-memory SIZE: it ends with an "
			    "error "
			    "where it would\n"
			    "need more (0: no limit; default: three quarters of what there is).\n",
			    out);
		return;
	}
	fputs("Usage: whyoom COMMAND [ARGUMENT...]\n\n"
	      "Says why a program ran out of memory.\n\n"
	      "    whyoom run -- python server.py     run it, watched\n"
	      "    whyoom report whyoom.4711          why did it die?\n\n"
	      "Commands:\n",
	    out);
	for (size_t i = 0; cmd_table[i]; i++)
		fprintf(out, "  %-10s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
	fputs("\n`whyoom COMMAND --help` says more, and so does `man whyoom-COMMAND`.\n"
	      "`whyoom --version` prints the version.\n"
	      "Exit status: 0 done, 1 an error in the input or the system, 2 wrong usage; `run` "
	      "exits\n"
	      "as the program did, with 128 + signal when that was killed.\n",
	    out);
}

int cmd_usage(const struct command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, command ? "whyoom %s: " : "whyoom: ", command ? command->name : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nTry `whyoom %s%s--help`.\n", command ? command->name : "",
	    command ? " " : "");
	return CMD_USAGE;
}

int cmd_format(const struct command *command, const char *text, bool *json)
{
	*json = strcmp(text, "json") == 0;
	if (*json || strcmp(text, "text") == 0)
		return 0;
	return cmd_usage(command, "--format is text or json, not '%s'", text);
}

int cmd_stray(const struct command *command, int opt, const char *word)
{
	return cmd_usage(command, opt == ':' ? "'%s' needs a value" : "unknown option '%s'", word);
}

int cmd_error(const struct err *err)
{
	note_safe(stderr, err->text);
	return CMD_ERROR;
}

/* Optimal string alignment distance, for words of at most 31 letters. */
static unsigned distance(const char *a, const char *b)
{
	enum { MAX = 32 };
	unsigned row[3][MAX];
	size_t n = strlen(a), m = strlen(b);

	if (n >= MAX || m >= MAX)
		return MAX;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[n % 3][m];
}

const char *cmd_suggest(const char *word)
{
	const char *found = NULL;
	unsigned best = 3; /* two slips of the finger */

	for (size_t i = 0; cmd_table[i]; i++) {
		const char *name = cmd_table[i]->name;
		unsigned d = strlen(word) >= 2 && !strncmp(name, word, strlen(word))
				 ? 0
				 : distance(word, name);

		if (d < best && d < strlen(name)) {
			best = d;
			found = name;
		}
	}
	return found;
}

/*
 * cmd.c - help and errors, in the same words for every subcommand. Knows no subcommand.
 */
#include "cmd/cmd.h"
#include "util/text/note.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Prints details with the formats in place of FORMATS; the text after them stays in its column. */
static void print_details(const struct command *command, FILE *out)
{
	const char *rest = strstr(command->details, "FORMATS");
	size_t width = strlen("FORMATS");
	struct str names = {0};

	if (!rest) {
		fputs(command->details, out);
		return;
	}
	format_names(command->result, "|", &names);
	fprintf(out, "%.*s%s", (int)(rest - command->details), command->details, str_text(&names));
	for (rest += width; rest[0] == ' ' && rest[1] == ' ' && width < names.length; width++)
		rest++;
	fputs(rest, out);
	str_free(&names);
}

void cmd_help(const struct command *command, FILE *out)
{
	if (command) {
		fprintf(out, "Usage: whyoom %s %s\n\n%c%s.\n\n", command->name, command->arguments,
		    toupper((unsigned char)command->summary[0]), command->summary + 1);
		print_details(command, out);
		if (command->more)
			command->more(out);
		if (!command->starts)
			fputs("\n      --max-memory SIZE    fail instead of using more memory (0: "
			      "no limit; default:\n"
			      "                           three quarters of what is available)\n",
			    out);
		return;
	}
	fputs("Usage: whyoom COMMAND [ARGUMENT...]\n\n"
	      "Finds out why a program ran out of memory.\n\n"
	      "    whyoom run -- python server.py     run it and record its memory\n"
	      "    whyoom report whyoom.4711          why did it run out?\n\n"
	      "Commands:\n",
	    out);
	for (size_t i = 0; cmd_table[i]; i++)
		fprintf(out, "  %-10s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
	fputs("\nFor more: `whyoom COMMAND --help` or `man whyoom-COMMAND`.\n"
	      "`whyoom --version` prints the version.\n"
	      "Exit status: 0 done, 1 an error in the input or the system, 2 wrong usage. `run` "
	      "exits\n"
	      "with the program's status, or 128 + N if signal N killed it.\n",
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

int cmd_stray(const struct command *command, int opt, const char *word)
{
	return cmd_usage(command, opt == ':' ? "'%s' needs a value" : "unknown option '%s'", word);
}

int cmd_number(const struct command *command, const char *option, uint64_t least, uint64_t *out)
{
	char *end;

	*out = strtoull(optarg, &end, 10);
	if (*optarg >= '0' && *optarg <= '9' && !*end && *out >= least && *out <= UINT32_MAX)
		return 0;
	return cmd_usage(
	    command, "%s is a number from %d on, not '%s'", option, (int)least, optarg);
}

int cmd_wants_trace(const struct command *command, int argc)
{
	if (optind < argc)
		return 0;
	return cmd_usage(command, "no trace: name a directory that `whyoom run` made");
}

int cmd_error(const struct err *err)
{
	note_safe(stderr, err->text);
	return CMD_ERROR;
}

/* Returns the optimal string alignment distance, for words of at most 31 letters. */
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
	unsigned best = 3; /* at most two typing errors */

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

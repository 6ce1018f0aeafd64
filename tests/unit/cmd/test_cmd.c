/* Help, errors and suggestions, with a table of this test's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "scratch.h"
#include "unit.h"

static int nothing(int argc, char **argv)
{
	return 0;
}

static void more(FILE *out)
{
	fputs("  -x  made from a table\n", out);
}

static const struct command run = {.name = "run",
    .arguments = "[OPTION...] PROGRAM",
    .summary = "watch a program",
    .details = "details\n",
    .more = more,
    .main = nothing,
    .starts = true};
static const struct command report = {.name = "report",
    .arguments = "TRACE...",
    .summary = "say why",
    .details = "  --format FORMATS          how\n",
    .result = FORMAT_OF_report,
    .main = nothing};
static const struct command sites = {
    .name = "sites", .arguments = "TRACE...", .summary = "show them", .details = ""};
static const struct command what_if = {
    .name = "what-if", .arguments = "TRACE CHANGE", .summary = "would it fit", .details = ""};

const struct command *const cmd_table[] = {&run, &report, &sites, &what_if, NULL};

static char *help_of(const struct command *command)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cmd_help(command, f);
	fclose(f);
	return text;
}

static void help(void **state)
{
	char *text = help_of(&run);

	assert_string_equal(text, "Usage: whyoom run [OPTION...] PROGRAM\n\nWatch a program.\n\n"
				  "details\n  -x  made from a table\n");
	free(text);
	text = help_of(&report);
	assert_non_null(strstr(text, "Usage: whyoom report TRACE...\n\nSay why.\n\n"));
	/* The registry's formats; the following text stays in its column. */
	assert_non_null(strstr(text, "\n  --format text|json|html   how\n"));
	assert_non_null(strstr(text, "--max-memory"));
	free(text);
}

/* A line for each row of the table, in its order. */
static void help_of_all(void **state)
{
	char *text = help_of(NULL), *at = text;

	for (size_t i = 0; cmd_table[i]; i++) {
		char line[128];

		snprintf(line, sizeof(line), "\n  %-10s %s\n", cmd_table[i]->name,
		    cmd_table[i]->summary);
		at = strstr(at, line);
		assert_non_null(at);
		at++;
	}
	free(text);
}

/* The text on stderr while `status` is made; in a file of the scratch directory. */
#define SAID(call, status)                                                                         \
	({                                                                                         \
		int kept = dup(2);                                                                 \
		assert_non_null(freopen(scratch("said"), "w", stderr));                            \
		assert_int_equal(call, status);                                                    \
		fflush(stderr);                                                                    \
		dup2(kept, 2);                                                                     \
		close(kept);                                                                       \
		scratch_read(scratch("said"));                                                     \
	})

static void errors(void **state)
{
	struct err err;

	assert_string_equal(SAID(cmd_usage(&run, "'%s' is %d too many", "x%sx", 3), CMD_USAGE),
	    "whyoom run: 'x%sx' is 3 too many\nTry `whyoom run --help`.\n");
	assert_string_equal(
	    SAID(cmd_usage(NULL, "no"), CMD_USAGE), "whyoom: no\nTry `whyoom --help`.\n");
	/* Words of an error are text, not a format. */
	err_set(&err, -5, "%s", "/tmp/%n%s: gone");
	assert_string_equal(SAID(cmd_error(&err), CMD_ERROR), "whyoom: /tmp/%n%s: gone\n");
}

static void suggestions(void **state)
{
	static const struct {
		const char *word, *meant;
	} of[] = {
	    {"run", "run"},
	    {"rnu", "run"},
	    {"urn", "run"},
	    {"ru", "run"},
	    {"rin", "run"},
	    {"runn", "run"},
	    {"report", "report"},
	    {"reprot", "report"},
	    {"rep", "report"},
	    {"repotr", "report"},
	    {"riport", "report"},
	    {"raport", "report"},
	    {"eprot", "report"},
	    {"site", "sites"},
	    {"stise", "sites"},
	    {"what", "what-if"},
	    {"whatif", "what-if"},
	    {"r", "run"}, /* two letters missing */
	    {"", NULL},
	    {"x", NULL},
	    {"xyz", NULL},
	    {"explain", NULL},
	    {"rxyoxt", NULL},
	    {"sitesitesites", NULL},
	    {"a-word-that-is-longer-than-thirty-one-letters", NULL},
	    {"thirtyonethirtyonethirtyonethi1", NULL},
	    {"thirtytwothirtytwothirtytwothi12", NULL},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		const char *found = cmd_suggest(of[i].word);

		if (!of[i].meant != !found || (found && strcmp(found, of[i].meant)))
			fail_msg("'%s': %s", of[i].word, found ? found : "nothing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(help),
	    cmocka_unit_test(help_of_all),
	    scratch_test(errors),
	    cmocka_unit_test(suggestions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

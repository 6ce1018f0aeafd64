"""A subcommand: `whyoom size FILE...` says how many bytes files have."""
import lib

TITLE = "A subcommand"
MOST = 4
SOURCE = """/* size.c - `whyoom size`: how many bytes do files have? */
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"

static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

static int size_main(int argc, char **argv)
{
	struct stat st;
	int opt;

	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (opt != 'h')
			return cmd_stray(&cmd_size, opt, argv[optind - 1]);
		cmd_help(&cmd_size, stdout);
		return CMD_DONE;
	}
	if (cmd_wants_trace(&cmd_size, argc))
		return CMD_USAGE;
	for (int i = optind; i < argc; i++) {
		struct err err;

		if (stat(argv[i], &st)) {
			err_set(&err, -1, "%s cannot be read", argv[i]);
			return cmd_error(&err);
		}
		printf("%s: %lld\\n", argv[i], (long long)st.st_size);
	}
	return CMD_DONE;
}

const struct command cmd_size = {
    .name = "size",
    .arguments = "TRACE... [OPTION...]",
    .summary = "print the size of trace files",
    .details = CMD_TRACE "\\nOptions:\\n  -h, --help  show this\\n",
    .main = size_main,
};
"""
PAGE = """.Dd November 28, 2026
.Dt WHYOOM-SIZE 1
.Os
.Sh NAME
.Nm whyoom-size
.Nd print the size of trace files
.Sh SYNOPSIS
.Nm whyoom size
.Op Fl h
.Ar trace ...
.Sh DESCRIPTION
Prints the bytes of each file.
.Bl -tag -width Ds
.It Fl -max-memory Ar size
Take no more private memory than that.
.It Fl h , Fl -help
Print a summary of the options.
.El
.Sh EXIT STATUS
0 done, 1 an error in the input or the system, 2 wrong usage.
.Sh SEE ALSO
.Xr whyoom 1
"""
SCRIPT = '''"""whyoom size: the bytes of files."""
import os
import subprocess

WHYOOM = os.environ["WHYOOM_EXE"]


def test_size(tmp_path):
    (tmp_path / "a").write_bytes(b"1234")
    done = subprocess.run([WHYOOM, "size", "a"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a: 4\\n")
    assert subprocess.run([WHYOOM, "size", "b"], capture_output=True, cwd=tmp_path).returncode == 1
'''


def follow(tree):
    tree.insert("analyzer/cmd/commands.def", "COMMAND(pack)", "COMMAND(size)\n")
    tree.write("analyzer/cmd/size.c", SOURCE)
    tree.write("analyzer/man/whyoom-size.1", PAGE)
    tree.insert("analyzer/man/whyoom.1", "compress a closed trace",
                ".It Xr whyoom-size 1\nprint the size of trace files\n")
    tree.insert("analyzer/man/whyoom.1", ".Xr whyoom-sites 1 ,", ".Xr whyoom-size 1 ,\n")
    tree.write("tests/cli/test_size.py", SCRIPT)


def prove(tree):
    tree.test("size", "commands", "manual")

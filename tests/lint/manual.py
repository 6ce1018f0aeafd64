#!/usr/bin/env python3
"""Each command has a man page without mistakes, which names every flag of its --help and the same
formats; whyoom(1) names every command."""
import os
import re
import subprocess
import sys

TOP, whyoom = sys.argv[1], sys.argv[2]
BUILT = os.path.join(os.path.dirname(whyoom), "..", "..")
passed = failed = 0


def check(good, text):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print(text)


def help_of(*command):
    done = subprocess.run([whyoom, *command, "--help"], capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout, f"whyoom {' '.join(command)} --help does not "
          f"answer")
    return done.stdout


def page(name, text):
    paths = [os.path.join(top, "analyzer", "man", name) for top in (TOP, BUILT)]
    path = next(filter(os.path.exists, paths), None)
    if not path:
        check(False, f"there is no analyzer/man/{name}")
        return
    lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", path], capture_output=True, text=True)
    check(lint.returncode == 0, lint.stdout)
    manual = open(path).read().replace("\\-", "-")
    manual = re.sub(r"\bFl\s+(-+)", r"-\1", manual)  # mdoc writes a long flag as ".Fl -name"
    for flag in sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))):
        check(flag in manual, f"{name} does not mention {flag}, as --help does")
    offered = re.search(r"--format ([a-z|]+)", text)
    for formats in re.findall(r"--format Cm ([a-z |]+)", manual) if offered else ():
        check(formats.replace(" ", "") == offered[1],
              f"{name} has the formats {formats}, and --help {offered[1]}")


top = help_of()
page("whyoom.1", "")
commands = re.findall(r"^  ([a-z-]+) ", top, re.M)
check(commands, "whyoom --help names no command")
for command in commands:
    check(f".Xr whyoom-{command} 1" in open(os.path.join(TOP, "analyzer", "man",
                                                         "whyoom.1")).read(),
          f"whyoom.1 does not name whyoom-{command}")
    page(f"whyoom-{command}.1", help_of(command))
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)

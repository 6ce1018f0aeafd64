"""lib.py - what the recipes share: a copy of the tree that changes are made to, and its build."""
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import sources  # noqa: E402

WORK = os.path.join(TOP, "build", "recipes")
SKIPPED = ("tests/fuzz/corpus", "tests/cli/logs")  # hundreds of files that no recipe's test reads


class Failed(Exception):
    """A recipe that does not work, with the reason."""


def run(words, **options):
    """Runs a command to its end. Failed with its last lines where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().split("\n")
        raise Failed(" ".join(words) + ":\n" + "\n".join(said[-25:]))
    return done.stdout


class Tree:
    """A copy of the checkout in build/recipes, and a build folder that stays from run to run."""
    def __init__(self):
        self.top, self.build = os.path.join(WORK, "tree"), os.path.join(WORK, "build")
        self.before = {}  # of the files that a recipe changed: their text, None: there was none

    def sync(self):
        """Makes the copy as the checkout is. Only what differs is written, so little is built."""
        names = [n for n in sources.files(TOP) if not n.startswith(SKIPPED)]
        for name in names:
            source, copy = os.path.join(TOP, name), self.path(name)
            if not os.path.exists(copy) or open(source, "rb").read() != open(copy, "rb").read():
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copyfile(source, copy)
                shutil.copymode(source, copy)
        for base, _, found in os.walk(self.top):
            for name in found:
                if os.path.relpath(os.path.join(base, name), self.top) not in names:
                    os.unlink(os.path.join(base, name))

    def path(self, name):
        return os.path.join(self.top, name)

    def text(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def write(self, name, text):
        """Adds a file, or gives it another text."""
        there = os.path.exists(self.path(name))
        self.before.setdefault(name, self.text(name) if there else None)
        with open(self.path(name), "w") as f:
            f.write(text)

    def insert(self, name, after, text):
        """Adds lines behind the line, or the row of several lines, that begins with `after`."""
        old = self.text(name)
        at = old.find("\n" + after)
        if at < 0:
            raise Failed(f"{name} has no line that begins with {after!r}")
        end = old.index("\n", at + 1 + len(after))
        while old[at + 1:end].count("(") > old[at + 1:end].count(")"):
            end = old.index("\n", end + 1)
        self.write(name, old[:end + 1] + text + old[end + 1:])

    def insert_before(self, name, line, text):
        """Adds lines before the first line that begins with `line`."""
        old = self.text(name)
        at = old.find("\n" + line)
        if at < 0:
            raise Failed(f"{name} has no line that begins with {line!r}")
        self.write(name, old[:at + 1] + text + old[at + 1:])

    def made(self, name, script):
        """Has the script of lint make the page anew."""
        self.before.setdefault(name, self.text(name))
        self.script(script, self.top, "--write")

    def restore(self):
        for name, text in self.before.items():
            if text is None:
                os.unlink(self.path(name))
            else:
                self.write(name, text)
        self.before = {}

    def make(self, *targets):
        """Builds these targets; all of the analyzer and the shim for none."""
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            shutil.rmtree(self.build, ignore_errors=True)
            run(["meson", "setup", self.build, self.top, "-Doptimization=0", "-Ddebug=false"])
        run(["ninja", "-C", self.build, *targets])

    def built(self, name):
        return os.path.join(self.build, name)

    def test(self, *names):
        """Builds and runs these of meson's tests."""
        run(["meson", "test", "-C", self.build, *names])

    def script(self, name, *arguments):
        return run([sys.executable, self.path(name), *arguments], cwd=self.top)


def steps(title):
    """The rows of a recipe in docs/CONTRIBUTING.md: (file, what to do), X standing for a name."""
    with open(os.path.join(TOP, "docs", "CONTRIBUTING.md")) as f:
        text = f.read()
    section = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", text, re.M | re.S)
    if not section:
        raise Failed(f"docs/CONTRIBUTING.md has no recipe '{title}'")
    return re.findall(r"^\| `([^`]+)` \| (.*?) \|$", section[1], re.M)


def compare(title, touched):
    """Does the recipe name what was touched, and was all touched that it names? Returns how many
    files somebody writes by hand, tests not counted."""
    rows = steps(title)
    left = set(touched)
    count = 0
    for pattern, what in rows:
        wanted = re.compile(re.escape(pattern).replace("X", r"[\w-]+"))
        found = {name for name in touched if wanted.fullmatch(name)}
        if not found:
            raise Failed(f"'{title}' names {pattern}, which was not touched")
        left -= found
        count += not what.startswith(("test", "made by"))
    if left:
        raise Failed(f"'{title}' does not name {', '.join(sorted(left))}")
    return count

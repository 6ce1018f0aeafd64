#!/usr/bin/env python3
"""No source file holds two modules (800 lines), no line is wider than 100 columns (tabs are 8), and
no folder has more than 30 files, meson.build not counted. A file that begins with #! may be started
by its name, as documents do.

The width holds for C, Python, shell and the prose of Markdown. It does not hold for tables, code
blocks and targets of links in Markdown, nor inside a string of several lines, which is data."""
import ast
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import sources  # noqa: E402

TOP = sys.argv[1]
LONGEST, WIDEST, FULLEST = 800, 100, 30
CODE = (".c", ".h", ".S", ".cc", ".cpp")
# Inputs and data, one file each: a folder of them is as large as it is.
DATA = ("tests/fuzz/corpus", "tests/cli/logs", "analyzer/knowledge/data", "tests/scenarios")


def strings_of(text):
    """The lines that lie inside a string of several lines which is no docstring."""
    tree, inside = ast.parse(text), set()
    documents = {id(node.body[0].value) for node in ast.walk(tree)
                 if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
                 and node.body and isinstance(node.body[0], ast.Expr)}
    lines = text.split("\n")
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None),
                                                                (str, bytes))
        if is_text and id(node) not in documents and node.end_lineno > node.lineno and any(
                quotes in line for line in lines[node.lineno - 1:node.end_lineno]
                for quotes in ('"""', "'''")):
            inside.update(range(node.lineno, node.end_lineno + 1))
    return inside


def here_documents(lines):
    """The lines of a shell script that another program gets as its input."""
    inside, end = set(), None
    for number, line in enumerate(lines, 1):
        if end:
            inside.add(number)
            end = None if line.strip() == end else end
        elif re.search(r"<<-?\s*['\"]?\w+", line):
            end = re.search(r"<<-?\s*['\"]?(\w+)", line)[1]
    return inside


def prose(lines):
    """(number, line) of Markdown's prose, without the targets of links."""
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.lstrip().startswith(("|", "```")) and not line.startswith(
            "    "):
            yield number, re.sub(r"\]\([^)]*\)|https?://\S+", "", line)


def wide(name, text, kind):
    lines = text.split("\n")
    if kind == "markdown":
        numbered = prose(lines)
    else:
        left_out = strings_of(text) if kind == "python" else \
            here_documents(lines) if kind == "shell" else ()
        numbered = [(n, line) for n, line in enumerate(lines, 1) if n not in left_out]
    return [f"{name}:{n}: wider than {WIDEST} columns" for n, line in numbered
            if len(line.expandtabs(8)) > WIDEST]


def kind_of(name, text):
    first = text.split("\n", 1)[0] if text.startswith("#!") else ""
    if name.endswith(CODE):
        return "c"
    if name.endswith(".py") or "python" in first:
        return "python"
    if name.endswith(".sh") or re.search(r"\b(ba)?sh\b", first):
        return "shell"
    return "markdown" if name.endswith(".md") else None


def check(name):
    path = os.path.join(TOP, name)
    try:
        with open(path) as f:
            text = f.read()
    except UnicodeDecodeError:
        return []
    kind = kind_of(name, text)
    problems = wide(name, text, kind) if kind else []
    if kind == "c" and text.count("\n") > LONGEST:
        problems.append(f"{name}: {text.count(chr(10))} lines: what is the second module?")
    if text.startswith("#!") and not os.access(path, os.X_OK):
        problems.append(f"{name}: begins with #!, and may not be executed")
    return problems


def main():
    passed, problems, folders = 0, [], {}
    for name in sources.files(TOP):
        folder, base = os.path.split(name)
        if base != "meson.build" and not folder.startswith(DATA):
            folders.setdefault(folder, []).append(base)
        found = check(name)
        passed += not found
        problems += found
    for folder, names in sorted(folders.items()):
        if len(names) > FULLEST:
            problems.append(f"{folder}: {len(names)} files, more than {FULLEST}: split it")
    print("\n".join(problems + [f"{passed} passed, {len(problems)} failed"]))
    return bool(problems)


sys.exit(main())

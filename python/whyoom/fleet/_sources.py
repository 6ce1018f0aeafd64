"""_sources.py - the runs below local folders, as `whyoom fleet collect` finds them, and what the
program that judges them is. Judges nothing."""

import os
import re

from whyoom import _program

DEPTH = 64  # folders within folders
ENDINGS = (".whyoom", ".whyooms")


def find(path, depth=DEPTH):
    """Yield (path, bytes, changed_ns) of each run at and below the folder, by name. Links are not
    followed. Raises Error where the folder cannot be read."""
    try:
        with os.scandir(path) as found:
            entries = [e for e in found if not e.name.startswith(".")]
    except OSError as error:
        if depth == DEPTH or not isinstance(error, PermissionError):
            raise _program.Error(f"{path}: {error.strerror}") from error
        return  # a folder of another user's: the rest still counts
    size, changed = 0, None
    for entry in entries:
        if entry.is_file(follow_symlinks=False) and is_trace(entry.name):
            told = entry.stat(follow_symlinks=False)
            size, changed = size + told.st_size, max(changed or 0, told.st_mtime_ns)
    if changed is not None:
        yield path, size, changed
    if depth:
        for name in sorted(e.name for e in entries if e.is_dir(follow_symlinks=False)):
            yield from find(f"{path}/{name}", depth - 1)


def is_trace(name):
    return os.path.splitext(name)[1] in ENDINGS


def is_url(source):
    return re.match(r"[a-z][a-z0-9+.-]*:", source) is not None


def find_all(sources):
    """Of several folders, each run once. Paths are absolute: the same run has the same row from
    wherever it is judged."""
    found = {}
    for source in sources:
        for run in find(os.path.abspath(source)):
            found.setdefault(run[0], run)
    return list(found.values())


def version():
    """Of the program that judges: a run that another has judged is judged again."""
    return _program.run("--version").split()[-1]


def knowledge():
    """The folder of knowledge files beside the program; None: it has none."""
    where = os.path.dirname(os.path.realpath(_program.program()))
    places = [os.path.join(where, "..", inner) for inner in
              ("share/whyoom/knowledge", "knowledge/data")]
    return next((p for p in places if os.path.isdir(p)), None)

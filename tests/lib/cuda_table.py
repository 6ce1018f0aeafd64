"""cuda_table.py - reads shim/cuda/cuda_api.def, for tests and for the page that is made from it."""
import collections
import os
import re

ANY = 1 << 30
COLUMNS = "library symbol asked start end stream kind parameters arguments effect"
Row = collections.namedtuple("Row", COLUMNS + " section ptsz")


def split(text):
    """The arguments of a macro call; brackets hold them together."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append(text[last:i].strip())
            last = i + 1
    return parts + [text[last:].strip()]


def read(source):
    """(rows, newest): every row, each twin's after its own, and the table's newest version.

    `section` is the comment above a row; `ptsz` tells that it was written as one of a pair."""
    with open(os.path.join(source, "shim", "cuda", "cuda_api.def")) as f:
        text = f.read()
    newest = int(re.search(r"^#define CUDA_API_NEWEST (\d+)$", text, re.M)[1])
    rows, section = [], ""
    for line in text.split("\n"):
        if re.match(r"/\* .* \*/$", line):
            section = line[3:-3]
        m = re.match(r"CUDA_API(_PTSZ)?\((.*)\)$", line)
        if not m:
            continue
        parts = split(m[2])
        for twin in ("", "_ptsz") if m[1] else ("",):
            columns = list(parts)
            if m[1]:
                columns.insert(5, "PER_THREAD" if twin else "LEGACY")
            row = dict(zip(COLUMNS.split(), columns))
            row["symbol"] += twin
            row["end"] = ANY if row["end"] in ("ANY", "VARIES") else int(row["end"])
            row["start"] = max(int(row["start"]), 7000 if twin else 0)
            rows.append(Row(section=section, ptsz=bool(m[1]), **row))
    return rows, newest

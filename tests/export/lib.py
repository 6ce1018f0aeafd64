"""What the tests of `whyoom export` share: traces, the command, readers of the formats, and the
sums to compare."""

import collections
import functools
import glob
import gzip
import json
import os
import re
import subprocess
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TESTS, "golden"))

WHYOOM = os.environ["WHYOOM_EXE"]
SCHEMAS = os.path.join(os.path.dirname(WHYOOM), "..", "report")
MEASURES = {"live": "live_bytes", "peak": "peak_bytes", "total": "total_bytes",
            "count": "total_blocks"}
MOMENTS = ("failure", "peak", "end")


def golden():
    """Old traces of one process each: host, devices, PyTorch, sampled, checkpoints."""
    found = glob.glob(os.path.join(TESTS, "golden", "v*", "*"))
    return sorted(path for path in found if os.path.isdir(path))


def formats():
    """All of them, by the help."""
    text = subprocess.run([WHYOOM, "export", "--help"], capture_output=True, text=True).stdout
    lines = text.partition("Formats:\n")[2].partition("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines]


def host_formats():
    """Those that have something to say about a process without a device."""
    return [kind for kind in formats() if kind != "torch-snapshot"]


def example(kind):
    """A trace that the format has something to say about."""
    return next(t for t in golden() if t.endswith("v1/spaces" if kind == "torch-snapshot" else
                                                  "v1/arenas"))


def whyoom(*words, status=0, **more):
    done = subprocess.run([WHYOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, **more)
    assert done.returncode == status, (words, done.stderr)
    return done.stdout


def export(trace, kind, *words, **more):
    return whyoom("export", "--format", kind, *words, trace, **more)


def sites(trace, space, at):
    """The sums over all call sites; None: `whyoom sites` has nothing at that moment."""
    done = subprocess.run([WHYOOM, "sites", "--format", "json", "-n", "0", "--space", space, "--at",
                           at, "--by", "total", trace], capture_output=True)
    if done.returncode:
        return None
    read = json.loads(done.stdout)
    return {name: sum(s[key] for s in read["sites"]) for name, key in MEASURES.items()}


def spaces(trace):
    """The names of all spaces that the trace has."""
    done = subprocess.run([WHYOOM, "sites", "--space", "no such space", trace],
                          capture_output=True, text=True)
    return done.stderr.partition("there is ")[2].strip().split(", ")


@functools.cache
def cases(trace):
    """(space, moment, sums) of each space at each moment that the trace has."""
    every = [(space, at, sites(trace, space, at)) for space in spaces(trace) for at in MOMENTS]
    return [case for case in every if case[2]]


# --- readers: each gives {space: [{measure: value} of each stack]} where the format has spaces

LINE = re.compile(r"^(.*) (\d+)$")  # speedscope's for folded stacks


def read_folded(text):
    found = []
    for line in text.decode().split("\n")[:-1]:
        stack, value = LINE.match(line).groups()
        found.append((stack.split(";"), int(value)))
    return found


SCOPE = {"live at the failure": "live", "live at the peak": "peak", "allocated in all": "total",
         "blocks allocated": "count", "allocated and freed at once": "temporary"}


def read_speedscope(text):
    """{(space, measure): [(names, weight)]}, after what speedscope's importer demands."""
    d = json.loads(text)
    assert d["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert d["profiles"] and 0 <= d["activeProfileIndex"] < len(d["profiles"])
    names = [frame["name"] for frame in d["shared"]["frames"]]
    assert len({json.dumps(f) for f in d["shared"]["frames"]}) <= len(names)
    found = {}
    for p in d["profiles"]:
        assert p["type"] == "sampled" and p["unit"] in ("bytes", "none")
        assert len(p["samples"]) == len(p["weights"])
        assert p["startValue"] == 0 and p["endValue"] == sum(p["weights"])
        assert all(s and len(s) <= 501 for s in p["samples"])
        space, _, title = p["name"].rpartition(": ")
        stacks = [([names[i] for i in s], w) for s, w in zip(p["samples"], p["weights"])]
        found.setdefault((space, SCOPE.get(title, "live")), stacks)
    return found


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(data):
    """{field: [number or bytes]} of a protobuf message."""
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert key & 7 == 2, "no other wire type is written"
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            assert len(value) == n
        fields[key >> 3].append(value)
    return fields


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def read_pprof(data):
    """(types, [(space, names root first, values)]), after what pprof's CheckValid demands."""
    p = message(gzip.decompress(data))
    strings = [s.decode() for s in p[6]]
    assert strings[0] == "" and len(set(strings)) == len(strings)

    def one(m, field):
        return message(m)[field][0] if message(m)[field] else 0

    types = [(strings[one(t, 1)], strings[one(t, 2)]) for t in p[1]]
    functions = {one(f, 1): strings[one(f, 2)] for f in p[5]}
    mappings = {one(m, 1): message(m) for m in p[3]}
    assert all(m[7] == m[8] == m[9] == [1] for m in mappings.values())
    locations = {}
    for location in p[4]:
        m = message(location)
        assert m[2][0] in mappings and m[1][0] not in locations and not m[3]
        locations[m[1][0]] = [functions[one(line, 1)] for line in m[4]]
    assert 0 not in locations and 0 not in functions and 0 not in mappings
    assert strings[p[14][0]] == "inuse_space" and one(p[11][0], 1) and p[12][0] > 0
    samples = []
    for sample in p[2]:
        m = message(sample)
        values, label = packed(m[2][0]), message(m[3][0])
        assert len(values) == len(types) and strings[label[1][0]] == "space"
        where = [name for i in reversed(packed(m[1][0])) for name in locations[i]]
        samples.append((strings[label[2][0]], where, values))
    return types, samples


def read_jsonl(text):
    return [json.loads(line) for line in text.decode().splitlines()]

"""Each export holds the sums that `whyoom sites --format json` has, for each space, moment and
measure; and follows its format's rules."""

import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
from lib import (MEASURES, SCHEMAS, TESTS, WHYOOM, cases, export, golden, read_folded, read_jsonl,
                 read_pprof, read_speedscope, sites, spaces)
from prometheus_client.openmetrics.parser import text_string_to_metric_families

sys.path.insert(0, os.path.join(TESTS, "cli"))
import test_map  # noqa: E402

PPROF = {"count": 0, "total": 1, "live": 3, "peak": 4}


def refused(*words, status):
    done = subprocess.run([WHYOOM, *words], capture_output=True, timeout=60)
    assert done.returncode == status and not done.stdout
    return done.stderr


def without_empty(stacks, counted):
    """`whyoom sites` lists no call site that only had blocks of no bytes."""
    some = {tuple(frames) for frames, _ in counted}
    return sum(value for frames, value in stacks if tuple(frames) in some)


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_folded(trace):
    compared = 0
    for space, at, expected in cases(trace):
        stacks = {measure: read_folded(export(trace, "folded", "--space", space, "--at", at,
                                              "--measure", measure)) for measure in MEASURES}
        for measure in MEASURES:
            assert all(value > 0 and all(frames) for frames, value in stacks[measure])
            assert without_empty(stacks[measure], stacks["total"]) == expected[measure]
            compared += 1
    assert compared


def two_columns(text):
    """{stack: (base, bytes)}, as flamegraph.pl reads them."""
    out = {}
    for line in text.decode().splitlines():
        stack, base, value = line.rsplit(" ", 2)
        assert stack and stack not in out and int(base) + int(value) > 0
        out[stack] = int(base), int(value)
    return out


def without_lines(stacks):
    out = {}
    for frames, value in stacks:
        stack = ";".join(re.sub(r":[0-9]+\)$", ")", frame) for frame in frames)
        out[stack] = out.get(stack, 0) + value
    return out


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_folded_difference(trace):
    """Both columns are the two traces' own stacks, by functions and files."""
    base = next(t for t in golden() if t.endswith("v1/arenas"))
    for measure in ("live", "peak", "count"):
        words = "--space", "host", "--at", "peak", "--measure", measure
        found = two_columns(export(trace, "folded", *words, "--base", base))
        for column, of in enumerate((base, trace)):
            own = without_lines(read_folded(export(of, "folded", *words)))
            assert {s: v[column] for s, v in found.items() if v[column]} == own, (measure, of)
        same = two_columns(export(trace, "folded", *words, "--base", trace))
        assert all(before == after for before, after in same.values())


def test_difference_is_refused():
    trace = golden()[0]
    assert b"no --base" in refused("export", "-f", "pprof", "--base", trace, trace, status=2)
    assert b"No such file" in refused("export", "--base", trace + "x", trace, status=1)


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_speedscope(trace):
    compared = 0
    for space, at, expected in cases(trace):
        found = read_speedscope(export(trace, "speedscope", "--space", space, "--at", at))
        for measure in ("peak", "total", "count") + (("live",) if at == "failure" else ()):
            total = without_empty(found.get((space, measure), []), found.get((space, "total"), []))
            assert total == expected[measure], (space, at, measure)
            compared += 1
    assert compared


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_pprof(trace):
    compared = 0
    for space, at, expected in cases(trace):
        types, samples = read_pprof(export(trace, "pprof", "--space", space, "--at", at))
        assert types[:4] == [("alloc_objects", "count"), ("alloc_space", "bytes"),
                             ("inuse_objects", "count"), ("inuse_space", "bytes")]
        assert {name for name, _, _ in samples} <= {space}
        for measure, column in PPROF.items():
            stacks = [(where, values[column]) for _, where, values in samples]
            some = [(where, values) for _, where, values in samples if values[PPROF["total"]]]
            assert without_empty(stacks, some) == expected[measure], (space, at, measure)
            compared += 1
    assert compared


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_jsonl(trace):
    for space, at, expected in cases(trace):
        lines = read_jsonl(export(trace, "jsonl", "--space", space, "--at", at, "--events", "none"))
        sums = [line for line in lines if line["type"] == "sum"]
        stacks = {line["id"] for line in lines if line["type"] == "stack"}
        assert {s["space"] for s in sums} <= {space}
        assert all(s["stack"] in stacks or s["stack"] == 0 for s in sums)
        for measure, key in MEASURES.items():
            assert sum(s[key] for s in sums if s["total_bytes"]) == expected[measure]


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_openmetrics(trace):
    """The sums; of the blocks also those without bytes."""
    names = {"live": "whyoom_live_bytes", "peak": "whyoom_peak_bytes",
             "total": "whyoom_allocated_bytes_total"}
    for space, at, expected in cases(trace):
        text = export(trace, "openmetrics", "--space", space, "--at", at).decode()
        found = {}
        for family in text_string_to_metric_families(text):
            assert family.documentation
            for s in family.samples:
                assert s.timestamp is None
                if s.labels.get("space") == space:
                    found.setdefault(s.name, []).append(s.value)
        for measure, name in names.items():
            assert found[name] == [expected[measure]], (space, at, measure)
        assert sum(found.get("whyoom_site_live_bytes", [])) <= expected["live"]
        assert len(found.get("whyoom_site_live_bytes", [])) <= 20


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_openmetrics_history(trace):
    """A backfill: each sample has a time, and no label set has two at one time."""
    seen = {}
    text = export(trace, "openmetrics", "--history").decode()
    for family in text_string_to_metric_families(text):
        for s in family.samples:
            key = s.name, tuple(sorted(s.labels.items()))
            assert s.timestamp is not None
            assert key not in seen or seen[key] < s.timestamp
            seen[key] = s.timestamp


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_jsonl_lines(trace):
    """Every line follows the schema; stacks come before their first use; the blocks that the events
    leave alive are those that `--at end` counts, and those freed at once are temporary."""
    with open(os.path.join(SCHEMAS, "export-schema.json")) as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema)
    lines = read_jsonl(export(trace, "jsonl", "--at", "end"))
    assert [line["type"] for line in lines].count("header") == (lines[0]["type"] == "header") == 1
    assert lines[-1]["type"] == "verdict"
    stacks, alive, last, shown = {0}, {}, 0, 0
    newest, threads, temporary = {}, {}, 0
    for line in lines:
        if shown < 500 or line["type"] != "event":
            valid.validate(line)
            shown += 1
        stacks |= {line["id"]} if line["type"] == "stack" else set()
        assert line.get("stack", 0) in stacks
        if line["type"] != "event":
            continue
        assert int(line["t_ns"]) >= last
        last = int(line["t_ns"])
        key = line["space"], line.get("block")
        if line["kind"] in ("alloc", "unfree"):
            assert key not in alive
            if line["kind"] == "alloc":
                newest[line["thread"], line["space"]] = key
                threads[key] = line["thread"]
            alive[key] = int(line.get("bytes", line["size"]))
        elif line["kind"] == "free" and "size" in line:
            size = alive.pop(key)
            assert size == int(line.get("bytes", line["size"]))
            # In a space whoever acquired the block stands for who releases it.
            thread = line["thread"] if line["space"] == "host" else threads.get(key)
            if newest.get((thread, line["space"])) == key and not line.get("realloc"):
                temporary += size
                newest[thread, line["space"]] = None
    assert not valid.is_valid({"type": "event", "kind": "alloc"})
    assert temporary == sum(x["temporary_bytes"] for x in lines if x["type"] == "sum")
    for space in spaces(trace):
        if space == "host":
            continue  # mappings are cut in pieces: whyoom's model adds them up
        live = sum(s["live_bytes"] for s in lines if s["type"] == "sum" and s["space"] == space)
        assert sum(v for (name, _), v in alive.items() if name == space) == live, space


def test_all_spaces(tmp_path):
    """What failed comes first; the others as they were then; one space where sums would add up."""
    (tmp_path / "4711.0.whyoom").write_bytes(test_map.oom())
    scope = read_speedscope(export(tmp_path, "speedscope"))
    assert next(iter(scope)) == ("torch:0", "live")
    _, one = read_pprof(export(tmp_path, "pprof"))
    assert {space for space, _, _ in one} == {"torch:0"}
    _, every = read_pprof(export(tmp_path, "pprof", "--space", "all"))
    assert {space for space, _, _ in every} == {"torch:0", "cuda:0"}
    for space in ("torch:0", "cuda:0"):
        live = sites(tmp_path, space, "failure")["live"]
        assert live and sum(weight for _, weight in scope[space, "live"]) == live
        assert sum(v[PPROF["live"]] for name, _, v in every if name == space) == live


def test_events():
    trace = next(t for t in golden() if t.endswith("order"))
    events = [x for x in read_jsonl(export(trace, "jsonl")) if x["type"] == "event"]
    assert len(events) > 10
    last = [x for x in read_jsonl(export(trace, "jsonl", "--events", "10")) if x["type"] == "event"]
    assert 0 < len(last) <= 10 and last == events[-len(last):]
    none = read_jsonl(export(trace, "jsonl", "--events", "none"))
    assert not [x for x in none if x["type"] == "event"]

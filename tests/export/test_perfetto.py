"""`whyoom export --format perfetto`: what Perfetto's trace processor demands of heap profiles,
counters and slices, and the sums of `whyoom sites`."""

import collections
import gzip
import json
import os
import sys
import unicodedata

import pytest
from lib import TESTS, cases, export, golden, message, read_jsonl, whyoom

sys.path.insert(0, os.path.join(TESTS, "cli"))
import test_hostile  # noqa: E402

hostile = test_hostile.trace


def one(m, field, default=0):
    return m[field][0] if m[field] else default


class Trace:
    """Reads packets in their order, as the trace processor does."""

    def __init__(self, data):
        self.tracks, self.counters = {}, collections.defaultdict(list)
        self.open, self.instants = collections.Counter(), []
        self.names, self.frames, self.stacks = {}, {}, {}
        self.heaps, self.index, self.more = {}, 0, False
        self.dumps = []  # heap, time, and what was live then
        packets = message(data)
        assert set(packets) == {1}
        first = message(packets[1][0])
        clocks = {one(message(c), 1) for c in message(first[6][0])[1]}
        assert clocks == {1, 3, 4, 6}
        for packet in packets[1]:
            self.packet(message(packet))
        assert not self.more

    def packet(self, p):
        for interned in p[12]:
            assert one(p, 13) & 2
            self.intern(message(interned))
        for track in p[60]:
            self.track(message(track))
        for event in p[11]:
            self.event(p[8][0], message(event))
        for profile in p[37]:
            self.profile(message(profile))

    def intern(self, m):
        for field in (5, 16, 17, 18):
            for item in map(message, m[field]):
                key = field, one(item, 1)
                assert key not in self.names and key[1] > 0
                self.names[key] = item[2][0].decode()
        for item in map(message, m[19]):
            assert (16, one(item, 2)) in self.names and (17, one(item, 7)) in self.names
            self.names[19, one(item, 1)] = self.names[17, one(item, 7)]
        for item in map(message, m[6]):
            # A frame without a mapping makes its stack vanish; equal addresses make frames one.
            assert (19, one(item, 3)) in self.names and one(item, 4) == one(item, 1)
            assert not item[5] or (18, one(item, 5)) in self.names
            self.frames[one(item, 1)] = self.names[5, one(item, 2)]
        for item in map(message, m[7]):
            assert one(item, 1) not in self.stacks and item[2]
            self.stacks[one(item, 1)] = [self.frames[f] for f in item[2]]

    def track(self, m):
        assert one(m, 1) not in self.tracks
        name = one(m, 2, b"").decode()
        self.tracks[one(m, 1)] = name
        assert m[3] or one(m, 5) in self.tracks

    def event(self, time, m):
        track, kind = one(m, 11), one(m, 9)
        assert track in self.tracks
        if kind == 4:
            self.counters[self.tracks[track]].append((time, one(m, 30)))
        elif kind == 3:
            notes = [message(n) for n in m[4]]
            self.instants.append((self.tracks[track], one(m, 23, b"").decode(),
                                  {one(n, 10): one(n, 3, None) or one(n, 6, b"") for n in notes}))
        else:
            self.open[track] += {1: 1, 2: -1}[kind]
            assert self.open[track] >= 0

    def profile(self, m):
        assert one(m, 7) == self.index
        self.index += 1
        for dump in map(message, m[5]):
            name = one(dump, 11).decode()
            assert self.more in (False, name) and dump[9]
            heap = self.heaps.setdefault(name, {})
            if not self.more:
                self.told = set()
            for sample in map(message, dump[2]):
                stack, values = one(sample, 1), [one(sample, f) for f in (2, 3, 5, 6)]
                assert stack in self.stacks and stack not in self.told
                self.told.add(stack)
                # Sums since the start, of stacks that changed.
                before = heap.get(stack, [0] * 4)
                assert values != before and all(a >= b for a, b in zip(values, before))
                heap[stack] = values
            self.more = name if one(m, 6) else False
            if not self.more:
                live = sum(v[0] - v[1] for v in heap.values())
                self.dumps.append((name, one(dump, 9), live))


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_sums(trace):
    compared = 0
    for space, at, expected in cases(trace):
        t = Trace(export(trace, "perfetto", "--space", space, "--at", at))
        heap = t.heaps.get("libc.malloc" if space == "host" else space, {})
        assert len(t.heaps) <= 1
        assert sum(v[0] - v[1] for v in heap.values()) == expected["live"]
        if at != "peak" or space != "host":
            # A profile between a release and its failure counts the block as freed, and sums
            # that do not fall count it as allocated once more then.
            again = 4096 if trace.endswith("v1/kinds") and space == "host" else 0
            total = sum(v[0] for v in heap.values())
            assert total in (expected["total"], expected["total"] + again)
        compared += 1
    assert compared


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_moments(trace):
    """Each heap in order of time, as `whyoom sites` has it at each time."""
    t = Trace(export(trace, "perfetto"))
    curve = next((x for x in read_jsonl(export(trace, "jsonl", "--events", "none"))
                  if x["type"] == "sample"), None)
    if not curve:
        pytest.skip("nothing happened in it")
    start = t.counters[f"{curve['space']}: {curve['curve']}"][0][0] - curve["t_ns"]
    compared = collections.Counter()
    last = {}
    for name, time, live in t.dumps:
        assert time > last.get(name, -1)
        last[name] = time
    for name, time, live in t.dumps:
        if time == last[name]:
            continue  # the moment itself: test_sums
        space = "host" if name == "libc.malloc" else name
        at = f"{(time - start) / 1e9:.9f}"
        found = json.loads(whyoom("sites", "--space", space, "--at", at, "--format", "json", trace))
        assert found["live_bytes"] == live, (space, at)
        compared[space] += 1
    assert all(n <= 15 for n in compared.values())


def test_moments_are_many():
    """Where there is something at each."""
    trace = next(t for t in golden() if t.endswith("v2/packed"))
    dumps = [d for d in Trace(export(trace, "perfetto")).dumps if d[0] == "libc.malloc"]
    assert len(dumps) == 16 and len({live for _, _, live in dumps}) > 4


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_all(trace):
    """No two heaps share a stack; curves and refusals are those of the JSON lines."""
    t = Trace(export(trace, "perfetto"))
    used = [stack for heap in t.heaps.values() for stack in heap]
    assert len(used) == len(set(used))
    for name, heap in t.heaps.items():
        assert {t.stacks[s][0] for s in heap} <= {"host" if name == "libc.malloc" else name}
    lines = read_jsonl(export(trace, "jsonl"))
    samples = collections.defaultdict(list)
    for x in lines:
        if x["type"] == "sample":
            samples[f"{x['space']}: {x['curve']}"].append(int(x["bytes"]))
    for name, values in samples.items():
        assert [v for _, v in t.counters[name]] == values
        times = [time for time, _ in t.counters[name]]
        assert times == sorted(times)
    refused = [x for x in lines if x["type"] == "event" and x["kind"] == "failed"]
    shown = [notes for track, _, notes in t.instants if track == "refused requests"]
    assert [int(x["size"]) for x in refused] == [n[b"requested_bytes"] or 0 for n in shown]
    verdict = next(x for x in lines if x["type"] == "verdict")
    assert [name for track, name, _ in t.instants if track == "whyoom"] == [verdict["cause"]]


def test_requests():
    trace = next(t for t in golden() if t.endswith("v1/marks"))
    t = Trace(export(trace, "perfetto"))
    assert {"requests"} <= set(t.tracks.values())
    assert sum(t.open.values()) >= 0 and t.open
    none = Trace(export(trace, "perfetto", "--events", "none"))
    assert not none.open and none.heaps.keys() == t.heaps.keys()


def test_gzip():
    trace = golden()[0]
    assert gzip.decompress(export(trace, "perfetto", "--gzip")) == export(trace, "perfetto")


def test_hostile(hostile):
    t = Trace(export(hostile, "perfetto"))
    names = [*t.frames.values(), *t.tracks.values(), *(n for _, n, _ in t.instants)]
    assert any("</script>" in name for name in names)
    assert not [c for name in names for c in name if unicodedata.category(c) in ("Cc", "Cf")]

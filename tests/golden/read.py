#!/usr/bin/env python3
"""A second reader of whyoom traces, written from docs/trace-format.md alone.

    read.py TRACE...            the counts that `whyoom check --format json` prints
    read.py --events TRACE...   every event in order, a line each
    read.py --stacks TRACE...   every distinct stack with the line of each Python frame

TRACE is a file, or a directory of them. It is slow and plain on purpose: where it and the analyzer
disagree, one of them or the document is wrong."""

import argparse
import bisect
import json
import math
import os
import struct
import sys

import small
from packed import unpack
from wire import MASK, Bytes, Torn, xxh64

MAGIC = b"WHYOOMT\n"
CHUNK_MAGIC = 0x6B6E6843
SLOT = 65536
RIGHTS = ("unknown", "user", "group", "capability", "root", "namespace", "seccomp", "landlock")
WHY = {1: "musl", 2: "loader", 3: "sanitizer", 4: "machine", 5: "static", 6: "setuid", 7: "library",
       8: "directory"}
CHUNK_MAX = 64 << 20
SIZE_LIMIT = 1 << 48
LATE_NS, EARLY_NS = 100000, 1000
REALLOC = 2

NAMES = {16: "MAP", 17: "UNMAP", 18: "UNUNMAP", 19: "ADVISE", 20: "BRK", 21: "FAILED", 22: "LEVEL",
         23: "LEVEL_OF", 24: "THREAD_EXIT", 25: "EXIT", 26: "SIGNAL", 27: "FORK", 28: "NOTICE",
         29: "CHILD_END", 30: "SHARED_THREAD", 31: "MARK", 32: "SPACE_ALLOC", 33: "SPACE_FREE",
         34: "SPACE_UNFREE", 35: "SAMPLED_ALLOC", 36: "CHECKPOINT", 37: "ALLOC_WIDE",
         38: "FREE_WIDE", 39: "SPACE_MAP", 40: "SPACE_UNMAP",
         41: "SPACE_UNUNMAP", 42: "SPACE_CLEAR", 43: "SPACE_CALL", 44: "TASK", 45: "TASK_END",
         46: "WENT"}
# The count of numbers after dt; True: then n pairs.
FIELDS = {16: (9, False), 17: (4, False), 18: (2, False), 19: (3, False), 20: (3, False),
          21: (8, True), 22: (1, True), 23: (1, True), 24: (0, False), 25: (2, False),
          26: (3, False), 27: (1, False), 28: (2, False), 29: (4, False), 30: (2, False),
          31: (3, False),
          32: (10, False), 33: (6, False), 34: (3, False), 35: (5, False), 36: (8, False),
          37: (4, False), 38: (2, False),
          39: (6, False), 40: (3, False), 41: (2, False), 42: (5, False), 43: (6, True),
          44: (1, False), 45: (1, False), 46: (7, False)}
# The count of numbers after the pairs: FAILED only if why is 2 or 3, LEVEL_OF from 1.1 on, MARK
# (without pairs) from 1.2 on, NOTICE (without pairs) if what is 2, 7 or 8.
AFTER = {21: 4, 23: 1, 28: 2, 31: 3, 43: 1}


class Refused(Exception):
    """No trace, or one that needs a newer reader."""


def stands_for(size, mean):
    """Bytes of the blocks that this sampled one stands for."""
    return size / -math.expm1(-size / mean)


def python_line(version, first, table, offset):
    """Section 6. None: no line."""
    if offset < 0:
        return first
    line, end, at = first, 0, 0
    if version < 0x30A:
        for da, dl in zip(table[::2], table[1::2]):
            end += da
            if end > offset:
                break
            line += dl - 256 if dl > 127 else dl
        return line
    if version == 0x30A:
        for da, dl in zip(table[::2], table[1::2]):
            end += da
            if dl != 128:
                line += dl - 256 if dl > 127 else dl
            if offset < end:
                return None if dl == 128 else line
        return None

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = table[at]
            at += 1
            value |= (byte & 63) << shift
            shift += 6
            if not byte & 64:
                return value

    while at < len(table):
        byte = table[at]
        at += 1
        end += ((byte & 7) + 1) * 2
        kind = byte >> 3 & 15
        if kind <= 9:
            at += 1
        elif kind <= 12:
            at += 2
            line += kind - 10
        elif kind <= 14:
            v = varint()
            line += -(v >> 1) if v & 1 else v >> 1
            if kind == 14:
                varint(), varint(), varint()
        if offset < end:
            return None if kind == 15 else line
    return None


class Event:
    __slots__ = ("ticks", "kind", "thread", "address", "size", "mean", "stack", "api", "realloc",
                 "fields", "levels", "gone")

    def __init__(self, ticks, kind, thread):
        self.ticks, self.kind, self.thread = ticks, kind, thread
        self.address = self.size = self.mean = self.stack = self.api = 0
        self.realloc = self.gone = False
        self.fields, self.levels = (), ()


class Trace:
    def __init__(self, path, data=None):
        """data: the file's content, if it is not to be read."""
        self.path = path
        if data is None:
            with open(path, "rb") as f:
                head = f.read(4096)
                # a hole of gigabytes may follow the last claimed chunk
                end = struct.unpack_from("<Q", head,
                                         104)[0] if head[:8] == MAGIC and len(head) == 4096 else 0
                data = unpack(head + f.read(max(end - 4096, 0) if end else -1))
        self.data = data
        self.torn = self.bad_checksums = self.unknown = 0
        self.header()
        self.strings, self.modules, self.codes, self.infos, self.names = {}, {}, {}, {}, {}
        self.raw_stacks, self.spaces = {}, {}
        self.pairs = [(self.start_ticks, self.start_mono)]
        self.chunks = []
        self.list_chunks()
        self.choose_checkpoint()
        self.calibrate()
        self.build_stacks()

    def header(self):
        d = self.data
        if d[:8] != MAGIC:
            raise Refused(f"{self.path}: not a trace")
        if len(d) < 4096:
            raise Refused(f"{self.path}: cut off")
        (self.major, self.minor, header_bytes, slot, _, self.mode, _, _, self.pid, self.ppid,
         self.image, self.hz, self.start_ticks, self.start_mono, self.start_real) = \
            struct.unpack_from("<HHIIIIIIIIIQQQQ", d, 8)
        if self.major > 2:
            raise Refused(f"{self.path}: needs a reader of version {self.major}")
        if self.major == 0 or header_bytes != 4096 or slot != SLOT:
            raise Refused(f"{self.path}: damaged header")
        _, self.end_how, self.end_code, self.end_mono = struct.unpack_from("<QIIQ", d, 104)
        self.dropped = struct.unpack_from("<16Q", d, 128)
        self.dropped_bytes, self.flags = struct.unpack_from("<QQ", d, 256)
        self.slots = [struct.unpack_from("<IIQ", d, at) for at in (328, 344)]
        self.paused_bytes, *self.in_brief = struct.unpack_from("<3Q", d, 360)
        self.rights = {RIGHTS[i]: ticks for i, ticks in enumerate(struct.unpack_from("<8Q", d, 512))
                       if ticks}
        self.stopped_ticks, self.orphans, kind = struct.unpack_from("<QQI", d, 640)
        self.lost_for = RIGHTS[kind if kind < len(RIGHTS)
                               else 0] if self.stopped_ticks or self.orphans else None
        self.unrecorded, self.unrecorded_programs = struct.unpack_from("<Q", d, 1024)[0], []
        for why, count, path in struct.iter_unpack("<II120s", d[1032:3080]):
            if why not in (0, 255) and count:
                self.unrecorded_programs.append(
                    {"path": path.split(b"\0")[0].decode(errors="replace"),
                     "why": WHY.get(why, "unknown"), "count": count})

    # -- chunks

    def list_chunks(self):
        d, at, definitions = self.data, SLOT, []
        while at < len(d):
            if len(d) - at < 64 or struct.unpack_from("<I", d, at)[0] != CHUNK_MAGIC:
                at += SLOT
                continue
            (kind, head, size, thread, tid, sequence, ticks, mono, committed, sides, checksum,
             sealed) = struct.unpack_from("<HHIIIIQQIIQI", d, at + 4)
            torn = False
            if head != 64 or size == 0 or size % SLOT or size > CHUNK_MAX:
                self.torn += 1
                self.pairs.append((ticks, mono))
                at += SLOT
                continue
            room = size - 64
            if kind == 2:
                committed = room
            elif kind in (1, 3):
                room -= 64 * 32
                if committed > room or sides > 64:
                    torn = True
                    committed = min(committed, room)
                    sides = 0 if sides > 64 else sides
            elif kind == 4:
                torn, committed, sides = committed > room, min(committed, room), 0
            if size > len(d) - at:
                torn, sides = True, 0
                committed = min(committed, len(d) - at - 64)
            self.torn += torn and kind != 4
            self.pairs.append((ticks, mono))
            if kind == 2:
                definitions.append((at + 64, committed, torn))
            elif kind in (1, 3, 4):
                self.chunks.append((kind, thread, sequence, at, size, tid, ticks, committed, sides,
                                    checksum, sealed == 1, torn))
            at += size
        for at, size, torn in definitions:
            self.definitions(at, at + size, torn)

    def choose_checkpoint(self):
        """The newest whole checkpoint in the header."""
        slots = sorted((s for s in self.slots if s[0]), reverse=True)
        parts = [c for c in self.chunks if c[0] == 4]
        self.checkpoint, self.floor = 0, 0
        for number, count, ticks in slots:
            own = sorted((c for c in parts if c[5] == number), key=lambda c: c[2])
            if count and ticks != MASK and [c[2] for c in own] == list(range(count)) and \
                    all(sealed and not torn for *_, sealed, torn in own):
                self.checkpoint, self.floor = number, ticks + 1
                break
        newest = slots[0][0] if slots else 0
        self.damaged = newest if newest != self.checkpoint else 0
        self.unfinished = sum(c[5] > newest for c in parts)
        self.chunks = [c for c in self.chunks if c[0] != 4
                       or (self.checkpoint and c[5] == self.checkpoint)]

    def definitions(self, at, end, torn):
        broken = False
        while end - at >= 8:
            size, kind, committed = struct.unpack_from("<IHB", self.data, at)
            if size == 0:
                at += 8
                continue
            if size % 8 or size < 8 or size > end - at:
                broken = True
                break
            if committed:
                try:
                    self.definition(kind, Bytes(self.data, at + 8, at + size))
                except Torn:
                    broken = True
            at += size
        self.torn += broken and not torn

    def definition(self, kind, b):
        if kind == 1:
            self.strings.setdefault(b.varint(), b.text())
        elif kind == 2:
            id, path, build_id = b.varint(), b.text(), b.bytes()
            numbers = [b.varint() for _ in range(5)]
            for _ in range(b.varint() * 4):
                b.varint()
            identity = (path, build_id) if build_id else (path, *numbers[1:])
            self.modules.setdefault(id, identity)
        elif kind == 3:
            id, version, first, flags = b.varint(), b.varint(), b.varint(), b.varint()
            self.codes.setdefault(id, (version, first, flags & 1, b.text(), b.text(), b.bytes()))
        elif kind == 4:
            id, base, keep, m = b.varint(), b.varint(), b.varint(), b.varint()
            frames, last = [], 0
            for _ in range(m):
                v = b.varint()
                if v & 3 == 0:
                    last = (last + b.svarint()) & MASK
                    frames.append(("native", v >> 3, last, bool(v & 4)))
                elif v & 3 == 1:
                    frames.append(("python", v >> 2, b.varint() - 1))
                else:
                    frames.append(("cut" if v & 3 == 2 else "end", v >> 2))
            if id:
                self.raw_stacks.setdefault(id, (base, keep, tuple(frames)))
        elif kind == 5:
            key = b.text()
            self.infos[key] = b.text()
        elif kind == 6:
            id = b.varint()
            self.spaces.setdefault(id, (b.text(), b.varint()))
        elif kind == 7:
            serial, tid, name = b.varint(), b.varint(), b.text()
            self.names[serial] = (tid, name)
        else:
            self.unknown += 1

    def build_stacks(self):
        done, known = {}, {}
        for first in self.raw_stacks:
            path, id = [], first
            while id and id not in done and id in self.raw_stacks and id not in path:
                path.append(id)
                id = self.raw_stacks[id][0]
            if id and (id in path or id not in self.raw_stacks):
                done.setdefault(id, None)  # a cycle, or a missing base
            for id in reversed(path):
                base, keep, frames = self.raw_stacks[id]
                below = done.get(base) if base else ()
                if id in done or below is None or keep > len(below):
                    done[id] = None
                else:
                    done[id] = below[:keep] + tuple(self.identity(f) for f in frames)
        for id, frames in done.items():
            known[id] = frames if frames else None
        self.stacks = known

    def identity(self, frame):
        """Ids stand for their names: a module loaded twice is one."""
        if frame[0] == "native":
            return ("native", self.modules.get(frame[1]), frame[2], frame[3])
        if frame[0] == "python":
            return ("python", self.codes.get(frame[1]), frame[2])
        return frame

    # -- time

    def calibrate(self):
        kept = []
        for ticks, mono in sorted(self.pairs):
            ns = max(mono - self.start_mono, 0)
            if not kept or (ticks > kept[-1][0] and ns >= kept[-1][1]):
                kept.append((ticks, ns))
        self.pairs = kept
        (t0, n0), (t1, n1) = kept[0], kept[-1]
        self.rate = (n1 - n0, t1 - t0) if t1 > t0 else (1, 1)
        # Too short a time measures no rate.
        if self.hz and n1 - n0 < 10000000:
            self.rate = (1000000000, self.hz)

    def ns(self, ticks):
        i = bisect.bisect_right(self.pairs, (ticks, 1 << 65)) - 1
        if i < 0:
            t, n = self.pairs[0]
            return max(0, n - (t - ticks) * self.rate[0] // self.rate[1])
        t, n = self.pairs[i]
        if i + 1 < len(self.pairs):
            t1, n1 = self.pairs[i + 1]
            return n + (ticks - t) * (n1 - n) // (t1 - t)
        return n + (ticks - t) * self.rate[0] // self.rate[1]

    # -- events

    def chunk_events(self, chunk):
        kind, thread, sequence, at, size, tid, ticks, committed, sides, checksum, sealed, torn = (
            chunk)
        if thread:
            self.tids.setdefault(thread, tid)
        aside = []
        for n in range(1, sides + 1):
            t, address, length, stack, what, flags, _ = struct.unpack_from(
                "<QQQIBBH", self.data, at + size - 32 * n)
            if length >= SIZE_LIMIT:
                torn = True
                continue
            e = Event(t, what, thread)
            e.address, e.size, e.stack = address, length, stack
            if what == 1:
                e.api = flags >> 4 & 7
            elif what == 2:
                e.realloc = bool(flags & 0x10)
            aside.append(e)
        aside.sort(key=lambda e: e.ticks)
        own, b = [], Bytes(self.data, at + 64, at + 64 + committed)
        address = stack = 0
        expected = {}  # position: the stack and the size that followed
        try:
            while b.at < b.end:
                tag = b.byte()
                what = tag & 15
                if what == 15:
                    what, length = b.varint(), b.varint()
                    if length > b.end - b.at:
                        raise Torn
                    body = Bytes(self.data, b.at, b.at + length)
                    b.at += length
                    ticks += body.varint()
                    if what not in FIELDS or (what in (36, 46) and kind != 4):
                        self.unknown += 1
                        continue
                    count, pairs = FIELDS[what]
                    fields = [body.varint() for _ in range(count)]
                    levels = []
                    # of MAP from 2.6 on, if there are any
                    if pairs or (what == 16 and body.at < body.end):
                        levels = [(body.varint(), body.varint()) for _ in range(body.varint())]
                    if what in AFTER and (what != 21 or fields[2] in (2, 3)) and \
                            (what != 28 or fields[0] in (2, 7, 8)) and \
                            (what not in (23, 28, 31) or body.at < body.end):
                        more = what == 31 and fields[0] == 6  # LENGTH has one more
                        fields += [body.varint() for _ in range(AFTER[what] + more)]
                    if what == 30:
                        thread = fields[0]
                        self.tids.setdefault(thread, fields[1])
                        continue
                    if what in (16, 35, 37) and fields[1] >= SIZE_LIMIT:
                        raise Torn
                    e = Event(ticks, what, thread)
                    e.fields, e.levels = fields, levels
                    if what == 37:
                        e.kind, e.address, e.size, e.stack = 1, *fields[:3]
                        e.api = fields[3] & 7
                    elif what == 35:
                        e.kind, e.address, e.size, e.mean, e.stack = 1, *fields[:4]
                        e.api = fields[4] & 7
                    elif what == 38:
                        e.kind, e.address, e.realloc = 2, fields[0], bool(fields[1] & 1)
                    elif what in (16, 20, 21):
                        e.stack = fields[{16: 8, 20: 2, 21: 7}[what]]
                else:
                    if what not in (1, 2, 3, 4):
                        raise Torn
                    ticks += b.varint()
                    address = (address + 8 * b.svarint()) & MASK
                    e = Event(ticks, what, thread)
                    e.address = address
                    if what in (1, 4):
                        place, same = (stack * 2654435761 & 0xFFFFFFFF) >> 22, tag & 0x80
                        if what == 4:
                            stack, e.size = expected.get(place, (0, 0))
                            e.size = e.size if same else b.varint()
                        else:
                            e.size = b.varint()
                            stack = stack if same else b.varint()
                        if e.size >= SIZE_LIMIT:
                            raise Torn
                        expected[place] = stack, e.size
                        e.kind, e.api, e.stack = 1, tag >> 4 & 7, stack
                    elif what == 2:
                        e.realloc = bool(tag & 0x10)
                own.append(e)
            if sealed and not torn and xxh64(self.data[at + 64:at + 64 + committed]) != checksum:
                self.bad_checksums += 1
        except Torn:
            self.torn += not torn
        # Events in the side area take their place by time.
        out = []
        for e in own:
            while aside and aside[0].ticks <= e.ticks:
                out.append(aside.pop(0))
            out.append(e)
        # A checkpoint tells which earlier events count.
        return [e for e in out + aside if kind == 4 or e.ticks >= self.floor]

    def ordered(self, contradicts):
        """All events by time; each thread's own stay in written order. An event that contradicts
        the live blocks lets the others of its tick pass."""
        self.tids = {}
        streams, last = {}, {}
        for chunk in sorted(self.chunks,
                            key=lambda c: (c[0], {1: c[1:4], 3: c[3:4], 4: c[2:3]}[c[0]])):
            key = chunk[1] if chunk[0] == 1 else ("shared",
                                                  chunk[3]) if chunk[0] == 3 else "checkpoint"
            events = streams.setdefault(key, [])
            now = last.get(key, chunk[6])
            for e in self.chunk_events(chunk):
                now = e.ticks = max(now, e.ticks)
                events.append(e)
            last[key] = now
        heads = {key: 0 for key in streams}
        rank = {key: i for i, key in enumerate(streams)}
        import heapq
        heap = []

        def push(key):
            if heads[key] < len(streams[key]):
                e = streams[key][heads[key]]
                heapq.heappush(heap, (e.ticks, e.kind not in (2, 45), rank[key], key))

        for key in streams:
            push(key)
        by_address = {}
        for key, events in streams.items():
            for e in events:
                if e.kind in (1, 2):
                    by_address.setdefault(e.address, {}).setdefault(key, []).append(e)
        passed, deferred = 0, {}
        while heap:
            _, order, place, key = heapq.heappop(heap)
            e = streams[key][heads[key]]
            if not e.gone and contradicts(e) and any(
                    h[0] == e.ticks and deferred.get(h[3]) != passed for h in heap):
                deferred[key] = passed
                heapq.heappush(heap, (e.ticks, max(2, order + 1), place, key))
                continue
            if not e.gone:
                e.gone = True
                passed += 1
                yield key, e, by_address
            heads[key] += 1
            push(key)

    def replay(self, emit=lambda *a: None):
        """Section 5, the meaning of the order."""
        live = {}
        out = {"events": 0, "repairs": 0, "unmatched_frees": 0, "double_allocs": 0,
               "most_live_blocks": 0, "marks": 0,
               "tasks": 0, "replaced": [0] * 7}
        per, last_frees = {}, {}
        tasks, current = {}, {}  # by key, by thread
        late_by, early_by = self.ticks_of(LATE_NS), self.ticks_of(EARLY_NS)

        def say(kind, ticks, thread, *rest):
            task = current.get(thread)
            emit(kind, ticks, thread, *rest, *(("task", task) if task else ()))

        def count(thread):
            return per.setdefault(thread, {"allocs": 0, "frees": 0})

        def free(e, ticks):
            size = live.pop(e.address, None)
            count(e.thread)["frees"] += 1
            last_frees.setdefault(e.thread, []).append([e.address, size, ticks])
            del last_frees[e.thread][:-4]
            out["unmatched_frees"] += size is None
            out["events"] += 1
            say("FREE", ticks, e.thread, e.address, "?" if size is None else size)

        def contradicts(e):
            return e.kind in (1, 2) and (e.address in live) == (e.kind == 1)

        def alloc(e, ticks):
            live[e.address] = e.size
            out["most_live_blocks"] = max(out["most_live_blocks"], len(live))
            count(e.thread)["allocs"] += 1
            out["events"] += 1
            say("ALLOC", ticks, e.thread, e.address, e.size, e.api,
                *(["%.6g" % stands_for(e.size, e.mean)] if e.mean else []), self.innermost(e.stack))

        def take_next(key, e, by_address, window, wanted, own=False):
            """The first wanted one among each other thread's next events on this address."""
            others = [next((f for f in events if not f.gone and f is not e), None)
                      for k, events in by_address[e.address].items() if k != key or own]
            found = [(f.ticks, i) for i, f in enumerate(others)
                     if f and f.ticks <= e.ticks + window and wanted(f)]
            if not found:
                return None
            f = others[min(found)[1]]
            f.gone = True
            out["repairs"] += 1
            return f

        for key, e, by_address in self.ordered(contradicts):
            if e.kind == 1:
                if e.address in live:
                    f = take_next(key, e, by_address, late_by, lambda f: f.kind == 2)
                    if f:
                        free(f, e.ticks)
                    else:
                        out["double_allocs"] += 1
                        say("DROP", e.ticks, e.thread, e.address, live.pop(e.address))
                alloc(e, e.ticks)
                continue
            elif e.kind == 2:
                if e.address not in live:
                    own = any(a == e.address and size is not None and e.ticks - at <= early_by
                              for thread, frees in last_frees.items() if thread != e.thread
                              for a, size, at in frees)
                    f = take_next(key, e, by_address, early_by, lambda f: f.kind == 1
                                  and f.api != REALLOC, own)
                    if f:
                        alloc(f, e.ticks)
                free(e, e.ticks)
                continue
            elif e.kind == 44:
                key = e.fields[0]
                if key and key not in tasks:
                    out["tasks"] += 1
                    tasks[key] = out["tasks"]
                current[e.thread] = tasks.get(key)
                continue
            elif e.kind == 45:
                if e.fields[0] in tasks:
                    emit("TASK_END", e.ticks, e.thread, "task", tasks.pop(e.fields[0]))
                continue
            elif e.kind == 3:
                for item in reversed(last_frees.get(e.thread, [])):
                    if item[0] == e.address:
                        count(e.thread)["frees"] -= 1
                        if item[1] is None:
                            out["unmatched_frees"] -= 1
                        elif e.address not in live:
                            live[e.address] = item[1]
                            out["most_live_blocks"] = max(out["most_live_blocks"], len(live))
                            say("UNFREE", e.ticks, e.thread, e.address, item[1])
                        item[0] = None
                        break
            else:
                count(e.thread)
                out["marks"] += e.kind == 31
                if e.kind == 36:
                    fields = [1, *e.fields[1:6], e.fields[7]]
                    out["replaced"] = [a + b for a, b in zip(out["replaced"], fields)]
                if e.kind == 25 and self.end_how == 0 and e.fields[0] in (1, 3, 4):
                    self.end_how, self.end_code = e.fields
                say(NAMES[e.kind], e.ticks, e.thread, *self.words(e))
            out["events"] += 1
        for thread in self.tids:
            count(thread)
        out["live_blocks"], out["live_bytes"] = len(live), sum(live.values())
        out["threads"] = per
        return out

    def innermost(self, stack):
        frames = self.stacks.get(stack)
        return frame_text(frames[-1]) if frames else "-"

    def words(self, e):
        """The fields of an event as --events shows them: names in place of ids."""
        f = list(e.fields)
        if e.kind == 16:
            f[6] = self.strings.get(f[6], "-")
            f[8] = self.innermost(f[8])
        elif e.kind == 20:
            f[2] = self.innermost(f[2])
        elif e.kind == 21:
            f[7] = self.innermost(f[7])
            if len(f) > 8:
                f[8:10] = [self.strings.get(id, "-") for id in f[8:10]]
        elif e.kind in (32, 33, 42, 43):
            f[1] = self.strings.get(f[1], "-")
            label = {32: 8, 33: 5, 42: 4, 43: 6}[e.kind]
            f[label] = self.strings.get(f[label], "-")
            if e.kind in (32, 43):
                at = 4 if e.kind == 32 else 5
                f[at] = self.innermost(f[at])
        elif e.kind in (39, 40):
            f[0] = self.strings.get(f[0], "-")
            if e.kind == 39:
                f[5] = self.innermost(f[5])
        elif e.kind == 31:
            phase, id, name, what, stack, domain, *tokens = f + [0] * (6 - len(f))
            f = [phase, what, id, self.strings.get(name, "-"), self.strings.get(domain, "-"),
                 *tokens,
                 self.innermost(stack)]
        elif e.kind == 26:
            del f[1]
        elif e.kind == 28 and f[3:] == [0]:
            del f[2:]
        elif e.kind == 36:
            del f[0]
        elif e.kind == 46:
            f = [f[0], *f[2:5], self.innermost(f[1])]
        elif e.kind == 23 and f[1:] in ([], [0]):
            del f[1:]
        return f + [f"{key}={value}" for key, value in e.levels]

    def ticks_of(self, ns):
        return max(1, ns * self.rate[1] // self.rate[0]) if self.rate[0] else 1

    def check(self):
        r = self.replay()
        threads = sorted(({"tid": self.tids.get(s) or self.names.get(s, (0,))[0],
                           "allocs": c["allocs"],
                           "frees": c["frees"]} for s, c in r["threads"].items()),
                         key=lambda t: tuple(t.values()))
        return {"pid": self.pid, "trace": self.path, "events": r["events"],
                "dropped": sum(self.dropped), "torn_chunks": self.torn,
                "bad_checksums": self.bad_checksums, "unknown_records": self.unknown,
                "repairs": r["repairs"], "unmatched_frees": r["unmatched_frees"],
                "double_allocs": r["double_allocs"], "marks": r["marks"], "tasks": r["tasks"],
                "stacks": len({s for s in self.stacks.values() if s}), "threads": threads,
                "checkpoint": {"number": self.checkpoint, "damaged": self.damaged,
                               "unfinished_chunks": self.unfinished,
                               **dict(zip(("periods", "trace_bytes", "acquired", "acquired_bytes",
                                           "released",
                                           "released_bytes", "left_out"), r["replaced"]))},
                "paused_bytes": self.paused_bytes, "brief_stacks": self.in_brief[0],
                "untold": self.in_brief[1],
                "rights": {"given_up": sorted(self.rights), "stopped": self.stopped_ticks != 0,
                           "children": self.orphans,
                           "reason": self.lost_for},
                "unrecorded": self.unrecorded, "unrecorded_programs": self.unrecorded_programs,
                "spaces": [{"space": "host", "allocs": sum(t["allocs"] for t in threads),
                            "frees": sum(t["frees"] for t in threads),
                            "live_blocks": r["live_blocks"], "live_bytes": r["live_bytes"],
                            "most_live_blocks": r["most_live_blocks"]}]}


def files(paths):
    for path in paths:
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                if name.endswith(".whyoom"):
                    yield os.path.join(path, name), None
                elif name.startswith("uid.") and name[4:].isdigit():  # of processes of that user
                    yield from files([os.path.join(path, name)])
            yield from small.there(path)
        else:
            yield path, None


def frame_text(frame):
    if frame[0] == "native":
        _, module, address, exact = frame
        return f"{module[0] if module else '?'} {address:#x}{' exact' if exact else ''}"
    if frame[0] == "python" and frame[1]:
        version, first, _, name, file, table = frame[1]
        return f"{name} {file}:{python_line(version, first, table, frame[2]) or 0}"
    return " ".join(str(x) for x in frame)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--events", action="store_true")
    p.add_argument("--stacks", action="store_true")
    p.add_argument("trace", nargs="+")
    args = p.parse_args()
    processes, status = [], 0
    for path, data in files(args.trace):
        try:
            t = Trace(path, data)
        except (Refused, OSError) as error:
            print(f"read.py: {error}", file=sys.stderr)
            status = 1
            continue
        if args.events:
            t.replay(lambda kind, ticks, thread, *rest: print(t.ns(ticks), thread, kind, *rest))
        elif args.stacks:
            for frames in sorted({s for s in t.stacks.values() if s}, key=repr):
                print("\n".join(frame_text(f) for f in frames) + "\n")
        elif t.mode != 2:
            processes.append(t.check())
    if not args.events and not args.stacks:
        print(json.dumps({"processes": processes}, indent=2))
    return status


if __name__ == "__main__":
    sys.exit(main())

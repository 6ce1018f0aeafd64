"""tracefile.py - a small decoder of trace files for the preload tests, after docs/trace-format.md.

It only reads: it decodes one file into plain tuples, per thread and in written order. It is strict
about the format's promises (a test must see a broken one), and must not know a test's
expectations."""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from wire import xxh64  # noqa: E402

MAGIC = b"WHYOOMT\n"
SLOT = 65536
EXTENDED = {
    16: "MAP", 17: "UNMAP", 18: "UNUNMAP", 19: "ADVISE", 20: "BRK", 21: "FAILED", 22: "LEVEL",
    23: "LEVEL_OF", 24: "THREAD_EXIT", 25: "EXIT", 26: "SIGNAL", 27: "FORK", 28: "NOTICE",
    29: "CHILD_END", 30: "SHARED_THREAD", 31: "MARK", 35: "SAMPLED_ALLOC", 36: "CHECKPOINT",
    37: "ALLOC_WIDE", 38: "FREE_WIDE", 46: "WENT",
}
DROPS = ["no-space", "no-memory", "signal", "nested", "budget", "definition", "no-thread", "vfork",
         "rights"]
M64 = (1 << 64) - 1


class Broken(Exception):
    """The file contradicts the format."""


def varint(b, i):
    v = shift = 0
    while True:
        c = b[i]
        i += 1
        v |= (c & 0x7F) << shift
        if c < 0x80:
            return v & M64, i
        shift += 7
        if shift > 63:
            raise Broken("varint of more than ten bytes")


def svarint(b, i):
    v, i = varint(b, i)
    return (v >> 1) ^ -(v & 1), i


def text(b, i):
    n, i = varint(b, i)
    if i + n > len(b):
        raise Broken("text beyond its record")
    return bytes(b[i : i + n]), i + n


class Event:
    """kind, and this kind's fields; size, stack and so on are 0 if it has none."""

    __slots__ = ("kind", "ticks", "address", "size", "stack", "flags", "api", "f", "side", "kept")

    def __init__(self, kind, ticks, address=0, size=0, stack=0, flags=0, api=0, f=None, side=False):
        self.kind, self.ticks, self.address, self.size = kind, ticks, address, size
        self.stack, self.flags, self.api, self.f, self.side = stack, flags, api, f, side
        self.kept = False  # of a checkpoint

    def __repr__(self):
        return "%s(%#x, %d, api %d, flags %#x, stack %d%s)" % (
            self.kind, self.address, self.size, self.api, self.flags, self.stack,
            ", %s" % self.f if self.f else "")


class Trace:
    """One process image."""

    def __init__(self, path, events=True):
        self.path = path
        with open(path, "rb") as f:
            head = f.read(4096)
            # a hole of gigabytes may follow the last claimed chunk
            end = struct.unpack_from("<Q", head, 104)[0] if len(head) == 4096 else 0
            self.data = head + f.read(max(end - 4096, 0) if end else -1)
        self._header()
        self.strings, self.modules, self.codes, self.stacks = {}, {}, {}, {}
        self.info, self.thread_names, self.torn, self.chunks = {}, {}, [], []
        self.events_of = {}  # thread serial -> [Event], as written; side records last
        self.tid_of = {}
        self.holes = 0
        self._chunks(events)

    def _header(self):
        d = self.data
        if len(d) < 4096 or d[:8] != MAGIC:
            raise Broken("%s: no trace header" % self.path)
        (self.major, self.minor, self.header_bytes, self.slot_bytes, self.arch, self.mode,
         self.clock, self.shift, self.pid, self.ppid, self.image) = struct.unpack_from(
             "<HHIIIIIIIII", d, 8)
        (self.hz, self.start_ticks, self.start_mono, self.start_real) = struct.unpack_from(
            "<4Q", d, 48)
        (self.file_bytes, self.end_how, self.end_code, self.end_mono) = struct.unpack_from(
            "<QIIQ", d, 104)
        self.drops = struct.unpack_from("<16Q", d, 128)
        self.dropped_bytes, self.flags = struct.unpack_from("<QQ", d, 256)
        # of the last two checkpoints: the number, the count of parts, the time up to which it
        # counts
        self.checkpoints = [c for c in (struct.unpack_from("<IIQ", d, 328 + 16 * i) for i in (0, 1))
                            if c[0]]
        self.checkpoint, self.parts, self.until = 0, [], -1
        self.brief_stacks, self.untold = struct.unpack_from("<QQ", d, 368)
        if (self.major, self.header_bytes, self.slot_bytes) != (2, 4096, SLOT):
            raise Broken("%s: header fields" % self.path)

    @property
    def dropped(self):
        return {DROPS[i] if i < len(DROPS) else str(i): n for i, n in enumerate(self.drops) if n}

    def _choose(self):
        """The newest checkpoint with all its parts: it alone tells the blocks that it replaced."""
        parts, at = {}, SLOT
        while at + 64 <= len(self.data):
            magic, kind, _, size, _, number, seq = struct.unpack_from("<IHHIIII", self.data, at)
            sealed, = struct.unpack_from("<I", self.data, at + 56)
            if magic != 0x6B6E6843 or size == 0 or size % SLOT:
                at += SLOT
                continue
            if kind == 4 and sealed:
                parts.setdefault(number, []).append(seq)
            at += size
        for number, count, ticks in sorted(self.checkpoints, reverse=True):
            if sorted(parts.get(number, [])) == list(range(count)):
                self.checkpoint, self.until = number, ticks
                return
        if self.checkpoints:
            raise Broken("%s: no checkpoint of %s is whole: %s"
                         % (self.path, self.checkpoints, parts))

    def _chunks(self, want_events):
        self._choose()
        d, at = self.data, SLOT
        while at + 64 <= len(d):
            (magic, kind, head, size, thread, tid, seq, ticks, mono, committed, side, checksum,
             sealed, _) = struct.unpack_from("<IHHIIIIQQIIQII", d, at)
            if magic != 0x6B6E6843:
                if magic == 0:
                    self.holes += 1
                else:
                    self.torn.append((at, "magic %#x" % magic))
                at += SLOT
                continue
            if size == 0 or size % SLOT or head != 64 or kind not in (1, 2, 3, 4):
                self.torn.append((at, "chunk header"))
                at += SLOT
                continue
            end = at + size
            if end > len(d):
                self.torn.append((at, "chunk beyond the end of the file"))
                end = len(d)
            self.chunks.append({"at": at, "type": kind, "bytes": size, "thread": thread, "tid": tid,
                                "seq": seq, "ticks": ticks, "mono": mono, "committed": committed,
                                "side": side, "checksum": checksum, "sealed": sealed})
            body = memoryview(d)[at + 64 : end]
            if kind == 2:
                self._definitions(body, at + 64)
            elif kind == 4 and tid != self.checkpoint:
                pass
            elif kind in (1, 3, 4) and want_events:
                if kind == 4:
                    tid = 0
                    self.parts.append(at)
                if committed > len(body):
                    self.torn.append((at, "committed beyond the chunk"))
                self._events(body[:committed], at + 64, ticks, thread, tid, kind == 4)
                if kind == 1:
                    self._side(d, at + size, side, thread)
            at += size

    def _definitions(self, b, base):
        i = 0
        while i + 8 <= len(b):
            size, kind, committed, zero = struct.unpack_from("<IHBB", b, i)
            if size == 0:
                i += 8
                continue
            if size % 8 or i + size > len(b) or size < 8:
                self.torn.append((base + i, "definition of %d bytes" % size))
                return
            if committed:
                self._definition(kind, b[i + 8 : i + size], base + i)
            i += size

    def _definition(self, kind, b, at):
        if kind == 5:
            k, i = text(b, 0)
            v, i = text(b, i)
            self.info[k.decode()] = v
            return
        if kind == 7:
            serial, i = varint(b, 0)
            tid, i = varint(b, i)
            name, i = text(b, i)
            self.thread_names[serial] = name.decode(errors="replace")
            self.tid_of[serial] = tid
            return
        ident, i = varint(b, 0)
        table = {1: self.strings, 2: self.modules, 3: self.codes, 4: self.stacks}.get(kind)
        if table is None:
            return
        if ident == 0 or ident in table:
            raise Broken("%#x: id %d of definition kind %d is used again" % (at, ident, kind))
        if kind == 1:
            table[ident] = text(b, i)[0].decode(errors="replace")
        elif kind == 2:
            path, i = text(b, i)
            build, i = text(b, i)
            v = []
            for _ in range(6):
                x, i = varint(b, i)
                v.append(x)
            segments = []
            for _ in range(v[5]):
                seg = []
                for _ in range(4):
                    x, i = varint(b, i)
                    seg.append(x)
                segments.append(tuple(seg))
            table[ident] = {"path": path.decode(errors="replace"), "build_id": build.hex(),
                            "bias": v[0], "segments": segments}
        elif kind == 3:
            ver, i = varint(b, i)
            line, i = varint(b, i)
            flags, i = varint(b, i)
            name, i = text(b, i)
            file, i = text(b, i)
            lines, i = text(b, i)
            table[ident] = {"version": ver, "line": line, "flags": flags, "name": name.decode(),
                            "file": file.decode(errors="replace"), "lines": lines}
        else:
            base, i = varint(b, i)
            keep, i = varint(b, i)
            m, i = varint(b, i)
            frames, last = [], 0
            for _ in range(m):
                v, i = varint(b, i)
                kind = v & 3
                if kind == 0:
                    delta, i = svarint(b, i)
                    last = (last + delta) & M64
                    frames.append(("native", v >> 3, last, bool(v & 4)))
                elif kind == 1:
                    off, i = varint(b, i)
                    frames.append(("python", v >> 2, off))
                else:
                    frames.append(("cut" if kind == 2 else "end", v >> 2))
            table[ident] = (base, keep, frames)

    def stack(self, ident):
        """Frames of a stack, outermost first."""
        parts = []
        keep_to = None
        while ident:
            base, keep, frames = self.stacks[ident]
            parts.append((frames, keep, keep_to))
            keep_to = keep
            ident = base
        out = []
        # from the root: each level keeps `keep` frames of the one below it
        for frames, keep, _ in reversed(parts):
            if keep > len(out):
                raise Broken("a stack keeps %d of %d frames" % (keep, len(out)))
            out = out[:keep] + frames
        return out

    def _side(self, d, end, count, thread):
        if count > 64:
            self.torn.append((end, "side count %d" % count))
            count = 64
        out = self.events_of.setdefault(thread, [])
        for n in range(1, count + 1):
            ticks, addr, size, stack, kind, flags, _ = struct.unpack_from(
                "<QQQIBBH", d, end - 32 * n)
            name = {1: "ALLOC", 2: "FREE", 3: "UNFREE"}.get(kind)
            if not name:
                raise Broken("side record of kind %d" % kind)
            if ticks <= self.until:
                continue
            out.append(Event(name, ticks, addr, size, stack, flags & 0x10 if kind == 2 else 0,
                             flags >> 4 & 7 if kind == 1 else 0, side=True))

    def _events(self, b, base, ticks, thread, tid, checkpoint=False):
        since = -1 if checkpoint else self.until
        if thread:
            self.tid_of.setdefault(thread, tid)
        out = self.events_of.setdefault(thread, [])
        i, n, address, stack = 0, len(b), 0, 0
        expected = {}
        b = bytes(b)
        try:
            while i < n:
                tag = b[i]
                kind = tag & 15
                i += 1
                if kind == 15:
                    k, i = varint(b, i)
                    length, i = varint(b, i)
                    if i + length > n:
                        raise Broken("event beyond the committed part")
                    dt, j = varint(b, i)
                    ticks += dt
                    ev = self._extended(k, b[j : i + length], ticks)
                    i += length
                    if ev is None:
                        continue
                    if ev.kind == "SHARED_THREAD":
                        thread = ev.f["thread"]
                        self.tid_of.setdefault(thread, ev.f["tid"])
                        out = self.events_of.setdefault(thread, [])
                        continue
                    if ticks > since:
                        ev.kept = checkpoint
                        out.append(ev)
                    continue
                dt, i = varint(b, i)
                ticks += dt
                da, i = svarint(b, i)
                address = (address + 8 * da) & M64
                ev = None
                if kind in (1, 4):
                    place, same = (stack * 2654435761 & 0xFFFFFFFF) >> 22, tag & 0x80
                    if kind == 4:
                        stack, size = expected.get(place, (0, 0))
                    if kind == 1 or not same:
                        size, i = varint(b, i)
                    if kind == 1 and not same:
                        stack, i = varint(b, i)
                    expected[place] = stack, size
                    ev = Event("ALLOC", ticks, address, size, stack, 0, tag >> 4 & 7)
                elif kind == 2:
                    ev = Event("FREE", ticks, address, flags=tag & 0x10)
                elif kind == 3:
                    ev = Event("UNFREE", ticks, address)
                else:
                    raise Broken("compact kind %d" % kind)
                if ticks > since:
                    ev.kept = checkpoint
                    out.append(ev)
        except IndexError:
            raise Broken("%s: %#x: an event is cut by the committed end" % (self.path, base + i))
        except Broken as e:
            raise Broken("%s: %#x: %s" % (self.path, base + i, e))

    def _extended(self, k, b, ticks):
        name = EXTENDED.get(k)
        if name is None:
            return None
        vals, i = [], 0
        while i < len(b):
            v, i = varint(b, i)
            vals.append(v)
        if name == "MAP":
            a, ln, prot, api, flags, backing, nm, off, st = vals[:9]
            return Event(name, ticks, a, ln, st, flags, api,
                         {"prot": prot, "backing": backing, "name": nm, "offset": off,
                          "levels": dict(zip(vals[10::2], vals[11::2]))})
        if name == "UNMAP":
            a, ln, api, flags = vals[:4]
            return Event(name, ticks, a, ln, 0, flags, api)
        if name in ("UNUNMAP",):
            return Event(name, ticks, vals[0], vals[1])
        if name == "ADVISE":
            return Event(name, ticks, vals[0], vals[1], f={"advice": vals[2]})
        if name == "BRK":
            return Event(name, ticks, vals[0], vals[1] - vals[0], vals[2],
                         f={"old": vals[0], "new": vals[1]})
        if name == "FAILED":
            space, api, why, res, size, align, old, st, n = vals[:9]
            return Event(name, ticks, 0, size, st, 0, api,
                         {"space": space, "why": why, "result": res, "alignment": align, "old": old,
                          "levels": dict(zip(vals[9 : 9 + 2 * n : 2], vals[10 : 10 + 2 * n : 2]))})
        if name == "LEVEL":
            n = vals[1]
            return Event(name, ticks, f=dict(zip(vals[2 : 2 + 2 * n : 2], vals[3 : 3 + 2 * n : 2])))
        if name == "SHARED_THREAD":
            return Event(name, ticks, f={"thread": vals[0], "tid": vals[1]})
        if name == "SAMPLED_ALLOC":
            a, size, mean, st, api = vals[:5]
            return Event("ALLOC", ticks, a, size, st, 0, api, {"mean": mean})
        if name == "CHECKPOINT":
            return Event(name, ticks, f=dict(zip(
                ("begin", "replaced", "acquired", "acquired_bytes", "released", "released_bytes",
                 "most_bytes", "left_out"), vals)))
        if name == "WENT":
            return Event(name, ticks, size=vals[4], stack=vals[1], f=dict(zip(
                ("space", "stack", "blocks", "bytes", "largest", "life", "longest"), vals)))
        if name == "ALLOC_WIDE":
            a, size, st, flags = vals[:4]
            return Event("ALLOC", ticks, a, size, st, 0, flags & 7)
        if name == "FREE_WIDE":
            return Event("FREE", ticks, vals[0], flags=(vals[1] & 1) << 4)
        return Event(name, ticks, f=vals)

    def thread_of_tid(self, tid):
        """Serials of the threads that had this tid."""
        return [s for s, t in self.tid_of.items() if t == tid]

    def events(self, kinds=None):
        """Of all threads, by ticks. Stable: a thread's own order is kept."""
        out = []
        for serial, evs in self.events_of.items():
            main = [e for e in evs if not e.side]
            side = [e for e in evs if e.side]
            out += [(e.ticks, serial, e) for e in main + side if kinds is None or e.kind in kinds]
        out.sort(key=lambda x: x[0])
        return [(s, e) for _, s, e in out]

    def all(self, kind):
        return [e for evs in self.events_of.values() for e in evs if e.kind == kind]

    def check_seals(self):
        """Checksums of sealed chunks, and the order of each thread's chunks."""
        seqs = {}
        for c in self.chunks:
            if c["type"] in (1, 3, 4) and c["sealed"]:
                at = c["at"] + 64
                got = xxh64(self.data[at : at + c["committed"]])
                if got != c["checksum"]:
                    raise Broken("%#x: checksum of a sealed chunk" % c["at"])
            if c["type"] == 1:
                seqs.setdefault(c["thread"], []).append(c["seq"])
        for thread, s in seqs.items():
            # a checkpoint may have replaced any of the old ones
            whole = list(range(len(s)))
            if len(set(s)) != len(s) or (not self.checkpoint and sorted(s) != whole):
                raise Broken("thread %d has chunks %s" % (thread, s))


def traces(directory):
    """All images in a directory, by pid and image."""
    found = []
    if os.path.isdir(directory):
        for name in os.listdir(directory):
            parts = name.split(".")
            if len(parts) == 3 and parts[2] == "whyoom" and parts[0].isdigit():
                found.append((int(parts[0]), int(parts[1]), os.path.join(directory, name)))
    return [Trace(p) for _, _, p in sorted(found)]

"""spaces.py - the records of spaces beside the host's, as a subclass of the second reader.

It skips the host's events, millions in a program that imports a framework, and builds stacks on
demand: seconds in place of minutes. Not for questions on the host."""
import collections

import read

HANDLE, REFERENCE, STREAM, CAPTURED, ARRAY, REGISTERED = 1, 2, 4, 8, 16, 32
OOM = 2

KEYS = {name: keys.split() for name, keys in {
    "SPACE_ALLOC": "space api address size stack stream object flags label retry",
    "SPACE_FREE": "space api address stream flags label",
    "SPACE_UNFREE": "space address flags",
    "SPACE_MAP": "api address size offset handle stack",
    "SPACE_UNMAP": "api address size",
    "SPACE_UNUNMAP": "address size",
    "SPACE_CLEAR": "space api what object label",
    "SPACE_CALL": "space api object value result stack label",
    "FAILED": "space x why result size alignment old stack api label retry flags",
    "LEVEL": "space",
}.items()}

# data: the fields by name, with names in place of the ids of spaces and strings
Record = collections.namedtuple("Record", "kind thread ticks data levels")


class Trace(read.Trace):
    def __init__(self, path, data=None):
        self.stack_bytes = {}
        super().__init__(path, data)
        self.tids, self.records = {}, []
        for chunk in sorted(self.chunks, key=lambda c: (c[0] != 4, c[1:3])):
            for e in self.extended_events(chunk):
                self.add(e)
        self.records.sort(key=lambda r: r.ticks)

    def space(self, id):
        return self.spaces[id][0] if id else ""

    def name(self, id):
        return self.strings[id] if id else ""

    @property
    def host(self):
        """The sizes of the host's blocks, for a small program."""
        return [e.size for chunk in self.chunks for e in self.chunk_events(chunk) if e.kind == 1]

    # -- stacks, on demand

    def definition(self, kind, b):
        if kind == 4:
            start = b.at
            self.stack_bytes.setdefault(b.varint(), (start, b.end))
        else:
            super().definition(kind, b)

    def build_stacks(self):
        self.stacks = {0: ()}

    def frames(self, stack):
        """Frames of a stack, outermost first. The chain of bases can be 100,000 long: only the
        frames that are kept to the end are decoded."""
        parts, need, id = [], None, stack
        while id not in self.stacks and need != 0:
            at, end = self.stack_bytes[id]
            b = read.Bytes(self.data, at, end)
            base, keep = (b.varint(), b.varint(), b.varint())[1:]
            if need is None or need > keep:
                super().definition(4, read.Bytes(self.data, at, end))
                own = self.raw_stacks[id][2]
                parts.append(own if need is None else own[:need - keep])
            need = keep if need is None else min(need, keep)
            id = base
        found = self.stacks[id][:need] if need != 0 else ()
        for own in reversed(parts):
            found += tuple(self.identity(f) for f in own)
        return self.stacks.setdefault(stack, found)

    # -- records

    def extended_events(self, chunk):
        """Events other than the host's blocks. Compact events only move the clock."""
        kind, thread, sequence, at, size, tid, ticks, committed, *_ = chunk
        d, i, end = self.data, at + 64, at + 64 + committed
        while i < end:
            tag = d[i]
            what = tag & 15
            i += 1
            if what != 15:
                byte = d[i]
                dt, shift = byte & 127, 7
                i += 1
                while byte > 127:
                    byte = d[i]
                    dt |= (byte & 127) << shift
                    shift += 7
                    i += 1
                ticks += dt
                for _ in range({1: 3, 4: 2}.get(what, 1) - bool(what in (1, 4) and tag & 0x80)):
                    while d[i] > 127:
                        i += 1
                    i += 1
                continue
            b = read.Bytes(d, i, end)
            what, length = b.varint(), b.varint()
            b.end = i = b.at + length
            ticks += b.varint()
            if what == 30:
                thread = b.varint()
            elif kind != 4 and ticks < self.floor:
                continue  # the checkpoint tells which of those count
            elif read.NAMES.get(what) in KEYS:
                count, pairs = read.FIELDS[what]
                e = read.Event(ticks, what, thread)
                e.fields = [b.varint() for _ in range(count)]
                if pairs:
                    e.levels = [(b.varint(), b.varint()) for _ in range(b.varint())]
                if what in read.AFTER and (what != 21 or e.fields[2] in (2, 3)):
                    e.fields += [b.varint() for _ in range(read.AFTER[what])]
                yield e

    def add(self, e):
        name = read.NAMES[e.kind]
        keys = KEYS[name]
        if len(keys) != len(e.fields) or (name == "LEVEL" and not e.fields[0]):
            return  # of the host
        data = dict(zip(keys, e.fields))
        for key in ("api", "label"):
            if key in data:
                data[key] = self.name(data[key])
        if "space" in data:
            data["space"] = self.space(data["space"])
        self.records.append(Record(name, e.thread, e.ticks, data, dict(e.levels)))

    def of(self, kind, space=None):
        """The data of the records of a kind, in order of time; space: of that one only."""
        return [r.data for r in self.records
                if r.kind == kind and space in (None, r.data.get("space"))]

"""Composes trace files byte by byte, as docs/trace-format.md says. For tests only: every field may
be overridden, so it can also write traces that no recorder would."""

import struct

from wire import MASK, varint, xxh64

SLOT = 65536
HEADER = 4096
SIDE_AREA = 64 * 32
CHUNK_MAGIC = 0x6B6E6843

EVENTS, DEFINITIONS, SHARED, PART = 1, 2, 3, 4
STRING, MODULE, CODE, STACK, INFO, SPACE, THREAD = range(1, 8)
ALLOC, FREE, UNFREE, ALLOC_EXPECTED = 1, 2, 3, 4
(MAP, UNMAP, UNUNMAP, ADVISE, BRK, FAILED, LEVEL, LEVEL_OF, THREAD_EXIT, EXIT, SIGNAL, FORK, NOTICE,
 CHILD_END, SHARED_THREAD, MARK) = range(16, 32)
SPACE_ALLOC, SPACE_FREE, SPACE_UNFREE = 32, 33, 34
SAMPLED_ALLOC, CHECKPOINT, ALLOC_WIDE, FREE_WIDE = 35, 36, 37, 38
WENT = 46
SPACE_MAP, SPACE_UNMAP, SPACE_UNUNMAP, SPACE_CLEAR, SPACE_CALL, TASK, TASK_END = range(39, 46)


def svarint(n):
    n = (n + (1 << 63)) % (1 << 64) - (1 << 63)
    return varint((n << 1) ^ (n >> 63))


def blob(data):
    if isinstance(data, str):
        data = data.encode()
    return varint(len(data)) + data


class Chunk:
    """One chunk of events. Times are absolute ticks; each event's dt follows from them."""

    def __init__(self, thread, ticks, mono_ns=None, tid=None, sequence=0, size=SLOT, kind=EVENTS,
                 seal=False):
        self.kind, self.thread, self.sequence, self.size = kind, thread, sequence, size
        self.tid = 1000 + thread if tid is None else tid
        self.start = self.ticks = ticks
        self.mono_ns = ticks if mono_ns is None else mono_ns
        self.last_address = self.last_stack = 0
        self.expected = {}
        self.body = bytearray()
        self.sides = []
        self.seal = seal
        self.override = {}

    def _dt(self, ticks):
        dt = 0 if ticks is None else ticks - self.ticks
        self.ticks += dt
        return varint(dt)

    def _address(self, address):
        assert address % 8 == 0
        d = (address - self.last_address) >> 3
        self.last_address = address
        return svarint(d)

    def alloc(self, address, size, stack=0, ticks=None, api=0, expect=False):
        """expect: by the stack that followed the last one before; an equal size is then left
        out."""
        place = (self.last_stack * 2654435761 & 0xFFFFFFFF) >> 22
        same = stack == self.last_stack
        if expect:
            assert self.expected.get(place, (0, 0))[0] == stack
            known = self.expected.get(place, (0, 0))[1] == size
            self.body += bytes([ALLOC_EXPECTED | api << 4 | (0x80 if known else 0)]) + self._dt(
                ticks)
            self.body += self._address(address) + (b"" if known else varint(size))
        else:
            self.body += bytes([ALLOC | api << 4 | (0x80 if same else 0)]) + self._dt(ticks)
            self.body += self._address(address) + varint(size) + (b"" if same else varint(stack))
        self.expected[place] = stack, size
        self.last_stack = stack

    def free(self, address, ticks=None, realloc=False):
        self.body += bytes([FREE | (0x10 if realloc else 0)]) + self._dt(ticks) + self._address(
            address)

    def unfree(self, address, ticks=None):
        self.body += bytes([UNFREE]) + self._dt(ticks) + self._address(address)

    def extended(self, kind, *fields, ticks=None, more=b""):
        body = self._dt(ticks) + b"".join(varint(f) for f in fields) + more
        self.body += bytes([15]) + varint(kind) + varint(len(body)) + body

    def levels(self, kind, fields, pairs, ticks=None, after=()):
        flat = [n for pair in pairs for n in pair]
        self.extended(kind, *fields, len(pairs), *flat, *after, ticks=ticks)

    def side(self, ticks, kind, address, size=0, stack=0, flags=0):
        self.sides.append(struct.pack("<QQQIBBH", ticks, address, size, stack, kind, flags, 0))

    def encode(self):
        f = {"magic": CHUNK_MAGIC, "kind": self.kind, "header": 64, "size": self.size,
             "thread": self.thread, "tid": self.tid, "sequence": self.sequence, "ticks": self.start,
             "mono_ns": self.mono_ns, "committed": len(self.body), "sides": len(self.sides),
             "checksum": xxh64(bytes(self.body)) if self.seal else 0, "sealed": int(self.seal)}
        f.update(self.override)
        out = bytearray(self.size)
        struct.pack_into("<IHHIIIIQQIIQII", out, 0, f["magic"], f["kind"], f["header"], f["size"],
                         f["thread"], f["tid"], f["sequence"], f["ticks"], f["mono_ns"],
                         f["committed"], f["sides"], f["checksum"], f["sealed"], 0)
        assert 64 + len(self.body) <= self.size - (SIDE_AREA if self.kind in (EVENTS, SHARED)
                                                   else 0)
        out[64:64 + len(self.body)] = self.body
        for n, record in enumerate(self.sides, 1):
            out[self.size - 32 * n:self.size - 32 * (n - 1)] = record
        return bytes(out)


def part(number, sequence, start=0, size=SLOT, seal=True):
    """A part of a checkpoint. SHARED_THREAD names the threads of its events."""
    return Chunk(0, start, tid=number, sequence=sequence, size=size, kind=PART, seal=seal)


class Definitions(Chunk):
    def __init__(self, ticks=0, mono_ns=None, size=SLOT):
        super().__init__(0, ticks, mono_ns, tid=0, size=size, kind=DEFINITIONS)

    def record(self, kind, body, committed=1, length=None):
        size = (8 + len(body) + 7) // 8 * 8
        self.body += struct.pack("<IHBB", size if length is None else length, kind, committed, 0)
        self.body += body + bytes(size - 8 - len(body))

    def hole(self, size):
        self.body += bytes(size)

    def string(self, id, text):
        self.record(STRING, varint(id) + blob(text))

    def module(self, id, path, build_id=b"", bias=0, ranges=((0, 0x10000, 0, 1),), device=0,
               inode=0,
               size=0, mtime_ns=0):
        numbers = [bias, device, inode, size, mtime_ns,
                   len(ranges)] + [n for r in ranges for n in r]
        self.record(MODULE, varint(id) + blob(path) + blob(build_id) +
                    b"".join(varint(n) for n in numbers))

    def code(self, id, version, first_line, name, file, table, flags=0):
        self.record(CODE, varint(id) + varint(version) + varint(first_line) + varint(flags) +
                    blob(name) + blob(file) + blob(table))

    def stack(self, id, frames, base=0, keep=0):
        """frames: ("native", module, address, exact) | ("python", code, offset) | ("cut", n) |
        ("end", why); outermost first."""
        body = varint(id) + varint(base) + varint(keep) + varint(len(frames))
        last = 0
        for frame in frames:
            if frame[0] == "native":
                _, module, address, exact = frame
                body += varint(module << 3 | (4 if exact else 0)) + svarint(address - last)
                last = address
            elif frame[0] == "python":
                body += varint(frame[1] << 2 | 1) + varint(frame[2] + 1)
            else:
                body += varint(frame[1] << 2 | (2 if frame[0] == "cut" else 3))
        self.record(STACK, body)

    def info(self, key, value):
        self.record(INFO, blob(key) + blob(value))

    def space(self, id, name, parent=0):
        self.record(SPACE, varint(id) + blob(name) + varint(parent))

    def thread_name(self, serial, tid, name):
        self.record(THREAD, varint(serial) + varint(tid) + blob(name))


def header(pid=4711, ppid=1, image=0, mode=0, clock=3, major=1, minor=0, ticks_hz=1000000000,
           start=(0, 0, 1700000000000000000), end=(0, 0), end_mono_ns=0, dropped=(),
           dropped_bytes=0,
           flags=2, checkpoints=(), paused_bytes=0, in_brief=(0, 0), rights={}, stopped=(0, 0, 0),
           unrecorded=0, programs=(), file_bytes=0, magic=b"WHYOOMT\n", header_bytes=HEADER,
           slot_bytes=SLOT):
    out = bytearray(SLOT)
    struct.pack_into("<8sHHIIIIIIIIIQQQQ", out, 0, magic, major, minor, header_bytes, slot_bytes, 1,
                     mode, clock, 0, pid, ppid, image, ticks_hz, *start)
    struct.pack_into("<QIIQ", out, 104, file_bytes, end[0], end[1], end_mono_ns)
    struct.pack_into("<16Q", out, 128, *(list(dropped) + [0] * (16 - len(dropped))))
    struct.pack_into("<QQ", out, 256, dropped_bytes, flags)
    for at, (number, parts, ticks) in zip((328, 344), checkpoints):
        struct.pack_into("<IIQ", out, at, number, parts, ticks)
    struct.pack_into("<3Q", out, 360, paused_bytes, *in_brief)
    for kind, ticks in rights.items():
        struct.pack_into("<Q", out, 512 + 8 * kind, ticks)
    struct.pack_into("<QQI", out, 640, *stopped)
    struct.pack_into("<Q", out, 1024, unrecorded)
    for i, (why, count, path) in enumerate(programs):
        struct.pack_into("<II120s", out, 1032 + 128 * i, why, count, path)
    return bytes(out)


def trace(chunks, **fields):
    body = b"".join(c if isinstance(c, bytes) else c.encode() for c in chunks)
    fields.setdefault("file_bytes", SLOT + len(body))
    return header(**fields) + body

"""Files of small traces (docs/trace-format.md, section 11), for the second reader."""

import os
import struct

from wire import Bytes, varint, xxh64

MAGIC = b"WHYOOMS\n"
HEAD = struct.Struct("<8sQIHBBIIIIIIQQ")
SLOT = 65536


class Coded:
    """The range code: bits by the statistics of each kind."""

    def __init__(self, data, at):
        self.data, self.at, self.range, self.code = data, at, 0xFFFFFFFF, 0
        for _ in range(4):
            self.code = self.code << 8 | self.byte()

    def byte(self):
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def fill(self):
        while self.range < 1 << 24:
            self.range = self.range << 8 & 0xFFFFFFFF
            self.code = (self.code << 8 | self.byte()) & 0xFFFFFFFF

    def bit(self, model, i):
        bound = (self.range >> 11) * model[i]
        one = self.code >= bound
        if one:
            self.code -= bound
            self.range -= bound
            model[i] -= model[i] >> 4
        else:
            self.range = bound
            model[i] += (2048 - model[i]) >> 4
        self.fill()
        return int(one)

    def tree(self, model, bits):
        node = 1
        for _ in range(bits):
            node = node << 1 | self.bit(model, node)
        return node - (1 << bits)

    def even(self, bits):
        value = 0
        for _ in range(bits):
            self.range >>= 1
            one = self.code >= self.range
            if one:
                self.code -= self.range
            value = value << 1 | one
            self.fill()
        return value


class Number:
    def __init__(self):
        self.bits, self.top = [1024] * 64, [[1024] * 4 for _ in range(33)]

    def read(self, c):
        """The number, and its count of bits."""
        bits = c.tree(self.bits, 6)
        if bits < 2:
            return bits, bits
        rest, node = bits - 1, 1
        for _ in range(min(2, rest)):
            node = node << 1 | c.bit(self.top[bits], node)
            rest -= 1
        return node << rest | c.even(rest), bits


def plain_form(c, base, size):
    window, end, distance, state = bytearray(base), len(base) + size, len(base), 0
    match, repeat = [1024] * 4, [1024] * 4
    literal = [[1024] * 256 for _ in range(8)]
    lengths, distances = (Number(), Number()), Number()
    while len(window) < end:
        if not c.bit(match, state):
            window.append(c.tree(literal[window[-1] >> 5], 8))
            state = 0 if state in (0, 3) else 3
            continue
        again = c.bit(repeat, state)
        n = lengths[again].read(c)[0] + (2 if again else 4)
        if not again:
            distance = distances.read(c)[0]
        for _ in range(n):
            window.append(window[-distance])
        state = 1 if again else 2
    return bytes(window[len(base):])


def traces(data):
    """Each trace of a file, as its own file would be: (pid, image, start, bytes)."""
    at = 0
    while (at := data.find(MAGIC, at)) >= 0:
        if at + HEAD.size > len(data):
            return
        (_, checksum, size, version, coded, quantum, pid, image, trace_bytes, plain_bytes, times,
         base_at, _,
         start) = HEAD.unpack_from(data, at)
        record = data[at:at + size]
        if version != 1 or len(record) != size or \
                xxh64(record[:8] + bytes(8) + record[16:]) != checksum:
            at += 1
            continue
        body, base = HEAD.size, b""
        if coded:
            size_of_base, = struct.unpack_from("<I", data, base_at + 36)
            base = data[base_at + HEAD.size:base_at + HEAD.size + size_of_base]
            c = Coded(record, body)
            plain = plain_form(c, base, plain_bytes)
        else:
            plain = record[body:body + plain_bytes]
            c = Coded(record, body + plain_bytes)
        yield pid, image, start, whole(plain, numbers(c, times), quantum, trace_bytes)
        at += size


def there(directory):
    """The small traces in a directory that have no file of their own there: (path as if it had,
    bytes)."""
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".whyooms"):
            continue
        with open(os.path.join(directory, name), "rb") as f:
            data = f.read()
        for pid, image, start, trace in traces(data):
            own = os.path.join(directory, f"{pid}.{image}.whyoom")
            if not os.path.exists(own) or start_of(own) != start:
                yield own, trace


def start_of(path):
    with open(path, "rb") as f:
        head = f.read(80)
    return struct.unpack_from("<Q", head, 72)[0] if len(head) == 80 else None


def numbers(c, count):
    models, out, bits = (Number(), Number()), [], 0
    for _ in range(count):
        value, bits = models[bits > 3].read(c)
        out.append(value)
    return out


def whole(plain, times, quantum, size):
    out, at, when = bytearray(size), 1024, iter(times)
    out[:1024] = plain[:1024]
    while at < len(plain):
        slot, = struct.unpack_from("<I", plain, at)
        head, at = bytearray(plain[at + 4:at + 68]), at + 68
        to = slot * SLOT
        if struct.unpack_from("<H", head, 4)[0] == 2:
            n, = struct.unpack_from("<I", plain, at)
            body, at = plain[at + 4:at + 4 + n], at + 4 + n
        else:
            n, = struct.unpack_from("<I", head, 40)
            body, at = events(plain[at:at + n], when, quantum), at + n
            struct.pack_into("<I", head, 40, len(body))
        out[to:to + 64 + len(body)] = head + body
    return bytes(out)


def events(part, when, quantum):
    out, c = bytearray(), Bytes(part)
    while c.at < len(part):
        tag, dt, start = c.byte(), varint(next(when) << quantum), c.at
        if tag & 15 == 15:
            kind, n = c.varint(), c.varint()
            out += bytes([tag]) + varint(kind) + varint(n + len(dt)) + dt + part[c.at:c.at + n]
            c.at += n
            continue
        for _ in range(1 + (tag & 15 == 1) + (tag & 15 in (1, 4) and not tag & 0x80)):
            c.varint()
        out += bytes([tag]) + dt + part[start:c.at]
    return bytes(out)

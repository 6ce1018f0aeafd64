"""For the second reader and the writer: numbers and bytes out of a record, numbers into one, and
the checksum."""

import struct

MASK = (1 << 64) - 1


class Torn(Exception):
    """The rest contradicts the format."""


class Bytes:
    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def byte(self):
        if self.at >= self.end:
            raise Torn
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            if shift == 63 and byte > 1:
                raise Torn
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise Torn

    def svarint(self):
        v = self.varint()
        return (v >> 1) ^ -(v & 1)

    def bytes(self):
        n = self.varint()
        if n > self.end - self.at:
            raise Torn
        self.at += n
        return bytes(self.data[self.at - n:self.at])

    def text(self):
        return self.bytes().decode("utf-8", "replace")


def varint(n):
    n &= MASK
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def xxh64(data):
    p = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
         2870177450012600261)
    rot = lambda x, n: ((x << n) | (x >> (64 - n))) & MASK
    turn = lambda acc, word: rot((acc + word * p[1]) & MASK, 31) * p[0] & MASK
    at, n = 0, len(data)
    if n >= 32:
        a, b, c, d = (p[0] + p[1]) & MASK, p[1], 0, -p[0] & MASK
        for w, x, y, z in struct.iter_unpack("<4Q", data[:n // 32 * 32]):
            a, b, c, d = turn(a, w), turn(b, x), turn(c, y), turn(d, z)
        at = n // 32 * 32
        h = (rot(a, 1) + rot(b, 7) + rot(c, 12) + rot(d, 18)) & MASK
        for lane in (a, b, c, d):
            h = ((h ^ turn(0, lane)) * p[0] + p[3]) & MASK
    else:
        h = p[4]
    h = (h + n) & MASK
    for at in range(at, n - 7, 8):
        h = (rot(h ^ turn(0, struct.unpack_from("<Q", data, at)[0]), 27) * p[0] + p[3]) & MASK
    at = n // 8 * 8
    if n - at >= 4:
        h = (rot(h ^ struct.unpack_from("<I", data, at)[0] * p[0] & MASK, 23) * p[1] + p[2]) & MASK
        at += 4
    for byte in data[at:]:
        h = rot(h ^ byte * p[4] & MASK, 11) * p[0] & MASK
    h = (h ^ h >> 33) * p[1] & MASK
    h = (h ^ h >> 29) * p[2] & MASK
    return h ^ h >> 32

"""Packed traces (docs/trace-format.md, section 10), for the second reader."""

import struct
import subprocess

from wire import MASK, Bytes, varint, xxh64


def unpack(data):
    """Section 9. libzstd's own program unpacks streams of zstd; this does the rest."""
    if data[:16] != struct.pack("<II8s", 0x184D2A50, 16, b"WHYOOMP\n"):
        return data
    version, = struct.unpack_from("<H", data, 16)
    count, flags, magic = struct.unpack("<IBI", data[-9:])
    assert version in (1, 2) and (flags, magic) == (0x80, 0x8F92EAB1)
    table = len(data) - 9 - 12 * count
    assert struct.unpack_from("<II", data, table - 8) == (0x184D2A5E, 12 * count + 9)
    plain, at = bytearray(), 0
    for n in range(count):
        packed, size, checksum = struct.unpack_from("<III", data, table + 12 * n)
        assert packed and size <= 1 << 20
        if size:
            frame = data[at:at + packed]
            part = joined(frame) if version == 2 and frame[0] == 1 else zstd(frame)
            assert len(part) == size and xxh64(part) & 0xFFFFFFFF == checksum
            plain += part
        at += packed
    assert at == table - 8
    return bytes(plain)


def zstd(frame):
    return subprocess.run(["zstd", "-dc"], input=frame, stdout=subprocess.PIPE, check=True).stdout


class Planes:
    """Numbers in three streams of a byte each, and a fourth for larger ones; or in one and a
    second."""
    def __init__(self, *streams):
        *self.low, self.last, self.more = streams

    def next(self):
        value = sum(stream.byte() << 8 * n for n, stream in enumerate(self.low))
        last = self.last.byte()
        return value + (last + self.more.varint() if last == 255 else last) * 256 ** len(self.low)


def joined(frame):
    """A chunk of events, from its 21 streams."""
    lengths = [struct.unpack_from("<II", frame, 1 + 8 * n) for n in range(21)]
    at, streams = 1 + 8 * 21, []
    for size, packed in lengths:
        part = frame[at:at + packed]
        part = part if packed == size else zstd(part)
        assert len(part) == size
        streams.append(Bytes(part))
        at += packed
    assert at == len(frame)
    literal, tags, place = streams[0], streams[1], streams[4]
    times, ages, written, sizes, stacks = (Planes(*streams[a:b]) for a,
                                           b in ((2, 4), (5, 9), (9, 13), (13, 17), (17, 21)))
    out, literal.at = bytearray(literal.data[:64]), 64
    address = stack = 0
    expected, births, released = [(0, 0)] * 1024, [], {}

    def size_class(size):
        return 1023 + size.bit_length() if size >= 16361 else (size + 23) // 16

    def step_to(there):
        step = (there - address) & MASK
        return varint((step << 1 ^ -(step >> 63)) & MASK)

    while tags.at < tags.end:
        tag = tags.byte()
        out.append(tag)
        if tag & 15 == 15:
            begin = literal.at
            literal.varint()
            literal.bytes()
            out += literal.data[begin:literal.at]
            continue
        out += varint(times.next())
        tail, told = b"", None
        if tag & 15 in (1, 4):
            where = (stack * 2654435761 & 0xFFFFFFFF) >> 22
            size = expected[where][1]
            if tag & 15 == 4:
                stack = expected[where][0]
            if tag & 0x8F != 0x84:
                size = sizes.next()
                tail = varint(size)
            if tag & 0x8F == 1:
                stack = stacks.next()
                tail += varint(stack)
            expected[where] = stack, size
            told = place.byte()
            free = released.setdefault(size_class(size), [])
            there = None if not told else address if told == 1 else births[free.pop(1 - told)][0]
        elif tag & 15 == 2:
            age = ages.next()
            there = None
            if age:
                birth = births[-age]
                there = birth[0]
                if not birth[2]:
                    birth[2] = True
                    released.setdefault(birth[1], []).append(len(births) - age)
        else:
            assert tag & 15 == 3
            there = None
        if there is None:
            v = written.next()
            out += varint(v)
            address = (address + ((v >> 1) ^ -(v & 1))) & MASK
        else:
            out += step_to(there)
            address = there
        if told is not None:
            births.append([address, size_class(size), False])
            out += tail
    out += literal.data[literal.at:]
    literal.at = literal.end
    assert all(s.at == s.end for s in streams)
    return bytes(out)

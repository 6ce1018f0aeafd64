"""The checks of section 8 of docs/trace-format.md, for the second reader: written from the document
alone."""

import struct

from wire import MASK, Bytes, Torn, xxh64

SLOT = 65536
COUNTERS = [*range(128, 272, 8), 360, 368, 376, 384]
COPIES = 3072


def number(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


def event_ends(body):
    """The end of each event, and whether it is one with a length."""
    b = Bytes(body)
    while b.at < b.end:
        tag = b.byte()
        kind = tag & 15
        if kind == 15:
            b.varint()
            b.bytes()
        elif kind in (1, 2, 3, 4):
            fields = {1: 4 - bool(tag & 0x80), 2: 2, 3: 2, 4: 3 - bool(tag & 0x80)}[kind]
            for _ in range(fields):
                b.varint()
        else:
            raise Torn
        yield b.at, kind == 15


def sums(chunk, committed):
    """The sum of all events, and of all but the last."""
    total = before = start = 0
    for end, long in event_ends(chunk[64:64 + committed]):
        before, reach, words = total, 64 + end, 0
        seen = chunk[:48] + struct.pack("<Q", before) + bytes(4) + chunk[60:]
        while words < 2 or (long and reach > 64 + start):
            total += number(seen if reach < 96 else chunk, reach - 8, 8)
            reach, words = reach - 8, words + 1
        total &= MASK
        start = end
    return total, before


def header(data):
    for mode in (number(data, 24, 4), 0, 1, 2):
        if number(data, 80, 8) == xxh64(data[:24] + struct.pack("<I", mode) + data[28:80]):
            break
    else:
        yield "header"
    for at in COUNTERS:
        if number(data, at, 8) != number(data, at + COPIES, 8):
            yield f"counter at {at}"
    if number(data, 112, 4) and number(data, 392, 8) != xxh64(data[112:128]):
        yield "end"
    for i in (0, 1):
        if number(data, 328 + 16 * i, 4) and number(data, 400 + 8 * i,
                                                    8) != xxh64(data[328 + 16 * i:344 + 16 * i]):
            yield f"checkpoint {i}"


def definitions(chunk, committed):
    at, found = 64, 0
    while at + 8 <= len(chunk):
        size = number(chunk, at, 4)
        if size % 8 or size < 16 or size > len(chunk) - at or \
                number(chunk, at + size - 4,
                       4) != xxh64(chunk[at:at + 6] + b"\0"
                                   + chunk[at + 7:at + size - 4]) & 0xFFFFFFFF:
            at += 8
            continue
        found += size
        at += size
    if found < committed:
        yield f"{committed - found} bytes of definitions"


def chunk(chunk):
    kind, committed, sides = number(chunk, 4, 2), number(chunk, 40, 4), number(chunk, 44, 4)
    check, side = number(chunk, 60, 4), chunk[len(chunk) - 32 * sides:] if sides else b""
    still_open = check == xxh64(chunk[:8] + bytes(4) + chunk[12:40]) & 0xFFFFFFFF
    if not still_open and check != (xxh64(chunk[:56]) ^ (xxh64(side) if sides else 0)) & 0xFFFFFFFF:
        yield "chunk header"
        return
    for i in range(sides):
        record = chunk[len(chunk) - 32 * (i + 1):len(chunk) - 32 * i]
        if number(record, 30, 2) != xxh64(record[:30]) & 0xFFFF:
            yield f"side record {i}"
    if kind == 2:
        yield from definitions(chunk, committed)
    elif not still_open:
        if number(chunk, 48, 8) != xxh64(chunk[64:64 + committed]):
            yield "checksum"
    elif kind in (1, 3):
        try:
            if number(chunk, 48, 8) not in sums(chunk, committed):
                yield "sum"
        except Torn:
            yield "events"


def unsound(data):
    """The changed parts of a trace whose process has ended or was killed; from version 2.7 on."""
    out, found, at = list(header(data)), 0, SLOT
    while at < len(data):
        size = number(data, at + 8, 4)
        if number(data, at, 4) != 0x6B6E6843 or not size or size % SLOT:
            at += SLOT
            continue
        out += [f"{at}: {words}" for words in chunk(data[at:at + size])]
        found += size
        at += size
    if found < number(data, 384, 8):
        out.append(f"{number(data, 384, 8) - found} bytes of chunks")
    return out

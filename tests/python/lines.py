"""Decodes CODE definitions and Python line tables as docs/trace-format.md describes them."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, at


class Code:
    """The body of a CODE definition."""

    def __init__(self, body):
        self.id, at = varint(body, 0)
        self.version, at = varint(body, at)
        self.first, at = varint(body, at)
        self.flags, at = varint(body, at)
        size, at = varint(body, at)
        self.name, at = body[at:at + size].decode("utf-8", "surrogateescape"), at + size
        size, at = varint(body, at)
        self.file, at = body[at:at + size].decode("utf-8", "surrogateescape"), at + size
        size, at = varint(body, at)
        self.table = body[at:at + size]

    def line(self, lasti):
        if lasti < 0:
            return self.first
        if self.version < 0x30a:
            return lnotab(self.table, self.first, lasti)
        if self.version < 0x30b:
            return table_310(self.table, self.first, lasti)
        return table_311(self.table, self.first, lasti)


def signed(byte):
    return byte - 256 if byte > 127 else byte


def lnotab(table, line, lasti):
    address = 0
    for i in range(0, len(table) - 1, 2):
        address += table[i]
        if address > lasti:
            break
        line += signed(table[i + 1])
    return line


def table_310(table, line, lasti):
    end = 0
    for i in range(0, len(table) - 1, 2):
        end += table[i]
        delta = signed(table[i + 1])
        if delta != -128:
            line += delta
        if lasti < end:
            return None if delta == -128 else line
    return None


def table_311(table, line, lasti):
    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = table[at]
            at += 1
            value |= (byte & 63) << shift
            shift += 6
            if not byte & 64:
                return value

    def signed_number():
        value = number()
        return -(value >> 1) if value & 1 else value >> 1

    at = start = 0
    while at < len(table):
        byte = table[at]
        at += 1
        kind, end = byte >> 3 & 15, start + ((byte & 7) + 1) * 2
        here = True
        if kind < 10:
            at += 1
        elif kind < 13:
            line += kind - 10
            at += 2
        elif kind == 13:
            line += signed_number()
        elif kind == 14:
            line += signed_number()
            number(), number(), number()
        else:
            here = False
        if start <= lasti < end:
            return line if here else None
        start = end
    return None

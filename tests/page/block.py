"""A second reader of a page's data, written from docs/page-data.md."""
import base64
import gzip
import re

TEXTS, RUN, FRAMES, MARKS, SPACE, CURVE, LATE, PLACES, SLICES, TREE, MAP, LEVELS, MOMENT, LANES, \
    GROUPS = range(1, 16)
MEASURES = ("moment", "peak", "total", "count", "temporary")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.number()
        return -(value + 1) // 2 if value & 1 else value // 2

    def bytes(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count:self.at]

    def column(self, count):
        return [self.number() for _ in range(count)]

    def differences_up(self, count):
        """Numbers that rise, each less the one before."""
        out, value = [], 0
        for _ in range(count):
            value += self.number()
            out.append(value)
        return out

    def differences(self, count):
        out, value = [], 0
        for _ in range(count):
            value += self.signed()
            out.append(value)
        return out


def read_texts(r):
    out, last = [None], b""
    for _ in range(r.number()):
        same = r.number()
        last = last[:same] + r.bytes(r.number())
        out.append(last.decode())  # or it is no UTF-8
    return out


def read_curve(r, texts):
    c = {"from": r.number(), "until": r.number()}
    n = r.number()
    c["last"] = r.differences(n)
    height = r.differences(n)
    c["least"] = r.differences(n)
    c["most"] = [a + b for a, b in zip(height, c["least"])]
    c["groups"] = [r.differences(n) for _ in range(21)]
    return c


def read_places(r, texts):
    n, more = r.number(), r.number()
    out = []
    for _ in range(n):
        p = {"function": texts[r.number()], "file": texts[r.number()], "line": r.number(),
             "part": texts[r.number()], "owner": r.number(), "class": r.number(),
             "largest": r.number()}
        p.update(zip(MEASURES, r.column(5)))
        shown = r.number()
        p["cut"], p["stack"] = r.number(), r.column(shown)
        out.append(p)
    return {"list": out, "more": more, "rest": dict(zip(MEASURES, r.column(5)))}


def read_slices(r, texts):
    end, count, sites = r.number(), r.number(), {}
    for _ in range(r.number()):
        cells, at = {}, 0
        place = r.number()
        for _ in range(r.number()):
            at += r.number()
            cells[divmod(at, count + 1)] = r.number(), r.number()
        sites[place] = cells
    return {"end": end, "count": count, "sites": sites}


def read_frames(r, texts):
    n = r.number()
    columns = [r.column(n) for _ in range(5)]
    return [(texts[f], texts[file], line, flags, texts[module])
            for f, file, line, flags, module in zip(*columns)]


def read_tree(r, texts, measures=MEASURES):
    n = r.number()
    t = {"depth": r.differences(n), "frame": r.column(n), "parent": []}
    t["more"] = [r.number() for frame in t["frame"] if not frame]
    way = []
    for i, depth in enumerate(t["depth"]):
        del way[depth:]
        t["parent"].append(way[-1] if way else -1)
        way.append(i)
        assert len(way) == depth + 1
    for m in measures:
        t[m] = r.column(n)
        for i in range(1, n):
            t[m][i] = t[m][t["parent"][i]] - t[m][i]
    return t


def read_map(r, texts):
    m = dict(zip(("bytes", "live", "blocks", "holes", "hole_bytes", "largest_hole", "hidden",
                  "request"), r.column(8)))
    m["room"] = r.column(4) if r.number() else None
    m["sites"] = [{"function": texts[r.number()], "file": texts[r.number()], "line": r.number(),
                   "bytes": r.number(), "blocks": r.number()} for _ in range(r.number())]
    n, m["more"], m["more_bytes"] = r.number(), r.number(), r.number()
    start = size = 0
    m["segments"] = []
    for _ in range(n):
        start += r.signed()
        size += r.signed()
        m["segments"].append((start, size, r.number(), r.number(), r.number()))
    n = r.number()
    m["pieces"] = list(zip(*[r.column(n) for _ in range(5)]))
    m["born"] = r.differences(sum(blocks > 0 for *_, blocks, _ in m["pieces"]))
    return m


def read_moment(r, texts):
    return {"kind": ("step", "peak", "end", "asked")[r.number()], "ns": r.number(),
            "map": read_map(r, texts)}


def read_lanes(r, texts):
    out = dict(zip(("begun", "at_once", "more"), r.column(3)))
    out["list"] = []
    for _ in range(r.number()):
        lane = {"kind": ("thread", "stage", "request")[r.number()], "from": r.number(),
                "length": r.number(), "name": texts[r.number()]}
        if lane["kind"] == "thread":
            lane["tid"] = r.number()
        elif lane["kind"] == "request":
            lane["number"], lane["flags"] = r.number(), r.number()
            lane["thread"], lane["tid"] = texts[r.number()], r.number()
        out["list"].append(lane)
    return out


def read_sums(r):
    """Number of a node or a place → its measures."""
    n = r.number()
    at = r.differences_up(n)
    return dict(zip(at, zip(*[r.column(n) for _ in MEASURES])))


def read_groups(r, texts):
    out = {"more": dict(zip(("moment", "total"), r.column(2))), "by_lane": {}}
    for _ in range(r.number()):
        index = r.number()
        one = dict(zip(("peak", "peak_ns", "moment", "total", "count"), r.column(5)))
        if r.number():
            one["nodes"], one["places"] = read_sums(r), read_sums(r)
        out["by_lane"][index] = one
    return out


def blocks(page):
    """The data of each process, as text."""
    return re.findall(
        r'<script type="application/octet-stream" id="d\d*">([A-Za-z0-9+/=]*)</script>', page)


def sections(page, process=0):
    """The page's text → [(number, reader)...] and its texts."""
    text = blocks(page)[process]
    r = Reader(gzip.decompress(base64.b64decode(text, validate=True)))
    out = []
    while r.at < len(r.data):
        section = r.number()
        out.append((section, Reader(r.bytes(r.number()))))
    return out, read_texts(dict(out)[TEXTS])


def read(page, process=0):
    """The page's text → {"run", "frames", "marks", "lanes", "texts", "spaces": [...]}."""
    found, texts = sections(page, process)
    out = {"texts": texts, "spaces": []}
    parts = {CURVE: ("curve", read_curve), LATE: ("late", read_curve),
             PLACES: ("places", read_places), SLICES: ("slices", read_slices),
             TREE: ("tree", read_tree), MAP: ("map", read_map), GROUPS: ("groups", read_groups)}
    for section, r in found:
        if section == RUN:
            out["run"] = {"end": r.number(), "moment": r.number(), "at": texts[r.number()],
                          "primary": r.number(), "spaces": r.number(),
                          "error": r.number()}
            out["run"]["classes"] = [texts[r.number()] for _ in range(r.number())]
        elif section == FRAMES:
            out["frames"] = read_frames(r, texts)
        elif section == MARKS:
            out["marks"] = [(*r.column(4), texts[r.number()], texts[r.number()])
                            for _ in range(r.number())]
        elif section == LANES:
            out["lanes"] = read_lanes(r, texts)
        elif section == SPACE:
            space = {"name": texts[r.number()], "kind": r.number(), "limit": r.number(),
                     "limit_kind": texts[r.number()]}
            space.update(zip(("peak", "peak_ns", "moment", "request"), r.column(4)))
            space["moments"] = []
            out["spaces"].append(space)
        elif section == MOMENT:
            out["spaces"][-1]["moments"].append(read_moment(r, texts))
            assert r.at == len(r.data)
        elif section in parts:
            name, reader = parts[section]
            out["spaces"][-1][name] = reader(r, texts)
            assert r.at == len(r.data), name
    return out

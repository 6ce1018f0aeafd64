"""A second reader of the data of a comparison's page, written from docs/page-data.md."""
import block

SIDES, SPACE, PHASES, LINES, UNION = range(32, 37)
MEASURES = ("moment", "peak", "total")
KINDS = ("same", "grew", "shrank", "new", "gone")


def read_curve(r):
    if not r.number():
        return None
    c = {"from": r.number(), "length": r.number(), "last": r.number(), "known": r.number()}
    c["at"] = r.differences(c["known"])
    return c


def read_phases(r, texts):
    count, points = r.number(), r.number()
    return [{"name": texts[r.number()], "points": points, "a": read_curve(r), "b": read_curve(r)}
            for _ in range(count)]


def read_line(r, texts):
    p = {"function": texts[r.number()], "file": texts[r.number()], "line": r.number(),
         "line_before": r.number(), "renamed": texts[r.number()], "kind": KINDS[r.number()],
         "reason": r.number(), "flags": r.number(), "change": r.signed(), "noise": r.number()}
    for side in "ab":
        p[side] = dict(zip(MEASURES, r.column(3)))
        p[side].update(zip(("blocks", "mean", "top", "error"), r.column(4)))
    shown = r.number()
    p["cut"], p["stack"] = r.number(), r.column(shown)
    return p


def read_lines(r, texts):
    count, more = r.number(), r.number()
    out = {"list": [read_line(r, texts) for _ in range(count)], "more": more}
    out["rest"] = {side: dict(zip(MEASURES, r.column(3))) for side in "ab"}
    return out


def read(page):
    """The page's text → {"sides", "frames", "texts", "spaces": [...]}."""
    sections, texts = block.sections(page)
    out = {"texts": texts, "spaces": []}
    union = [f"{side}_{m}" for side in "ab" for m in MEASURES] + ["changed"]
    for section, r in sections:
        if section == SIDES:
            out["sides"] = {"flags": r.number(), "by": texts[r.number()]}
            for side in "ab":
                out["sides"][side] = texts[r.number()], texts[r.number()], r.number()
            out["sides"]["spaces"] = r.number()
        elif section == block.FRAMES:
            out["frames"] = block.read_frames(r, texts)
        elif section == SPACE:
            space = {"name": texts[r.number()]}
            for side in "ab":
                space[side] = dict(zip(("present", "time", "bytes", "error", "peak", "requests",
                                        "limit"), r.column(7)))
            out["spaces"].append(space)
        elif section == PHASES:
            out["spaces"][-1]["phases"] = read_phases(r, texts)
        elif section == LINES:
            out["spaces"][-1]["lines"] = read_lines(r, texts)
        elif section == UNION:
            out["spaces"][-1]["tree"] = block.read_tree(r, texts, union)
        assert section == block.TEXTS or r.at == len(r.data), section
    return out

"""`whyoom export --format sqlite` and `parquet`: whole, of the types they claim, and with the sums
of `whyoom sites` and the events of the JSON lines."""

import collections
import os
import resource
import sqlite3
import struct
import subprocess
import sys

import pytest
from lib import MEASURES, TESTS, WHYOOM, cases, export, golden, read_jsonl, varint

sys.path.insert(0, os.path.join(TESTS, "cli"))
import test_hostile  # noqa: E402

hostile = test_hostile.trace
KINDS = ("alloc", "free", "unfree", "map", "unmap", "ununmap", "failed")


# --- SQLite ---

def database(trace, path, *words):
    done = subprocess.run([WHYOOM, "export", "-f", "sqlite", "-o", path, *words, trace],
                          capture_output=True, text=True, timeout=120)
    if "built without SQLite" in done.stderr:
        pytest.skip("this build has no libsqlite3")
    assert done.returncode == 0, done.stderr
    assert os.listdir(path.parent) == [path.name]
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert db.execute("PRAGMA application_id").fetchone() == (0x7768794F,)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    tables = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE"
                        " 'sqlite_%'").fetchall()
    assert len(tables) == 12 and all(sql.endswith("STRICT") for _, sql in tables)
    return db


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_sqlite_sums(trace, tmp_path):
    compared = 0
    for space, at, expected in cases(trace):
        db = database(trace, tmp_path / "out", "--space", space, "--at", at, "--events", "none")
        for measure, column in MEASURES.items():
            row = db.execute(f"SELECT coalesce(sum({column}), 0) FROM sum JOIN space ON"
                             " space.id = space WHERE name = ? AND total_bytes", (space,))
            assert row.fetchone() == (expected[measure],), (space, at, measure)
            compared += 1
        assert db.execute("SELECT sum(live_bytes), sum(total_blocks) FROM by_line").fetchone() \
            == db.execute("SELECT sum(live_bytes), sum(total_blocks) FROM sum").fetchone()
        db.close()
        os.unlink(tmp_path / "out")
    assert compared


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_sqlite_events(trace, tmp_path):
    """The events and curves of the JSON lines, the blocks that they leave, their stacks."""
    db = database(trace, tmp_path / "out")
    lines = read_jsonl(export(trace, "jsonl"))
    events = [x for x in lines if x["type"] == "event" and x["kind"] in KINDS[:6]]
    rows = db.execute("SELECT t_ns, kind, name, size FROM event JOIN space ON id = space"
                      " ORDER BY event.rowid").fetchall()
    assert [r[:3] for r in rows] == [(int(e["t_ns"]), e["kind"], e["space"]) for e in events]
    assert all(r[3] == int(e["size"]) for r, e in zip(rows, events) if "size" in e)
    curves = [x for x in lines if x["type"] == "sample"]
    assert db.execute("SELECT kind, t_ns, bytes FROM curve ORDER BY rowid").fetchall() == [
        (c["curve"], int(c["t_ns"]), int(c["bytes"])) for c in curves]
    alive = collections.Counter()
    for e in events:
        if e["kind"] in ("alloc", "unfree") or (e["kind"] == "free" and "size" in e):
            alive[e["space"]] += int(e.get("bytes", e["size"])) * (-1 if e["kind"] == "free" else 1)
    found = dict(db.execute("SELECT name, sum(bytes) FROM live_block JOIN space ON space.id = space"
                            " GROUP BY 1").fetchall())
    assert {k: v for k, v in found.items() if v} == {k: v for k, v in alive.items() if v}
    released = sum(e["kind"] == "free" and "size" in e for e in events)
    taken_back = sum(e["kind"] == "unfree" for e in events)
    count = db.execute("SELECT count(*) FROM block WHERE died_ns >= born_ns").fetchone()[0]
    assert count == released - taken_back
    # Each node's depth is its parent's plus one.
    assert db.execute("SELECT count(*) FROM stack s LEFT JOIN stack p ON p.id = s.parent WHERE"
                      " s.depth IS NOT coalesce(p.depth + 1, 0)").fetchone() == (0,)
    stacks = {x["id"]: [f["function"] for f in reversed(x["frames"])] for x in lines
              if x["type"] == "stack"}
    sums = [x for x in lines if x["type"] == "sum"]
    rows = db.execute("SELECT stack, live_bytes, total_bytes FROM sum ORDER BY rowid").fetchall()
    assert [r[1:] for r in rows] == [(s["live_bytes"], s["total_bytes"]) for s in sums]
    for (node, *_), s in list(zip(rows, sums))[:50]:
        path = db.execute(
            "WITH RECURSIVE up(id, parent, frame) AS (SELECT id, parent, frame FROM stack WHERE"
            " id = ? UNION ALL SELECT s.id, s.parent, s.frame FROM stack s JOIN up ON s.id ="
            " up.parent) SELECT count(*) FROM up", (node,)).fetchone()[0]
        assert path == len(stacks.get(s["stack"], []))


def test_sqlite_hostile(hostile, tmp_path):
    db = database(hostile, tmp_path / "out")
    names = [r[0] for r in db.execute("SELECT function FROM frame")]
    assert any("</script>" in n and "\ufffd" in n for n in names)
    assert db.execute("SELECT count(*) FROM verdict").fetchone() == (1,)
    db.close()


@pytest.mark.parametrize("room", (0, 5000, 60000, 100000))
def test_sqlite_full(hostile, tmp_path, room):
    """No room at the beginning, in the middle, at the end: no file, and no journal."""
    done = subprocess.run([WHYOOM, "export", "-f", "sqlite", "-o", tmp_path / "out", hostile],
                          capture_output=True, text=True, preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    assert done.returncode == 1 and not os.listdir(tmp_path)
    assert "cannot write the database" in done.stderr or "built without" in done.stderr


def test_sqlite_no_file(hostile):
    done = subprocess.run([WHYOOM, "export", "-f", "sqlite", "-o", "/dev/null", hostile],
                          capture_output=True, text=True)
    assert done.returncode == 1 and ("regular file" in done.stderr or "built with" in done.stderr)


# --- Parquet ---

class Thrift:
    """Compact protocol: structs as {field: value}."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def varint(self):
        value, self.at = varint(self.data, self.at)
        return value

    def zigzag(self):
        n = self.varint()
        return n >> 1 ^ -(n & 1)

    def value(self, kind):
        if kind in (5, 6):
            return self.zigzag()
        if kind == 8:
            n = self.varint()
            self.at += n
            return self.data[self.at - n:self.at]
        if kind == 9:
            head = self.data[self.at]
            self.at += 1
            count = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15) for _ in range(count)]
        assert kind == 12, kind
        return self.struct()

    def struct(self):
        found, field = {}, 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if not head:
                return found
            assert head >> 4
            field += head >> 4
            found[field] = self.value(head & 15)


def pages(data, meta):
    """The values of a column chunk."""
    t = Thrift(data, meta[9])
    raw, left = b"", meta[5]
    before = t.at
    while left:
        header = t.struct()
        packed = data[t.at:t.at + header[3]]
        t.at += header[3]
        done = subprocess.run(["zstd", "-dc"], input=packed, capture_output=True, check=True)
        assert len(done.stdout) == header[2] and header[1] == 0
        assert header[5] == {1: header[5][1], 2: 0, 3: 3, 4: 3}
        left -= header[5][1]
        raw += done.stdout
    assert left == 0 and t.at - before == meta[7]
    if meta[1] == 2:
        return list(struct.unpack(f"<{meta[5]}q", raw))
    found, at = [], 0
    for _ in range(meta[5]):
        n = int.from_bytes(raw[at:at + 4], "little")
        found.append(raw[at + 4:at + 4 + n].decode())
        at += 4 + n
    assert at == len(raw)
    return found


def read_parquet(data):
    """{column: [value]}"""
    assert data[:4] == data[-4:] == b"PAR1"
    size = int.from_bytes(data[-8:-4], "little")
    footer = Thrift(data, len(data) - 8 - size)
    meta = footer.struct()
    assert footer.at == len(data) - 8 and meta[1] == 2
    root, *columns = meta[2]
    assert root[5] == len(columns) and all(c[3] == 0 for c in columns)
    table = {c[4].decode(): [] for c in columns}
    for group in meta[4]:
        for chunk, column in zip(group[1], columns):
            m = chunk[3]
            assert m[1] == column[1] and m[3] == [column[4]] and m[4] == 6 and m[2] == [0]
            assert m[5] == group[3]
            table[column[4].decode()] += pages(data, m)
    assert all(len(v) == meta[3] for v in table.values())
    return table


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_parquet_sums(trace):
    compared = 0
    for space, at, expected in cases(trace):
        t = read_parquet(export(trace, "parquet", "--events", "none", "--space", space, "--at", at))
        assert set(t["space"]) <= {space} and set(t["at"]) <= {at}
        some = [bool(n) for n in t["total_bytes"]]
        for measure, column in MEASURES.items():
            assert sum(v for v, s in zip(t[column], some) if s) == expected[measure]
            compared += 1
    assert compared


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_parquet_events(trace):
    t = read_parquet(export(trace, "parquet"))
    lines = read_jsonl(export(trace, "jsonl"))
    events = [x for x in lines if x["type"] == "event" and x["kind"] in KINDS]
    assert list(zip(t["t_ns"], t["kind"], t["space"])) == [
        (int(e["t_ns"]), e["kind"], e["space"]) for e in events]
    assert all(size == int(e["size"]) for size, e in zip(t["size"], events) if "size" in e)
    assert [n & (1 << 64) - 1 for n in t["address"]] == [
        int(e.get("address", "0"), 16) if "address" in e else n & (1 << 64) - 1
        for e, n in zip(events, t["address"])]
    assert all(b <= n for b, n in zip(t["born_ns"], t["t_ns"]))
    few = read_parquet(export(trace, "parquet", "--events", "5"))
    assert few["number"] == t["number"][len(t["number"]) - len(few["number"]):]
    assert len(set(few["number"])) <= 5


def test_parquet_hostile(hostile):
    t = read_parquet(export(hostile, "parquet"))
    assert any("</script>" in name for name in t["function"])
    t = read_parquet(export(hostile, "parquet", "--events", "none"))
    assert any("</script>" in frames for frames in t["frames"])

"""objects.py ROUNDS - JSON, strings and arrays, built and dropped; prints a sum of the results."""

import array
import json
import sys
import zlib


def make(n):
    return {"id": n, "name": "user %d" % n, "tags": ["t%d" % (n * k % 97) for k in range(8)],
            "scores": [n * k / 7.0 for k in range(12)],
            "nested": {"a": {"b": [None, True, str(n)]}}}


def turn_around(n):
    text = json.dumps([make(n + i) for i in range(20)], indent=1)
    return json.loads(text)


def words(rows):
    out = []
    for row in rows:
        line = " ".join([row["name"]] + row["tags"])
        out.append(line.upper().replace("T", "tt").split())
    return sorted({w for line in out for w in line})


def arrays(rows):
    a = array.array("d")
    for row in rows:
        a.extend(row["scores"])
    b = array.array("d", sorted(a, reverse=True))
    return sum(x * i for i, x in enumerate(b))


def main(rounds):
    check = 0
    kept = {}
    for n in range(rounds):
        rows = turn_around(n)
        w = words(rows)
        kept[n % 50] = (rows, w)
        check = zlib.crc32(("%s %.6f" % (len(w), arrays(rows))).encode(), check)
    print(check, len(kept))


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)

"""Tables are joined on their keys; in one report every row has the same key."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def join(left, right):
    by_key = {}
    for row in right:
        by_key.setdefault(row["key"], []).append(row)
    return [{**row, **other} for row in left for other in by_key.get(row["key"], ())]


def report(keys):
    orders = [{"key": i % keys, "order": i} for i in range(1500 * SCALE)]
    items = [{"key": i % keys, "item": str(i)} for i in range(1500 * SCALE)]
    return len(join(orders, items))


def main():
    for _ in range(60):
        report(1000)
    report(1)


main()

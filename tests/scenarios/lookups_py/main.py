"""A directory's search: what each query finds is read in rows and thrown away; queries are short
and long as they come, and now and then one is longer than all before."""
import os
import random

SCALE = float(os.environ.get("SCALE", 1))


def fetch(count):
    rows = []
    for n in range(count):
        rows.append(bytearray(int(60000 * SCALE)))
    return rows


def search(count):
    return sum(len(row) for row in fetch(count))


def main():
    dice, found = random.Random(17), 0
    for _ in range(300):
        found += search(int(dice.lognormvariate(4.5, 1)))
    print("found", found)


main()

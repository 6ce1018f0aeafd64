"""Small objects, in the interpreter's own arenas, in a dictionary that nobody empties."""
import os

SCALE = int(os.environ.get("SCALE", "1"))
seen = {}


def record(key):
    seen[key] = [(key, i) for i in range(3 * SCALE)]


def main():
    for key in range(100000000):
        record(key)


main()

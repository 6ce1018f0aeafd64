"""Small answers from a few documents, thousands of times; then all documents at once, in a list."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def load(count):
    return [f"document {i} " * 1500 * SCALE for i in range(count)]


def answer():
    return max(len(d) for d in load(20))


def main():
    for _ in range(3000):
        answer()
    return len(load(1000000))


main()

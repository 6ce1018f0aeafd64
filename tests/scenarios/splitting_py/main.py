"""Thousands of small questions; then one call that loads and splits a whole corpus into a list."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def load(count):
    for i in range(count):
        yield f"paragraph {i} of the manual. " * 40 * SCALE


def split(text):
    return [text[k:k + 200 * SCALE] for k in range(0, len(text), 180 * SCALE)]


def ingest(count):
    chunks = []
    for text in load(count):
        for piece in split(text):
            chunks.append(piece)
    return chunks


def ask():
    return max(ingest(3), key=len)


def main():
    for _ in range(5000):
        ask()
    return len(ingest(100000000))


main()

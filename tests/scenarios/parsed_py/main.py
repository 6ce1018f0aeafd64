"""Every query is parsed once and kept parsed: an unbounded cache of many small objects."""
import functools
import os

SCALE = int(os.environ.get("SCALE", "1"))


@functools.lru_cache(maxsize=None)
def parse(query):
    words = query.split()
    return {"words": words, "pairs": list(zip(words, words[1:])),
            "lengths": [len(w) for w in words]}


def answer(number):
    query = " ".join(f"term{number + i}" for i in range(40 * SCALE))
    tree = parse(query)
    return sum(tree["lengths"])


def main():
    for number in range(1000000):
        answer(number)
        answer(number // 2)


main()

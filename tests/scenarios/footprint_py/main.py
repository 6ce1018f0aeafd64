"""A large model in memory, and steady work beside it."""


def load():
    return [bytearray(5000000) for _ in range(40)]


def infer(weights, i):
    return sum(bytes(weights[i % len(weights)][:50000]))


def main():
    weights = load()
    for i in range(2000):
        infer(weights, i)


main()

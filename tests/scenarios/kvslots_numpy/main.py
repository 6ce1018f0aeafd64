"""A decoder's cache for the largest batch and the longest context, taken for each layer at the
start."""
import numpy as np
import os

SCALE = int(os.environ.get("SCALE", "1"))

LAYERS, BATCH, CONTEXT, WIDTH = 24, 16, 1024, 64


class Cache:
    def __init__(self):
        self.keys = [np.full((BATCH, CONTEXT, WIDTH * SCALE), 0.5, np.float32)
                     for _ in range(LAYERS)]
        self.values = [np.full((BATCH, CONTEXT, WIDTH * SCALE), 0.5, np.float32)
                       for _ in range(LAYERS)]


def decode(cache, step):
    for keys, values in zip(cache.keys, cache.values):
        row = np.full((WIDTH * SCALE,), step, np.float32)
        keys[0, step % CONTEXT] = row
        values[0, step % CONTEXT] = row


def main():
    cache = Cache()
    for step in range(2000):
        decode(cache, step)


main()

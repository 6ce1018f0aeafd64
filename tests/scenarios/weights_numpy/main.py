"""Loads a model's shards with np.fromfile and widens them, then would answer."""
import tempfile

import numpy as np
import os

SCALE = int(os.environ.get("SCALE", "1"))

SHAPES = [(32000, 256)] + [(256, 768), (256, 256), (256, 1024), (1024, 256), (256,), (256,)] * 40


def shard(count):
    f = tempfile.TemporaryFile()
    f.truncate(count * 2)
    return f


def load(shape):
    count = int(np.prod(shape)) * SCALE
    with shard(count) as f:
        half = np.fromfile(f, dtype=np.float16, count=count)
    return half.astype(np.float32)


def answer(model, number):
    x = np.ones(256, dtype=np.float32)
    for weights in model[1:8]:
        x = x * weights[:256]
    return float(x[0]) + number


def main():
    model = [load(shape) for shape in SHAPES]
    for number in range(200):
        answer(model, number)


main()

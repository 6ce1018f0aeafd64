"""Loads a model in bfloat16, widens each weight in several steps and merges an adapter into
some."""
import os

import numpy as np

SCALE = int(os.environ.get("SCALE", "1"))
LAYERS, WIDTH, RANK = 24 * SCALE, 512, 16
SHAPES = {"query": (1, 1), "key": (1, 1), "value": (1, 1), "output": (1, 1), "up": (4, 1),
          "down": (1, 4)}


def read(layer):
    source = np.random.default_rng(layer)
    return {name: source.integers(0, 60000, (rows * WIDTH, columns * WIDTH), dtype=np.uint16)
            for name, (rows, columns) in SHAPES.items()}


def widen(raw):
    bits = raw.astype(np.uint32) << 16
    return bits.view(np.float32)


def delta(shape):
    down = np.ones((shape[0], RANK), np.float32)
    up = np.ones((RANK, shape[1]), np.float32)
    return (down @ up) * np.float32(0.02)


def merge(raw, name):
    weight = widen(raw)
    if name in ("query", "value"):
        weight = weight + delta(weight.shape)
    return np.ascontiguousarray(weight)


def load():
    parameters = {}
    for layer in range(LAYERS):
        for name, raw in read(layer).items():
            parameters[layer, name] = merge(raw, name)
    return parameters


def answer(parameters):
    x = np.ones((1, WIDTH), np.float32)
    for layer in range(LAYERS):
        x = x @ parameters[layer, "query"]
    return float(x[0, 0])


model = load()
for number in range(20):
    answer(model)

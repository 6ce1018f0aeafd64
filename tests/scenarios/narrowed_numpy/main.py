"""Builds a model layer by layer, each parameter drawn in double precision and then narrowed, and
answers."""
import os

import numpy as np

SCALE = int(os.environ.get("SCALE", "1"))
WIDTH, LAYERS = 512, 32 * SCALE


class Layer:
    def __init__(self, random):
        self.query = random.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        self.key = random.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        self.wide = random.standard_normal((WIDTH, 4 * WIDTH)).astype(np.float32)
        self.bias = np.zeros(WIDTH, np.float32)

    def apply(self, x):
        return np.tanh(x @ self.query) @ self.key + self.bias


class Network:
    def __init__(self):
        random = np.random.default_rng(1)
        self.table = random.standard_normal((16000, WIDTH)).astype(np.float32)
        self.layers = [Layer(random) for _ in range(LAYERS)]

    def answer(self, number):
        x = self.table[number : number + 4]
        for layer in self.layers[:4]:
            x = layer.apply(x)
        return float(x.sum())


def main():
    network = Network()
    for number in range(200):
        network.answer(number)


main()

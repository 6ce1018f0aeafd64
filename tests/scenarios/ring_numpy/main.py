"""A decoder's cache of keys for the last thousand tokens, overwritten in turn."""
import numpy as np
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Attention:
    def __init__(self):
        self.keys = np.zeros((1024, 4096 * SCALE), np.float32)

    def step(self, number, row):
        self.keys[number % 1024] = row
        return float((self.keys[:256] * row).sum())


def main():
    attention = Attention()
    row = np.ones((4096 * SCALE,), np.float32)
    for number in range(1500):
        attention.step(number, row)


main()

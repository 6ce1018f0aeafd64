"""For each request the activations are put aside to be looked at, and nobody ever looks."""
import numpy as np
import os

SCALE = int(os.environ.get("SCALE", "1"))

debug = []


def forward(number):
    hidden = np.full((250, 512 * SCALE), number, np.float32)
    debug.append(hidden)
    return float((hidden * 2).sum())


def main():
    for number in range(100000):
        forward(number)


main()

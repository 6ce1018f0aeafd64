"""Small searches all day; then one compares everything with everything."""
import numpy as np
import os

SCALE = int(os.environ.get("SCALE", "1"))

vectors = np.ones((9000 * SCALE, 32), np.float32)


def compare(queries):
    return (queries @ vectors.T).max(axis=1)


def main():
    for number in range(400):
        compare(vectors[number:number + 4])
    compare(vectors)


main()

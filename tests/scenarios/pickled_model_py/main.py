"""A worker reads its model from a file of many layers at the start; then it would serve."""
import array
import pickle
import tempfile
import os

SCALE = int(os.environ.get("SCALE", "1"))

SIZES = [6000000, 1500000, 400000, 2500000, 1000000] * 12


def saved():
    f = tempfile.TemporaryFile()
    for size in SIZES:
        pickle.dump(size * SCALE, f)
    f.seek(0)
    return f


class Model:
    def __init__(self, f):
        self.layers = []
        for _ in SIZES:
            self.layers.append(self.read_layer(f))

    def read_layer(self, f):
        return array.array("b", bytes(pickle.load(f)))

    def infer(self, number):
        return sum(layer[number % 1000] for layer in self.layers)


def main():
    with saved() as f:
        model = Model(f)
    for number in range(5000):
        model.infer(number)


main()

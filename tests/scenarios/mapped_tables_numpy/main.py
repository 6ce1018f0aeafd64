"""An embedder's tables are files of several sizes, mapped one after the other; then it would
answer."""
import os
import tempfile

import numpy as np

SCALE = int(os.environ.get("SCALE", "1"))
ROWS = (60000, 50000, 50000, 30000, 30000, 20000)
WIDTH = 256


def write(folder, number, rows):
    path = os.path.join(folder, "table%d.npy" % number)
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, {"descr": "<f4", "fortran_order": False,
                                                 "shape": (rows * SCALE, WIDTH)})
        f.truncate(f.tell() + rows * SCALE * WIDTH * 4)
    return path


def open_table(path):
    return np.load(path, mmap_mode="r")


class Embedder:
    def __init__(self, paths):
        self.tables = []
        for path in paths:
            self.tables.append(open_table(path))

    def embed(self, words):
        return sum(table[words].mean(axis=0) for table in self.tables)


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = Embedder([write(folder, number, rows) for number, rows in enumerate(ROWS)])
        for number in range(200):
            model.embed([number, 2 * number, 3 * number])


main()

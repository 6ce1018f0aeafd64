"""An editor's undo stack: before each step the state is copied, and no copy is ever dropped."""
import copy
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Board:
    def __init__(self):
        self.cells = {}
        self.undo = []

    def checkpoint(self):
        self.undo.append(copy.deepcopy(self.cells))

    def move(self, step):
        self.cells[step % 400] = [step] * (20 * SCALE)


def main():
    board = Board()
    for step in range(100000):
        board.checkpoint()
        board.move(step)


main()

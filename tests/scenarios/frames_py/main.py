"""Frame buffers for the most viewers that may ever come, at full resolution; two come."""
import os

SCALE = int(os.environ.get("SCALE", "1"))

VIEWERS = 120


class Studio:
    def __init__(self):
        self.frames = []
        for viewer in range(VIEWERS):
            self.frames.append(self.frame())

    def frame(self):
        return bytearray(b"\1" * (1920 * 1080 * 3 * SCALE))


def show(studio, number):
    line = bytes([number % 256]) * 1920
    studio.frames[number % 2][:1920] = line


def main():
    studio = Studio()
    for number in range(20000):
        show(studio, number)


main()

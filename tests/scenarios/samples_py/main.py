"""Batches of short records, each batch of another length; one record in two hundred is kept for the
statistics, and keeps the page that it lies on from every other length."""
import os

SCALE = int(os.environ.get("SCALE", "1"))

samples = []


def read_batch(number):
    length = 24 + number % 14 * 32
    return [b"%08d" % i + b"x" * length for i in range(20000000 * SCALE // (length + 40))]


def sample(batch):
    samples.append(batch[::200])


def main():
    for number in range(40):
        sample(read_batch(number))


main()

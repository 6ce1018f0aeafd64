"""A table that grows by one entry for each key, each a few bytes larger than the one before."""
import os

SCALE = int(os.environ.get("SCALE", "1"))
table = {}


def answer(number):
    table[number] = bytearray(150_000 * SCALE + number)


number = 0
while True:
    answer(number)
    number += 1

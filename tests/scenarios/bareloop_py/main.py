"""Each text that comes is kept, and nothing is ever released."""
import os

SCALE = int(os.environ.get("SCALE", "1"))
kept = []


def keep(number):
    kept.append("x" * ((3000 + number * 7919 % 9000) * SCALE))


number = 0
while True:
    keep(number)
    number += 1

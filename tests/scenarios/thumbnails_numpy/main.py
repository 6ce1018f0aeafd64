"""Classifies images of three sizes, and keeps each of them by mistake after it was answered for."""
import os
import random

import numpy as np

SCALE = int(os.environ.get("SCALE", "1"))
SIDES = [side + 32 * SCALE for side in (224, 480, 692)]

random.seed(4)
seen = []


def decode(side):
    return np.full((side, side, 3), 7, np.uint8)


def normalise(image):
    wide = image.astype(np.float32)
    return (wide - np.float32(127)) / np.float32(128)


def handle(number):
    side = random.choices(SIDES, [5, 3, 2])[0]
    pixels = normalise(decode(side))
    seen.append(pixels)
    return {"number": number, "side": side, "score": float(pixels.mean())}


for number in range(400):
    handle(number)

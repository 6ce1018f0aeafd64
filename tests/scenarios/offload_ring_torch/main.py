"""When a conversation rests, its cache goes from the device to page-locked memory of the host;
there are so many places for them, and who comes last takes the place of who has rested longest."""
import os
import random
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


class Past:
    def __init__(self):
        self.keys = self.values = None

    def extend(self, keys, values):
        self.keys, self.values = keys, values
        return keys, values


class Shelf:
    """Places of one size, page-locked from the start."""
    PLACES = 24

    def __init__(self, layers, longest, width=512):
        self.places = torch.empty(self.PLACES, layers, 2, longest, width, pin_memory=True)
        self.names = [None] * self.PLACES
        self.at = 0

    def put(self, name, past):
        place = self.places[self.at]
        for layer, p in enumerate(past):
            for part, kept in enumerate((p.keys, p.values)):
                flat = kept.transpose(1, 2).flatten(2)[0]
                place[layer, part, :len(flat)].copy_(flat, non_blocking=True)
        self.names[self.at] = name
        self.at = (self.at + 1) % self.PLACES


@torch.no_grad()
def talk(model, length):
    past = [Past() for _ in model.blocks]
    model(tokens(1, length), past)
    return past


def main():
    dice, model = random.Random(8), SmallLM().cuda().eval()
    shelf = Shelf(len(model.blocks), 128 * SCALE)
    for n in range(400):
        shelf.put("visitor %d" % n, talk(model, dice.choice((64, 96, 128)) * SCALE))


main()

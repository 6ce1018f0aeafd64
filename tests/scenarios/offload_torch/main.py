"""When a conversation rests, its cache goes from the device to page-locked memory of the host, so
that it is back in no time; conversations that nobody comes back to stay there."""
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
    """Conversations at rest."""
    def __init__(self):
        self.resting = {}

    def put(self, name, past):
        self.resting[name] = [(p.keys.to("cpu").pin_memory(), p.values.to("cpu").pin_memory())
                              for p in past]


@torch.no_grad()
def talk(model, length):
    past = [Past() for _ in model.blocks]
    model(tokens(1, length), past)
    return past


def main():
    dice, shelf, model = random.Random(8), Shelf(), SmallLM().cuda().eval()
    for n in range(2000):
        shelf.put("visitor %d" % n, talk(model, dice.choice((64, 96, 128)) * SCALE))


main()

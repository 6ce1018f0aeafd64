"""A search over thoughts: before each of them the whole cache is cloned, to be able to go back."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


class Past:
    def __init__(self):
        self.k = self.v = None

    def extend(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], 2)
        self.v = v if self.v is None else torch.cat([self.v, v], 2)
        return self.k, self.v


def save(past):
    return [(p.k.clone(), p.v.clone()) for p in past]


@torch.no_grad()
def think(model, steps):
    past, undo = [Past() for _ in model.blocks], []
    model(tokens(1, 30), past)
    for _ in range(steps):
        undo.append(save(past))
        model(tokens(1, 24 * SCALE), past)


def main():
    think(SmallLM().cuda().eval(), 5000)


main()

"""Chats that get longer; each token's keys and values are joined to those before."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


class Past:
    def __init__(self):
        self.keys = self.values = None

    def extend(self, keys, values):
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], 2)
            values = torch.cat([self.values, values], 2)
        self.keys, self.values = keys, values
        return keys, values


@torch.no_grad()
def generate(model, prompt, count):
    past = [Past() for _ in model.blocks]
    model(prompt, past)
    for _ in range(count):
        model(tokens(len(prompt), 1), past)


def main():
    model = SmallLM().cuda().eval()
    for turn in range(1, 400):
        generate(model, tokens(16, 100 * SCALE * turn), 40)


main()

"""A model that is larger than the device."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


def load():
    with torch.device("meta"):
        model = SmallLM(width=2048 * SCALE, heads=32, layers=120 // SCALE, words=32000)
    return model.to_empty(device="cuda").eval()


def main():
    model = load()
    for length in (100, 200):
        model(tokens(1, length))


main()

"""A chat whose whole history is read again at each turn."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


@torch.no_grad()
def chat(model, history):
    return model(history).argmax(-1)


def main():
    model = SmallLM().cuda().eval()
    history = tokens(1, 200)
    while True:
        answer = chat(model, history)
        history = torch.cat([history, answer[:, -150 * SCALE:]], 1)


main()

"""Many small requests; then one so long that its attention alone exceeds the device."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


@torch.no_grad()
def score(model, length):
    return model(tokens(1, length)).log_softmax(-1).amax(-1)


def main():
    model = SmallLM().cuda().eval()
    for i in range(80):
        score(model, (100 + i % 7 * 30) * SCALE)
    score(model, 9000 * SCALE)


main()

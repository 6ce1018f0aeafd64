"""Requests of any length; of each, the last scores are kept for an audit that never comes."""
import os
import random
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))
kept = []


@torch.no_grad()
def handle(model, prompt):
    scores = model(prompt)
    kept.append(scores[:, -64 * SCALE:].float().clone())
    return scores.argmax(-1)


def main():
    random.seed(1)
    model = SmallLM().cuda().eval()
    while True:
        handle(model, tokens(2, random.choice([64, 128, 100, 192]) * SCALE))


main()

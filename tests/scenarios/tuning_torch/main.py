"""A translation service that gives back what it does not use, on a card where a fine-tuning starts
by and by: somebody else's job, which knows nothing of it."""
import os
import random
import subprocess
import sys
import time
import torch
from torch import nn


def tuning():
    steps = []
    while True:
        try:
            steps.append(torch.empty(24 << 20, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            pass
        time.sleep(0.02)


class Translator(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.words = nn.Embedding(16000, width)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 12, 3072, batch_first=True), 6,
            enable_nested_tensor=False)

    @torch.inference_mode()
    def translate(self, sentences, length):
        return self.encoder(self.words(torch.zeros(sentences, length, dtype=torch.long,
                                                   device="cuda"))).sum()


def another():
    """Of another container: nothing of ours but the card."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("WHYOOM")
           or k.startswith("WHYOOM_SIMGPU")}
    env["LD_PRELOAD"] = ":".join(p for p in os.environ.get("LD_PRELOAD", "").split(":")
                                 if "simgpu" in p)
    return subprocess.Popen([sys.executable, __file__, "tuning"], env=env)


def main():
    dice, model, job = random.Random(12), Translator().half().cuda().eval(), None
    try:
        for n in range(5000):
            model.translate(dice.randint(1, 24), dice.randint(10, 180))
            if n % 40 == 39:
                torch.cuda.empty_cache()
            if n == 300:
                job = another()
            time.sleep(0.002)
    finally:
        if job:
            job.kill()


tuning() if len(sys.argv) > 1 else main()

"""More and more users at once; each of them alone is no trouble."""
import os
import random
import threading
import time
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


class Past:
    def __init__(self):
        self.keys = self.values = None

    def extend(self, keys, values):
        if self.keys is None:
            self.keys, self.values = keys, values
        return self.keys, self.values


@torch.no_grad()
def answer(model, length, steps):
    past = [Past() for _ in model.blocks]
    model(tokens(4, length), past)
    for _ in range(steps):
        model(tokens(4, 1), past)
        time.sleep(0.002)


def main():
    random.seed(4)
    model = SmallLM().cuda().eval()
    failed = []

    def user():
        try:
            answer(model, random.randint(900, 1000) * SCALE // 2, 30)
        except torch.OutOfMemoryError as error:
            failed.append(error)

    for _ in range(6):
        answer(model, 950 * SCALE // 2, 5)
    for users in (1, 2, 4, 8, 16, 32, 64):
        threads = [threading.Thread(target=user) for _ in range(users)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise failed[0]


main()

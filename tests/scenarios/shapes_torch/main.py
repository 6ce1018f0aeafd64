"""Each request's shape that was not seen yet gets a graph of its own, in a dictionary for good."""
import random
import torch
from torch import nn


class Service:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(640, 1280), nn.ReLU(), nn.Linear(1280, 640)).cuda()
        self.seen = {}

    def fresh(self, rows, columns):
        x = torch.zeros(rows, columns, 640, device="cuda")
        self.net(x)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = self.net(x)
        self.seen[rows, columns] = g, x, y

    def answer(self, rows, columns):
        data = torch.zeros(rows, columns, 640, device="cuda")
        if (rows, columns) not in self.seen:
            self.fresh(rows, columns)
        g, x, y = self.seen[rows, columns]
        x.copy_(data)
        g.replay()
        return y.sum(-1)


@torch.no_grad()
def main():
    dice, service = random.Random(11), Service()
    for _ in range(4000):
        service.answer(dice.choice((1, 2, 4)), 64 * dice.randint(8, 40))


main()

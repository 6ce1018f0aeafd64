"""A small language model of random weights, for the scenarios on a device."""
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.into = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, past=None):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for t in self.into(x).chunk(3, -1))
        if past is not None:
            k, v = past.extend(k, v)
        weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / 8.0, -1)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past=None):
        x = x + self.attention(self.before(x), past)
        return x + self.down(functional.gelu(self.up(self.after(x))))


class SmallLM(nn.Module):
    def __init__(self, width=512, heads=8, layers=6, words=8000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, past=None):
        x = self.words(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, past[i] if past else None)
        return self.head(x)


def tokens(batch, length):
    return torch.zeros(batch, length, dtype=torch.long, device="cuda")

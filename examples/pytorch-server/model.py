"""A small transformer of random weights, with a key-value cache, in half precision."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        if past is not None:
            k = torch.cat([past[0], k], 2)
            v = torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.out(y.transpose(1, 2).reshape(batch, length, width)), (k, v)


class Block(nn.Module):
    def __init__(self, width, heads, attention):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x, past):
        y, cache = self.attention(self.norm1(x), past)
        x = x + y
        return x + self.mlp(self.norm2(x)), cache


class Transformer(nn.Module):
    attention = Attention
    longest = None  # tokens of a request, prompt and answer; None: any

    def __init__(self, layers=16, width=1024, heads=16, vocabulary=32000):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, self.attention) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, cache=None):
        x = self.embed(tokens)
        grown = []
        for i, block in enumerate(self.blocks):
            x, kept = block(x, cache[i] if cache else None)
            grown.append(kept)
        return self.head(x[:, -1:]), grown


@torch.inference_mode()
def generate(model, prompts, new_tokens):
    """prompts: (batch, length). As many steps as asked for; on the simulated GPU the tokens mean
    nothing, the memory does."""
    logits, cache = model(prompts)
    made = 0
    for _ in range(new_tokens):
        token = logits.argmax(-1).clamp(0, 31999)
        logits, cache = model(token, cache)
        made += 1
    return made

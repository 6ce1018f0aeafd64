"""llama.py - transformers' own Llama, of random weights, generates a token at a time; its cache is
made anew, one longer, for each layer and token, until it does not fit."""
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from until_failure import run, said

BATCH, LAYERS, HEADS, HEAD = 64, 12, 16, 64


def generate():
    config = LlamaConfig(hidden_size=HEADS * HEAD, intermediate_size=2816, num_hidden_layers=LAYERS,
                         num_attention_heads=HEADS, num_key_value_heads=HEADS, vocab_size=8000,
                         max_position_embeddings=1 << 20)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).half().eval()
    cache = DynamicCache()
    token = torch.zeros(BATCH, 1, dtype=torch.long, device="cuda")
    with torch.no_grad():
        for length in range(1, 100000):
            # keys or values of a layer
            said.update(length=length, asked=BATCH * HEADS * length * HEAD * 2)
            model(token, past_key_values=cache, use_cache=True, logits_to_keep=1)


run(generate)

"""generate.py - tokens of a Llama of random weights by transformers, greedily, and then, without
giving anything back, what PyTorch counted; a line of JSON each. Not by generate(), whose end
depends on what the device computes."""
import json
import os

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.manual_seed(7)
config = LlamaConfig(vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=8,
                     num_attention_heads=8, num_key_value_heads=4, bos_token_id=None,
                     eos_token_id=None,
                     pad_token_id=0)
model = LlamaForCausalLM(config).half().eval().to("cuda")
token = torch.arange(1, 33, device="cuda")[None]
made, cache = [], DynamicCache()
with torch.inference_mode():
    for _ in range(64):
        token = model(token, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)
        made.append(token)
print(json.dumps({"tokens": torch.cat(made, 1).tolist()}))
print(json.dumps(torch.cuda.memory_stats()), flush=True)
os._exit(0)

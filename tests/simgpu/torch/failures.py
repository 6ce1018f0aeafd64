"""failures.py WHICH - programs that run out of a device's memory, each in its own way. The last
line is what PyTorch says, or `fits`, with figures."""
import json
import sys

import torch

d = "cuda"


def model():
    """Loading alone is too much."""
    layers = []
    for _ in range(1000):
        layers.append(torch.nn.Linear(4096, 4096, device=d))
    return 0


def kv_cache():
    """A cache that is made anew, one longer, at each step."""
    new = torch.zeros(8, 32, 1, 128, device=d, dtype=torch.float16)
    layers = [new.clone() for _ in range(12)]
    for step in range(100000):
        where["steps"] = step
        for i, layer in enumerate(layers):
            layers[i] = torch.cat([layer, new], 2)
    return 0


def leak():
    """Each request leaves something behind."""
    kept = []
    for request in range(100000):
        where["steps"] = request
        where.setdefault("curve", []).append(torch.cuda.memory_allocated())
        work = torch.empty(32 << 20, dtype=torch.uint8, device=d)
        kept.append(work[:1].expand(4 << 20).contiguous())
        del work
    return 0


def fragmentation():
    """Half of the memory is free, in holes that a live neighbour pins."""
    large = [torch.empty(80 << 20, dtype=torch.uint8, device=d) for _ in range(30)]
    del large
    small = [torch.empty(40 << 20, dtype=torch.uint8, device=d) for _ in range(60)]
    del small[::2]
    kept = [torch.empty(80 << 20, dtype=torch.uint8, device=d) for _ in range(10)]
    return len(kept) + len(small)


def llama():
    """A real model of random weights, whose cache grows with each token."""
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12,
                         num_attention_heads=16, num_key_value_heads=16, vocab_size=8000,
                         max_position_embeddings=1 << 20)
    with torch.device(d):
        net = LlamaForCausalLM(config).half().eval()
    cache = DynamicCache()
    token = torch.zeros(16, 1, dtype=torch.long, device=d)
    with torch.no_grad():
        for length in range(1, 100000):
            where["steps"] = length
            net(token, past_key_values=cache, use_cache=True, logits_to_keep=1)
    return 0


def half():
    """Takes half of what there is, says so, and waits."""
    kept = torch.empty(torch.cuda.mem_get_info()[0] // 2 >> 21 << 21, dtype=torch.uint8, device=d)
    print("holds", flush=True)
    sys.stdin.read()
    kept = [kept]
    while True:
        kept.append(torch.empty(32 << 20, dtype=torch.uint8, device=d))


where = {}


def at_failure(device, size, total, free):
    where["allocated"] = torch.cuda.memory_allocated()


torch.cuda.init()
torch._C._cuda_attach_out_of_memory_observer(at_failure)
try:
    where["result"] = globals()[sys.argv[1]]()
    what = "fits"
except torch.OutOfMemoryError as error:
    what = str(error)
where.update(reserved=torch.cuda.memory_reserved(),
             stats_ooms=torch.cuda.memory_stats()["num_ooms"])
print(json.dumps(where))
print(what)

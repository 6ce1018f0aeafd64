"""What PyTorch is asked for that must work on the simulated device; `ok` at the end."""
import gc

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

d = "cuda"
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert torch.cuda.get_device_properties(0).total_memory == 4 << 30
assert torch.cuda.get_device_capability() == (8, 0)

x = torch.randn(64, 512, device=d)
assert torch.equal(torch.arange(1000.0).cuda().cpu(), torch.arange(1000.0))
assert torch.cat([x, x]).shape == (128, 512)
assert torch.index_select(x, 0, torch.tensor([1, 2], device=d)).shape == (2, 512)
assert (x @ x.T).shape == (64, 64) and torch.softmax(x, -1).shape == x.shape
assert torch.baddbmm(torch.zeros(2, 3, 5, device=d), torch.ones(2, 3, 4, device=d),
                     torch.ones(2, 4, 5, device=d)).shape == (2, 3, 5)
assert torch.topk(x, 5)[0].shape == (64, 5) and torch.sort(x)[0].shape == x.shape
assert torch.nn.Embedding(1000, 64).to(d)(torch.zeros(2, 5, dtype=torch.long, device=d)).shape == (
    2, 5, 64)
assert torch.linspace(0, 1, 7, device=d).shape == (7,)

for dtype in (torch.float16, torch.bfloat16):
    q = torch.randn(2, 8, 64, 64, device=d, dtype=dtype)
    assert F.scaled_dot_product_attention(q, q, q).shape == q.shape
    for backend in (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            assert F.scaled_dot_product_attention(q, q, q).shape == q.shape

m = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048),
                        torch.nn.Linear(2048, 512)).to(d)
o = torch.optim.AdamW(m.parameters())
for _ in range(3):
    m(x).square().mean().backward()
    o.step()
    o.zero_grad()
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert m(x).dtype == torch.bfloat16

s = torch.cuda.Stream()
with torch.cuda.stream(s):
    y = x * 2
    y.record_stream(torch.cuda.current_stream())
torch.cuda.synchronize()
a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
a.record()
b.record()
b.synchronize()
assert a.elapsed_time(b) >= 0

g = torch.cuda.CUDAGraph()
still = torch.randn(32, 512, device=d)
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    m(still)
torch.cuda.current_stream().wait_stream(s)
with torch.cuda.graph(g):
    out = m(still)
g.replay()
assert out.shape == (32, 512)

torch.cuda.memory._record_memory_history(max_entries=1000)
z = torch.empty(1000, 1000, device=d)
snapshot = torch.cuda.memory._snapshot()
assert len(snapshot["segments"]) > 2 and snapshot["device_traces"][0]
torch.cuda.memory._record_memory_history(enabled=None)

assert torch.empty(1000, pin_memory=True).is_pinned()
available, total = torch.cuda.mem_get_info()
assert total == 4 << 30 and available < total
held = []
try:
    while True:
        held.append(torch.empty(100 << 20, dtype=torch.uint8, device=d))
except torch.OutOfMemoryError as error:
    text = str(error)
    print(text)
    assert "Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 4.00 GiB of which" in text
    assert "this process has 3.9" in text and "is allocated by PyTorch" in text
    assert "reserved by PyTorch but unallocated" in text
assert torch.cuda.memory_stats()["num_ooms"] == 1
del held
gc.collect()
torch.cuda.empty_cache()
assert torch.cuda.mem_get_info()[0] == available
print("ok")

"""compute.py - results of computing, to be compared between two runs: a few steps of training, an
attention, a convolution, graphs, and copies there and back; as JSON, to the last digit."""
import json
import os

import torch
from torch import nn

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.enabled = "SIMULATED" not in os.environ
results = {}

model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(64, 256).cuda()
results["losses"] = []
for _ in range(5):
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    results["losses"].append(loss.item())
q = torch.randn(2, 8, 128, 64).half().cuda()
results["attention"] = nn.functional.scaled_dot_product_attention(q, q, q).float().sum().item()
if torch.backends.cudnn.enabled:
    images = torch.randn(4, 3, 64, 64).cuda()
    results["convolution"] = nn.Conv2d(3, 16, 3).cuda()(images).sum().item()
there = torch.arange(1 << 20).cuda()
results["copied"] = torch.equal(there.cpu(), torch.arange(1 << 20))

still = torch.zeros(1024, device="cuda")
stream = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=stream):
    still += 1
for _ in range(10):
    graph.replay()
results["replayed"] = still.sum().item()
print(json.dumps(results), flush=True)

#!/usr/bin/env python3
"""numpy and PyTorch on the CPU: the same numbers, from as many threads and processes."""

import glob
import os
import subprocess
import sys

import harness
from harness import Skip, check, output

NUMPY = r"""
import hashlib, multiprocessing, os, sys, threading
import numpy as np
def digest(a): return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()[:16]
r = np.random.default_rng(1)
a = r.standard_normal((300, 300))
print("product", digest(np.round(a @ a.T, 6) + 0.0), digest(np.round(np.linalg.inv(a) @ a, 3) + 0.0))
print("values", np.round(np.linalg.svd(a, compute_uv=False)[:4], 6), np.round(np.linalg.det(a[:20, :20]), 3))
print("sorted", digest(np.sort(r.integers(0, 1 << 40, 300000))), digest(np.argsort(a, axis=0, kind="stable")))
print("fft", np.round(np.abs(np.fft.fft(a[0]))[:5], 6), np.einsum("ij,jk->k", a, a).round(6)[:3])
seen = {}
def work(k):
    b = np.random.default_rng(k).integers(0, 255, (400, 400), dtype=np.uint8)
    for i in range(30):
        b = np.roll(np.concatenate([b[::2], b[1::2]]), i, axis=1) ^ np.uint8(i)
    seen[k] = digest(b)
threads = [threading.Thread(target=work, args=(k,)) for k in range(12)]
[t.start() for t in threads]; [t.join() for t in threads]
print("threads", sorted(seen.items()))
path = os.path.join(os.environ["TMPDIR"], "mapped.npy")
m = np.lib.format.open_memmap(path, mode="w+", dtype=np.int64, shape=(500000,))
m[:] = np.arange(500000) * 7919 % 1009
m.flush(); del m
print("mapped", np.load(path, mmap_mode="r").sum(), digest(np.load(path)))
def child(k): return float(np.round((np.random.default_rng(k).standard_normal((200, 200)) @ np.eye(200)).sum(), 6))
with multiprocessing.get_context("fork").Pool(3) as pool:
    print("children", pool.map(child, range(9)))
try:
    np.empty(1 << 55, dtype=np.uint8)
except MemoryError as e:
    print(type(e).__name__, e)
sys.exit(7)
"""

TORCH = r"""
import io, os, sys
import torch
from torch.utils.data import DataLoader, Dataset
torch.manual_seed(1); torch.set_num_threads(2)
print("cuda", torch.cuda.is_available(), torch.cuda.device_count())
class Numbers(Dataset):
    def __len__(self): return 256
    def __getitem__(self, i): return torch.sin(torch.arange(40.0) * (i + 1)), i % 4
model = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    total = 0.0
    for x, y in DataLoader(Numbers(), batch_size=32, num_workers=2):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        total += loss.item()
    print("epoch", epoch, round(total, 3))
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
buffer.seek(0)
again = torch.load(buffer, weights_only=True)
print("saved", all(torch.equal(again[k], v) for k, v in model.state_dict().items()), len(buffer.getvalue()))
lstm = torch.nn.LSTM(32, 48, 2)
out, _ = lstm(torch.randn(20, 4, 32))
print("lstm", round(out.sum().item(), 3), tuple(out.shape))
conv = torch.nn.Conv2d(3, 8, 3)(torch.randn(2, 3, 32, 32))
print("conv", round(conv.mean().item(), 4), torch.linalg.svdvals(torch.randn(60, 60))[:2].round(decimals=3).tolist())
traced = torch.jit.trace(model, torch.ones(1, 40))
print("traced", torch.allclose(traced(torch.ones(2, 40)), model(torch.ones(2, 40))))
q, k, v = (torch.randn(1, 4, 64, 32) for _ in range(3))
attention = torch.softmax(q @ k.transpose(-1, -2), -1) @ v
print("attention", round(attention.sum().item(), 3))
try:
    torch.empty(1 << 50)
except RuntimeError as e:
    print(type(e).__name__, str(e).split("allocate memory")[-1][:60])
sys.stdout.flush()
sys.exit(7)
"""


def python_with(module):
    """The interpreter of an environment that another suite has made, or the system's."""
    home = os.path.expanduser("~")
    kept = sorted(glob.glob(os.path.join(home, ".cache/whyoom-tests/%s-*/bin/python" % module)),
                  key=natural)
    for python in kept[::-1] + [harness.PYTHON]:
        p = subprocess.run([python, "-c", "import %s as m; print(m.__version__)" % module],
                           capture_output=True, text=True)
        if p.returncode == 0:
            return python, p.stdout.strip()
    raise Skip("no Python here has %s: other suites install it in ~/.cache" % module)


def natural(path):
    return [int(x) if x.isdigit() else x for x in path.replace(".", "-").split("-")]


def run(job, module, name, what, script):
    python, number = python_with(module)
    job.about("%s %s" % (name, number), what)
    got = job.both(lambda side: output(side,
                                       side.run([python, "-c", script],
                                                env={"OPENBLAS_NUM_THREADS": "2",
                                                     "OMP_NUM_THREADS": "2"})))
    check(got[0] == "status 7", "it ends with %s" % (got,))
    found = job.preload.traces(least=20000, processes=3)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


CASES = {
    "numpy": lambda job: run(job, "numpy", "numpy",
                             "linear algebra, sorting, threads, mapped files, forked pools", NUMPY),
    "torch": lambda job: run(job, "torch", "PyTorch (CPU)",
                             "training with forked loaders, convolution, attention, tracing",
                             TORCH),
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))

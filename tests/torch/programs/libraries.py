"""What PyTorch asks CUDA's other libraries for: it has its shape, or raises the library's own
error. `ok` at the end."""
import os

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

d = "cuda"


def shape(tensor, *wanted):
    assert tensor.shape == wanted, (tensor.shape, wanted)


def refused(error, function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as raised:
        assert error in str(raised), raised
    else:
        raise AssertionError(f"{function} is not refused")


# cuDNN: convolutions, attention, batch normalisation, each with its gradient
for dtype in torch.float32, torch.float16:
    image = torch.randn(2, 3, 64, 64, device=d, dtype=dtype, requires_grad=True)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8),
                              torch.nn.ConvTranspose2d(8, 4, 3)).to(d, dtype)
    out = net(image)
    shape(out, 2, 4, 64, 64)
    out.sum().backward()
    shape(image.grad, 2, 3, 64, 64)
    shape(F.conv1d(torch.randn(2, 3, 64, device=d, dtype=dtype),
                   torch.randn(8, 3, 3, device=d, dtype=dtype)), 2, 8, 62)
    shape(F.conv3d(torch.randn(2, 3, 8, 8, 8, device=d, dtype=dtype),
                   torch.randn(8, 3, 3, 3, 3, device=d, dtype=dtype)), 2, 8, 6, 6, 6)
q = torch.randn(2, 8, 64, 64, device=d, dtype=torch.float16, requires_grad=True)
shape(F.scaled_dot_product_attention(q, q, q), 2, 8, 64, 64)
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    out = F.scaled_dot_product_attention(q, q, q, is_causal=True)
shape(out, 2, 8, 64, 64)
out.sum().backward()
shape(q.grad, 2, 8, 64, 64)
refused("cuDNN", torch.nn.LSTM(16, 32).to, d)

# cuFFT, with its workspace
before = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
signal = torch.randn(64, 1000, device=d, dtype=torch.complex64)
shape(torch.fft.fft(signal), 64, 1000)
assert torch.cuda.memory_stats()["allocated_bytes.all.allocated"] - before >= 3 * signal.nbytes
shape(torch.fft.irfft2(torch.fft.rfft2(torch.randn(4, 64, 64, device=d))), 4, 64, 64)

# NCCL: a collective that waits for nobody
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True)
torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
torch.distributed.all_reduce(signal)
shape(signal, 64, 1000)
torch.distributed.destroy_process_group()

# cuSOLVER, cuSPARSE, cuSPARSELt and NVRTC say no
square = torch.randn(5, 5, device=d)
refused("cusparse", torch.mm, torch.sparse_csr_tensor([0, 1, 2, 3, 4, 5], range(5),
                                                      torch.ones(5)).to(d), square)
refused("cusolver", torch.linalg.inv, square)
refused("cusolver", torch.linalg.cholesky, square)
refused("NVRTC", torch.special.bessel_j0, square)
refused("cusparseLt", torch._cslt_compress, torch.zeros(128, 128, device=d, dtype=torch.float16))

# NVTX and CUPTI: nobody listens
torch.cuda.nvtx.range_push("x")
torch.cuda.nvtx.range_pop()
with torch.profiler.profile():
    torch.ones(4, device=d)
print("ok")

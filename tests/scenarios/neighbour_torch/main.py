"""A steady server, and a neighbour on the same device that takes what is left."""
import os
import subprocess
import sys
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))


def neighbour():
    kept = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda")]
    print("up", flush=True)
    sys.stdin.readline()
    while torch.cuda.mem_get_info()[0] > 96 << 20:
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    print("full", flush=True)
    sys.stdin.read()


@torch.no_grad()
def serve(model, length):
    return model(tokens(8, length)).argmax(-1)


def main():
    model = SmallLM().cuda().eval()
    other = subprocess.Popen([sys.executable, __file__, "neighbour"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    for i in range(60):
        serve(model, (300 + i % 5 * 50) * SCALE)
    torch.cuda.empty_cache()
    other.stdin.write("go\n")
    other.stdin.flush()
    other.stdout.readline()
    for i in range(60):
        serve(model, (300 + i % 5 * 50) * SCALE)


neighbour() if len(sys.argv) > 1 else main()

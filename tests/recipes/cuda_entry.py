"""A CUDA entry point: cuMemAllocNew, which takes device memory."""
import os
import sys

import lib

TITLE = "A CUDA entry point"
MOST = 1
ROW = ("CUDA_API(DRIVER, cuMemAllocNew, cuMemAllocNew, 13000, ANY, ONE, DEVICE, "
       "(gpu_ptr *out, size_t size), (out, size), ALLOC(DEVICE, out, size))\n")
DRIVER = """#include "driver.h"
EXPORT gpu_result cuMemAllocNew(gpu_ptr *out, size_t size)
{
	gpu_result result = stand_enter();

	return result ? result : stand_take(out, size, 'd', 0);
}
"""
PROGRAM = """#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect) \\
	extern gpu_result symbol parameters;
#include "cuda/cuda_abi.h"
#include "cuda/cuda_api.def"
extern gpu_result cuInit(unsigned flags);
int main(void)
{
	gpu_context context;
	gpu_ptr p;

	return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	       cuMemAllocNew(&p, 4711) || cuMemFree_v2(p);
}
"""


def follow(tree):
    tree.insert("shim/cuda/cuda_api.def", "CUDA_API(DRIVER, cuMemAlloc_v2,", ROW)
    tree.made("docs/cuda-calls.md", "tests/lint/cuda_calls.py")


def prove(tree):
    tree.test("cuda-calls", "symbols")
    work = os.path.join(lib.WORK, "cuda-entry")
    os.makedirs(work, exist_ok=True)
    for name, text in {"new.c": DRIVER, "program.c": PROGRAM}.items():
        with open(os.path.join(work, name), "w") as f:
            f.write(text)
    stand = tree.path("tests/cuda/stand")
    cc = ["cc", "-std=gnu11", "-g", "-D_GNU_SOURCE", "-w", "-I", tree.path("shim"), "-I", stand]
    lib.run([*cc, "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1",
             os.path.join(stand, "driver.c"), os.path.join(stand, "objects.c"),
             os.path.join(work, "new.c"), "-ldl", "-lpthread", "-o",
             os.path.join(work, "libcuda.so.1")])
    lib.run([*cc, os.path.join(work, "program.c"), os.path.join(work, "libcuda.so.1"), "-o",
             os.path.join(work, "program")])
    test = os.path.join(work, "test_new.py")
    with open(test, "w") as f:
        f.write(f"""import sys
sys.path.insert(0, {tree.path('tests/cuda')!r})
from harness import equal, run, takes
equal(takes(run("program").trace), [("cuda:0", 4711, "cuMemAllocNew", "")])
""")
    lib.run([sys.executable, test, tree.built("shim/libwhyoom.so"), work, tree.top])

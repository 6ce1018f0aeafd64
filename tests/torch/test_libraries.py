#!/usr/bin/env python3
"""CUDA's other libraries, which the simulated device stands in for, as PyTorch uses them on a plain
device and on those for which it chooses differently."""
from wheel import Run, equal, main


def libraries(python, device):
    equal(Run(python, "programs/libraries.py", memory=device, record=False).end().last, "ok",
          "the last line")


def case_plain(python):
    libraries(python, "4GiB")


def case_h100(python):
    """Attention is cuDNN's by itself."""
    libraries(python, "H100")


def case_b200(python):
    libraries(python, "B200")


if __name__ == "__main__":
    main(globals())

"""until_failure.py - runs a program until the device's memory is used up, and says what PyTorch
knows of that: a line of JSON, then PyTorch's message or `fits`.

`asked` is set by the program before each request that may fail, in bytes."""
import json

import torch

said = {"asked": 0}


def at_failure(device, segment, total, free):
    """Called by the allocator with what its message is made of."""
    stats = torch.cuda.memory_stats(device)
    said.update(segment=segment, free=free, total=total,
                allocated=stats["allocated_bytes.all.current"],
                reserved=stats["reserved_bytes.all.current"],
                blocks=stats["allocation.all.current"], segments=stats["segment.all.current"])


def run(program):
    torch.cuda.init()
    if torch.cuda.get_allocator_backend() == "native":  # others have no observers
        torch._C._cuda_attach_out_of_memory_observer(at_failure)
    try:
        program()
        message = "fits"
    except torch.cuda.OutOfMemoryError as error:
        message = str(error)
    stats = torch.cuda.memory_stats()
    said.update(ooms=stats["num_ooms"], retries=stats["num_alloc_retries"])
    print(json.dumps(said))
    print(message, flush=True)

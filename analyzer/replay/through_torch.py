"""through_torch.py STREAM DEVICE_BYTES ALLOWED_BYTES - what a program asked of PyTorch's caching
allocator, asked once more of the real one. `whyoom replay --through torch` starts this with the
user's Python; it needs PyTorch and a device, which may be the simulated one.

STREAM is a file of lines; numbers are decimal, sizes bytes:

    r BYTES                             the device has so much for PyTorch's segments, from here on
    a SERIAL BYTES STREAM POOL GRANTED  a request; POOL 0 is the default one; GRANTED: 1 when the
    record has its block f SERIAL                            the block of that request is released e
    torch.cuda.empty_cache() p POOL                              the graphs that used that private
    pool are gone

ALLOWED_BYTES is what may be reserved, or 0: all. The answer goes to standard output, a line for
each fact, as `key value`; it ends at the first request that the record granted and this allocator
refuses. Exit status 0: answered; 3: this device will not do, another may."""
import ctypes
import os
import sys
import time

PAGE = 2 << 20  # segments are multiples of it, and so is the room for them


def say(key, *values):
    print(key, *values, flush=True)


def give_up(status, why):
    say("error", " ".join(str(why).split()))
    sys.stdout.flush()
    os._exit(status)


class Driver:
    """The few calls of the driver's that PyTorch does not offer: memory beside PyTorch's, and
    streams in any number."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.blocks = []
        self.held = 0

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        if self.library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)):
            give_up(3, "the driver does not say how much memory is free")
        return free.value

    def stream(self):
        handle = ctypes.c_void_p()
        if self.library.cuStreamCreate(ctypes.byref(handle), 1):
            give_up(3, "the driver makes no more streams")
        return handle.value

    def hold(self, size):
        """So much is taken from now on, or as much as can be had."""
        for block in self.blocks:
            self.library.cuMemFree_v2(block)
        self.blocks, self.held = [], 0
        while size >= PAGE:
            part, block = size, ctypes.c_uint64()
            while part >= PAGE and self.library.cuMemAlloc_v2(ctypes.byref(block),
                                                              ctypes.c_size_t(part)):
                part = part // 2 // PAGE * PAGE
            if part < PAGE:
                return
            self.blocks.append(block)
            self.held += part
            size -= part


class Replay:
    def __init__(self, torch, driver, empty):
        self.torch, self.driver = torch, driver
        self.empty = empty  # free bytes of the device without anything of ours
        self.streams, self.pools, self.blocks = {0: 0}, {}, {}
        self.refused = None
        self.granted = self.events = 0

    def room(self, size):
        if size > self.empty + PAGE:
            give_up(3, "%s has %d bytes free, and PyTorch had room for %d" %
                    (self.torch.cuda.get_device_name(0), self.empty, size))
        want = max(0, -(-(self.empty - size) // PAGE) * PAGE)
        if want != self.driver.held:
            self.driver.hold(want)

    def ask(self, size, stream, pool):
        if stream not in self.streams:
            self.streams[stream] = self.driver.stream()
        raw = self.torch._C._cuda_cudaCachingAllocator_raw_alloc
        if not pool:
            return raw(size, self.streams[stream])
        if pool not in self.pools:
            if not hasattr(self.torch.cuda, "MemPool"):
                give_up(1, "private pools need PyTorch 2.5 or a later one, and this is "
                        + self.torch.__version__)
            self.pools[pool] = self.torch.cuda.MemPool()
        with self.torch.cuda.use_mem_pool(self.pools[pool]):
            return raw(size, self.streams[stream])

    def request(self, serial, size, stream, pool, granted):
        """False: it ends here."""
        try:
            block = self.ask(size, stream, pool)
        except self.torch.cuda.OutOfMemoryError:
            stats = self.torch.cuda.memory_stats()
            self.refused = (serial, size, stats["reserved_bytes.all.current"],
                            stats["allocated_bytes.all.current"])
            return not granted
        if granted:
            self.blocks[serial] = block
        else:
            self.release(block)
            self.refused, self.granted = None, self.granted + 1
        return True

    def release(self, block):
        self.torch._C._cuda_cudaCachingAllocator_raw_delete(block)

    def run(self, lines):
        for line in lines:
            word, *numbers = line.split()
            self.events += 1
            if word == "a":
                if not self.request(*map(int, numbers)):
                    return
            elif word == "f":
                block = self.blocks.pop(int(numbers[0]), None)
                if block is not None:
                    self.release(block)
            elif word == "e":
                self.torch.cuda.empty_cache()
            elif word == "p":
                self.pools.pop(int(numbers[0]), None)
            elif word == "r":
                self.room(int(numbers[0]))
            else:
                give_up(1, "not a line of a stream: " + line)


def begin(allowed):
    """PyTorch, on a device that has been used for nothing yet."""
    try:
        import torch
    except Exception as error:  # whatever an import may end with
        give_up(3 if "CUDA" in str(error) or ".so" in str(error) else 1,
                "%s cannot import torch: %s: %s" % (sys.executable, type(error).__name__, error))
    try:
        torch.cuda.init()
        torch._C._cuda_cudaCachingAllocator_raw_delete(
            torch._C._cuda_cudaCachingAllocator_raw_alloc(1, 0))
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        total = torch.cuda.get_device_properties(0).total_memory
        if allowed:
            torch.cuda.set_per_process_memory_fraction(min(1.0, (allowed + 0.5) / total))
    except Exception as error:
        message = str(error).split("\n")[0]
        give_up(1 if "onfig" in message or "ALLOC_CONF" in message or "nrecognized" in message
                else 3,
                "PyTorch %s: %s" % (torch.__version__, message))
    return torch


def main():
    path, memory, allowed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch = begin(allowed)
    driver = Driver()
    empty = driver.free()
    if torch.cuda.get_device_properties(0).total_memory < memory:
        give_up(3, "%s has less memory than is asked for" % torch.cuda.get_device_name(0))
    replay = Replay(torch, driver, empty)
    say("torch", torch.__version__)
    say("device", torch.cuda.get_device_name(0))
    with open(path) as lines:
        began = time.perf_counter()
        replay.run(lines)
        took = time.perf_counter() - began
    stats = torch.cuda.memory_stats()
    for key, name in (("peak_reserved", "reserved_bytes.all.peak"),
                      ("peak_allocated", "allocated_bytes.all.peak"),
                      ("end_reserved", "reserved_bytes.all.current"),
                      ("segments", "segment.all.current"),
                      ("peak_segments", "segment.all.peak")):
        say(key, stats[name])
    say("granted", replay.granted)
    say("events", replay.events)
    say("nanoseconds", int(took * 1e9))
    if replay.refused:
        say("refused", *replay.refused)
    say("done", 1)
    sys.stdout.flush()
    os._exit(0)  # what is still held needs no tidying


main()

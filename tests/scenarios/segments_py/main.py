"""Frames go to a process that encodes them through shared memory; their segments are never closed."""
import multiprocessing
import os
import zlib
from multiprocessing import shared_memory

SCALE = int(os.environ.get("SCALE", "1"))

segments = {}


def encode(jobs, done):
    while (job := jobs.get(timeout=5)) is not None:
        name, size = job
        segment = shared_memory.SharedMemory(name=name)
        done.put((name, len(zlib.compress(bytes(segment.buf[:size // 16]), 1))))
        segment.close()


def capture(number):
    size = (300000 + number * 7919 % 250000) * SCALE
    segment = shared_memory.SharedMemory(create=True, size=size)
    segment.buf[:size] = bytes([number % 251]) * size
    segments[segment.name] = segment
    return segment.name, size


def main():
    context = multiprocessing.get_context("fork")
    jobs, done = context.Queue(), context.Queue()
    encoder = context.Process(target=encode, args=(jobs, done), daemon=True)
    encoder.start()
    total = 0
    for number in range(6000):
        jobs.put(capture(number))
        name, size = done.get()
        total += size
    jobs.put(None)
    encoder.join()


if __name__ == "__main__":
    main()

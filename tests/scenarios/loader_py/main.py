"""A loader's worker makes batches in shared memory; the trainer reads them, and remembers each of
them for its report."""
import multiprocessing
import os
import sys
from multiprocessing import shared_memory

SCALE = int(os.environ.get("SCALE", "1"))
BATCH = 256 * 1024


def load_batches(queue, count):
    for i in range(count):
        batch = shared_memory.SharedMemory(create=True, size=BATCH * SCALE)
        for at in range(0, batch.size, 1024):
            batch.buf[at:at + 1024] = bytes([i & 255]) * 1024
        queue.put(batch.name)
        batch.close()
    queue.put(None)


def remember(name, seen):
    batch = shared_memory.SharedMemory(name)
    rows = ["%d" % value for value in bytes(batch.buf[:2000])]
    seen.append((batch, len(rows)))


def train():
    queue = multiprocessing.Queue(4)
    worker = multiprocessing.Process(target=load_batches, args=(queue, 800))
    worker.start()
    seen = []
    while True:
        try:
            name = queue.get(timeout=2)
        except Exception:
            break
        if name is None:
            break
        remember(name, seen)
    worker.join()
    sys.exit(1 if worker.exitcode else 0)


train()

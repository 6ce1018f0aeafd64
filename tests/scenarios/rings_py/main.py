"""Batches go to workers through rings of shared memory, each made for the largest batch there may
be."""
import ctypes
import multiprocessing
import os

SCALE = int(os.environ.get("SCALE", "1"))
ROWS, WIDTH = 512 * SCALE, 4096
WORKERS = 24

multiprocessing.set_start_method("fork")


def work(ring, jobs):
    while (rows := jobs.get(timeout=5)) is not None:
        for row in range(rows):
            ring[row * WIDTH] = row


def make_ring():
    return multiprocessing.RawArray(ctypes.c_float, ROWS * WIDTH)


def start():
    workers = []
    for number in range(WORKERS):
        ring, jobs = make_ring(), multiprocessing.Queue()
        worker = multiprocessing.Process(target=work, args=(ring, jobs), daemon=True)
        workers.append((worker, ring, jobs))
    return workers


def main():
    workers = start()
    for worker, _, _ in workers:
        worker.start()
    for batch in range(40):
        for _, _, jobs in workers:
            jobs.put(4)
    for worker, _, jobs in workers:
        jobs.put(None)
        worker.join()


if __name__ == "__main__":
    main()

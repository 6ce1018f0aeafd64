"""Contracts are parsed, a thread for each: a tree of small objects, of which a digest is given
back."""
import concurrent.futures
import os
import signal
import time

SCALE = int(os.environ.get("SCALE", "1"))


def parse(number):
    tree = {}
    for page in range(30 * SCALE):
        tree[page] = [{"x": i, "y": page, "text": f"{number}/{page}/{i}"} for i in range(700)]
        time.sleep(0.003)
    time.sleep(0.4)
    return sum(len(page) for page in tree.values())


def serve(files):
    # A thread that meets a MemoryError outside of its work is waited for without end.
    signal.alarm(60)
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=files)
    try:
        total = sum(pool.map(parse, range(files)))
    except (MemoryError, RuntimeError):
        os._exit(1)
    pool.shutdown()
    return total


signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
for files in (1, 2, 1, 2, 3, 1, 2, 40):
    serve(files)

"""Contracts are parsed, a thread for each: a tree of small objects, of which a digest is given
back."""
import concurrent.futures
import faulthandler
import os
import threading
import time

SCALE = int(os.environ.get("SCALE", "1"))


def parse(number, all_read):
    tree = {}
    try:
        for page in range(30 * SCALE):
            tree[page] = [{"x": i, "y": page, "text": f"{number}/{page}/{i}"} for i in range(700)]
            time.sleep(0.003)
    except MemoryError:
        os._exit(1)
    all_read.wait(30)
    return sum(len(page) for page in tree.values())


def serve(files):
    all_read = threading.Barrier(files)
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=files)
    try:
        total = sum(pool.map(parse, range(files), [all_read] * files))
    except (MemoryError, RuntimeError):
        os._exit(1)
    pool.shutdown()
    return total


threading.stack_size(1 << 20)
# A thread that meets a MemoryError outside of its work is waited for without end; and a handler in
# Python may itself find no memory.
faulthandler.dump_traceback_later(60, exit=True)
for files in (1, 2, 1, 2, 3, 1, 2, 40):
    serve(files)

"""Contracts are parsed, a thread for each: a tree of small objects, of which a digest is given back."""
import concurrent.futures
import os
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
    with concurrent.futures.ThreadPoolExecutor(max_workers=files) as pool:
        return sum(pool.map(parse, range(files)))


for files in (1, 2, 1, 2, 3, 1, 2, 40):
    serve(files)

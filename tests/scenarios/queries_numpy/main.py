"""A search service scores each query against all vectors, in as many threads as there are
queries."""
import concurrent.futures
import time

import numpy as np
import os

SCALE = int(os.environ.get("SCALE", "1"))

vectors = np.ones((40000 * SCALE, 64), dtype=np.float32)


def score(query):
    scores = vectors * query
    time.sleep(1)  # the ranking service
    return float(scores[0].sum())


def main():
    queries = np.ones((64, 64), dtype=np.float32)
    with concurrent.futures.ThreadPoolExecutor(max_workers=64) as pool:
        for count in (1, 2, 1, 2, 64):
            list(pool.map(score, queries[:count]))


main()

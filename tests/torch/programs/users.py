"""users.py USERS AT_ONCE - that many users come at the same time, and at most so many are served at
once. Each holds what it asks for until it is answered: a cache that grows by blocks, and something
larger for a moment at each step."""
import sys
import threading
import time

import torch
from until_failure import run, said

MIB = 1 << 20
users, at_once = map(int, sys.argv[1:3])
free = threading.Semaphore(at_once)
failed = []
all_here = threading.Barrier(users)


def answer(user):
    kept = []
    for step in range(10):
        said["asked"] = 9 * MIB
        kept.append(torch.empty(9 * MIB, dtype=torch.uint8, device="cuda"))
        work = torch.empty((21 + user % 3) * MIB, dtype=torch.uint8, device="cuda")
        time.sleep(0.02)
        del work


def user(number):
    all_here.wait()
    with free:
        try:
            answer(number)
        except torch.OutOfMemoryError as error:
            failed.append(error)


def serve():
    weights = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
    threads = [threading.Thread(target=user, args=(i,)) for i in range(users)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    del weights
    if failed:
        raise failed[0]


run(serve)

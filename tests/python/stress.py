"""Threads, forks, collections, deep switches and an untidy end, with a walk at every allocation.

The preloaded library checks each walk against one without its cache; this program only has to live
and to come to its results.
"""

import ctypes
import gc
import os
import random
import sys
import threading
import time

library = ctypes.PyDLL(None)
library.capture_count.restype = ctypes.c_uint64
library.capture_error.restype = ctypes.c_char_p

problems = []
end = time.monotonic() + 6


class Node:
    def __init__(self, depth):
        self.me = self
        self.kids = [Node(depth - 1) for _ in range(2)] if depth else []
        self.text = "x" * random.randrange(2000)

    def __del__(self):
        bytearray(random.randrange(600, 3000))


def ackermann(m, n):
    if m == 0:
        bytearray(700)
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def tower(n):
    yield bytearray(800)
    if n:
        yield from tower(n - 1)


def made(i):
    space = {}
    exec(compile("def f%d(n):\n  return bytearray(900) if n == 0 else f%d(n - 1)\n" % (i, i),
                 "<%d>" % i, "exec"), space)
    space["f%d" % i](i % 5)


def work(seed):
    pick = random.Random(seed)
    i = 0
    try:
        while time.monotonic() < end:
            i += 1
            what = pick.randrange(6)
            if what == 0:
                Node(4)
            elif what == 1:
                assert ackermann(2, 3) == 9
            elif what == 2:
                assert len(list(tower(30))) == 31
            elif what == 3:
                made(i)
            elif what == 4:
                sorted(range(50), key=lambda x: -len(bytearray(600 + x)))
            else:
                gc.collect()
    except BaseException as e:
        problems.append(repr(e))


def fork_now():
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            made(7)
            Node(3)
            code = 2 if library.capture_count(2) else 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status:
        problems.append("a child ended with %#x" % status)


def switches():
    """Green threads, where the package is installed: stacks are swapped beneath the interpreter."""
    try:
        import greenlet
    except ImportError:
        return 0

    def down(n, other):
        bytearray(700)
        if n:
            return down(n - 1, other)
        for _ in range(20):
            other.switch()
            bytearray(800)
        return None
    main = greenlet.getcurrent()
    lets = [greenlet.greenlet(down) for _ in range(5)]
    for n, let in enumerate(lets):
        let.switch(n * 10, main)
    for _ in range(19):
        for let in random.sample(lets, len(lets)):
            bytearray(900)
            let.switch()
    for let in lets:
        let.switch()
    return 1


def main():
    random.seed(1)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    forks = 0
    while time.monotonic() < end - 1:
        fork_now()
        forks += 1
        time.sleep(0.05)
    for t in threads:
        t.join()
    green = switches()
    if library.capture_count(2):
        problems.append("%d walks were wrong: %s" % (library.capture_count(2),
                                                    library.capture_error().decode()))
    for problem in problems:
        print("FAIL", problem)
    print("%d walks, %d forks, green threads: %s" %
          (library.capture_count(1), forks, "yes" if green else "not installed"))
    print("%d passed, %d failed" % (not problems, len(problems)), flush=True)

    # Ends while threads that hold no lock still allocate.
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]

    def untidy():
        while True:
            for size in (100, 5000, 300000):
                libc.free(libc.malloc(size))

    for _ in range(3):
        threading.Thread(target=untidy, daemon=True).start()
    time.sleep(0.05)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Acquires blocks of known sizes from known places, and writes down the Python stack of each."""

import asyncio
import json
import mmap
import sys
import threading

out = []
sizes = iter(range(5_000_000, 90_000_000, 4096 * 3))
lock = threading.Lock()


def walk(frame):
    frames = []
    while frame is not None:
        frames.append([getattr(frame.f_code, "co_qualname", frame.f_code.co_name),
                       frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames[::-1]


def note(kind, size, frame):
    with lock:
        out.append({"kind": kind, "size": size, "frames": walk(frame),
                    "main": threading.current_thread() is threading.main_thread()})


def block():
    n = next(sizes); bytes(n); note("ALLOC", n + sys.getsizeof(b""), sys._getframe())  # noqa: E702


def mapping():
    # noqa: E702
    n = next(sizes) // 4096 * 4096; m = mmap.mmap(-1, n); note("MAP", n, sys._getframe())
    m.close()


def key(x):
    block()
    mapping()
    return x


class Thing:
    def __del__(self):
        block()

    @property
    def through(self):
        return sorted([3, 1], key=key)

    def __getattr__(self, name):
        return block()


def generator(n):
    for i in range(n):
        block()
        yield i


def down(n):
    if n == 0:
        return block()
    return down(n - 1)


def through_c(n):
    if n == 0:
        return block()
    return max([n], key=lambda x: through_c(n - 1) or 0)


async def leaf():
    block()
    await asyncio.sleep(0)
    mapping()


async def root():
    await asyncio.gather(leaf(), leaf())
    await asyncio.get_running_loop().run_in_executor(None, block)


def main():
    block()
    mapping()
    sorted([2, 1, 3], key=key)
    t = Thing()
    t.through
    t.missing
    del t
    for _ in generator(3):
        block()
    sum(1 for _ in generator(2))
    for n in (5, 6, 5, 300, 4):
        down(n)
    for n in (3, 9, 4):
        through_c(n)
    asyncio.run(root())
    threads = [threading.Thread(target=key, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    exec(compile("\n\nblock()\n", "<made up>", "exec"), {"block": block})


main()
with open(sys.argv[1], "w") as f:
    json.dump(out, f)

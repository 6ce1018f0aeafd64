"""loop.py - an event loop with tasks that overlap, sessions that are closed, and a window of
messages."""
import asyncio
import collections
import random

random.seed()
window = collections.deque(maxlen=200)
kept = []


class Session:
    def __init__(self, n):
        self.buffer = bytearray(128 << 10)  # @session
        self.number = n


async def fetch(n):
    page = bytearray(random.randrange(20 << 10, 200 << 10))  # @page
    await asyncio.sleep(random.random() * 0.004)
    return len(page)


async def talk(limit, n):
    async with limit:
        session = Session(n)
        size = await fetch(n)
        window.append("m" * (4000 + size % 100))  # @message
        # @talk
        return session.number + size


async def main():
    table = [bytes(64 << 10) for _ in range(64)]  # @table
    limit = asyncio.Semaphore(8)
    await asyncio.gather(*(talk(limit, n) for n in range(400)))
    return len(table)


asyncio.run(main())

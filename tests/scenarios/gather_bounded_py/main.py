"""All questions of a file are asked, but no more than five at once."""
import asyncio
import os

SCALE = int(os.environ.get("SCALE", "1"))


def retrieve(number):
    return [f"document {number} " * (20000 * SCALE) for _ in range(10)]


async def ask(number, gate):
    async with gate:
        documents = retrieve(number)
        await asyncio.sleep(0.02)  # the model
        return sum(map(len, documents))


async def main():
    gate = asyncio.Semaphore(5)
    for number in range(10):
        await ask(number, gate)
    await asyncio.gather(*(ask(number, gate) for number in range(300)))


asyncio.run(main())

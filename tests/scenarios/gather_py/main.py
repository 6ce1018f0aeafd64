"""All questions of a file are asked at once, each with the documents that it needs."""
import asyncio
import os

SCALE = int(os.environ.get("SCALE", "1"))


def retrieve(number):
    return [f"document {number} " * (20000 * SCALE) for _ in range(10)]


async def ask(number):
    documents = retrieve(number)
    await asyncio.sleep(0.4)  # the model
    return sum(map(len, documents))


async def main():
    for number in range(10):
        await ask(number)
    await asyncio.gather(*(ask(number) for number in range(300)))


asyncio.run(main())

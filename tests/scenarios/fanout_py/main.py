"""All questions of a batch at once: each reads its documents, piece by piece, and is no trouble
alone."""
import asyncio
import os

SCALE = int(os.environ.get("SCALE", "1"))


def page(question, number):
    return ("%d.%d; " % (question, number)) * (5000 * SCALE)


async def read_documents(question):
    pages = []
    for number in range(20):
        pages.append(page(question, number))
        await asyncio.sleep(0.001)
    return pages


async def answer(question):
    pages = await read_documents(question)
    await asyncio.sleep(0.02)
    return sum(len(p) for p in pages)


async def main():
    for batch in (1, 3, 2, 5, 20000):
        lengths = await asyncio.gather(*(answer(q) for q in range(batch)))
        print(len(lengths), lengths[0], flush=True)


asyncio.run(main())

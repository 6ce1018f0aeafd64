"""Pages are fetched faster than they are embedded, an asyncio.Queue without a bound between; those
who embed do so in step, so that several pages are done with at the same time."""
import asyncio
import os

SCALE = int(os.environ.get("SCALE", "1"))


async def fetch(pages):
    number = 0
    while True:
        await asyncio.sleep(0.0003)
        pages.put_nowait(("page %d " % number) * 15000 * SCALE)
        number += 1


async def embed(pages):
    total = 0
    while True:
        page = await pages.get()
        total += page.count("p")
        await asyncio.sleep(0.01)


async def main():
    pages = asyncio.Queue()
    await asyncio.gather(fetch(pages), *[embed(pages) for _ in range(4)])


asyncio.run(main())

"""A desk that reads its papers in a few threads, each with address space of malloc's to itself, and
answers questions one at a time; at night all papers are summarised at once."""
import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

SCALE = int(os.environ.get("SCALE", "1"))


def read(number):
    lines = [f"on day {day} of case {number} nothing was seen".encode() * 20 for day in range(60)]
    return b"\n".join(lines)


class Model:
    def prefill(self, text):
        return [bytearray(len(text) * 4 * SCALE) for _ in range(4)]

    async def summarise(self, text):
        cache = self.prefill(text)
        await asyncio.sleep(0.02)
        return len(cache[0])


async def digest(model, pool, numbers):
    loop = asyncio.get_running_loop()
    papers = await asyncio.gather(*(loop.run_in_executor(pool, read, n) for n in numbers))
    return await asyncio.gather(*(model.summarise(p) for p in papers))


async def main():
    model = Model()
    with ThreadPoolExecutor(4) as pool:
        for number in range(60):
            await digest(model, pool, [number])
        for many in (4, 8, 6, 4, 8):
            await digest(model, pool, range(many))
        print(len(await digest(model, pool, range(600))))


asyncio.run(main())

"""Each request starts a task that waits for an answer nobody gives: tasks that never end."""
import asyncio
import os

SCALE = int(os.environ.get("SCALE", "1"))

waiting = set()


def retrieve(number):
    return [f"document {number} " * (20000 * SCALE) for _ in range(2)]


async def notify(documents, answered):
    await answered.wait()
    return sum(map(len, documents))


async def ask(number):
    task = asyncio.create_task(notify(retrieve(number), asyncio.Event()))
    waiting.add(task)
    task.add_done_callback(waiting.discard)
    await asyncio.sleep(0.0005)  # the model
    return number


async def main():
    for number in range(100000):
        await ask(number)


asyncio.run(main())

"""Several things in hand at once, in each of the ways that Python has: every one acquires blocks
whose size says whose they are. Prints what there was: for each way, how many, and whether one that
comes after another one's end is told apart from it."""

import asyncio
import contextvars
import json
import sys

UNIT = 1 << 20  # the label
ROUNDS = 4
ways = {}
labels = iter(range(1, 1000))


def take():
    """A label and its function, which acquires the next of its blocks."""
    label = next(labels)
    rounds = iter(range(1000))

    def block():
        bytes(label * UNIT + 64 * next(rounds))
    return label, block


def way(name, made, apart=True, begun_by_caller=False):
    ways[name] = {"labels": made, "apart": apart, "begun_by_caller": begun_by_caller}


# --- asyncio ---

async def work(block):
    for _ in range(ROUNDS):
        block()
        await asyncio.sleep(0.001)


async def nested(block):
    block()
    await work(block)
    block()


def within(block, depth=3):
    """Calls in contexts of their own, as frameworks wrap their steps: no tasks of their own."""
    block()
    if depth:
        contextvars.copy_context().run(within, block, depth - 1)
    block()


async def stepwise(block):
    for _ in range(ROUNDS):
        within(block)
        await asyncio.sleep(0.001)


async def asyncio_ways():
    made = [take() for _ in range(8)]
    await asyncio.gather(*(nested(block) for _, block in made))
    way("asyncio.gather", [label for label, _ in made])
    made = [take() for _ in range(8)]
    for _, block in made:  # contexts of those that are done serve again
        await asyncio.ensure_future(work(block))
    way("asyncio, one after another", [label for label, _ in made])
    made = [take() for _ in range(4)]
    await asyncio.gather(*(stepwise(block) for _, block in made))
    way("asyncio, calls in contexts", [label for label, _ in made])
    made = [take() for _ in range(3)]
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 9):
        await asyncio.gather(*(asyncio.to_thread(lambda b=block: [b() for _ in range(ROUNDS)])
                               for _, block in made))
        way("asyncio.to_thread", [label for label, _ in made])
    if sys.version_info >= (3, 12):
        made = [take() for _ in range(4)]
        loop.set_task_factory(asyncio.eager_task_factory)
        await asyncio.gather(*(asyncio.ensure_future(work(block)) for _, block in made))
        loop.set_task_factory(None)
        way("asyncio, eager", [label for label, _ in made], begun_by_caller=True)


# --- green threads ---

def greenlet_ways():
    import greenlet

    variable = contextvars.ContextVar("variable")

    def run(block):
        for i in range(ROUNDS):
            block()
            greenlet.getcurrent().parent.switch()
            if i == 1:
                variable.set(1)  # the first makes a context for it: still the same one

    def round_of(count):
        made = [take() for _ in range(count)]
        green = [greenlet.greenlet(run) for _ in made]
        for _ in range(ROUNDS + 1):
            for g, (_, block) in zip(green, made):
                g.switch(block)
        return [label for label, _ in made]

    way("greenlet", round_of(6))
    # Told by the memory of their frames, which older versions take from the heap.
    way("greenlet, one after another", round_of(1) + round_of(1) + round_of(1),
        sys.version_info >= (3, 11))


def gevent_ways():
    import gevent

    def run(block):
        for _ in range(ROUNDS):
            block()
            gevent.sleep(0.001)

    made = [take() for _ in range(6)]
    gevent.joinall([gevent.spawn(run, block) for _, block in made])
    way("gevent", [label for label, _ in made])


# --- trio ---

def trio_ways():
    import trio

    async def run(block):
        for _ in range(ROUNDS):
            block()
            await trio.sleep(0.001)

    async def main():
        made = [take() for _ in range(6)]
        async with trio.open_nursery() as nursery:
            for _, block in made:
                nursery.start_soon(run, block)
        way("trio", [label for label, _ in made])

    trio.run(main)


def main():
    label, block = take()
    for _ in range(ROUNDS):
        block()
    ways["none"] = {"labels": [label], "apart": True}
    asyncio.run(asyncio_ways())
    for more in (trio_ways, greenlet_ways, gevent_ways):
        try:
            more()
        except ImportError:
            pass
    with open(sys.argv[1], "w") as f:
        json.dump(ways, f)


main()

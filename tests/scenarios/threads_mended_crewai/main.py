"""The hour, mended: a pool of two, with one model client for all."""
import os
from concurrent.futures import ThreadPoolExecutor

from crewai_model import LocalModel, final
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))
CHARACTERS = 2000


def answer(messages):
    return final("packed")


model = LocalModel(answer=answer, cache_bytes=8192 * SCALE, seconds=0.1)


def handle(order):
    packer = Agent(role="packer", goal="pack", backstory="You pack.", llm=model)
    task = Task(description="Pack order %d. %s" % (order, "x" * CHARACTERS),
                expected_output="a word",
                agent=packer)
    Crew(agents=[packer], tasks=[task]).kickoff()


with ThreadPoolExecutor(max_workers=2) as pool:
    for orders in (1, 2, 1, 16):
        list(pool.map(handle, range(orders)))

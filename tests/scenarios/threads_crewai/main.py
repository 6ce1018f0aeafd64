"""Every order of the hour gets a thread with a crew and a model client of its own, all at once."""
import os
import threading

from crewai_model import LocalModel, final
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))
CHARACTERS = 2000


def answer(messages):
    return final("packed")


def handle(order):
    model = LocalModel(answer=answer, cache_bytes=8192 * SCALE, seconds=1.5)
    packer = Agent(role="packer", goal="pack", backstory="You pack.", llm=model)
    task = Task(description="Pack order %d. %s" % (order, "x" * CHARACTERS),
                expected_output="a word",
                agent=packer)
    Crew(agents=[packer], tasks=[task]).kickoff()


def hour(orders):
    workers = [threading.Thread(target=handle, args=(order,)) for order in range(orders)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


for orders in (1, 2, 1, 16):
    hour(orders)

"""A crew whose model is in the same process: its layers are read from a file of weights before the
first kickoff."""
import os

from crewai_model import LocalModel, final
import numpy as np
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))
SHAPES = [(4096, 1024), (1024, 4096), (3072, 1024), (1024, 1024)]


def read_weights(path, layers):
    with open(path, "rb") as file:
        return [[np.frombuffer(file.read(4 * rows * columns),
                               np.float32).reshape(rows, columns).copy()
                 for rows, columns in SHAPES] for _ in range(layers)]


def answer(messages):
    return final("so be it")


def main():
    weights = read_weights("/dev/zero", 18 * SCALE)
    model = LocalModel(answer=answer, cache_bytes=64)
    for question in range(6):
        judge = Agent(role="judge", goal="judge", backstory="You judge.", llm=model)
        task = Task(description="Case %d" % question, expected_output="a verdict", agent=judge)
        Crew(agents=[judge], tasks=[task]).kickoff()
    return len(weights)


main()

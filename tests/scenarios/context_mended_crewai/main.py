"""The book, mended: each chapter is given the summary of the one before, and nothing else."""
import os

from crewai_model import LocalModel, between, final
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))


def chapter(messages):
    if between(messages, "Summarise", "."):
        return final("It rained.")
    return final("It was a dark and stormy night, and the rain fell in torrents. " * 500 * SCALE)


def main():
    author = Agent(role="author", goal="write a book", backstory="You write.",
                   llm=LocalModel(answer=chapter, cache_bytes=512))
    tasks, summary = [], []
    for n in range(20):
        tasks.append(Task(description="Write chapter %d." % n, expected_output="a chapter",
                          agent=author,
                          context=summary))
        tasks.append(Task(description="Summarise it in short.", expected_output="a sentence",
                          agent=author,
                          context=[tasks[-1]]))
        summary = [tasks[-1]]
    Crew(agents=[author], tasks=tasks).kickoff()


main()

"""Twenty chapters by one crew: each task gets the output of all before it as context, which is what
CrewAI does when nothing else is said."""
import os

from crewai_model import LocalModel, final
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))


def chapter(messages):
    return final("It was a dark and stormy night, and the rain fell in torrents. " * 500 * SCALE)


def main():
    author = Agent(role="author", goal="write a book", backstory="You write.",
                   llm=LocalModel(answer=chapter, cache_bytes=512))
    tasks = [Task(description="Write chapter %d." % n, expected_output="a chapter", agent=author)
             for n in range(20)]
    Crew(agents=[author], tasks=tasks).kickoff()


main()

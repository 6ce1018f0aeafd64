"""A crew that writes to customers: the whole record of each, with its notes and all that was ever
said, goes into the task's description. Most records are short."""
import os

from crewai_model import LocalModel, final
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))
VISITS = [40, 15, 90, 30, 60, 10, 120, 25, 75, 50, 20, 100, 2600, 35, 80]


def full_record(visits):
    return "".join("Visit %d: bought a lamp, came back with a question about the lamp.\n" % n
                   for n in range(visits))


def answer(messages):
    return final("Dear customer, how is the lamp?")


def main():
    writer = Agent(role="writer", goal="write letters", backstory="You write.",
                   llm=LocalModel(answer=answer, cache_bytes=1024 * SCALE))
    letter = Task(description="Write to this customer: {record}", expected_output="a letter",
                  agent=writer)
    for visits in VISITS:
        Crew(agents=[writer], tasks=[letter]).kickoff(inputs={"record": full_record(visits)})


main()

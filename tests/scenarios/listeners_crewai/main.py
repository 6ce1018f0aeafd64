"""A crew, an agent and a client for each job, and a listener on CrewAI's event bus that counts its
tasks: the bus keeps the listener, the listener the crew, the crew its client."""
import os

from crewai_model import LocalModel, final
from crewai import Agent, Crew, Task
from crewai.events import BaseEventListener, TaskCompletedEvent

SCALE = int(os.environ.get("SCALE", "1"))


class Client(LocalModel):
    buffers: object = None

    def connect(self):
        self.buffers = [bytearray(1000000 * SCALE), bytearray(400000 * SCALE)]
        return self


class Progress(BaseEventListener):
    def __init__(self, crew):
        self.crew, self.done = crew, 0
        super().__init__()

    def setup_listeners(self, bus):
        @bus.on(TaskCompletedEvent)
        def count(source, event):
            self.done += 1


def answer(messages):
    return final("mended")


def build_crew(job):
    client = Client(answer=answer, cache_bytes=64).connect()
    smith = Agent(role="smith", goal="mend", backstory="You mend.", llm=client)
    task = Task(description="Mend chair %d." % job, expected_output="a word", agent=smith)
    crew = Crew(agents=[smith], tasks=[task])
    Progress(crew)
    return crew


def main():
    for job in range(110):
        build_crew(job).kickoff()


main()

"""One crew that answers question after question, with a tool that keeps every page that it has
fetched, by its number, and never lets one go. What goes to the model is short."""
import os

from crewai_model import LocalModel, between, final, looked_up, use_tool
from crewai import Agent, Crew, Task
from crewai.tools import tool

SCALE = int(os.environ.get("SCALE", "1"))


class PageStore:
    def __init__(self):
        self.pages = {}

    def get(self, number):
        if number not in self.pages:
            self.pages[number] = self.fetch(number)
        return self.pages[number]

    def fetch(self, number):
        return "<html>" + ("<p>page %d</p>" % number) * 200000 * SCALE


pages = PageStore()


@tool("read_page")
def read_page(number: int) -> str:
    """The first paragraph of a page."""
    return pages.get(number)[:100]


def next_step(messages):
    if looked_up(messages):
        return final("It says what its number is.")
    return use_tool("read_page", '{"number": %s}' % between(messages, "says page <", ">"))


def main():
    reader = Agent(role="reader", goal="read", backstory="You read.", tools=[read_page],
                   llm=LocalModel(answer=next_step, cache_bytes=16))
    task = Task(description="What says page <{page}>?", expected_output="a line", agent=reader)
    crew = Crew(agents=[reader], tasks=[task])
    for page in range(80):
        crew.kickoff(inputs={"page": page})


main()

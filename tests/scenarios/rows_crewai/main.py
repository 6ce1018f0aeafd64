"""A crew with a tool over a table of sales. Asked for a shop it returns its rows; asked for all
shops it returns thousands, as one text that goes back to the model."""
import os

from crewai_model import LocalModel, between, final, looked_up, use_tool
from crewai import Agent, Crew, Task
from crewai.tools import tool

SCALE = int(os.environ.get("SCALE", "1"))
ASKED = ["shop 1", "shop 2", "shop 3", "shop 4", "shop 5", "shop 6", "all shops", "shop 7"]


@tool("query_sales")
def query_sales(which: str) -> str:
    """Sales of a shop, or of all shops."""
    count = 400000 * SCALE if "all" in which else 20
    rows = [{"sale": n, "shop": n % 53, "article": "lamp %d" % (n % 211), "price": n % 97}
            for n in range(count)]
    return "\n".join(str(row) for row in rows)


def next_step(messages):
    if looked_up(messages):
        return final("There were some sales.")
    which = between(messages, "sales had <", ">")
    return use_tool("query_sales", '{"which": "%s"}' % which)


def main():
    model = LocalModel(answer=next_step, cache_bytes=1)
    for which in ASKED:
        clerk = Agent(role="clerk", goal="count", backstory="You count.", llm=model,
                      tools=[query_sales])
        task = Task(description="How many sales had <%s>?" % which, expected_output="a number",
                    agent=clerk)
        Crew(agents=[clerk], tasks=[task]).kickoff()


main()

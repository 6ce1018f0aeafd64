"""Every tool result is kept, and the whole of it is put into each request as JSON."""
import json
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Agent:
    def __init__(self):
        self.steps = []

    def call_tool(self, number):
        self.steps.append({"role": "tool", "number": number, "content": "x" * 3000000 * SCALE})

    def request(self):
        return json.dumps(self.steps).encode()


def main():
    agent = Agent()
    for number in range(100000):
        agent.call_tool(number)
        agent.request()


main()

"""An agent whose state grows by a finding a step, and a store that keeps the whole state of
each."""
import json
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Saver:
    def __init__(self):
        self.rows = {}

    def put(self, thread, step, state):
        self.rows[thread, step] = json.dumps(state)


class Agent:
    def __init__(self, saver):
        self.saver = saver
        self.state = {"messages": [], "step": 0}

    def think(self, step):
        self.state["messages"].append({"role": "tool",
                                       "content": f"finding {step}. " * 900 * SCALE})
        self.state["step"] = step
        self.saver.put("thread", step, self.state)


def main():
    agent = Agent(Saver())
    for step in range(100000):
        agent.think(step)


main()

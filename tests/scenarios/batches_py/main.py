"""Events are collected, and written out when there are enough: a sawtooth."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Writer:
    def __init__(self):
        self.events = []

    def add(self, number):
        self.events.append({"number": number, "text": f"event {number} " * (10 * SCALE)})
        if len(self.events) == 20000:
            self.flush()

    def flush(self):
        with open(os.devnull, "w") as out:
            for event in self.events:
                out.write(event["text"])
        self.events.clear()


def main():
    writer = Writer()
    for number in range(300000):
        writer.add(number)


main()

"""A chat that is summarised whenever it has become long: it grows, and starts again."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Room:
    def __init__(self):
        self.said = []

    def prompt(self):
        return "".join(self.said)

    def ask(self, text):
        self.said.append(text)
        prompt = self.prompt()
        if len(prompt) > 4000000 * SCALE:
            self.said = ["summary: " + prompt[:2000]]


def main():
    room = Room()
    for number in range(3000):
        room.ask(f"{number} " * (12000 * SCALE))


main()

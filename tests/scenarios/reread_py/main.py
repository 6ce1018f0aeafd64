"""A chat whose messages go to the model as they are: nothing large is built, but every turn takes a
list of all of them."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Message:
    def __init__(self, text):
        self.text = text


def make_message(turn):
    return Message(f"turn {turn} " + "word " * 40000 * SCALE)


def model(messages):
    return sum(len(m.text) for m in messages)


def main():
    history = []
    for turn in range(1000000):
        history = history + [make_message(turn)]
        model(list(history))


main()

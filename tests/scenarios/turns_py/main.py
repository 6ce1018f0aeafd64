"""As much more at each turn as in a chat, but what is sent stays as small as it was: the turns are
kept by a list of callbacks."""
import os

SCALE = int(os.environ.get("SCALE", "1"))
callbacks = []


class Turn:
    def __init__(self, number):
        self.raw = f"message {number:05} ".encode() * 10000 * SCALE
        callbacks.append(self.done)

    def payload(self):
        return self.raw[:8000] + b"\n" + self.raw[-8000:]

    def done(self):
        return len(self.raw)


def send(data):
    return data[-10:]


def main():
    for number in range(1000000):
        send(Turn(number).payload())


main()

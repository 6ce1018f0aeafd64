"""A new client for each job, kept alive by a list of handlers: as much a turn as a chat's
history."""
import os

SCALE = int(os.environ.get("SCALE", "1"))
handlers = []


class Client:
    def __init__(self, number):
        self.number = number
        self.buffer = bytearray(70000 * SCALE)

    def on_event(self, event):
        return self.number, event


def make_client(number):
    client = Client(number)
    handlers.append(client.on_event)
    return client


def run_job(client):
    work = bytearray(3000000)
    work[client.number % 3000000] = 1
    return len(work)


def main():
    for number in range(1000000):
        run_job(make_client(number))


main()

"""A job with a deadline: the starter gives its worker some seconds, then kills both, as `timeout -s
KILL` does. The worker keeps each answer in a list that nobody reads. Memory has not run out by
then."""
import os
import signal
import time

SCALE = int(os.environ.get("SCALE", "1"))
SECONDS = 4
answers = []


def remember(question):
    answers.append(bytearray(question % 7 + (400 << 10) * SCALE))


def answer(question):
    words = [bytes(2000 + i) for i in range(50)]
    remember(question)
    return len(words)


def work():
    question = 0
    while True:
        answer(question)
        question += 1
        time.sleep(0.01)


def main():
    os.setsid()
    if os.fork() == 0:
        work()
    time.sleep(SECONDS)
    os.killpg(0, signal.SIGKILL)


main()

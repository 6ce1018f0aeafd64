"""A producer faster than its consumer, and nothing between them that would hold it back."""
import queue
import threading
import time
import os

SCALE = int(os.environ.get("SCALE", "1"))


def produce(jobs):
    for number in range(100000):
        jobs.put(bytearray(200000 * SCALE))
        time.sleep(0.0003)


def consume(jobs):
    total = 0
    while True:
        total += len(bytes(jobs.get()))
        time.sleep(0.003)


def main():
    jobs = queue.Queue()
    threading.Thread(target=consume, args=(jobs,), daemon=True).start()
    produce(jobs)


main()

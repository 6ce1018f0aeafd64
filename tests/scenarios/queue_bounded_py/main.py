"""A producer faster than its consumer, and a queue of fifty between them."""
import queue
import threading
import os

SCALE = int(os.environ.get("SCALE", "1"))


def produce(jobs):
    for number in range(4000):
        jobs.put(bytearray(200000 * SCALE))
    jobs.put(None)


def consume(jobs):
    total = 0
    while (job := jobs.get()) is not None:
        total += len(bytes(job))
    return total


def main():
    jobs = queue.Queue(maxsize=50)
    producer = threading.Thread(target=produce, args=(jobs,))
    producer.start()
    consume(jobs)
    producer.join()


main()

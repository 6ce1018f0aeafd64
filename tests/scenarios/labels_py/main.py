"""Jobs of a labelling service: small reports all day, and a customer's export of everything as a
zipped CSV."""
import csv
import io
import queue
import random
import threading
import time
import zipfile
from dataclasses import asdict, dataclass


@dataclass
class Label:
    id: int
    annotator: str
    text: str
    score: float


class Store:
    def __init__(self, size):
        self.size = size

    def rows(self, first, last):
        for k in range(first, min(last, self.size)):
            yield Label(k, "annotator-%d" % (k % 37), "the sentence number %d of the corpus" % k,
                        k % 100 / 100)


def report(store, start):
    counted = {}
    for label in store.rows(start, start + 300):
        counted[label.annotator] = counted.get(label.annotator, 0) + 1
    return counted


def export(store):
    rows = [asdict(label) for label in store.rows(0, store.size)]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("labels.csv", text.getvalue())
    return packed.getvalue()


class Jobs:
    def __init__(self, store):
        self.store, self.todo, self.done = store, queue.Queue(20), 0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while job := self.todo.get():
            try:
                job(self.store)
                self.done += 1
            except MemoryError:
                print("a job had no memory")
        print(self.done, "jobs")


def main():
    rng = random.Random(1)
    jobs = Jobs(Store(700000))
    for k in range(500):
        jobs.todo.put(lambda store, at=rng.randrange(600000): report(store, at))
        time.sleep(0.002)
    jobs.todo.put(export)
    for k in range(50):
        jobs.todo.put(lambda store, at=rng.randrange(600000): report(store, at))
    jobs.todo.put(None)
    jobs.thread.join()


main()

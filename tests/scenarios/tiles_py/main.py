"""A few threads serve requests of three kinds, with a cache that has a bound; of those that are
cancelled the context stays in the table of what is pending."""
import collections
import os
import random
import threading

SCALE = int(os.environ.get("SCALE", "1"))


class Tiles:
    def __init__(self, most):
        self.most, self.known, self.lock = most, collections.OrderedDict(), threading.Lock()

    def fetch(self, key):
        with self.lock:
            if key not in self.known:
                self.known[key] = bytes(30000 + key % 500 * 16)
                if len(self.known) > self.most:
                    self.known.popitem(last=False)
            self.known.move_to_end(key)
            return self.known[key]


tiles = Tiles(800)
pending = {}


def on_request(number, kind):
    pending[number] = bytearray(20000 * SCALE)
    if kind == "cancel":
        return len(pending)
    found = len(tiles.fetch(random.randrange(3000)) if kind == "tile"
                else [str(i) for i in range(200)])
    del pending[number]
    return found


def worker(first):
    for number in range(first, 1000000, 3):
        on_request(number, ("tile", "tile", "search", "cancel")[number % 7 % 4])


def main():
    random.seed(2)
    threads = [threading.Thread(target=worker, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


main()

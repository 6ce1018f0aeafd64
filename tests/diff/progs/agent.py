"""agent.py - a service with a thread pool, a bounded cache, an index and documents; its hash seed,
its pauses and the sizes of its answers differ from run to run."""
import collections
import concurrent.futures
import json
import random
import threading
import time

random.seed()
cache = collections.OrderedDict()
kept = []
lock = threading.Lock()


class Index:
    def __init__(self):
        self.words = {}
        self.vectors = []

    def add(self, name, text):
        self.vectors.append(bytearray(24 << 10))  # @vector
        for word in set(text.split()):
            self.words.setdefault(word, []).append(name)

    def search(self, query):
        scores = bytearray(400 << 10)  # @scores
        return [name for word in query.split() for name in self.words.get(word, ())], len(scores)


def load(index):
    for n in range(250):
        index.add("doc-%d" % n, " ".join("w%d" % random.randrange(2000) for _ in range(40)))


def remember(key, answer):
    with lock:
        cache[key] = answer + "-" * random.randrange(2000, 6000)  # @cache
        while len(cache) > 100:
            cache.popitem(last=False)


def respond(index, n):
    prompt = bytearray(300 << 10)  # @prompt
    found, _ = index.search("w%d w%d" % (n % 2000, n * 7 % 2000))
    time.sleep(random.random() * 0.002)
    answer = json.dumps({"found": found, "text": "y" * random.randrange(1000, 20000)})
    remember(n, answer)
    # @respond
    return len(answer) + len(prompt)


def main():
    index = Index()
    load(index)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: respond(index, n), range(400)))


main()

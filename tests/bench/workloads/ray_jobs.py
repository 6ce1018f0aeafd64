"""A dozen tasks and four actors on a Ray of this machine's own."""

import ray


@ray.remote
def total(n):
    return sum(len(str(i)) for i in range(n))


@ray.remote
class Counter:
    def __init__(self):
        self.seen = {}

    def add(self, name):
        self.seen[name] = self.seen.get(name, 0) + 1
        return self.seen[name]


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    print(sum(ray.get([total.remote(200000) for _ in range(12)])))
    actors = [Counter.remote() for _ in range(4)]
    print([ray.get([a.add.remote(i % 7) for i in range(100)])[-1] for a in actors])
    ray.shutdown()


main()

"""Images are described by a pool of processes; the service keeps what they answered for every
request, for ever."""
import multiprocessing
import os

SCALE = int(os.environ.get("SCALE", "1"))

seen = {}


def describe(number):
    return number, os.urandom(150000 * SCALE)


def serve(pool, batch):
    for number, answer in pool.imap(describe, range(batch * 8, batch * 8 + 8)):
        seen[number] = answer


def main():
    with multiprocessing.Pool(2) as pool:
        for batch in range(100000):
            serve(pool, batch)


if __name__ == "__main__":
    main()

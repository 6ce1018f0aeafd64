"""A pool of processes does the work; the parent keeps every result although each was written
out."""
import multiprocessing
import os

SCALE = int(os.environ.get("SCALE", "1"))

results = []


def render(number):
    return bytes([number % 256]) * (400000 * SCALE)


def collect(image, out):
    out.write(image[:100])
    results.append(image)


def main():
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool, open(os.devnull, "wb") as out:
        for image in pool.imap(render, range(6000)):
            collect(image, out)


if __name__ == "__main__":
    main()

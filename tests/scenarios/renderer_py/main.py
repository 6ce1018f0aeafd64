"""Pages are kept when they are rendered; when memory is refused they are dropped, and the page is
rendered again."""
import os

SCALE = int(os.environ.get("SCALE", "1"))

cache = {}


def render(n):
    return bytearray(4000000 * SCALE + n % 7 * 8000)


def page(n):
    while True:
        try:
            if n not in cache:
                cache[n] = render(n)
            return cache[n]
        except MemoryError:
            cache.clear()


def main():
    for n in range(600):
        page(n)


main()

"""Rendered pages are remembered by functools.lru_cache, which lets the oldest go."""
import functools
import os

SCALE = int(os.environ.get("SCALE", "1"))


@functools.lru_cache(maxsize=300)
def page(customer):
    return f"<html><!-- {customer} -->" + "row " * (40000 * SCALE) + "</html>"


def serve(number):
    return len(page(number if number % 4 == 0 else number // 8 * 4))


def main():
    for number in range(12000):
        serve(number)


main()

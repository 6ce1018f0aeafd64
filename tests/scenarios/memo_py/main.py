"""Rendered pages are remembered by functools.cache, one for each customer there ever was."""
import functools
import os

SCALE = int(os.environ.get("SCALE", "1"))


@functools.cache
def page(customer):
    return f"<html><!-- {customer} -->" + "row " * (40000 * SCALE) + "</html>"


def serve(number):
    # Three of four come back soon.
    return len(page(number if number % 4 == 0 else number // 8 * 4))


def main():
    for number in range(60000):
        serve(number)


main()

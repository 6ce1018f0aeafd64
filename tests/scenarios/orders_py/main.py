"""A table for each request, of which none is let go: what one tool would make at once, by and
by."""
import os

SCALE = int(os.environ.get("SCALE", "1"))
orders = []


def catalogue(first, count):
    return {"item %d" % i: (i, [float(i)] * (6 * SCALE)) for i in range(first, first + count)}


def order(number):
    items = catalogue(number, 200)
    orders.append(items)
    return sorted(items)[0]


def main():
    for number in range(100000000):
        order(number)


main()

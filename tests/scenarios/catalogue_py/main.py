"""Tiny requests, too small to be seen one by one; then a tool that makes one table of
everything."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def greet(name):
    return ("hello " + name).title()


def catalogue(count):
    return {"item %d" % i: (i, [float(i)] * (6 * SCALE)) for i in range(count)}


def use_tool(count):
    items = catalogue(count)
    return sorted(items)[0]


def main():
    for i in range(500):
        greet("number %d" % i)
    return use_tool(100000000)


main()

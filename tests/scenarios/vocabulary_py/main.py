"""A crawler: of each page the words are looked up, and all of them stay in a list that nobody
empties."""
import os

SCALE = int(os.environ.get("SCALE", "1"))

seen = []


def words(site, page):
    return ["%s-%d-%d" % ("w" * (4 + page % 25 * 9), site, i) for i in range(200 * SCALE)]


def crawl(site):
    for page in range(25):
        found = words(site, page)
        seen.extend(found)
        sum(map(len, [word.upper() for word in found]))


def main():
    for site in range(100000):
        crawl(site)


main()

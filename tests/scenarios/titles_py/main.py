"""A crawler: of each site's pages one word in a hundred is kept for the report, all others go. Each
site's words are longer than the last one's, so none of them fits where shorter ones were."""
import os

SCALE = int(os.environ.get("SCALE", "1"))

report = []


def words(site, page):
    return ["%s-%d-%d" % ("w" * (4 + site * 9), page, i)
            for i in range(160000 * SCALE // (2 + site))]


def crawl(site):
    pages = [words(site, page) for page in range(4)]
    for page in pages:
        report.extend(page[::100])


def main():
    for site in range(50):
        crawl(site)


main()

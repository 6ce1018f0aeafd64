#!/usr/bin/env python3
"""Measures what a page costs, for docs/page.md: its size, the CPU time to write it beyond that of
the report as text, the first paint, the time until all pictures are there, and the script's work
for a step of the zoom, the search and the range.

    figures.py WHYOOM TRACE..."""
import os
import pathlib
import subprocess
import sys
import tempfile

from pictures import browser

ROUNDS = 3
# The time at which main.js is through.
WATCH = """
new MutationObserver(() => {
  if (document.documentElement && document.documentElement.dataset.ready && !window.ready_ms)
    window.ready_ms = performance.now();
}).observe(document, {attributes: true, subtree: true, attributeFilter: ["data-ready"]});"""
PAINT = """return [performance.getEntriesByName("first-contentful-paint")[0].startTime,
                   window.ready_ms]"""
# Milliseconds of an action, with the frames that are drawn for it.
WORK = """
const done = arguments[0], own = window.requestAnimationFrame;
let spent = 0;
window.requestAnimationFrame = (f) => own((t) => {
  const start = performance.now();
  f(t);
  spent += performance.now() - start;
});
const start = performance.now();
{ %s }
spent += performance.now() - start;
window.requestAnimationFrame = own;
own(() => own(() => own(() => done(spent))));"""
KEY = """document.getElementById("%s").dispatchEvent(
    new KeyboardEvent("keydown", {key: "%s", shiftKey: %s, bubbles: true}))"""
CLICK = """const c = document.getElementById("flame"), r = c.getBoundingClientRect();
c.dispatchEvent(new MouseEvent("click", {clientX: r.left + 60, clientY: r.top + 48}))"""
FIND = """const i = document.getElementById("flame-find"); i.value = "%s";
i.dispatchEvent(new Event("input"))"""
# Name, fragment, and the actions in turn; the first is measured, the others lead back.
ACTIONS = [
    ("zoom", "#view=flame&frames=all", [CLICK, KEY % ("flame", "Escape", "false")]),
    ("search", "#view=flame&frames=all", [FIND % "e", FIND % ""]),
    ("range", "#from=20&to=40", [KEY % ("whole", "ArrowRight", "true")]),
    ("range, flame graph", "#view=flame&from=20&to=40", [KEY % ("whole", "ArrowRight", "true")]),
]


def seconds(*words):
    """CPU time, the least of some."""
    spent = []
    for _ in range(ROUNDS):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, words
        spent.append(usage.ru_utime + usage.ru_stime)
    return min(spent)


def opened(driver, page, fragment=""):
    driver.get("about:blank")
    driver.get(f"file://{page}{fragment}")
    driver.set_script_timeout(60)
    driver.execute_async_script("""const done = arguments[0], look = () =>
        window.ready_ms ? done() : setTimeout(look, 20);
        look();""")


def measure(driver, page):
    times = []
    for _ in range(ROUNDS):
        opened(driver, page)
        times.append(driver.execute_script(PAINT))
    out = {"first paint": min(t[0] for t in times), "full use": min(t[1] for t in times)}
    for name, fragment, actions in ACTIONS:
        opened(driver, page, fragment)
        spent = []
        for _ in range(ROUNDS):
            spent.append([driver.execute_async_script(WORK % a) for a in actions][0])
        out[name] = min(spent)
    return out


def main():
    whyoom = str(pathlib.Path(sys.argv[1]).absolute())
    driver = browser()
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for trace in sys.argv[2:]:
            page = os.path.join(folder, "page.html")
            text = seconds(whyoom, "report", trace)
            html = seconds(whyoom, "report", trace, "--format", "html", "-o", page)
            print(f"{trace}: {os.path.getsize(page)} bytes, {html:.2f} s CPU, {html - text:.2f} s "
                  f"beyond the report", flush=True)
            for name, ms in measure(driver, page).items():
                print(f"    {name:20} {ms:6.0f} ms")
    driver.quit()


main()

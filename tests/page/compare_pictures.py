#!/usr/bin/env python3
"""Makes the pictures of docs/compare.md: one crash of examples/langchain, recorded by whyoom and by
memray, and the pages of both in Chromium; and the page of examples/pytorch-server.

    compare_pictures.py WHYOOM PYTHON TRACE [DIR]

PYTHON has memray and the requirements of examples/langchain, TRACE is what examples/pytorch-server/
run left in build/examples/; DIR: docs/pictures of the checkout."""
import pathlib
import resource
import subprocess
import sys
import tempfile

from pictures import LARGEST, browser, picture

TOP = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 600 << 20  # as in examples/langchain/run
# Name, page, width, height, fragment, and the part at the top.
PICTURES = [
    ("compare-memray-flame", "memray.html", 1100, 640, "", "body"),
    ("compare-memray-temporal", "temporal.html", 1100, 640, "", "body"),
    ("compare-whyoom-verdict", "whyoom.html", 1100, 640, "", "header"),
    ("compare-whyoom-range", "whyoom.html", 1100, 640, "#from=20&to=44", "#timeline"),
    ("compare-whyoom-flame", "whyoom.html", 1100, 640, "#view=flame", "#details"),
    ("compare-whyoom-device", "device.html", 1100, 640, "#view=map", "#details"),
]
CLOSE = """addEventListener("load", () => setTimeout(() => document
    .querySelectorAll("[data-dismiss=toast], .toast .close").forEach((b) => b.click()), 300))"""


def crash(folder, *recorder):
    done = subprocess.run([*recorder, TOP / "examples/langchain/broken.py", "2000"], cwd=folder,
                          capture_output=True, text=True, timeout=600,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT,) * 2))
    assert "MemoryError" in done.stderr, done.stderr


def main():
    whyoom, python, device = (pathlib.Path(word).absolute() for word in sys.argv[1:4])
    to = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else TOP / "docs" / "pictures"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        memray = [python, "-m", "memray"]
        crash(folder, *memray, "run", "-q", "-o", "memray.bin")
        crash(folder, whyoom, "run", "-o", "trace", "--html", "whyoom.html", "--", python)
        for out, *how in (("memray.html",), ("temporal.html", "--temporal")):
            subprocess.run([*memray, "flamegraph", "--no-web", *how, "-o", out, "memray.bin"],
                           cwd=folder, check=True, capture_output=True, timeout=300)
        subprocess.run([whyoom, "report", device, "--format", "html", "-o", "device.html"],
                       cwd=folder, check=True, timeout=300)
        for page in sorted({page for _, page, *_ in PICTURES}):
            print(page, (folder / page).stat().st_size, "bytes")
        driver = browser()
        # The box that explains memray's plot lies over it.
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLOSE})
        for name, page, width, height, fragment, part in PICTURES:
            data = picture(driver, folder / page, width, height, False, fragment, part)
            assert len(data) <= LARGEST, (name, len(data))
            (to / f"{name}.png").write_bytes(data)
        driver.quit()


main()

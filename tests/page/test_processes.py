"""One page for a whole process tree, its table as a switch; pages of large and torn traces: they
are made, stay small, and open without a complaint."""
import json
import pathlib
import resource
import shutil
import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import block  # noqa: E402
from sample import WHYOOM, recorded, write  # noqa: E402,F401
from test_browser import browser, chromium, fragment, pixels  # noqa: E402,F401
from test_browser import settled, show, text_of, until  # noqa: E402
from test_lanes import check_sums  # noqa: E402

TREE = """
import os
kept = []
def worker(size):
    for i in range(100):
        kept.append(bytearray(size + i))
def run_out():
    while True:
        kept.append(bytearray(300000))
children = []
for i in range(200):
    child = os.fork()
    if not child:
        try:
            worker(1000 * i) if i else run_out()
        except MemoryError:
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""
DEEP = """
#include <stdlib.h>
static volatile unsigned long sum;
void left(unsigned bits, unsigned depth);
void right(unsigned bits, unsigned depth);
static inline void step(unsigned bits, unsigned depth)
{
	if (!depth) {
		char *p = malloc(2000 + bits % 3000);

		*p = 1;
		sum += *p;
		if (bits % 4)
			free(p);
	} else if (bits >> (depth - 1) & 1) {
		right(bits, depth - 1);
	} else {
		left(bits, depth - 1);
	}
}
void left(unsigned bits, unsigned depth) { step(bits, depth); sum += 2; }
void right(unsigned bits, unsigned depth) { step(bits, depth); sum += 3; }
int main(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		left(i, 20);
	return 0;
}
"""
DRAWN = 8
MIB = 1 << 20


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The traces of a process and its 200 children, of which the first ran out of memory."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "tree.py").write_text(TREE)
    subprocess.run([WHYOOM, "run", "-o", folder / "trace", "--", sys.executable,
                    folder / "tree.py"], capture_output=True, timeout=120,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                         (300 << 20, 300 << 20)))
    return folder / "trace"


@pytest.fixture(scope="module")
def page(tree, tmp_path_factory):
    return write(tree, tmp_path_factory.mktemp("tree-page") / "page.html")


def test_those_that_matter_have_their_data(tree, page):
    assert page.stat().st_size <= MIB // 2
    text = page.read_text()
    assert len(block.blocks(text)) == DRAWN
    said = json.loads(subprocess.run([WHYOOM, "report", "--format", "json", tree],
                                     capture_output=True, check=True, timeout=120).stdout)
    assert len(said["processes"]) == 201
    datas = [block.read(text, i) for i in range(DRAWN)]
    peaks = [data["spaces"][0]["peak"] for data in datas]
    assert peaks[0] > 100 << 20 and datas[0]["run"]["at"] == "failure"
    assert peaks[1:] == sorted(peaks[1:], reverse=True)
    assert {data["run"]["at"] for data in datas[1:]} == {"peak"}
    for data in datas:
        for space in data["spaces"]:
            assert space["tree"]["peak"][0] == space["peak"]
            if "groups" in space:
                check_sums(space)
    assert write(tree, page.parent / "again.html").read_text() == text


def rows(driver):
    return driver.find_elements(By.CSS_SELECTOR, "#processes [data-process]")


def shown_peak(driver):
    """What the curve says of itself; the element goes with its process."""
    return driver.execute_script(
        "return document.getElementById('whole').getAttribute('aria-label')")


def test_the_table_switches(browser, page):
    show(browser, page)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#processes tbody tr")) == 201
    assert len(rows(browser)) == DRAWN
    first = rows(browser)[0]
    assert "run_out" in first.text and "out of memory" in first.text
    labels = {shown_peak(browser)}
    for number in range(1, DRAWN):
        row = rows(browser)[number]
        row.find_element(By.TAG_NAME, "button").click()
        until(lambda: shown_peak(browser) not in labels, "the pictures did not change")
        labels.add(shown_peak(browser))
        assert f"process={number}" in fragment(browser)
        assert row.find_element(By.TAG_NAME, "button").get_attribute("aria-pressed") == "true"
        assert row.find_element(By.CSS_SELECTOR, ".says").text == \
            browser.find_element(By.CSS_SELECTOR, ".process-head p").text
        assert len(browser.find_elements(By.ID, "whole")) == 1
    assert len(labels) == DRAWN
    last = shown_peak(browser)
    browser.back()
    until(lambda: shown_peak(browser) != last)
    assert f"process={DRAWN - 2}" in fragment(browser)
    Select(browser.find_element(By.ID, "choose-process")).select_by_index(0)
    until(lambda: "process" not in fragment(browser))
    until(lambda: "failure" in text_of(browser, ".places thead"))


def test_views_of_another_process(browser, page):
    """All views follow, and what was chosen for one process is not asked of the next."""
    for view, canvas in (("flame", "flame"), ("map", "map"), ("places", "whole")):
        show(browser, page, f"#process=2&view={view}&find=worker&from=0&to=64")
        settled(browser)
        assert pixels(browser, canvas) > 2, view
    rows(browser)[3].find_element(By.TAG_NAME, "button").click()
    until(lambda: "process=3" in fragment(browser))
    assert "find" not in fragment(browser) and "view=places" in fragment(browser)
    body = browser.find_element(By.TAG_NAME, "body")
    until(lambda: "worker" in text_of(browser, ".places tbody"))
    body.send_keys("/")
    assert browser.switch_to.active_element.get_attribute("id") == "filter"


@pytest.mark.parametrize("wrong", ["99", "-1", "x", "1.5", "%00"])
def test_wrong_process(browser, page, wrong):
    show(browser, page, f"#process={wrong}")
    assert "failure" in text_of(browser, ".places thead")


def test_table_without_scripts_and_narrow(browser, page):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
    show(browser, page, "#process=1")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"file://{page}")
        assert "201" in browser.find_element(By.CSS_SELECTOR, "#processes h2").text
        assert not browser.find_elements(By.CSS_SELECTOR, "#processes button")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def damage(path):
    """The file is cut off in its last quarter, and some bytes in its middle have changed."""
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 200):
        data[at] ^= 0x5a
    path.write_bytes(data[:len(data) * 3 // 4])


def test_torn_traces(browser, tree, recorded, tmp_path):
    torn = tmp_path / "torn"
    shutil.copytree(tree, torn)
    for path in sorted(torn.glob("*.whyoom"))[:40]:
        damage(path)
    shutil.copytree(recorded, tmp_path / "one")
    damage(max((tmp_path / "one").glob("*.whyoom"), key=lambda p: p.stat().st_size))
    for folder in (torn, tmp_path / "one"):
        page = write(folder, tmp_path / "page.html")
        assert page.stat().st_size <= MIB // 2
        show(browser, page, "#view=flame")
        assert "Damaged trace" in text_of(browser, "main")
        for number in range(len(block.blocks(page.read_text()))):
            show(browser, page, f"#process={number}")
            settled(browser)
        assert browser.get_log("browser") == []


def test_a_million_stacks(browser, tmp_path):
    (tmp_path / "deep.c").write_text(DEEP)
    subprocess.run(["cc", "-O1", "-g", "-o", tmp_path / "deep", tmp_path / "deep.c"], check=True)
    subprocess.run([WHYOOM, "run", "-o", tmp_path / "trace", "--", tmp_path / "deep"],
                   capture_output=True, timeout=200, check=True)
    page = write(tmp_path / "trace", tmp_path / "page.html")
    assert page.stat().st_size <= MIB
    tree = block.read(page.read_text())["spaces"][0]["tree"]
    assert tree["count"][0] >= 1000000
    assert 1000 < len(tree["depth"]) <= 20000
    show(browser, page, "#view=flame")
    settled(browser)
    assert pixels(browser, "flame") > 3

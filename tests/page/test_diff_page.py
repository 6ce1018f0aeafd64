"""The page of `whyoom diff`: as a file, and in Chromium."""
import json
import pathlib
import subprocess
import sys
import unicodedata

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import diff_block  # noqa: E402
from diff_sample import KIB, WHYOOM, compared, hostile_trace, sides, write  # noqa: E402,F401
from test_browser import background, browser, chromium, fragment, pixels  # noqa: E402,F401
from test_browser import settled, show, text_of, until  # noqa: E402
from test_page import SMALL, TAGS, Seen, squeeze  # noqa: E402

ALL = ["changed", "equal", "served", "moments", "hostile", "large"]
LARGEST = 2 << 20


def said(words, *more):
    return json.loads(subprocess.run([WHYOOM, "diff", "--format", "json", *more, *map(str, words)],
                                     capture_output=True, check=True, timeout=120).stdout)


@pytest.mark.parametrize("name", ALL)
def test_says_what_changed_without_scripts(name, compared, sides):
    seen, r = Seen(compared[name].read_text()), said(sides[name])
    if name != "hostile":  # whose control characters are shown otherwise
        assert squeeze(r["sentence"]) in seen.text
        for change in r["changes"][:12]:
            assert change["function"] in seen.text and change["space"] in seen.text
    for space in r["spaces"]:
        assert space["space"] in seen.text
    for fact in r["facts"]:
        if not r["one_run"] and fact["kind"] in ("setting", "version") and fact["a"]:
            assert squeeze(fact["name"]) in seen.text and squeeze(fact["a"]) in seen.text


def test_both_sides(compared):
    text = Seen(compared["changed"].read_text()).text
    # Of load(), of the two caches, of a setting, and of all.
    for words in ("load server.py:17 ▲ +1.25 MiB 2.50 MiB 3.75 MiB host",
                  "new_cache server.py:47 ▲ +4.38 MiB",
                  "old_cache server.py:30 ▼ -1.88 MiB", "env.MALLOC_ARENA_MAX 0 7 differs",
                  "cuda:0 8.00 MiB 8.00 MiB 0 B"):
        assert words in text, words
    assert "no change seen" in Seen(compared["equal"].read_text()).text


@pytest.mark.parametrize("name", ALL)
def test_loads_nothing(name, compared):
    text = compared[name].read_text()
    seen = Seen(text)
    policy, = (a["content"] for tag, a in seen.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    for tag, attributes in seen.tags:
        assert tag in TAGS, tag
        for key, value in attributes.items():
            assert not key.startswith("on")
            assert key not in ("src", "href") or value.startswith("data:")
    assert "http://" not in text and "https://" not in text and "@import" not in text


@pytest.mark.parametrize("name", ALL)
def test_same_bytes_and_small(name, compared, sides, tmp_path):
    again = write(tmp_path / "again.html", *sides[name]).read_bytes()
    assert again == compared[name].read_bytes()
    assert len(again) <= (LARGEST if name == "large" else SMALL)


def test_names_are_never_markup(compared):
    text = compared["hostile"].read_text()
    seen = Seen(text)
    assert [tag for tag, _ in seen.tags].count("script") == 2
    assert "onmouseover" in seen.text  # it is there, as text
    for shown in (text, *filter(None, diff_block.read(text)["texts"])):
        assert not [c for c in shown if c != "\n" and
                    unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("name", ALL)
def test_data_is_what_json_says(name, compared, sides):
    data, r = diff_block.read(compared[name].read_text()), said(sides[name], "--limit", "0")
    assert [s["name"] for s in data["spaces"]] == [s["space"] for s in r["spaces"]]
    assert data["sides"]["spaces"] == len(r["spaces"])
    for space, json_space in zip(data["spaces"], r["spaces"]):
        lines, tree = space["lines"], space["tree"]
        assert len(lines["list"]) + lines["more"] == json_space["lines"]
        for side in "ab":
            for m in diff_block.MEASURES:
                whole = sum(p[side][m] for p in lines["list"]) + lines["rest"][side][m]
                assert tree[f"{side}_{m}"][0] == whole, (space["name"], side, m)
            amount = json_space[side]["amount"]["bytes"] if json_space[side] else 0
            assert tree[f"{side}_moment"][0] == space[side]["bytes"] == amount
            if json_space[side]:
                assert tree[f"{side}_peak"][0] == json_space[side]["peak_bytes"]
        changed = [c for c in r["changes"] if c["space"] == space["name"]]
        assert [p["function"] for p in lines["list"] if p["kind"] != "same"] and changed or \
            not changed
        assert (tree["changed"][0] > 0) == bool(changed)
        for phase, json_phase in zip(space["phases"], json_space["phases"], strict=True):
            assert phase["name"] == json_phase["name"]
            for side in "ab":
                points = json_phase[side]["points"] if json_phase[side] else None
                assert (phase[side]["at"] if phase[side] else None) == points


def test_phases_before_the_moment(compared):
    """Of two moments of one run, the earlier one knows less of the same curve."""
    data = diff_block.read(compared["moments"].read_text())
    phase, = data["spaces"][0]["phases"]
    a, b = phase["a"], phase["b"]
    assert 0 < a["known"] < b["known"] == 120 and a["at"][:-1] == b["at"][:a["known"] - 1]
    assert data["spaces"][0]["a"]["time"] < data["spaces"][0]["b"]["time"]


def test_both_sides_are_one_tree(compared):
    data = diff_block.read(compared["changed"].read_text())
    tree, = (s["tree"] for s in data["spaces"] if s["name"] == "host")
    found = {data["frames"][f - 1][0]: (tree["a_moment"][i], tree["b_moment"][i],
                                        tree["changed"][i] > 0)
             for i, f in enumerate(tree["frame"]) if f}
    assert found["load"] == (64 * 40 * KIB, 64 * 60 * KIB, True)
    assert found["old_cache"] == (64 * 30 * KIB, 0, True)
    assert found["new_cache"] == (0, 64 * 70 * KIB, True)
    assert found["steady"] == (64 * 50 * KIB, 64 * 50 * KIB, False)
    # What is released before the moment was acquired nevertheless.
    handle = [data["frames"][f - 1][0] if f else None for f in tree["frame"]].index("handle")
    assert (tree["a_total"][handle], tree["a_moment"][handle]) == (64 * 45000, 0)
    frames = [data["frames"][f - 1][0] for f in tree["frame"] if f]
    assert frames.count("main") == 1
    # A function that was only renamed is one box, by its new name.
    data = diff_block.read(compared["equal"].read_text())
    tree, = (s["tree"] for s in data["spaces"] if s["name"] == "host")
    found = {data["frames"][f - 1][0]: i for i, f in enumerate(tree["frame"]) if f}
    assert "old_cache" not in found
    assert tree["a_moment"][found["new_cache"]] == tree["b_moment"][found["new_cache"]] > 0


def test_each_page(browser, compared):
    for name, path in compared.items():
        for view in ("flame", "lines"):
            show(browser, path, f"#view={view}")
            settled(browser)
            if view == "flame":
                assert pixels(browser, "curves") > 3, name
                assert pixels(browser, "flame") > 2, name
            else:
                assert browser.find_elements(By.CSS_SELECTOR, ".lines tbody tr"), name
            assert browser.get_log("browser") == [], name


def colours_of(driver, canvas, variables):
    """Those of the style sheet's colours that the canvas has."""
    return driver.execute_script("""
        const c = document.getElementById(arguments[0]), g = document.createElement("canvas")
          .getContext("2d");
        arguments[1].forEach((name, i) => {
          g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
          g.fillRect(i, 0, 1, 1);
        });
        const want = new Uint32Array(g.getImageData(0, 0, arguments[1].length, 1).data.buffer);
        const seen = new Set(new Uint32Array(c.getContext("2d")
          .getImageData(0, 0, c.width, c.height).data.buffer));
        return arguments[1].filter((name, i) => seen.has(want[i]))""", canvas, variables)


def test_colours(browser, compared):
    # What is new is orange, what is gone is blue.
    show(browser, compared["changed"], "#view=flame&space=host")
    settled(browser)
    names = ["--up1", "--up2", "--up3", "--down1", "--down2", "--down3", "--same"]
    assert {"--up2", "--down2", "--same"} <= set(colours_of(browser, "flame", names))
    show(browser, compared["equal"], "#view=flame&space=host")
    settled(browser)
    assert colours_of(browser, "flame", names) == ["--same"]


def tip(driver):
    return text_of(driver, "#tip")


def test_keyboard(browser, compared):
    show(browser, compared["changed"], "#view=flame&space=host")
    canvas = browser.find_element(By.ID, "flame")
    canvas.send_keys(Keys.ARROW_UP)
    assert "all of host" in tip(browser)
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert "handle" in tip(browser) and "new" in tip(browser)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert "load" in tip(browser) and "A2.50 MiB" in tip(browser) and "B3.75 MiB" in tip(browser)
    assert "▲ +1.25 MiB, +50 %" in tip(browser)
    canvas.send_keys(Keys.ENTER)
    assert "node=" in fragment(browser)
    assert "load" in text_of(browser, ".crumbs")
    canvas.send_keys(Keys.ESCAPE)
    assert "node=" not in fragment(browser)
    curves = browser.find_element(By.ID, "curves")
    curves.send_keys(Keys.HOME, Keys.END)
    assert "run" in tip(browser) and "B has +3.75 MiB" in tip(browser), tip(browser)
    curves.send_keys(Keys.ESCAPE)
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("?")
    assert "in the curves" in browser.find_element(By.ID, "help").text
    browser.find_element(By.CSS_SELECTOR, "#help button").click()
    body.send_keys("/")
    assert browser.switch_to.active_element.get_attribute("id") == "flame-find"


def test_search_and_back(browser, compared):
    show(browser, compared["changed"], "#view=flame&space=host")
    browser.find_element(By.ID, "flame-find").send_keys("cache")
    until(lambda: "2 boxes" in text_of(browser, "#flame-found"))
    assert "1.88 MiB → 4.38 MiB (+2.50 MiB)" in text_of(browser, "#flame-found")
    browser.find_element(By.ID, "flame-find").send_keys(Keys.ESCAPE)
    browser.find_element(By.ID, "view-lines").click()
    assert "view=lines" in fragment(browser)
    browser.back()
    until(lambda: browser.find_element(By.ID, "flame").is_displayed())


def lines(driver):
    return driver.execute_script("""
        return [...document.querySelectorAll(".lines tbody tr")].map((row) =>
          [row.querySelector("th").textContent, ...[...row.querySelectorAll("td")].map((c) =>
            c.textContent)])""")


def choose(driver, select, value):
    driver.execute_script("""
        const s = document.getElementById(arguments[0]);
        s.value = arguments[1];
        s.onchange();""", select, value)


def test_lines(browser, compared):
    show(browser, compared["changed"], "#view=lines&space=host")
    found = lines(browser)
    assert [row[1] for row in found[:3]] == ["▲ new", "▼ gone", "▲ grew"]
    assert found[-1][1] == "same"
    load, = (row for row in found if row[0].startswith("load"))
    assert load[2:5] == ["▲ +1.25 MiB", "2.50 MiB", "3.75 MiB"]
    assert "line 10 before" in load[0]
    choose(browser, "choose-kind", "gone")
    assert [row[0] for row in lines(browser)] == ["old_cacheserver.py:30"]
    choose(browser, "choose-kind", "all")
    browser.find_element(By.XPATH, "//table[contains(@class, 'lines')]//button[text()='B']").click()
    assert lines(browser)[0][0].startswith("new_cache") and "sort=b" in fragment(browser)
    browser.find_elements(By.CSS_SELECTOR, ".lines .open")[1].send_keys(Keys.ENTER)
    assert "load  /srv/server.py:17" in text_of(browser, ".opened pre")
    assert "main  /srv/server.py:57" in text_of(browser, ".opened pre")
    csv = browser.execute_async_script("""
        const done = arguments[0], make = URL.createObjectURL;
        URL.createObjectURL = (blob) => {
          blob.text().then(done);
          return make.call(URL, blob);
        };
        document.getElementById("csv").click();
        setTimeout(() => (URL.createObjectURL = make), 0);""")
    assert f"load,/srv/server.py,17,10,grew,{64 * 20 * KIB},{64 * 40 * KIB},{64 * 60 * KIB}" in csv


def test_measures(browser, compared, sides):
    r = said(sides["served"], "--per-request")
    host = r["spaces"][0]
    show(browser, compared["served"], "#view=flame")
    label = browser.find_element(By.ID, "flame").get_attribute
    before = label("aria-label")
    browser.find_element(By.ID, "each").click()
    assert label("aria-label") != before and "each=yes" in fragment(browser)
    bytes_ = [host[side]["amount"]["bytes"] / KIB for side in "ab"]
    sizes = [f"{n:.{1 if n >= 9.995 else 2}f} KiB" for n in bytes_]
    assert f"{sizes[0]} → {sizes[1]}" in label("aria-label"), (sizes, label("aria-label"))
    choose(browser, "choose-measure", "total")
    assert "measure=total" in fragment(browser) and sizes[0] not in label("aria-label")
    for width in ("a", "b", "change", "most"):
        choose(browser, "choose-width", width)
        settled(browser)
        assert f"width={width}" in fragment(browser)
    assert browser.find_elements(By.CSS_SELECTOR, "#timeline canvas")
    assert "serving: A at most" in browser.find_element(By.ID, "curves").get_attribute("aria-label")


@pytest.mark.parametrize("wrong", ["#space=%00&view=no", "#measure=x&width=9&kind=q&each=7",
                                   "#node=99.x&sort=x&open=99999&find=%F0", "#&&==&"])
def test_wrong_fragments(browser, compared, wrong):
    show(browser, compared["changed"], wrong)
    settled(browser)


def test_large(browser, compared):
    """A search among as many boxes as a page shows does not make the reader wait."""
    data = diff_block.read(compared["large"].read_text())
    assert len(data["spaces"][0]["tree"]["frame"]) > 8000
    show(browser, compared["large"], "#view=flame")
    settled(browser)
    took = browser.execute_async_script("""
        const done = arguments[0], out = [];
        const frame = () => new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)));
        (async () => {
          for (const text of ["forward_1", "forward_12", "layer", ""]) {
            const input = document.getElementById("flame-find"), begin = performance.now();
            input.value = text;
            input.oninput();
            out.push(performance.now() - begin);
            await frame();
          }
          done(out);
        })();""")
    print("a search:", took)
    assert sorted(took)[1] < 150, took


def test_names_stay_text(browser, compared):
    show(browser, compared["hostile"], "#view=lines")
    assert browser.find_elements(By.CSS_SELECTOR, "[onmouseover]") == []
    assert "onmouseover" in text_of(browser, ".lines")


def test_dark_narrow_and_print(browser, compared):
    show(browser, compared["changed"])
    light = background(browser)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    settled(browser)
    assert background(browser) != light
    assert colours_of(browser, "flame", ["--same"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {})
    for name in ("changed", "served", "hostile"):
        for view in ("flame", "lines"):
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
            show(browser, compared[name], f"#view={view}")
            settled(browser)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 400, (name, view, wide)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 20000


def test_without_scripts(browser, compared, sides):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"file://{compared['changed']}")
        assert squeeze(browser.find_element(By.TAG_NAME, "h1").text) == \
            squeeze(said(sides["changed"])["sentence"])
        for part in ("changes", "spaces", "setting", "unknown"):
            assert browser.find_element(By.ID, part).text
        assert "need scripts" in browser.find_element(By.TAG_NAME, "noscript").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_screen_reader(browser, compared):
    show(browser, compared["changed"], "#view=flame&space=host")
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = [(n.get("role", {}).get("value"), n.get("name", {}).get("value", "")) for n in nodes]
    assert [n for role, n in names if role == "heading" and "server.py" in n]
    images = [n for role, n in names if role in ("image", "img")]
    assert [n for n in images if n.startswith("Live bytes of host on both sides")]
    assert [n for n in images if n.startswith("Flame graph of both sides, host: ")]

"""Whatever a trace or a log contains, no command's output steers a terminal, hides text or breaks
out of its format."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unicodedata

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "golden"))
import writer  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
# Markup, a terminal's codes in both rows, lines, directions, blanks without width, tags, no UTF-8,
# formats, C.
EVIL = ('</script><b '
        'onmouseover="x">&\'\x1b[31m\x07\x1b]0;t\x07\r\n\tz\x7f\u009b2J'
        '\u202egnp.\u2066\u200b\u2028\ufeff'
        '\U000e0041%s%n\\" */ #error out\n').encode() + b"\xff\xc0\xaf\xed\xa0\x80"


def evil(word):
    return word.encode() + EVIL


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A leak of a Python function with requests and threads, until the host's limit refuses; and a
    device's."""
    folder = tmp_path_factory.mktemp("hostile")
    d = writer.Definitions(size=writer.SLOT)
    d.module(1, evil("/usr/bin/python3"))
    d.module(2, evil("/usr/lib/vllm/"))
    for n in (1, 2, 3):
        d.code(n, 3 * 256 + 11, 10 * n, evil(f"Engine.step{n}"), evil(f"/srv/app/engine{n}.py"),
               b"\xf8\x00\x00")
    for n in (1, 2, 3):
        d.stack(n, [("native", 1, 0x1000, False), ("python", 1, 0), ("python", n, 0),
                    ("native", 2, 0x2000, False)])
    d.string(1, evil("request"))
    d.string(2, evil("cudaMalloc"))
    d.string(3, evil("domain"))
    for key, value in (("exe", evil("/usr/bin/python3")),
                       ("cmdline", evil("python3") + b"\0" + evil("-m")),
                       ("cwd", evil("/srv")), ("malloc.owner", evil("/lib/libc.so")),
                       ("limit.as", b"1073741824"),
                       ("env.PYTORCH_CUDA_ALLOC_CONF", EVIL), ("cgroup.path", evil("/user.slice/")),
                       ("python", evil("3.11")), ("torch.blocks", EVIL),
                       ("cuda.driver", evil("/usr/lib/libcuda.so")),
                       ("kernel", EVIL), ("whyoom.version", EVIL), ("unwind", EVIL)):
        d.info(key, value)
    d.space(1, "cuda:0")
    d.space(2, "torch:0", 1)
    d.space(3, evil("pool"), 1)
    d.thread_name(1, 1001, evil("server"))
    c = writer.Chunk(1, 1000, size=4 * writer.SLOT)
    ticks, address = 1000, 0x10000000
    for request in range(60):
        ticks += 1000000
        c.extended(writer.MARK, 1, request + 1, 1, 0, 1, 3, ticks=ticks)
        for k in range(20):
            address += 4 << 20
            c.alloc(address, 2000000, stack=1 + k % 3, ticks=ticks + 10 * k + 1)
            if k % 3:
                c.free(address, ticks=ticks + 10 * k + 2)
        c.extended(writer.SPACE_ALLOC, 1, 2, address, 2 << 20, 1 + request % 3, 0, 0, 0, 2, 0,
                   ticks=ticks + 400)
        c.extended(writer.SPACE_ALLOC, 2, 2, address, 1 << 20, 1 + request % 3, 0, 0, 0, 2, 0,
                   ticks=ticks + 500)
        c.extended(writer.MARK, 2, request + 1, 1, 0, 1, 3, ticks=ticks + 900)
    c.levels(writer.FAILED, (0, 0, 1, 12, 1 << 29, 0, 0, 2), ((5, 900 << 20), (128, 1 << 30)),
             ticks=ticks + 1000)
    (folder / "4711.0.whyoom").write_bytes(writer.trace([d, c], end=(1, 1), minor=3))
    run = writer.Definitions()
    run.info("untraced", b"20")
    run.info("untraced.1", EVIL)
    run.info("gpu.0.name", EVIL)
    run.info("gpu.0.uuid", EVIL)
    (folder / "run.whyoom").write_bytes(writer.trace([run], mode=2, pid=4710))
    return folder


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(b'Traceback (most recent call last):\n  File "/srv/' + EVIL.replace(b"\n", b"")
                     + b'.py", line 12, in ' +
                     EVIL.replace(b"\n", b"") + b"\n    step()\ntorch.OutOfMemoryError: CUDA out "
                     b"of memory. Tried to allocate "
                     b"2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.25 GiB is "
                     b"free. Process 77 (" +
                     EVIL.replace(b"\n", b"") + b") has 3 GiB in use.\nOut of memory: Killed "
                     b"process 4711 (" +
                     EVIL.replace(b"\n", b"") + b") total-vm:100kB, anon-rss:50kB, file-rss:1kB, "
                     b"shmem-rss:0kB\n")
    return path


COMMANDS = [(command, *more, *form) for form in ((), ("--format", "json")) for command, *more in (
    ("report", "-v", "--native"), ("map",), ("map", "--space", "torch:0"),
    ("map", "--space", "cuda:0"),
    ("diff", "-v", "--native", "-n", "0", "--at", "peak", "--and", "end"),
    ("sites", "-v", "--native"), ("sites", "--by", "growth", "--space", "torch:0"), ("check",),
    ("flame",), ("sites", "--tree", "-n", "0"),
    ("what-if", "--memory", "2GiB"), ("what-if", "--cap-growth", "1MiB", "--space", "host"),
    ("replay",),
    ("report", "--log", "LOG"), ("explain", "-v", "LOG"))]
COMMANDS.append(("report", "--log", "LOG", "--format", "html"))


def misleads(character):
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Zl",
                                                                     "Zp")


def harmless(data, words):
    text = data.decode()  # or it is no UTF-8
    assert not [c for c in text if misleads(c)], (words, [hex(ord(c)) for c in text if misleads(c)],
                                                  text)
    return text


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_output(words, locale, trace, log):
    is_explain = words[0] == "explain"
    words = [str(log) if w == "LOG" else w for w in words]
    done = subprocess.run([WHYOOM, *words, *([] if is_explain else [trace])], capture_output=True,
                          timeout=60,
                          env=dict(os.environ, LC_ALL=locale, COLUMNS="200"))
    assert done.returncode == 0, done.stderr
    text = harmless(done.stdout, words)
    harmless(done.stderr, words)
    if "json" in words:
        json.loads(text)
        if words[0] in ("report", "sites"):
            assert any(word in text for word in ("onmouseover",
                                                 "anon-rss")), "nothing of the names is left"


def test_reduced_program(trace, tmp_path):
    """The reader compiles C output: no name ends its comment."""
    program = tmp_path / "small.c"
    done = subprocess.run([WHYOOM, "reduce", trace, "--time", "2", "--emit", "c", "-o", program],
                          capture_output=True,
                          timeout=120)
    harmless(done.stdout, "reduce")
    harmless(done.stderr, "reduce")
    assert done.returncode == 0, done.stderr
    text = harmless(program.read_bytes().replace(b"\t", b" "), "reduce")
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    assert "onmouseover" not in code and "#error" not in code
    subprocess.run(["cc", "-fsyntax-only", program], check=True)


def test_errors(tmp_path):
    """An error or a note names a file in a printable form."""
    folder = tmp_path / "x\x1b[31m\u202e"
    folder.mkdir()
    (folder / "1.0.whyoom").write_text("none")
    for command in ("report", "check", "map"):
        done = subprocess.run([WHYOOM, command, folder], capture_output=True)
        assert done.returncode == 1 and "\\x1b" in harmless(done.stdout + done.stderr, command)

"""The wheel: what is in it, what it needs of a system, and that it works where nothing else is
installed."""

import json
import os
import re
import subprocess
import sys
import zipfile

from conftest import BUILD, SOURCE, build_wheel

LEAK = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
kept = []
def handle():
    kept.append(bytearray(1 << 20))
while True:
    handle()
"""
LARGEST = 6 << 20
NEWEST = (2, 28)


def version():
    with open(os.path.join(SOURCE, "meson.build")) as f:
        return re.search(r"version: '([\d.]+)'", f.read())[1]


def test_name_and_size(wheel):
    assert re.fullmatch(rf"whyoom-{re.escape(version())}-cp310-abi3-manylinux_2_28_"
                        rf"{os.uname().machine}\.whl", os.path.basename(wheel))
    assert os.path.getsize(wheel) <= LARGEST
    print(f"shown: the wheel has {os.path.getsize(wheel) / 2**20:.2f} MiB")


def test_contents(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = set(z.namelist())
        metadata = z.read(next(n for n in names if n.endswith("/METADATA"))).decode()
        modes = {i.filename: i.external_attr >> 16 & 0o777 for i in z.infolist()}
    assert "Requires-Dist" not in metadata
    assert f"Version: {version()}\n" in metadata
    with open(os.path.join(SOURCE, "analyzer", "cmd", "commands.def")) as f:
        commands = re.findall(r"^COMMAND\((\w+)\)", f.read(), flags=re.M)
    wanted = {"bin/whyoom", "lib/libwhyoom.so", "lib/libwhyoom-nvtx.so", "lib/whyoom-nvml",
              "lib/simgpu/libwhyoom-simgpu.so", "lib/whyoom-player", "lib/whyoom-device-player",
              "share/whyoom/report-schema.json", "share/whyoom/knowledge/langchain.know",
              "share/man/man1/whyoom.1", "include/whyoom/mark.h", "_marks.abi3.so", "py.typed"}
    wanted |= {f"share/man/man1/whyoom-{c.replace('_', '-')}.1" for c in commands}
    modules = os.listdir(os.path.join(SOURCE, "python", "whyoom"))
    wanted |= {m for m in modules if m.endswith(".py")}
    modules = os.listdir(os.path.join(SOURCE, "python", "whyoom", "fleet"))
    wanted |= {"fleet/" + m for m in modules if m.endswith(".py")}
    assert not {"whyoom/" + w for w in wanted} - names
    assert modes["whyoom/bin/whyoom"] == modes["whyoom/lib/whyoom-player"] == 0o755
    assert modes["whyoom/__init__.py"] == 0o644


def elf_files(wheel, folder):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if z.read(name)[:4] == b"\x7fELF":
                yield z.extract(name, folder)


def test_needs_no_newer_system(wheel, work):
    files = list(elf_files(wheel, work))
    assert len(files) == 8, files
    for path in files:
        said = subprocess.run(["objdump", "-p", path], capture_output=True, text=True,
                              check=True).stdout
        needed = set(re.findall(r"NEEDED\s+(\S+)", said))
        assert all(re.match(r"(libc|libdl|libpthread|libm|ld-linux.*)\.so", n)
                   for n in needed), (path, needed)
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", said)}
        assert not versions or max(versions) <= NEWEST, path
        if path.endswith("bin/whyoom"):
            assert "INTERP" not in said and not needed


def test_auditwheel_agrees(wheel, tools):
    said = subprocess.run([tools, "-m", "auditwheel", "show", wheel], capture_output=True,
                          text=True, check=True).stdout
    found = re.search(r'platform tag:\s+"manylinux_(\d+)_(\d+)_', said)
    assert (int(found[1]), int(found[2])) <= NEWEST, said


def test_one_that_needs_more_is_refused(tools):
    """The program of an ordinary build, which is for this system."""
    said = subprocess.run([tools, "-c", "import backend, sys; backend.check_imports(sys.argv[1], "
                           "'none')", "/bin/sh"], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=SOURCE + "/packaging/wheel")).stderr
    newest = max(tuple(map(int, v.split("."))) for v in re.findall(
        r"GLIBC_([\d.]+)", subprocess.run(["objdump", "-p", "/bin/sh"], capture_output=True,
                                          text=True, check=True).stdout))
    assert ("RuntimeError: sh needs GLIBC_" in said) == (newest > NEWEST), said


def test_the_same_bytes_again(wheel, tools):
    again = build_wheel(tools, os.path.join(BUILD, "wheels-again"))
    with open(wheel, "rb") as one, open(again, "rb") as other:
        assert one.read() == other.read()


def test_the_command(installed):
    wanted = (0, f"whyoom {version()}\n", "")
    for command in ([installed.whyoom], [installed.python, "-m", "whyoom"]):
        r = installed.run(*command, "--version")
        assert (r.returncode, r.stdout, r.stderr) == wanted
        assert installed.run(*command, "no-command").returncode == 2
    r = installed.run(installed.python, "-c", "import whyoom; print(whyoom.__version__)")
    assert r.stdout == version() + "\n"


def test_the_command_of_a_fleet(installed, work):
    """Lines need no package, so the tables are the program's that the wheel brings."""
    for command in ([installed.whyoom + "-fleet"], [installed.python, "-m", "whyoom.fleet"]):
        r = installed.run(*command, "--help")
        assert r.returncode == 0 and r.stdout.startswith("usage: whyoom-fleet "), r.stderr
    r = installed.run(installed.whyoom + "-fleet", "ask", "causes", work)
    assert r.returncode == 1 and r.stderr == "whyoom: No module named 'duckdb'\n", r.stderr
    r = installed.run(installed.python, "-c", "from whyoom.fleet import _columns as c; "
                      "print(c.tables()[1]['crash']['limit_bytes'])")
    assert r.stdout == "INTEGER\n", r.stderr


def test_a_leak(installed, work):
    r = installed.script(LEAK, trace=work + "/t")
    assert r.returncode == 1
    assert "leaked in handle" in r.stderr, r.stderr
    r = installed.run(installed.whyoom, "report", "--format", "json", work + "/t")
    report = json.loads(r.stdout)
    assert report["verdict"]["cause"] == "leak"
    assert report["verdict"]["blame"]["function"] == "handle"
    # with the players beside the library
    r = installed.run(installed.whyoom, "replay", "--format", "json", work + "/t")
    assert r.returncode == 0, r.stderr


def test_a_simulated_gpu(installed, work):
    r = installed.script("print('done')", trace=work + "/t", options=["--simgpu", "1GiB"])
    assert (r.returncode, r.stdout) == (0, "done\n"), r.stderr


def test_a_program_that_is_missing(installed, work):
    """The package without its program, as a copy of the sources is: a clear error."""
    package = os.path.join(work, "whyoom")
    os.symlink(os.path.join(SOURCE, "python", "whyoom"), package)
    r = installed.run(sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); "
                      "import importlib.util as u; "
                      "s = u.spec_from_file_location('p', sys.argv[1] + '/whyoom/_program.py'); "
                      "m = u.module_from_spec(s); s.loader.exec_module(m); sys.exit(m.main())",
                      work, PATH="/nonexistent")
    assert r.returncode == 1
    assert r.stderr.startswith("whyoom: the program whyoom is neither in "), r.stderr

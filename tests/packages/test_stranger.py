"""A stranger follows README.md and docs/deploy.md word by word: each command of their blocks is run
by a shell as it stands there, and what the text says follows must be so.

What a test may not do to the machine is done by stand-ins on the PATH, which check what they are
asked for: meson takes the build that is there and installs below a folder; pip, podman, systemctl,
dpkg and tar look whether what is named is what is made; kubectl makes the objects by kustomize's
rules, checks them by their schemas, and runs `exec` where the recorder's folder is. A command
without a rule here fails the test."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = pathlib.Path(os.environ["WHYOOM_SOURCE"])
BUILD = pathlib.Path(os.environ["WHYOOM_BUILD"])
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")
HERE = os.path.dirname(os.path.abspath(__file__))
LIB = str(SOURCE / "tests/lib")
VERSION = re.search(r"version: '([\d.]+)'", (SOURCE / "meson.build").read_text())[1]
SERVER = """
kept = []
def serve(size):
    kept.append(bytearray(size))
while True:
    serve(200000)
"""
WAITS = "import time\nkept = [bytearray(100000) for _ in range(100)]\ntime.sleep(600)\n"
# What stands in. $ROOT is a folder of the test's; each says what was wrong and fails.
STAND_INS = {
    "meson": """
case "$*" in
"setup build") mkdir -p build; exit 0 ;;
"install -C build") [ -d build ] || exit 1
	exec "$REAL_MESON" install -C "$WHYOOM_BUILD" --no-rebuild --quiet --destdir "$ROOT" ;;
esac
echo "meson: no such use: $*" >&2; exit 1""",
    "pip": """
[ "$*" = "install ." ] && grep -q '^name = "whyoom"' pyproject.toml && exit 0
echo "pip: no such use: $*" >&2; exit 1""",
    "podman": """
[ "$1 $2 $4 $6" = "build -f -t ." ] && [ -f "$3" ] && [ "$5" = "whyoom:$VERSION" ] && exit 0
echo "podman: no such use: $*" >&2; exit 1""",
    "systemctl": """
case "$*" in
daemon-reload) exit 0 ;;
"restart server") [ -f "$ROOT/etc/systemd/system/server.service.d/whyoom.conf" ] && exit 0 ;;
esac
echo "systemctl: no such use: $*" >&2; exit 1""",
    "install": """
to=$(eval echo "\\${$#}")
/usr/bin/install "${@:1:$#-1}" "$ROOT$to" """,
    "dpkg": """
[ "$*" = "-i whyoom_${VERSION}_amd64.deb" ] && grep -q '^Package: whyoom$' \
	"$WHYOOM_SOURCE/packaging/debian/control" && exit 0
echo "dpkg: no such use: $*" >&2; exit 1""",
    "tar": """
[ "$*" = "-xf whyoom-$VERSION-x86_64.tar.xz" ] && exit 0
echo "tar: no such use: $*" >&2; exit 1""",
    "journalctl": '[ "$*" = "-u server" ]',
    "kubectl": """
exec /usr/bin/python3 "$HERE/test_stranger.py" kubectl "$@" """,
}


def blocks(text):
    """Indented blocks, without the indent; several commands or one file each."""
    found, lines = [], []
    for line in text.split("\n") + [""]:
        if line.startswith("    "):
            lines.append(line)
        elif lines and not line.strip():
            lines.append("")
        elif lines:
            found.append(textwrap.dedent("\n".join(lines)).strip("\n"))
            lines = []
    if lines:
        found.append(textwrap.dedent("\n".join(lines)).strip("\n"))
    return found


def section(name, title):
    text = (SOURCE / name).read_text()
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


class Stranger(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="whyoom-stranger-", dir=DISK))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.root = self.top / "root"
        stand_ins = self.top / "stand-ins"
        for folder in (self.root, stand_ins):
            folder.mkdir()
        for name, script in STAND_INS.items():
            (stand_ins / name).write_text("#!/bin/bash\n" + script.lstrip("\n") + "\n")
            (stand_ins / name).chmod(0o755)
        (stand_ins / "python").symlink_to("/usr/bin/python3")
        prefix = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
        prefix = next(o["value"] for o in prefix if o["name"] == "prefix")
        self.env = {
            "PATH": f"{stand_ins}:{self.root}{prefix}/bin:/usr/bin:/bin", "ROOT": str(self.root),
            "REAL_MESON": shutil.which("meson") or "", "WHYOOM_BUILD": str(BUILD),
            "WHYOOM_SOURCE": str(SOURCE), "VERSION": VERSION, "HERE": HERE,
            "HOME": os.path.expanduser("~"), "CLUSTER": str(self.top / "cluster"),
            "LC_ALL": "C.UTF-8"}

    def shell(self, line, cwd, *, status=(0,), limit=True, **more):
        """What a line says, run as it stands."""
        done = subprocess.run(
            ["/bin/bash", "-c", ("ulimit -v 600000\n" if limit else "") + line], cwd=cwd,
            env=self.env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
            errors="replace", **more)
        self.assertIn(done.returncode, status, f"$ {line}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def checkout(self):
        """A folder with what the commands name."""
        tree = self.top / "checkout"
        tree.mkdir()
        for name in ("packaging", "pyproject.toml", "analyzer", "meson.build"):
            (tree / name).symlink_to(SOURCE / name)
        return tree

    def install(self):
        tree = self.checkout()
        commands, = [b for b in blocks(section("README.md", "Install")) if "meson" in b]
        for line in commands.split("\n"):
            self.shell(line, tree, limit=False)
        self.assertTrue(list(self.root.glob("**/bin/whyoom")))
        return tree

    def started(self, program, cwd, recorded):
        """A process that waits, and its pid."""
        p = subprocess.Popen((["whyoom", "run", "-o", recorded, "--"] if recorded else [])
                             + ["/usr/bin/python3", "-c", program], cwd=cwd, env=self.env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end():
            p.terminate()
            p.wait(60)
        self.addCleanup(end)
        return p

    def test_readme(self):
        self.install()
        work = self.top / "work"
        work.mkdir()
        (work / "server.py").write_text(SERVER)
        lines = blocks(section("README.md", "First run"))[0].split("\n")
        verbs = [re.match(r"whyoom (\w+)", line)[1] for line in lines]
        self.assertEqual(sorted(set(verbs)), sorted(["doctor", "run", "watch", "attach", "report",
                                                     "flame", "diff"]))
        for verb, line in zip(verbs, lines):
            if verb == "doctor":
                self.assertIn("whyoom will work here", self.shell(line, work, status=(0, 3)))
            elif verb == "run":
                self.assertIn("% sure", self.shell(line, work, status=(1,)))
                # Its pid is 4711 in the text, and 59 that of another run.
                made, = work.glob("whyoom.*")
                shutil.copytree(made, work / "whyoom.59")
                made.rename(work / "whyoom.4711")
            elif verb == "watch":
                (work / "whyoom.4711").rename(work / "kept")
                self.started(WAITS, work, "whyoom.4711")
                said = self.shell("for n in $(seq 300); do ls whyoom.4711/*.whyoom && break; "
                                  "sleep 0.2; done >/dev/null 2>&1\ntimeout 5 " + line, work,
                                  status=(0, 124))
                self.assertIn("tell what grows", said)
            elif verb == "attach":
                target = self.started(WAITS, work, None)
                said = self.shell(line.split("#")[0].replace("4711", str(target.pid)), work,
                                  limit=False)
                self.assertIn(f"whyoom.{target.pid}", said)
                other = re.search(r"whyoom detach 4711", line)[0]
                self.shell(other.replace("4711", str(target.pid)), work, limit=False)
            else:
                if (work / "kept").exists():  # the whole run again
                    shutil.rmtree(work / "whyoom.4711")
                    (work / "kept").rename(work / "whyoom.4711")
                wanted = {"report": "serve", "flame": "serve", "diff": "no change|nothing|same"}
                self.assertRegex(self.shell(line, work, limit=False), wanted[verb])

    def test_a_renamed_command_fails(self):
        """Each command that the blocks have, with another name: the shell's status is not 0."""
        tree = self.install()
        (tree / "server.py").write_text(SERVER)
        for line in ("whyoom raport whyoom.4711", "whyoom doktor -- python server.py",
                     "meson setup bild && meson install -C bild", "pip install whyoom",
                     "podman build -f packaging/Dockerfile -t whyoom:0.2.0 .",
                     "kubectl apply -k packaging/kubernetes/monitor",
                     "kubectl exec POD -c sidecar -- whyoom report /whyoom/traces"):
            with self.assertRaises(AssertionError, msg=line):
                self.shell(line, tree)

    def test_deploy(self):
        text = (SOURCE / "docs/deploy.md").read_text()
        tree = self.install()
        given = blocks(text)
        run = []
        for block in given:
            if block.startswith(("apiVersion:", "metadata:", "COPY ")):
                continue
            run += block.split("\n")
        spans = [re.sub(r"\s+", " ", s) for s in re.findall(r"`([^`]+)`", text)]
        run += [s for s in spans if re.match(r"(dpkg|tar|journalctl|kubectl) ", s)]
        # A container: the lines are those of the whole example.
        copy, = [b for b in given if b.startswith("COPY ")]
        example = (SOURCE / "packaging/example.Containerfile").read_text().split("\n")
        for line in copy.split("\n"):
            self.assertIn(line, example)
        words = json.loads(copy.split("ENTRYPOINT ")[1])
        words[words.index("/traces")] = str(self.top / "traces")
        self.shell(" ".join([*words, "/bin/true"]), tree)
        self.cluster(given, tree)
        order = sorted(run, key=lambda s: (not s.startswith("kubectl apply -k ."), ))
        for line in order:
            where = {"install": tree / "packaging/systemd", "kubectl create": tree /
                     "packaging/grafana", "kubectl apply -k .": self.top / "deployment"}
            cwd = next((folder for start, folder in where.items() if line.startswith(start)), tree)
            said = self.shell(line, cwd, limit=False)
            if " report " in line:
                self.assertIn("serve", said)
        self.assertTrue((tree / "traces").is_dir())  # of kubectl cp
        done = [line.split()[0] + " " + line.split()[1] for line in run]
        for wanted in ("podman build", "systemctl daemon-reload", "kubectl apply", "kubectl exec",
                       "kubectl cp", "kubectl create", "kubectl label", "dpkg -i", "tar -xf"):
            self.assertIn(wanted, done)
        self.assertIn("--tag", self.shell("packaging/release --help", tree, limit=False))

    def cluster(self, given, tree):
        """The user's folder, as steps 1 and 2 have it, and a pod's folder of traces."""
        import yaml
        folder = self.top / "deployment"
        folder.mkdir()
        (folder / "whyoom").symlink_to(SOURCE / "packaging/kubernetes")
        kustomization, = [b for b in given if b.startswith("apiVersion:")]
        (folder / "kustomization.yaml").write_text(kustomization + "\n")
        opted, = [yaml.safe_load(b) for b in given if b.startswith("metadata:")]
        server = {"apiVersion": "apps/v1", "kind": "Deployment",
                  "metadata": {"name": "server", **opted["metadata"]},
                  "spec": {"selector": {"matchLabels": {"app": "server"}}, "template": {
                      "metadata": {"labels": {"app": "server"}},
                      "spec": {**opted["spec"]["template"]["spec"], "containers": [
                          {"name": "server", "image": "example/server:1.0"}]}}}}
        (folder / "server.yaml").write_text(yaml.safe_dump(server))
        pod = self.top / "cluster/whyoom"
        pod.mkdir(parents=True)
        (tree / "server.py").write_text(SERVER)
        self.shell(f"whyoom run -o {pod}/traces -- python server.py", tree, status=(1,))


# --- kubectl's stand-in ---

def kubectl(words):
    """Does what is asked for in the folder $CLUSTER; the status."""
    import yaml
    sys.path[:0] = [LIB, HERE]
    import kustomize
    cluster = pathlib.Path(os.environ["CLUSTER"])
    if words[:2] == ["apply", "-k"] and len(words) == 3:
        objects = kustomize.build(words[2])
        cluster.mkdir(exist_ok=True)
        (cluster / f"{len(list(cluster.glob('*.yaml')))}.yaml").write_text(
            yaml.safe_dump_all(objects))
        core = [x for x in objects if not x["apiVersion"].startswith("monitoring.")]
        return schema(cluster, core) if core else 0
    if words[:2] == ["create", "configmap"]:
        given, = [w.split("=", 1)[1] for w in words if w.startswith("--from-file=")]
        json.loads(pathlib.Path(given).read_text())
        (cluster / words[2]).touch()
        return 0
    if words[:2] == ["label", "configmap"]:
        return 0 if (cluster / words[2]).exists() and "=" in words[3] else 1
    names = {c["name"] for f in cluster.glob("*.yaml") for x in yaml.safe_load_all(f.read_text())
             if x["kind"] == "Deployment" for c in x["spec"]["template"]["spec"]["initContainers"]}
    if "-c" not in words or words[words.index("-c") + 1] not in names:
        print(f"no container of {words}: {sorted(names)}", file=sys.stderr)
        return 1
    here = str(cluster / "whyoom")
    if words[:2] == ["exec", "POD"]:
        command = [re.sub("^/whyoom", here, w) for w in words[words.index("--") + 1:]]
        status = subprocess.run(command).returncode
        # A cluster's server goes on after its restart; this one does not.
        return 0 if "--once" in command and status == 1 else status
    if words[0] == "cp":
        shutil.copytree(words[1].replace("POD:/whyoom", here), words[2])
        return 0
    print("kubectl: no such use:", *words, file=sys.stderr)
    return 1


def schema(cluster, objects):
    import yaml
    from test_manifests import validator
    (cluster / "checked").write_text(yaml.safe_dump_all(objects))
    try:
        tool = validator()
    except unittest.SkipTest as why:
        print(why)
        return 0
    return subprocess.run([*tool, cluster / "checked"]).returncode


if __name__ == "__main__":
    sys.exit(kubectl(sys.argv[2:]) if sys.argv[1:2] == ["kubectl"] else unittest.main())

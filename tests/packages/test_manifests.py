"""The manifests: a drop-in for systemd, played as systemd does; and for Kubernetes the components:
each object is what the API's schema says, and the recorder does what its comment says."""

import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["WHYOOM_SOURCE"], "tests", "lib"))
SOURCE = pathlib.Path(os.environ["WHYOOM_SOURCE"])
PACKAGING = SOURCE / "packaging"
KUBERNETES = PACKAGING / "kubernetes"
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")
CACHE = pathlib.Path.home() / ".cache" / "whyoom-tests"
VALIDATOR = "kubernetes-validate==1.37.0"
OLDEST = "1.29"  # the first where an init container can be a sidecar
GROWS = "x = []\nwhile True: x.append(bytearray(1 << 20))"

try:
    import kustomize
    import yaml
except ImportError:
    yaml = None


def temporary(test):
    d = pathlib.Path(tempfile.mkdtemp(prefix="whyoom-manifests-", dir=DISK))
    test.addCleanup(shutil.rmtree, d, ignore_errors=True)
    return d


class Systemd(unittest.TestCase):
    TEXT = (PACKAGING / "systemd/whyoom.conf").read_text()

    def verify(self, text):
        d = temporary(self)
        (d / "server.service").write_text("[Service]\nExecStart=/bin/true\n")
        (d / "server.service.d").mkdir()
        (d / "server.service.d/whyoom.conf").write_text(text)
        r = subprocess.run(["systemd-analyze", "verify", d / "server.service"],
                           capture_output=True, text=True,
                           env={**os.environ, "SYSTEMD_UNIT_PATH": f"{d}:"})
        return r.returncode, r.stderr

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_systemd_understands_it(self):
        self.assertEqual(self.verify(self.TEXT), (0, ""))
        self.assertIn("Unknown key", self.verify(self.TEXT + "StateDir=x\n")[1])

    def play(self, state):
        """The settings of [Service], with the paths of this build."""
        text = self.TEXT.replace("\\\n", " ").replace("%S", str(state)).replace("%N", "server")
        text = text.replace("/usr/lib/whyoom/libwhyoom.so", os.environ["WHYOOM_SHIM"])
        text = text.replace("/usr/bin/whyoom", os.environ["WHYOOM_EXE"])
        lines = [s for s in text.split("[Service]\n")[1].split("\n") if s and s[0] != "#"]
        settings = [s.split("=", 1) for s in lines]
        env = dict(v.split("=", 1) for k, v in settings if k == "Environment")
        self.assertEqual(env["WHYOOM_DIR"], f"{state}/whyoom/server")
        env["PATH"] = os.environ["PATH"]
        commands = {k: shlex.split(v.lstrip("-")) for k, v in settings if k.startswith("Exec")}
        os.makedirs(env["WHYOOM_DIR"], 0o700, exist_ok=True)
        return env, commands

    def test_a_service_that_fails(self):
        state = temporary(self)
        traces = state / "whyoom/server"

        def run(command, env, **more):
            return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120,
                                  **more)

        def lower():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
        for turn in range(3):
            env, commands = self.play(state)
            r = run(commands["ExecStartPre"], env)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertEqual(list(traces.glob("[0-9]*.whyoom")), [])
            r = run(["/usr/bin/python3", "-c", GROWS], env, preexec_fn=lower)
            self.assertIn("MemoryError", r.stderr)
            r = run(commands["ExecStopPost"], {**env, "SERVICE_RESULT": "exit-code"})
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("RLIMIT_AS", r.stdout)
            self.assertIn("% sure", r.stdout)
            self.assertFalse((traces / "earlier/earlier").exists())
            # The earlier run is whole: it gives the same verdict.
            r = run([os.environ["WHYOOM_EXE"], "report", traces / "earlier"], os.environ)
            self.assertEqual("RLIMIT_AS" in r.stdout, turn > 0)
        r = run(commands["ExecStopPost"], {**env, "SERVICE_RESULT": "success"})
        self.assertEqual((r.returncode, r.stdout), (0, ""))


def build(folder):
    """The objects that kustomize makes of a folder; without it, our reader of such folders."""
    made = real_build(folder)
    return kustomize.build(folder) if made is None else made


def real_build(folder):
    """The same; None: there is no kustomize here."""
    for tool in (["kustomize", "build"], ["kubectl", "kustomize"]):
        if shutil.which(tool[0]):
            r = subprocess.run([*tool, folder], capture_output=True, text=True, timeout=60)
            if r.returncode == 0:
                return [x for x in yaml.safe_load_all(r.stdout) if x]
            raise AssertionError(r.stderr)
    return None


def json_of(x):
    return json.dumps(x, sort_keys=True)


def validator():
    """The API's schemas, from PyPI, once."""
    folder = CACHE / VALIDATOR.replace("==", "-")
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        r = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", part],
                           capture_output=True, text=True)
        if r.returncode == 0:
            r = subprocess.run([part / "bin/pip", "install", "-q", VALIDATOR], capture_output=True,
                               text=True)
        if r.returncode:
            shutil.rmtree(part, ignore_errors=True)
            raise unittest.SkipTest(f"{VALIDATOR} cannot be had: {r.stderr[-200:]}")
        part.rename(folder)
    return [folder / "bin/python", "-m", "kubernetes_validate", "--strict", "-k", OLDEST]


@unittest.skipUnless(yaml, "needs python3-yaml")
class Kubernetes(unittest.TestCase):
    def pod(self, objects, name):
        return next(x for x in objects if x["metadata"]["name"] == name)["spec"]["template"]["spec"]

    def valid(self, objects):
        path = temporary(self) / "all.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return subprocess.run([*validator(), path], capture_output=True, text=True, timeout=120)

    def test_the_schema(self):
        objects = build(KUBERNETES / "example")
        r = self.valid(objects)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.pod(objects, "server")["initContainers"][0]["command"] = "no list"
        self.assertNotEqual(self.valid(objects).returncode, 0)

    def test_our_reader_is_right(self):
        """What other tests take for kustomize's result."""
        for folder in ("example", "monitoring"):
            made = real_build(KUBERNETES / folder)
            if made is None:
                self.skipTest("needs kustomize 5 or kubectl 1.27")
            ours = kustomize.build(KUBERNETES / folder)
            self.assertEqual(sorted(map(json_of, ours)), sorted(map(json_of, made)))

    def test_who_did_not_opt_in(self):
        given = list(yaml.safe_load_all((KUBERNETES / "example/server.yaml").read_text()))
        self.assertIn(given[1], build(KUBERNETES / "example"))

    def test_who_opted_in(self):
        pod = self.pod(build(KUBERNETES / "example"), "server")
        given = next(yaml.safe_load_all((KUBERNETES / "example/server.yaml").read_text()))
        given = given["spec"]["template"]["spec"]
        server, before = pod["containers"][0], given["containers"][0]
        env = {e["name"]: e.get("value") for e in server["env"]}
        self.assertEqual(env["LD_PRELOAD"], "/whyoom/lib/libwhyoom.so:"
                         + before["env"][0]["value"])
        self.assertEqual(env["WHYOOM_DIR"], "/whyoom/traces")
        self.assertEqual(env["WHYOOM_MODE"], "sampled")
        fields = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in server["env"]
                  if "valueFrom" in e}
        self.assertEqual(fields, {"POD_NAME": "metadata.name", "NODE_NAME": "spec.nodeName",
                                  "POD_NAMESPACE": "metadata.namespace"})
        options = (SOURCE / "include/whyoom/options.def").read_text()
        for name in env:
            if name.startswith("WHYOOM_"):
                self.assertRegex(options, rf"OPTION\w*\({name[7:].lower()},")
        # All that was there stays as it was.
        for key, value in before.items():
            if key != "env":
                self.assertEqual(server[key], value)
        self.assertEqual(pod["securityContext"], given["securityContext"])
        self.assertEqual([v["name"] for v in pod["volumes"]], ["whyoom"])
        self.assertEqual(list(pod["volumes"][0]["emptyDir"]), ["sizeLimit"])  # on disk
        for c in pod["initContainers"]:
            security = c["securityContext"]
            self.assertTrue(security["readOnlyRootFilesystem"])
            self.assertFalse(security["allowPrivilegeEscalation"])
            self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
            self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertIn("memory", c["resources"]["limits"])
        kinds = {k: v for k, v in ((c["name"], c.get("restartPolicy")) for c in
                                   pod["initContainers"])}
        self.assertEqual(kinds, {"whyoom": "Always", "whyoom-install": None})

    def test_without_env_and_for_each_kind(self):
        """No LD_PRELOAD, no env, no volumes: the recorder makes them. A CronJob stays as it is."""
        d = temporary(self)
        shutil.copytree(KUBERNETES / "recorder", d / "recorder")
        (d / "kustomization.yaml").write_text(json.dumps({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "resources": ["all.yaml"], "components": ["recorder"]}))
        kinds = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
                 "Job": "batch/v1"}
        objects = []
        for kind, version in kinds.items():
            spec = {"template": {"metadata": {"labels": {"app": "a"}}, "spec": {
                "restartPolicy": "Never" if kind == "Job" else "Always",
                "containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}}}
            if kind != "Job":
                spec["selector"] = {"matchLabels": {"app": "a"}}
            if kind == "StatefulSet":
                spec["serviceName"] = "a"
            objects.append({"apiVersion": version, "kind": kind, "spec": spec, "metadata": {
                "name": kind.lower(), "annotations": {"whyoom/record": "true"}}})
        (d / "all.yaml").write_text(yaml.safe_dump_all(objects))
        made = build(d)
        self.assertEqual(len(made), len(objects))  # the settings stay behind
        for kind in kinds:
            pod = self.pod(made, kind.lower())
            first, second = pod["containers"]
            env = {e["name"]: e.get("value") for e in first["env"]}
            self.assertEqual(env["LD_PRELOAD"].rstrip(":"), "/whyoom/lib/libwhyoom.so", kind)
            self.assertEqual(first["volumeMounts"], [{"name": "whyoom", "mountPath": "/whyoom"}])
            self.assertNotIn("env", second)
        r = self.valid(made)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_monitoring(self):
        made = {x["kind"]: x for x in build(KUBERNETES / "monitoring")}
        rules = yaml.safe_load((PACKAGING / "prometheus/whyoom.rules.yml").read_text())
        self.assertEqual(made["PrometheusRule"]["spec"], rules)
        sidecar = next(x for x in build(KUBERNETES / "example")
                       if x["metadata"]["name"] == "server")["spec"]["template"]
        wanted = made["PodMonitor"]["spec"]
        for key, value in wanted["selector"]["matchLabels"].items():
            self.assertEqual(sidecar["metadata"]["labels"][key], value)
        ports = [p["name"] for c in sidecar["spec"]["initContainers"] for p in c.get("ports", [])]
        self.assertEqual([e["port"] for e in wanted["podMetricsEndpoints"]], ports)

    def test_version(self):
        version = re.search(r"version: '([\d.]+)'", (SOURCE / "meson.build").read_text())[1]
        for name in ("example.Containerfile", "kubernetes/recorder/pod.yaml",
                     "kubernetes/sidecar/pod.yaml"):
            self.assertIn(f"whyoom:{version}", (PACKAGING / name).read_text(), name)


if __name__ == "__main__":
    unittest.main()

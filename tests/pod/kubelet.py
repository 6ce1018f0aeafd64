"""kubelet.py - what the kubelet and a container runtime do with a pod, without either: its cgroups
with memory.oom.group, namespaces, volumes, users, environment, termination messages. Runs inside
the machine, as root, with what Python has. /mnt is the disk.

Not played: images (folders of the plan stand for them), seccomp, back-off between restarts."""
import collections
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

CGROUPS = "/sys/fs/cgroup/kubepods"
PODS = "/mnt/pods"
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
# What a runtime leaves a container that asks for nothing.
CAPABILITIES = ("chown dac_override fsetid fowner mknod net_raw setgid setuid setfcap setpcap "
                "net_bind_service sys_chroot kill audit_write").split()
PATIENCE = 240  # seconds, for a state that must come
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000

# Makes the container's root and starts its program; the mounts are its own. Variables say what.
ROOT = r"""
set -e
mount -t tmpfs -o mode=755 root "$R"
for d in bin sbin lib lib64 usr etc; do
	if [ -L /$d ]; then cp -P /$d "$R/"; elif [ -d /$d ]; then
		mkdir "$R/$d"; mount --rbind /$d "$R/$d"; fi
done
mkdir "$R/proc" "$R/sys" "$R/dev" "$R/tmp" "$R/var" "$R/run"
mount -t proc proc "$R/proc"
mount -t sysfs -o ro sys "$R/sys"
mount -t cgroup2 -o ro cgroup "$R/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$R/dev"
for d in null zero full random urandom; do
	: >"$R/dev/$d"; mount --bind /dev/$d "$R/dev/$d"; done
mkdir -m 1777 "$R/dev/shm"; mount -t tmpfs -o mode=1777,size=64M shm "$R/dev/shm"
: >"$R/$MESSAGE_PATH"; mount --bind "$MESSAGE" "$R/$MESSAGE_PATH"
printf %s "$MOUNTS" | while read -r from to; do
	mkdir -p "$R$to"; mount --bind "$from" "$R$to"; done
[ -z "$READ_ONLY" ] || mount -o remount,bind,ro "$R"
cd "$R"
exec chroot "$R" /usr/bin/setpriv $PRIVILEGES /usr/bin/env -i "$@"
"""


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


def quantity(text):
    """Bytes of "100Mi"."""
    m = re.fullmatch(r"(\d+)(Ki|Mi|Gi)?", str(text))
    return int(m[1]) * UNITS.get(m[2], 1)


def until(true, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError("after %d s there is not: %s" % (seconds, what))


def tail(text, most):
    return text.encode()[-most:].decode(errors="replace")


class Cgroup:
    def __init__(self, path, limit=None, group=False):
        self.path = path
        os.makedirs(path)
        write(path + "/memory.swap.max", 0)
        if limit:
            write(path + "/memory.max", limit)
        if group:  # as the kubelet does since 1.28
            write(path + "/memory.oom.group", 1)

    def events(self):
        return {k: int(v) for k, v in (line.split() for line in
                                       read(self.path + "/memory.events").splitlines())}

    def pids(self):
        return [int(p) for p in read(self.path + "/cgroup.procs").split()]

    def remove(self):
        if os.path.isdir(self.path):
            write(self.path + "/cgroup.kill", 1)
            until(lambda: not self.pids(), "an empty " + self.path)
            until(lambda: not os.rmdir(self.path) if os.path.isdir(self.path) else True,
                  "an end of " + self.path)


class Container:
    """One container of a pod; each start has a cgroup, a log and a message of its own."""
    def __init__(self, pod, spec):
        self.pod, self.spec, self.name = pod, spec, spec["name"]
        self.starts, self.process, self.cgroup = 0, None, None
        self.security = {**pod.spec.get("securityContext", {}), **spec.get("securityContext", {})}

    def variables(self):
        """The environment, and how $(NAME) in words is read."""
        found = dict(self.pod.image(self.spec)["env"])
        fields = {"metadata.name": self.pod.name, "metadata.namespace": "default",
                  "spec.nodeName": "node-1", "metadata.uid": self.pod.name}
        for e in self.spec.get("env", []):
            value = e.get("value", "")
            if "valueFrom" in e:
                value = fields[e["valueFrom"]["fieldRef"]["fieldPath"]]
            found[e["name"]] = self.expanded(value, found)
        return found

    @staticmethod
    def expanded(text, variables):
        return re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], m[0]), text)

    def privileges(self):
        s = self.security
        kept = s.get("capabilities", {})
        names = [] if "ALL" in kept.get("drop", []) else CAPABILITIES
        names = names + [n.lower() for n in kept.get("add", [])]
        user = s.get("runAsUser", 0)
        if s.get("runAsNonRoot") and not user:
            raise ValueError("%s: runAsNonRoot, and the user is root" % self.name)
        words = ["--reuid=%d" % user, "--regid=%d" % s.get("runAsGroup", 0), "--clear-groups",
                 "--bounding-set=" + ",".join(["-all"] + ["+" + n for n in names])]
        return words + ([] if s.get("allowPrivilegeEscalation", True) else ["--no-new-privs"])

    def mounts(self):
        image = self.pod.image(self.spec)
        pairs = [(folder, path) for path, folder in image["folders"].items()]
        pairs += [(self.pod.volumes[m["name"]], m["mountPath"])
                  for m in self.spec.get("volumeMounts", [])]
        return "".join("%s %s\n" % p for p in pairs)

    def command(self):
        image, variables = self.pod.image(self.spec), self.variables()
        words = self.spec.get("command", image["command"]) + self.spec.get("args", [])
        return (["%s=%s" % v for v in variables.items()]
                + [self.expanded(w, variables) for w in words])

    def start(self):
        self.starts += 1
        base = "%s/%s.%d" % (self.pod.folder, self.name, self.starts)
        self.message, self.log, root = base + ".message", base + ".log", base + ".root"
        os.makedirs(root)
        write(self.message, "")
        os.chmod(self.message, 0o666)
        limit = self.spec.get("resources", {}).get("limits", {}).get("memory")
        self.cgroup = Cgroup("%s/%s.%d" % (self.pod.cgroup.path, self.name, self.starts),
                             limit and quantity(limit), True)
        # Who waits for the program stays outside its cgroup, which its own namespace begins at.
        # (With --fork, unshare says 1 of a child that was killed.)
        pids = ["-p"] if self.pod.shares_pids else ["unshare", "--pid", "sh", "-c",
                                                    '"$@"; exit $?', "sh"]
        outer = ["nsenter", "-t", str(self.pod.pause), "-n", "-i", *pids,
                 "sh", "-c", 'echo 0 >"$C/cgroup.procs" && exec "$@"', "sh",
                 "unshare", "-m", "-C", "--propagation", "private", "sh", "-c", ROOT, "sh",
                 *self.command()]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                outer, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "R": root, "C": self.cgroup.path,
                    "MESSAGE": self.message, "MOUNTS": self.mounts(), "MESSAGE_PATH":
                    self.spec.get("terminationMessagePath", "/dev/termination-log"),
                    "PRIVILEGES": " ".join(self.privileges()), "READ_ONLY":
                    "1" if self.security.get("readOnlyRootFilesystem") else ""})

    def run(self, seconds=PATIENCE):
        """The status of one run to its end."""
        self.start()
        return self.ended(seconds)

    def ended(self, seconds=PATIENCE):
        """What `status.containerStatuses` would say, and what else the kernel knows."""
        code = until(lambda: self.process.poll() is not None and [self.process.returncode],
                     "an end of " + self.name, seconds)[0]
        events = self.cgroup.events()
        left = [p for p in self.cgroup.pids() if os.path.exists("/proc/%d/exe" % p)]
        code = 128 - code if code < 0 else code
        message = tail(read(self.message), 4096)
        log = read(self.log)
        if not message and code and \
                self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = tail("\n".join(log.splitlines()[-80:]), 2048)
        return {"exitCode": code, "reason": "OOMKilled" if events["oom_kill"] else
                "Error" if code else "Completed", "message": message, "log": tail(log, 4000),
                "events": events, "left": len(left)}

    def execute(self, *words, seconds=PATIENCE):
        """kubectl exec: as the container's user, in its namespaces and its cgroup."""
        target = self.cgroup.pids()[-1]
        done = subprocess.run(
            ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', self.cgroup.path,
             "nsenter", "-t", str(target), "-m", "-n", "-i", "-p", "-C", "--root", "--wd",
             "/usr/bin/setpriv", *self.privileges(), "/usr/bin/env", "-i",
             *["%s=%s" % v for v in self.variables().items()], *words],
            capture_output=True, text=True, timeout=seconds, errors="replace")
        return {"status": done.returncode, "stdout": done.stdout, "stderr": tail(done.stderr, 2000)}


class Pod:
    """`plan`: name, spec, and images: {name: {folders: {path: folder}, env, command}}."""
    def __init__(self, plan):
        self.name, self.spec, self.images = plan["name"], plan["spec"], plan["images"]
        self.folder = os.path.join(PODS, self.name)
        self.volumes = {}
        for v in self.spec.get("volumes", []):
            if "emptyDir" not in v or v["emptyDir"].get("medium"):
                raise ValueError("volume %s is no emptyDir on a disk" % v["name"])
            self.volumes[v["name"]] = os.path.join(self.folder, "volumes", v["name"])
            os.makedirs(self.volumes[v["name"]])
            os.chmod(self.volumes[v["name"]], 0o777)
        os.makedirs(self.folder, exist_ok=True)
        self.shares_pids = self.spec.get("shareProcessNamespace", False)
        self.cgroup = Cgroup(os.path.join(CGROUPS, self.name), self.limit())
        write(self.cgroup.path + "/cgroup.subtree_control", "+memory +pids")
        self.outer = subprocess.Popen(["unshare", "--pid", "--net", "--ipc", "--fork",
                                       "--kill-child", "sleep", "infinity"])
        children = "/proc/%d/task/%d/children" % (self.outer.pid, self.outer.pid)
        self.pause = int(until(lambda: read(children).strip(), "a pause process"))
        until(lambda: read("/proc/%d/comm" % self.pause).strip() == "sleep", "a pause process")
        self.network(loopback_up)
        self.containers = collections.OrderedDict()

    def image(self, spec):
        return self.images[spec["image"]]

    def limit(self):
        """Of the pod's cgroup: all containers and sidecars, or the largest init container."""
        def of(c):
            limit = c.get("resources", {}).get("limits", {}).get("memory")
            return quantity(limit) if limit else None
        inits = self.spec.get("initContainers", [])
        stay = self.spec["containers"] + [c for c in inits if c.get("restartPolicy") == "Always"]
        if not all(of(c) for c in stay):
            return None
        return max([sum(of(c) for c in stay)] + [of(c) or 0 for c in inits])

    def network(self, work):
        """What work() returns, done by a thread in the pod's network."""
        found = []

        def inside():
            fd = os.open("/proc/%d/ns/net" % self.pause, os.O_RDONLY | os.O_CLOEXEC)
            if LIBC.setns(fd, CLONE_NEWNET):
                found.append(OSError(ctypes.get_errno(), "setns"))
            else:
                try:
                    found.append(work())
                except OSError as e:
                    found.append(e)
            os.close(fd)
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if isinstance(found[0], OSError):
            raise found[0]
        return found[0]

    def start(self):
        """The init containers, one after the other, then the containers. Returns the first."""
        for spec in self.spec.get("initContainers", []):
            c = self.containers[spec["name"]] = Container(self, spec)
            if spec.get("restartPolicy") == "Always":
                c.start()
                continue
            status = c.run()
            if status["exitCode"]:
                raise RuntimeError("%s: %s" % (c.name, status))
            c.cgroup.remove()
        for spec in self.spec["containers"]:
            self.containers[spec["name"]] = Container(self, spec)
            self.containers[spec["name"]].start()
        return self.containers[self.spec["containers"][0]["name"]]

    def stop(self):
        """SIGTERM, as at a pod's deletion, then what is left is killed. The ends of sidecars."""
        for c in self.containers.values():
            if c.process and c.process.poll() is None:
                for pid in c.cgroup.pids():
                    try:
                        os.kill(pid, signal.SIGTERM)
                    except ProcessLookupError:
                        pass
        try:
            until(lambda: all(c.process.poll() is not None for c in self.containers.values()
                              if c.process), "an end of all containers", 5)
        except TimeoutError:
            pass
        write(self.cgroup.path + "/cgroup.kill", 1)
        self.outer.kill()
        self.outer.wait()
        for c in self.containers.values():
            if c.process:
                c.process.wait()
        shutil.rmtree(self.folder + "/volumes", ignore_errors=True)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up

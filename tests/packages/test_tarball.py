"""The tarball: unpacked anywhere, and in the root of an older Debian if one can be made, `whyoom`
runs, finds its library beside itself, and the library loads into that system's programs.

Needs WHYOOM_SOURCE and WHYOOM_BUILD; the tarball is made in the latter. The packages of the older
system come from the mirror that apt uses here, and are kept in the build directory."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["WHYOOM_SOURCE"]
BUILD = os.environ["WHYOOM_BUILD"]
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")
OLD = "bullseye"  # glibc 2.31
OLD_PACKAGES = ("libc6 libcrypt1 libgcc-s1 dash coreutils libacl1 libattr1 libgmp10 libselinux1 "
                "libpcre2-8-0 libexpat1 zlib1g libuuid1 libssl1.1 libpython3.9-minimal "
                "python3.9-minimal").split()


def older_root():
    """Unpack a minimal older Debian below the build directory, once. None: it is not available."""
    root = os.path.join(BUILD, "older-" + OLD)
    if os.path.exists(os.path.join(root, "complete")):
        return root
    if os.getuid() != 0 or not shutil.which("apt-get"):
        return None
    shutil.rmtree(root, ignore_errors=True)
    apt = os.path.join(root, "apt")
    for d in ("lists/partial", "cache/archives/partial", "etc", "state", "debs"):
        os.makedirs(os.path.join(apt, d))
    with open(os.path.join(apt, "etc/sources.list"), "w") as f:
        f.write(f"deb http://deb.debian.org/debian {OLD} main\n")
    open(os.path.join(apt, "state/status"), "w").close()
    options = [f"Dir::State={apt}/state", f"Dir::State::lists={apt}/lists",
               f"Dir::State::status={apt}/state/status", f"Dir::Cache={apt}/cache",
               f"Dir::Etc::sourcelist={apt}/etc/sources.list", "Dir::Etc::sourceparts=-",
               f"Dir::Etc::main={apt}/etc/none", "Acquire::Languages=none",
               "APT::Sandbox::User=root",
               "Acquire::http::Timeout=30", "Acquire::Retries=1"]
    if not os.path.exists("/usr/share/keyrings/debian-archive-keyring.gpg"):
        options.append("Acquire::AllowInsecureRepositories=true")
        options.append("APT::Get::AllowUnauthenticated=true")
    command = ["apt-get", "-q"] + [x for o in options for x in ("-o", o)]
    try:
        subprocess.run([*command, "update"], check=True, capture_output=True, timeout=240)
        subprocess.run([*command, "download", *OLD_PACKAGES], check=True, capture_output=True,
                       timeout=240, cwd=os.path.join(apt, "debs"))
        system = os.path.join(root, "system")
        for deb in glob.glob(os.path.join(apt, "debs/*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb, system], check=True, capture_output=True)
        for d in ("proc", "dev", "tmp", "srv"):
            os.makedirs(os.path.join(system, d), exist_ok=True)
        shutil.rmtree(apt)
        open(os.path.join(root, "complete"), "w").close()
        return root
    except (subprocess.SubprocessError, OSError) as e:
        print(f"no older system: {e}")
        shutil.rmtree(root, ignore_errors=True)
        return None


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(SOURCE, "meson.build")) as f:
            version = re.search(r"version: '([\d.]+)'", f.read())[1]
        r = subprocess.run([os.path.join(SOURCE, "packaging/tarball.sh"), SOURCE, BUILD, version],
                           capture_output=True, text=True)
        if r.returncode:
            raise AssertionError("the tarball was not made: " + r.stderr)
        cls.tarball = r.stdout.strip()
        cls.version = version

    def test_malloc_has_types(self):
        """A debugger calls it without a cast, like libc's own with debug information."""
        with tempfile.TemporaryDirectory(dir=DISK) as where:
            library = os.path.join(self.unpack(where), "lib/libwhyoom.so")
            r = subprocess.run(["readelf", "--debug-dump=info", library], capture_output=True,
                               text=True, check=True)
            self.assertRegex(r.stdout, r"DW_AT_name\s+:.*\bmalloc\n")

    def unpack(self, where):
        subprocess.run(["tar", "-xf", self.tarball, "-C", where], check=True)
        return os.path.join(where, os.path.basename(self.tarball)[:-len(".tar.xz")])

    def temporary(self):
        d = tempfile.mkdtemp(prefix="whyoom-tar-", dir=DISK)
        self.addCleanup(shutil.rmtree, d, ignore_errors=True)
        return d

    def works(self, prefix, whyoom, work, python):
        """`prefix` enters the system; the rest are paths there."""
        def run(*command):
            return subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=120)
        self.assertEqual(run(whyoom, "--version").stdout, f"whyoom {self.version}\n")
        r = run(whyoom, "run", "-o", work + "/one", "sh", "-c", "exit 12")
        self.assertEqual((r.returncode, r.stderr), (12, ""))
        r = run("sh", "-c", f"ulimit -v 300000; exec {whyoom} run -o {work}/two {python} -c "
                "'x = []\nwhile True: x.append(bytearray(1 << 20))'")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("MemoryError", r.stderr)
        self.assertIn("More: whyoom report", r.stderr)
        r = run(whyoom, "report", "--format", "json", work + "/two")
        self.assertEqual(r.returncode, 0, r.stderr)
        report = json.loads(r.stdout)
        self.assertIn(report["failure"]["kind"], ("host-alloc", "python-memoryerror"))
        self.assertIn(f"{work}/two", json.dumps(report["processes"]))
        r = run(whyoom, "watch", "--metrics", "0", work)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("without an HTTP server", r.stderr)
        # The helper for devices starts, finds its library, and ends with its input.
        lib = whyoom.replace("bin/whyoom", "lib/")
        r = run("sh", "-c", "WHYOOM_SIMGPU_QUIET=1 "
                f"{lib}whyoom-nvml {lib}simgpu/libwhyoom-simgpu.so <{work}/one/run.whyoom")
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_contents(self):
        names = subprocess.run(["tar", "-tf", self.tarball], capture_output=True,
                               text=True).stdout.splitlines()
        top = os.path.basename(self.tarball)[:-len(".tar.xz")] + "/"
        self.assertTrue(all(n.startswith(top) for n in names))
        for wanted in ("bin/whyoom", "lib/libwhyoom.so", "lib/libwhyoom-nvtx.so",
                       "lib/simgpu/libwhyoom-simgpu.so", "lib/whyoom-nvml", "lib/whyoom-player",
                       "lib/whyoom-device-player", "share/whyoom/through_torch.py",
                       "share/whyoom/report-schema.json", "share/whyoom/map-schema.json",
                       "share/whyoom/whyoom.rules.yml", "share/whyoom/whyoom.json",
                       "share/man/man1/whyoom.1", "share/doc/whyoom/README.md",
                       "share/doc/whyoom/docs/guide.md",
                       "share/doc/whyoom/LICENSE"):
            self.assertIn(top + wanted, names)

    def test_the_program_is_static(self):
        top = self.unpack(self.temporary())
        r = subprocess.run(["readelf", "-lW", top + "/bin/whyoom"], capture_output=True, text=True)
        self.assertNotIn("INTERP", r.stdout)

    def test_needs_no_newer_system(self):
        """Programs that lie beside the library run where it does."""
        lib = self.unpack(self.temporary()) + "/lib"
        files = [f for f in glob.glob(lib + "/*") + glob.glob(lib + "/simgpu/*")
                 if os.path.isfile(f)]
        self.assertEqual(len(files), 6)
        for path in files:
            r = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True)
            for found in re.findall(r"GLIBC_([\d.]+)", r.stdout):
                self.assertLessEqual(tuple(map(int, found.split("."))), (2, 28), path)

    def test_unpacked_elsewhere(self):
        d = self.temporary()
        top = self.unpack(d)
        moved = os.path.join(d, "moved")
        os.rename(top, moved)
        self.works([], moved + "/bin/whyoom", d, "/usr/bin/python3")

    def test_it_is_no_driver_for_others(self):
        # The simulated GPU has the driver's soname, and ldconfig makes links by sonames.
        lib = self.unpack(self.temporary()) + "/lib"
        subprocess.run(["/sbin/ldconfig", "-n", lib], check=True)
        self.assertNotIn("libcuda.so.1", os.listdir(lib))

    def test_nothing_is_loaded_at_run_time(self):
        # libdw would fetch debug information by a library of the system
        top = self.unpack(self.temporary())
        r = subprocess.run([top + "/bin/whyoom", "--version"], capture_output=True, text=True,
                           env={"DEBUGINFOD_URLS": "http://127.0.0.1:9", "LD_DEBUG": "libs"})
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, f"whyoom {self.version}\n", ""))

    def test_on_an_older_system(self):
        root = older_root()
        if not root:
            print("note: no older Debian can be had here; tested on this system only")
            return
        system = os.path.join(root, "system")
        work = os.path.join(system, "srv/try")
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        top = self.unpack(work)
        inside = "/srv/try/" + os.path.basename(top)
        enter = ["unshare", "-m", "sh", "-c",
                 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', system]
        if subprocess.run([*enter, "/bin/sh", "-c", "exit 0"], capture_output=True).returncode:
            print("note: /proc cannot be mounted in a chroot here; tested on this system only")
            return
        self.works(enter, inside + "/bin/whyoom", "/srv/try", "/usr/bin/python3.9")


if __name__ == "__main__":
    unittest.main()

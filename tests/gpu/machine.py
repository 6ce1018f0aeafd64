"""machine.py - what a machine with a GPU has for the suite: the device, an interpreter with
PyTorch, NVIDIA's headers, runtimes and CUPTI. What it has not comes from PyPI, where that can be
reached; what cannot be had is a Skip with the reason.

Owns finding and building. Knows nothing of what is tested.

WHYOOM_GPU_TEST_ON=simgpu runs the suite on the simulated device, to try the suite itself: what
needs NVIDIA's driver is then left out, and no figure means anything."""
import glob
import importlib.util
import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
for folder in ("golden", "bench", "cuda", "vllm", "torch"):
    sys.path.insert(0, os.path.join(TESTS, folder))
import wheel  # noqa: E402
from wheel import Skip, equal  # noqa: E402

SIMULATED = os.environ.get("WHYOOM_GPU_TEST_ON") == "simgpu"
MEMORY = "16GiB" if SIMULATED else None  # as wheel.Run wants it
CUPTI = ("cupti-13", ["nvidia-cuda-cupti==13.5.25", "nvidia-cuda-runtime==13.5.37",
                      "nvidia-cuda-crt==13.5.37"])
# Of the machine's own, where a newer one is refused by its driver.
CUPTI_12 = ("cupti-12", ["nvidia-cuda-cupti-cu12==12.9.79", "nvidia-cuda-runtime-cu12==12.9.79"])


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except OSError:
        return ""


def describe():
    """For the results: which machine they are of."""
    device = "simulated" if SIMULATED else output(
        "nvidia-smi", "--query-gpu=name,memory.total,driver_version",
        "--format=csv,noheader") or "unknown"
    return {"device": device, "kernel": platform.release(), "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()), "python": platform.python_version()}


def memory():
    """Of the first device, in bytes."""
    words = output("nvidia-smi", "--query-gpu=memory.total",
                   "--format=csv,noheader,nounits").split()
    return int(words[0]) << 20 if words else 0


# --- interpreters ---

def has(module):
    return importlib.util.find_spec(module) is not None


def sees_device(python):
    """Whether its PyTorch has a device, and if not, why."""
    done = subprocess.run([python, "-c", "import torch; torch.zeros(1, device='cuda')"],
                          capture_output=True, text=True)
    return (done.stderr.strip().splitlines()
            or ["no reason given"])[-1] if done.returncode else None


def with_dependencies(name, *packages):
    """An environment with packages and all that they depend on; Skip when it cannot be made."""
    cache = os.environ.get("WHYOOM_TEST_CACHE") or os.path.expanduser("~/.cache/whyoom-tests")
    folder = os.path.join(cache, "%s-py%d.%d" % (name, *sys.version_info[:2]))
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(folder + ".ready"):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True,
                       capture_output=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--retries=2", "--timeout=30",
                               "--disable-pip-version-check", *packages], capture_output=True,
                              text=True)
        if done.returncode:
            raise Skip(f"pip cannot install {packages[0]}: "
                       f"{(done.stderr.strip().splitlines() or ['?'])[-1][:200]}")
        open(folder + ".ready", "w").close()
    return python


def python_with(*modules):
    """The machine's own interpreter when it has PyTorch, which sees the device, and these modules;
    else a new environment."""
    if SIMULATED:
        layers = [("transformers", TRANSFORMERS)] if "transformers" in modules else []
        return wheel.environment(wheel.torch_layer(), *layers)
    if all(has(m) for m in ("torch", *modules)) and not sees_device(sys.executable):
        return sys.executable
    python = with_dependencies("gpu-" + "-".join(("torch", *modules)), "torch==" + wheel.VERSION,
                               *modules)
    why = sees_device(python)
    if why:
        raise Skip("PyTorch sees no device: " + why[:200])
    return python


# What transformers imports of what it asks for.
TRANSFORMERS = ["transformers==4.57.1", "huggingface_hub==0.36.0", "tokenizers==0.22.1",
                "safetensors", "regex",
                "requests", "urllib3", "idna", "certifi", "charset_normalizer", "pyyaml", "tqdm",
                "packaging"]


# --- programs in C ---

def toolkits():
    """Folders with NVIDIA's headers and libraries, of a toolkit and of packages, the machine's own
    first."""
    import real
    found = real.Found()
    own = [f for base in sys.path for f in glob.glob(os.path.join(base, "nvidia", "*"))]
    found.folders = [os.path.realpath(f) for f in own] + found.folders
    return found


def compile_c(source, out, includes, *link):
    done = subprocess.run(["cc", "-std=gnu11", "-O1", "-g", "-o", out,
                           *(f"-I{i}" for i in includes),
                           os.path.join(HERE, "progs", source), *link, "-ldl", "-lpthread", "-lrt"],
                          capture_output=True, text=True)
    if done.returncode:
        raise wheel.Failed(f"{source} does not compile: {done.stderr[-1500:]}")
    return out


def headers_of(library, found):
    """The folder of headers that goes with a library: of its own toolkit, else any."""
    near = [i for i in found.includes()
            if os.path.dirname(i) == os.path.dirname(os.path.dirname(library))]
    return (near or found.includes() or [None])[0]


def version_of(include):
    """Of a runtime, as its headers have it: 12.9."""
    with open(os.path.join(include, "cuda_runtime_api.h")) as f:
        number = next(int(line.split()[2]) for line in f
                      if line.startswith("#define CUDART_VERSION"))
    return "%d.%d" % (number // 1000, number % 1000 // 10)


def builds(source, folder):
    """{version: program} of each runtime: linked in; in simulation, where that one refuses, linked
    to."""
    found, made = toolkits(), {}
    static = dict(found.static())
    for library in found.runtimes() if SIMULATED else static:
        include = headers_of(library, found)
        if not include or version_of(include) in made:
            continue
        link = [library, "-Wl,-z,now", "-Wl,-rpath," + os.path.dirname(library)] if SIMULATED else \
            [library, *static[library]]
        out = os.path.join(folder, f"{source[:-2]}-{version_of(include)}")
        made[version_of(include)] = compile_c(source, out, [include], *link)
    return made


def takes(program):
    """Whether the driver is new enough for the runtime in it."""
    return SIMULATED or subprocess.run([program], capture_output=True).returncode != 77


def oracle(folder):
    """CUPTI's account of memory as a library to inject, and its own library's folder."""
    if SIMULATED:
        raise Skip("CUPTI needs NVIDIA's driver")
    found = toolkits()
    for layer in (CUPTI, CUPTI_12):
        try:
            python = wheel.environment(layer)
        except Skip:
            continue
        found.folders += glob.glob(os.path.join(os.path.dirname(os.path.dirname(python)), "lib",
                                                "python3*",
                                                "site-packages", "nvidia", "*"))
    headers = found.files("include/cupti.h", "extras/CUPTI/include/cupti.h")
    libraries = found.files("lib*/libcupti.so.1[0-9]", "extras/CUPTI/lib*/libcupti.so.1[0-9]")
    if not headers or not libraries or not found.includes():
        raise Skip("no CUPTI is here, and none can be installed")
    major = driver_major()
    libraries = [path for path in libraries if path.endswith(f".{major}")] or libraries
    header = next((h for h in headers if os.path.dirname(os.path.dirname(h)) ==
                   os.path.dirname(os.path.dirname(libraries[0]))), headers[0])
    out = os.path.join(folder, "oracle.so")
    return compile_c("oracle.c", out, [os.path.dirname(header), headers_of(libraries[0], found)],
                     "-shared", "-fPIC",
                     libraries[0], "-Wl,-rpath," + os.path.dirname(libraries[0]))


def driver_major():
    """Of CUDA, as nvidia-smi prints it."""
    for word in output("nvidia-smi").split("CUDA Version:")[1:]:
        return word.split(".")[0].strip()
    return ""


# --- runs ---

def run(program, *arguments, record=True, timeout=600, status=0, **variables):
    """A program on the device, to its end."""
    script = list(arguments)
    return wheel.Run(program, script, memory=MEMORY, record=record,
                     **variables).end(status, timeout)


def lines(run):
    """The lines of JSON that it printed."""
    return [json.loads(line) for line in run.out.splitlines() if line.startswith("{")]


def same_output(program, *arguments, ignore=lambda out: out, **variables):
    """The recorded run, whose output and status are those of one that is not recorded."""
    plain = run(program, *arguments, record=False, **variables)
    recorded = run(program, *arguments, **variables)
    equal(ignore(recorded.out), ignore(plain.out), "what it prints, recorded or not")
    return recorded

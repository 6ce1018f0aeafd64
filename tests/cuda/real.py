"""real.py - NVIDIA's own runtimes and headers, where they can be had: those of an installed
toolkit, and those that PyPI carries, 11 to 13, small packages without what they depend on. They are
kept between runs as PyTorch's are.

Nothing of them is needed to build, and none of their functions runs beyond the look-up of the
driver's."""
import glob
import os
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "torch"))
import wheel  # noqa: E402

# What one environment can hold: packages of one name replace each other, and so do the files of 11
# and 12. The JPEG decoder for 11 holds a static runtime; from 12.9 on the runtime's package has it.
PACKAGES = [
    ("cuda-runtimes-11", ["nvidia-cuda-runtime-cu11==11.8.89", "nvidia-nvjpeg-cu11==11.9.0.86",
                          "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-crt==13.0.88"]),
    ("cuda-runtimes-12", ["nvidia-cuda-runtime-cu12==12.1.105", "nvidia-cuda-runtime==13.5.37",
                          "nvidia-cuda-crt==13.5.37"]),
    ("cuda-runtimes-12-9", ["nvidia-cuda-runtime-cu12==12.9.79"]),
]
TOOLKITS = ["/usr/local/cuda*", "/opt/cuda*"]


class Found:
    """Folders with include/ and lib*/, and what is missing, each with the reason."""

    def __init__(self):
        self.folders, self.missing = [], []
        roots = [r for pattern in TOOLKITS for r in sorted(glob.glob(pattern))]
        for name, packages in PACKAGES:
            try:
                python = wheel.environment((name, packages))
            except wheel.Skip as reason:
                self.missing.append(f"{name}: {reason}")
                continue
            roots += glob.glob(os.path.join(os.path.dirname(os.path.dirname(python)), "lib",
                                            "python3*",
                                            "site-packages", "nvidia", "*"))
        seen = set()
        for root in roots:
            if os.path.isdir(root) and os.path.realpath(root) not in seen:
                seen.add(os.path.realpath(root))
                self.folders.append(os.path.realpath(root))

    def files(self, *patterns):
        """Files by patterns below the folders, each once."""
        found = []
        for folder in self.folders:
            for pattern in patterns:
                for path in sorted(glob.glob(os.path.join(folder, pattern))):
                    if os.path.realpath(path) not in found:
                        found.append(os.path.realpath(path))
        return found

    def includes(self):
        """Folders that hold a whole set of headers."""
        return [os.path.dirname(path) for path in self.files("include/cuda.h")
                if os.path.exists(os.path.join(os.path.dirname(path), "cuda_runtime_api.h"))]

    def runtimes(self):
        return self.files("lib*/libcudart.so.1[0-9]", "lib*/libcudart.so.1[0-9].0")

    def static(self):
        """(archive, what else is to be linked) of the runtimes to be linked into programs."""
        return [(path, glob.glob(os.path.join(os.path.dirname(path), "libculibos.a")))
                for path in self.files("lib*/libcudart_static.a")]

    def inside(self):
        """(library, function) of libraries that hold a static runtime and start it in a function of
        two pointers or one."""
        return [(path, "nvjpegCreateSimple") for path in self.files("lib/libnvjpeg.so.1[0-9]")]


def say_missing(found):
    """In the words that a run adds up."""
    for reason in found.missing:
        print(f"SKIP {reason}")

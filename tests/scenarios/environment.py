"""environment.py - the interpreter of a scenario that needs more than Python itself.

Owns which packages there are under which name: "torch", or a file of environments/, where
everything that is installed stands with its version. They come from PyPI once and are kept; what
cannot be had is wheel.Skip.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "torch"))  # before a package of the name wheel
import wheel  # noqa: E402

PINNED = os.path.join(HERE, "environments")
# Of the caller's own, these would send a run's data elsewhere, or change what is measured: an
# extension in Rust that is refused memory hangs when it is to print a backtrace.
VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1", "LANGSMITH_TRACING": "false",
             "LANGCHAIN_TRACING_V2": "false",
             "RUST_BACKTRACE": "0", "OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true"}


def pinned(name):
    with open(os.path.join(PINNED, name + ".txt")) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def layer(name):
    """A first layer of wheel.environment(): its folder is named by what is in it."""
    if name == "torch":
        return wheel.torch_layer()
    packages = pinned(name)
    return "%s-%s" % (name, wheel.digest(packages)), packages


def interpreter(name):
    return wheel.environment(layer(name))

"""whyoom: why did my server run out of memory, and when will it?

Marks that name a program's requests and phases (request, mark, point), reports as objects (report),
and this process's room while it runs (watch). docs/python.md in the source says more."""

from whyoom._marks import Mark, mark, point, recording, request
from whyoom._program import Error, program

__all__ = ["Error", "Mark", "Report", "Watched", "mark", "point", "program", "recording", "report",
           "request", "watch"]

_later = {"report": "whyoom._report", "Report": "whyoom._report",
          "watch": "whyoom._watch", "Watched": "whyoom._watch"}


def __getattr__(name):
    """A server that only marks its requests does not import the rest."""
    if name == "__version__":
        from importlib.metadata import version
        return version("whyoom")
    if name not in _later:
        raise AttributeError(f"module 'whyoom' has no attribute '{name}'")
    from importlib import import_module
    value = getattr(import_module(_later[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)

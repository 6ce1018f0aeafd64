"""_program.py - finds the program `whyoom` and runs it. Owns Error. Prints nothing."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Error(Exception):
    """What whyoom said when it could not do what was asked. `status` is its exit status: 1, an
    error in the input or the system; 2, wrong usage."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def program():
    """The path of the program `whyoom`: the wheel's, or else the one on PATH."""
    shipped = os.path.join(HERE, "bin", "whyoom")
    if os.path.exists(shipped):
        return shipped
    import shutil  # here, as a server that only marks its requests needs none of it
    found = shutil.which("whyoom")
    if not found:
        raise Error(f"the program whyoom is neither in {os.path.dirname(shipped)} nor on PATH")
    return found


def environment():
    """For a child that is no part of this program: it is not recorded, and the recorder does not
    tell that it is not."""
    made = dict(os.environ, WHYOOM_OFF="1")
    others = [path for path in made.pop("LD_PRELOAD", "").replace(":", " ").split()
              if os.path.basename(path) != "libwhyoom.so"]
    if others:
        made["LD_PRELOAD"] = ":".join(others)
    return made


def run(*arguments, timeout=None):
    """Run `whyoom ARGUMENT...` and return its output. Raises Error with its message."""
    import subprocess
    arguments = [os.fspath(a) for a in arguments]
    try:
        done = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, env=environment(), timeout=timeout)
    except OSError as error:
        raise Error(f"{program()}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise Error(f"whyoom {arguments[0]} took longer than {timeout} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("whyoom: ")
        raise Error(said or f"whyoom {arguments[0]} ended with {done.returncode}",
                    done.returncode)
    return done.stdout.decode(errors="replace")


def main():
    """The command `whyoom`: become the program."""
    try:
        path = program()
        os.execv(path, ["whyoom", *sys.argv[1:]])
    except Error as error:
        print(f"whyoom: {error}", file=sys.stderr)
    except OSError as error:
        print(f"whyoom: {path}: {error.strerror}", file=sys.stderr)
    return 1

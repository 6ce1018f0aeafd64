import os
import shutil
import tempfile

import pytest
from lib import Programs, RECORDER, WHYOOM


@pytest.fixture
def folder():
    """On a disk: a tmpfs would be refused. Other users may pass through it."""
    path = tempfile.mkdtemp(prefix="whyoom-attach-", dir="/var/tmp")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def stand_in(folder):
    """whyoom with the stand-in for its library beside it, as in an installation."""
    for name, source, to in (("bin", WHYOOM, "whyoom"), ("lib", RECORDER, "libwhyoom.so")):
        os.mkdir(os.path.join(folder, name))
        shutil.copy(source, os.path.join(folder, name, to))
    return os.path.join(folder, "bin", "whyoom")


@pytest.fixture
def programs(folder):
    some = Programs(folder)
    yield some
    some.end()

import os

import pytest
from lib import Programs, prometheus


@pytest.fixture
def programs(tmp_path):
    p = Programs(tmp_path / "traces")
    yield p
    p.end()


@pytest.fixture(scope="session")
def promtool():
    """The folder that it and Prometheus itself are in."""
    found = prometheus(os.environ["PROMETHEUS_CACHE"])
    if not found:
        pytest.skip("Prometheus is not installed, and its package cannot be downloaded")
    return found

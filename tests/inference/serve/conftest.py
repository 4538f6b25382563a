"""Servers on this machine may be reached; anything else not, as in all tests."""

import pytest

from tests.network import _no_network  # noqa: F401

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")


@pytest.fixture(scope="module")
def server():
    from tests.inference.serve.toy import calibrated, running, served, store_search

    with running(served(search=store_search, calibration=calibrated(thresholds={"accuracy": 0.5}))) as it:
        yield it

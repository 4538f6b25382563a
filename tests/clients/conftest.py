"""Other programs, each in its own environment: skipped unless `sh scripts/clients` has created them."""

import json
import os
from pathlib import Path

import pytest

RESULTS = Path(__file__).with_name("results.json")


def pytest_collection_modifyitems(config, items):
    if "SAMESENSE_CLIENTS" not in os.environ:
        skip = pytest.mark.skip(reason="clients: run by sh scripts/clients")
        for item in items:
            if "clients" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def environments():
    """The folder of the environments."""
    return Path(os.environ["SAMESENSE_CLIENTS"])


@pytest.fixture(scope="session")
def results():
    """Results of the readers that behaved as expected; written into the file at the end."""
    new_results = {}
    yield new_results
    if new_results:
        recorded = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
        text = json.dumps({**recorded, **new_results}, indent=2, sort_keys=True, ensure_ascii=False)
        RESULTS.write_text(text + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """The folder of every kind of model, saved."""
    from tests.clients.folders import write_folders

    folder = tmp_path_factory.mktemp("folders")
    write_folders(folder)
    return folder


@pytest.fixture(scope="session")
def exports(home, tmp_path_factory):
    """The folder of some of them, exported."""
    from tests.clients.folders import write_exports

    folder = tmp_path_factory.mktemp("exports")
    write_exports(home, folder)
    return folder

"""An exported folder that all tests and all their processes share, since an export takes long."""

import pytest

from samesense.data import read_pairs
from tests.conftest import made_once


@pytest.fixture(scope="session")
def exported(tiny_trunk, toy_pairs, sentences, tmp_path_factory, worker_id):
    """A whitened model of unit vectors, in float32 and int8, with its drift."""
    from samesense.inference.onnx.export import export
    from tests.inference.exported import whitened

    def make(folder):
        export(whitened(tiny_trunk, sentences), folder, int8=True, pairs=read_pairs(toy_pairs / "dev.tsv"))

    return made_once(tmp_path_factory, worker_id, "exported/model", make)

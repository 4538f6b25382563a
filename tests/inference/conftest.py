"""An exported folder that all tests and all their processes share, since an export takes long."""

import pytest
from filelock import FileLock

from samesense.data import read_pairs


@pytest.fixture(scope="session")
def exported(tiny_trunk, toy_pairs, sentences, tmp_path_factory, worker_id):
    """A whitened model of unit vectors, in float32 and int8, with its drift."""
    from samesense.inference.onnx.export import export
    from tests.inference.exported import whitened

    base = tmp_path_factory.getbasetemp()
    root = base if worker_id == "master" else base.parent  # which the processes of one run share
    folder = root / "exported" / "model"
    with FileLock(root / "exported.lock"):
        if not folder.exists():
            export(whitened(tiny_trunk, sentences), folder, int8=True, pairs=read_pairs(toy_pairs / "dev.tsv"))
    return folder

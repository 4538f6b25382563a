"""The public surface, the light import, and the layers."""

import subprocess
import sys
from pathlib import Path

import pytest

import samesense
import samesense.losses as samesense_losses

ROOT = Path(__file__).parents[2]


def test_public_names():
    assert samesense.__all__ == [
        "Model",
        "__version__",
        "calibrate",
        "cluster",
        "compare",
        "cross_validate",
        "distil",
        "doctor",
        "encode",
        "evaluate",
        "export",
        "harvest",
        "load",
        "mine",
        "origin",
        "read",
        "rerank",
        "similarity",
        "sweep",
        "train",
        "whiten",
    ]
    assert dir(samesense) == samesense.__all__
    for name in samesense.__all__:
        assert getattr(samesense, name)
    with pytest.raises(AttributeError, match="module 'samesense' has no attribute 'nothing'"):
        _ = samesense.nothing


@pytest.mark.parametrize("statement", ["import samesense", "import samesense.cli.main", "import samesense.cli.train"])
def test_import_is_light(statement):
    heavy = ("torch", "transformers", "sentence_transformers", "datasets", "pandas", "scipy", "sklearn", "pyarrow")
    code = f"import sys; {statement}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_data_flows_one_way():
    importlinter = pytest.importorskip("importlinter.api")
    assert importlinter
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_version_is_in_the_changelog():
    assert f"## {samesense.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_files_stay_short_and_well_named():
    for path in (ROOT / "src").rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 300, path
        assert path.stem not in ("utils", "util", "common", "helpers", "misc"), path


def test_every_loss_has_a_twin_and_a_source():
    tests = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests/losses").glob("test_*.py")}
    for name in filter(str.islower, samesense_losses.__all__):
        assert any(name in text for text in tests.values()), f"{name} has no test"
    for name, text in tests.items():
        assert "from tests.references" in text, f"{name} compares with no twin in tests/references"
    for path in (ROOT / "src/samesense/losses").glob("*.py"):
        if path.stem != "__init__":
            text = path.read_text(encoding="utf-8")
            assert "Source:" in text, path
            assert "Differs:" in text, path

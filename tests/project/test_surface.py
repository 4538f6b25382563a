"""The public surface, the light import, and the layers."""

import ast
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
        "SentenceEncoder",
        "__version__",
        "app",
        "build_index",
        "calibrate",
        "compare",
        "cross_validate",
        "dedup",
        "disable_progress_bars",
        "distil",
        "doctor",
        "drift",
        "enable_progress_bars",
        "encode",
        "evaluate",
        "explain",
        "export",
        "harvest",
        "label",
        "load",
        "match",
        "mine",
        "mine_negatives",
        "open_index",
        "origin",
        "pretrain",
        "push",
        "race",
        "read",
        "read_vectors",
        "rerank",
        "score",
        "serve",
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


@pytest.mark.parametrize(
    "statement", ["import samesense", "import samesense.cli.main", "import samesense.cli.commands.train"]
)
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
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_released_version_is_in_the_changelog():
    if ".dev" in samesense.__version__:
        pytest.skip("between releases")
    assert f"## {samesense.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_files_are_named_for_their_topic():
    for path in (ROOT / "src").rglob("*.py"):
        assert path.stem not in ("utils", "util", "common", "helpers", "misc"), path


def imports(path):
    """Return what a test imports from samesense.losses, and whether it imports a twin from tests.references."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    taken = {name.name for node in nodes if node.module.startswith("samesense.losses") for name in node.names}
    return taken, any(node.module.startswith("tests.references") for node in nodes)


def test_every_loss_has_a_twin_and_a_source():
    tests = [imports(path) for path in (ROOT / "tests/losses").glob("test_*.py")]
    compared = set().union(*(taken for taken, twin in tests if twin))
    assert set(samesense_losses.__all__) - compared == set(), "compared with no twin in tests/references"
    for path in (ROOT / "src/samesense/losses").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        public = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        if public & set(samesense_losses.__all__):
            assert "Source:" in text, path
            assert "Differs:" in text, path

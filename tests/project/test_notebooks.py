"""The notebooks run from top to bottom without a network, with tiny models and few steps; their outputs are small."""

import ast
import json
import re
from pathlib import Path

import pytest

from tests.context.worlds import small_worded_causal

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LINK = re.compile(r"\]\(([^)#\s]+)")
FEW = {"steps": 2, "seeds": (1, 2)}
"""Values that replace those of the parameters cell, and the language model; the others stay."""

MOST_CHARACTERS = 10_000
"""Of the outputs of a notebook."""


def cells(path, kind):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def run(code, namespace):
    """Run a cell; return its last value as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def test_there_are_six():
    assert len(NOTEBOOKS) == 6


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path, request, tmp_path, monkeypatch):
    desk = request.getfixturevalue("deep_desk" if path.stem == "small-and-fast" else "tiny_desk")
    monkeypatch.setattr("samesense.encoder.names.default_folder", lambda: desk)
    monkeypatch.chdir(tmp_path)
    language_model = str(small_worded_causal(tmp_path))
    namespace = {"__name__": "notebook"}
    outputs = []
    for cell in cells(path, "code"):
        outputs.append(run("".join(cell["source"]), namespace))
        if "parameters" in cell["metadata"].get("tags", ()):
            namespace |= FEW | {"language_model": language_model}
    assert any("<table" in output for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_opens_with_its_job_and_installs_and_links_lead_somewhere(path):
    first, *_ = texts = ["".join(cell["source"]) for cell in cells(path, "markdown")]
    assert first.startswith("# ")
    install, *others = cells(path, "code")
    assert install["metadata"]["tags"] == ["install"]
    assert '"-m", "pip", "install"' in "".join(install["source"])
    assert (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8").count(f"notebooks/{path.name}") >= 1
    for target in (target for text in texts for target in LINK.findall(text)):
        assert (path.parent / target).exists(), target
    assert not install["outputs"]
    assert len(json.dumps([cell["outputs"] for cell in others])) < MOST_CHARACTERS

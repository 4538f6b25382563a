"""The sweeps of CoSENT are files that this version reads, and the pages of every paper agree with their results."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from samesense.recipes.settings import choose
from samesense.recipes.sweep.file import LAYERS, read_sweep

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "reproduce" / "cosent").rglob("*.toml")), *sorted((ROOT / "benchmarks").glob("*.toml"))]
KINDS = {"nli": "nli", "stsb": "scored", "sickr": "scored"}
SCORED_OUT = {"softmax"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_variant_has_settings(path):
    names = set(re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8")))
    file = read_sweep(path, {name: f"some/{name.lower()}" for name in names})
    entries = {entry.name: entry for entry in file.data}
    for variant in file.variants():
        for name in variant.data:
            kind = KINDS.get(name, "binary")
            given = {**file.base, **entries[name].settings, **variant.settings}
            given.pop(LAYERS, None)
            settings = choose(file.config, given, kind=kind)[1]
            assert not (kind == "scored" and settings.loss in SCORED_OUT), (variant.name, name)
            if "paper" in path.parts:
                assert (settings.learning_rate, settings.weight_decay, settings.warmup) == (2e-5, 0.01, 0.1)
                assert (settings.batch_size, settings.epochs) == ((64, 1) if kind == "nli" else (16, 4))


def test_the_documented_file_is_read(tmp_path):
    page = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    file = read_sweep(tmp_path / "sweep.toml", {"START": "start", "DATA": "data"})
    variants = file.variants()
    assert [variant.name for variant in variants] == [
        f"{case}, learning_rate {rate}" for case in ("cosent", "softmax", "hinge") for rate in (2e-05, 5e-05)
    ]
    named = set(re.findall(r"`(\w+)`", page)) | {"base", "grid", "case", "data"}
    assert set(type(file).model_fields) | set(type(file.data[0]).model_fields) <= named


@pytest.mark.parametrize("paper", ["cosent", "rankcse"])
def test_pages_show_what_is_in_the_results(paper):
    words = [sys.executable, "reproduce/tables.py", paper, "--check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

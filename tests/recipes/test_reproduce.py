"""The sweeps of CoSENT are files that this version reads, and the pages of every paper agree with their results."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from samesense.errors import DataError
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
                assert (settings.learning_rate, settings.weight_decay, settings.warmup_ratio) == (2e-5, 0.01, 0.1)
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


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    return importlib.import_module("tables")


def row(variant, seed, value, **more):
    made = {"layers": 2, "start": "base", "test": "toy", "n": 9, "dataset": "toy", "commit": "abc", "spearman": value}
    sizes = {"rows": {"train": 5, "dev": 2}, "data": {"train": "1" * 64, "test": "2" * 64}, "outcome": {"steps": 4}}
    cosines = {"cosines": {"0": [0.1 * seed, 0.2, 4.0], "2": [0.3, 0.4, 5.0]}}
    return {"variant": variant, "seed": seed, **made, **sizes, **cosines, **more}


def test_a_page_says_what_differs_and_what_is_missing(tables):
    rows = [row("a", 4, 0.5), row("a", 5, 0.6), row("b", 4, 0.4, start="other", layers=None)]
    assert "| b | 40.00 (1 of 2 seeds) |" in tables.figures(rows)
    assert "| a | 55.00 ± 7.07 |" in tables.figures(rows)
    said = tables.origin(rows)
    assert said.startswith("Start point: base, its first 2 layers, never tuned for sentences or other. ")
    rows[2]["data"] = {**rows[2]["data"], "train": "3" * 64}
    assert "toy 5/2 (11111111); toy 5/2 (33333333)" in tables.origin(rows)
    cosines = tables.cosines(rows)
    assert "seed 4:" in cosines
    assert "| data | variant | label 0 | label 2 |" in cosines
    assert cosines.count("| toy | a |") == 1
    tables.check_same_data(rows)
    with pytest.raises(DataError, match="toy: b was judged on other pairs"):
        tables.check_same_data([*rows, row("b", 5, 0.4, data={"train": "1" * 64, "test": "4" * 64})])


def test_what_is_kept_of_an_origin_is_a_mean_over_seeds(tables):
    kept = [{"pairs": 1125, "spearman": rho, "pearson": 0.5, "mse": rho / 2} for rho in (0.6, 0.8)]
    rows = [row("a", seed, 0.5) | {"kept": one} for seed, one in enumerate(kept)]
    said = tables.kept([*rows, *rows, {"variant": "start"}])
    assert "on 1,125 harvested pairs" in said
    assert "| a | 70.00 ± 14.14 | 50.00 ± 0.00 | 0.350 |" in said
    assert "start" not in said


def test_pairs_stand_in_their_order(tables):
    scores = [0.9, 0.1] * 6
    one = row("a", 4, 0.5, scores=scores, labels=[1.0] * 12, threshold=0.5)
    lines = tables.verdicts([one]).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == [str(at) for at in range(1, 13)]

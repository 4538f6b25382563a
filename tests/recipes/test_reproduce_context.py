"""The sweeps of the Surrogate are files that this version reads; pages and settings say what there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from samesense.recipes.methods import METHODS
from samesense.recipes.settings import bind, read_settings
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.recipes.sweep.file import LAYERS, METHOD, SweepFile, read_sweep
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.run import run
from tests.recipes.harvests import some_pairs, write_harvest

ROOT = Path(__file__).parents[2]
HERE = ROOT / "reproduce" / "context"
FILES = sorted(HERE.rglob("*.toml"))


def variants(path):
    names = set(re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8")))
    file = read_sweep(path, {name: f"some/{name.lower()}" for name in names})
    for entry in file.data:
        for variant in file.variants():
            given = {**file.base, **entry.settings, **variant.settings}
            method = METHODS[given.pop(METHOD, "cosent")]
            given.pop(LAYERS, None)
            if method.name == "cosent":
                yield variant.name, method.choose("auto", given, lambda: type("Pairs", (), {"kind": "scored"}))[1]
            else:
                yield variant.name, bind(method.settings, read_settings(method.name), given)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_every_variant_has_settings(path):
    found = list(variants(path))
    assert found
    for name, settings in found:
        assert settings.pooling == "mean", name
        if path.parent.name == "scaled":
            assert (settings.max_steps, settings.learning_rate) == (200, 1e-4), name
        elif isinstance(settings, SurrogateSettings):
            assert (settings.learning_rate, settings.weight_decay, settings.held_out_share) == (1e-4, 0, 0.01), name
        else:
            assert settings.learning_rate == 2e-5 and settings.batch_size == 16, name


def test_every_page_is_linked_and_names_files_that_are_there():
    pages = {path.name for path in HERE.glob("*.md")} - {"README.md"}
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", readme)) == pages
    for page in HERE.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        linked = set(re.findall(r"\]\(([\w/-]+\.\w+)\)", text)) | set(re.findall(r"`(scaled/[\w-]+\.toml)`", text))
        named = {
            name.removeprefix("reproduce/context/") for name in re.findall(r"reproduce/context/[\w/-]+\.\w+", text)
        }
        assert all((HERE / name).is_file() for name in linked | named), page.name


def test_pages_show_what_is_in_the_results():
    words = [sys.executable, "reproduce/tables.py", "context", "--check"]
    assert subprocess.run(words, cwd=ROOT, capture_output=True).returncode == 0


def test_means_of_the_printed_figures_are_those_printed():
    rows = []
    for line in (HERE / "table2.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if re.fullmatch(r"\d+\.\d\d", cells[-1]):
            rows.append([float(cell) for cell in cells[1:]])
    assert len(rows) == 12 + 14
    assert all(abs(sum(values[:-1]) / 7 - values[-1]) < 0.035 for values in rows)


def test_the_page_lists_every_setting_with_its_default():
    text = (ROOT / "docs" / "methods" / "surrogate.md").read_text(encoding="utf-8")
    section = text.partition("\n## Settings\n")[2].partition("\n## ")[0].partition("`--method context`")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", section, re.M)
    fields = SurrogateSettings.model_fields
    assert [name for name, _ in rows] == list(fields)
    for name, shown in rows:
        assert shown == ("none" if fields[name].default is None else str(fields[name].default)), name


@pytest.mark.slow
def test_surrogates_by_number_of_pairs_and_structure_in_one_sweep(tiny_trunk, toy_pairs, tmp_path):
    quick = {"max_steps": 2, "batch_size": 8, "precision": "float32", "held_out_share": 0.15, "max_seq_length": 32}
    file = SweepFile(
        seeds=(1,),
        start=True,
        base={"method": "surrogate", "model": str(tiny_trunk), "layers": 2, **quick},
        case=({"most_pairs": 20}, {"most_pairs": 60}, {"name": "both together", "encoder": "cross"}),
        data=(
            {
                "name": "harvest", "train": write_harvest(tmp_path / "h", some_pairs(120)), "dev": "none",
                "test": str(toy_pairs / "test.tsv"),
            },
        ),
    )  # fmt: skip
    plan = make_plan(file)
    assert [len(plan.splits_of(cell).train) for cell in plan.cells[1:3]] == [20, 60]
    ended = run(plan, tmp_path / "sweep")
    assert (ended.finished, ended.failed) == (4, 0)

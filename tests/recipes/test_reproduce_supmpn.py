"""The sweeps of SupMPN are files that this version reads, with the paper's settings where they are of its scale."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from samesense.recipes.compare.recipe import read_topics
from samesense.recipes.settings import bind, read_settings
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.sweep.file import LAYERS, METHOD, read_sweep

HERE = Path(__file__).parents[2] / "reproduce" / "supmpn"
FILES = sorted(HERE.rglob("*.toml"))
OTHERWISE = {"supmpn, base, released example", "softmax, base"}


def variants(path):
    names = set(re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8")))
    file = read_sweep(path, {name: f"some/{name.lower()}" for name in names})
    for variant in file.variants():
        given = {**file.base, **variant.settings}
        assert given.pop(METHOD) == "supmpn"
        given.pop(LAYERS, None)
        yield variant.name, bind(SupmpnSettings, read_settings("supmpn"), given)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_every_variant_has_settings(path):
    found = dict(variants(path))
    assert found
    for name, settings in found.items():
        if path.parent.name == "scaled":
            assert (settings.sentences_per_step, settings.max_steps, settings.dropout) == (264, 60, None)
        elif name not in OTHERWISE:
            assert (settings.pooling, settings.max_seq_length, settings.epochs) == ("first-last", 32, 3)
            assert (settings.positives, settings.negatives, settings.temperature) == (5, 5, 0.05)
            if path.name != "batch.toml":
                expected = (200, 1e-5) if "large" in settings.model else (256, 5e-5)
                assert (settings.batch_size, settings.learning_rate) == expected


def test_every_page_is_linked_and_names_files_that_are_there():
    pages = {path.name for path in HERE.glob("*.md")} - {"README.md"}
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.md)\)", readme)) == pages
    for page in HERE.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        linked = set(re.findall(r"\]\(([\w/.]+)\)", text)) | set(re.findall(r"`(scaled/\w+\.toml)`", text))
        named = {name.removeprefix("reproduce/supmpn/") for name in re.findall(r"reproduce/supmpn/[\w/]+\.\w+", text)}
        assert all((HERE / name).is_file() for name in linked | named), page.name


def test_pages_show_what_is_in_the_results():
    words = [sys.executable, "reproduce/tables.py", "supmpn", "--check"]
    done = subprocess.run(words, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_models_that_pages_compare_are_kept():
    for page in HERE.glob("*.md"):
        for words in re.findall(r"^samesense compare (.*)", page.read_text(encoding="utf-8"), re.MULTILINE):
            for folder in re.findall(r"sweeps/supmpn-(\w+)/runs/", words):
                text = (HERE / "scaled" / f"{folder}.toml").read_text(encoding="utf-8")
                assert 'keep = "all"' in text, page.name


def test_means_of_the_printed_figures_are_those_printed():
    """Of each row of Tables 2, 3 and A1, but the two that the pages speak of."""
    rows = []
    for page in ("table2", "table3", "tableA1"):
        printed, _, _ = (HERE / f"{page}.md").read_text(encoding="utf-8").partition("## At the paper's scale")
        for line in printed.splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
            if re.fullmatch(r"\d+\.\d\d", cells[-1]):
                rows.append((cells[0], [float(cell) for cell in cells[1:]]))
    assert len(rows) == 28 + 16 + 4
    wrong = [
        name for name, values in rows if abs(sum(values[:-1]) / 7 - values[-1]) > 0.035
    ]  # some were printed rounded
    assert wrong == ["fastText embeddings (1)", "CLEAR-RoBERTa-base (1)"]


def test_twelve_sentences_of_four_topics():
    assert [len(topic) for topic in read_topics(HERE / "sentences.txt")] == [3, 3, 3, 3]

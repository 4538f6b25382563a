"""Training on section triplets: the drawn triplets, and the gain in telling sections apart."""

import json

import pytest

from samesense.cli.main import app
from samesense.data.documents import read_documents
from samesense.data.section_triplets import draw_section_triplets
from samesense.errors import DataError
from samesense.evaluation.sections import SectionTask
from samesense.inference.models.load import load
from samesense.recipes.methods import METHODS
from samesense.recipes.sections.data import SectionsSettings, read_triplets
from tests.conftest import WORDS


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Twenty documents of two sections, each with words of its own third of the vocabulary."""
    import random

    source = random.Random(3)
    third = len(WORDS) // 3
    lines = []
    for number in range(20):
        topics = source.sample([WORDS[:third], WORDS[third : 2 * third], WORDS[2 * third :]], 2)
        sections = [{"sentences": [" ".join(source.sample(topic, 5)) for _ in range(6)]} for topic in topics]
        lines.append(json.dumps({"id": number, "sections": sections}))
    path = tmp_path_factory.mktemp("documents") / "parts.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_what_is_read_are_the_triplets_of_the_documents(documents):
    harvest = read_triplets([documents], SectionsSettings(per_document=4, triplets_seed=2))
    assert harvest.triplets == draw_section_triplets(list(read_documents(documents)), 4, 2)
    assert harvest.summary == "80 triplets of 20 documents of parts.jsonl"
    assert harvest.take([3, 0]).triplets == [harvest.triplets[3], harvest.triplets[0]]
    assert len({harvest.sha256, harvest.take([3, 0]).sha256, harvest.take([0, 3]).sha256}) == 3
    columns = harvest.columns()
    assert list(zip(*columns.values(), strict=True)) == harvest.triplets and list(columns) == [
        "anchor",
        "positive",
        "negative",
    ]


def test_documents_without_sections_are_refused(tmp_path):
    (tmp_path / "flat.txt").write_text("One sentence. Another sentence.")
    with pytest.raises(DataError, match="two sections"):
        read_triplets([str(tmp_path / "flat.txt")], SectionsSettings())


def test_the_shipped_settings_are_the_defaults():
    assert METHODS["sections"].choose("auto", {}, lambda: None)[1] == SectionsSettings()


@pytest.mark.slow
def test_the_command_trains_a_model_that_tells_sections_apart(documents, tiny_trunk, tmp_path, capsys):
    words = ["train", documents, "--method", "sections", "--model", str(tiny_trunk), "--precision", "float32"]
    words += ["--learning-rate", "2e-3", "--epochs", "4", "--output", str(tmp_path / "run")]
    app(words, exit_on_error=False, result_action="return_value")
    assert "240 triplets of 20 documents" in capsys.readouterr().err
    task = SectionTask(draw_section_triplets(list(read_documents(documents)), 10, 9), "parts")
    before, after = (
        task.evaluate(load(path, precision="float32")).results[0].value for path in (tiny_trunk, tmp_path / "run")
    )
    assert after > max(0.8, before)

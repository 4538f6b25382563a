"""The details of a comparison: data, training data of models, versions, and memory."""

import hashlib
import json
import sys

import pytest
import torch

import samesense
from samesense.data import read_pairs
from samesense.encoder.saving.storage import save
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.run import Cost
from samesense.evaluation.sts import StsTask
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.recipes.compare import memory as memory_module
from samesense.recipes.compare.description import (
    count_unread,
    describe_data,
    label_text,
    script_text,
    trained_on,
)
from samesense.recipes.compare.memory import SECONDS, add_memory, measure_memory, peak_memory
from samesense.recipes.compare.provenance import command_text, describe_environment, model_fingerprints
from tests.conftest import WORDS
from tests.evaluation.toy import candidate


def pairs(labels, texts=None):
    """Pairs in memory with these labels."""
    texts = texts or [(f"first {row}", f"second {row}") for row in range(len(labels))]
    return read_pairs(
        [{"sentence1": a, "sentence2": b, "score": label} for (a, b), label in zip(texts, labels, strict=True)]
    )


def test_each_set_has_a_row_with_its_suites_labels_and_repeated_pairs():
    texts = [("Grüße aus Köln", "Ein Brief"), ("Ein Brief", "Grüße aus Köln"), ("eins", "zwei"), ("eins", "drei")]
    data = pairs([1, 1, 0, 0], texts)
    table = describe_data([StsTask(data, dataset="umlauts.tsv"), BinaryTask(data, dataset="umlauts.tsv")])
    [row] = table.rows
    cells = dict(zip(table.header, row, strict=True))
    assert (cells["set"], cells["suites"], cells["rows"]) == ("umlauts.tsv", "sts, binary", "4")
    assert cells["labels"] == "binary: 0 50 %, 1 50 %"
    assert cells["repeated pairs"] == "1"  # the order of two texts does not matter
    assert cells["texts"] == "5"
    assert cells["length"].startswith("median 1 words, 99 % at most 3; longest 14 characters")
    assert cells["script"] == "Latin 100 %"


def test_many_labels_are_counted_by_fifths_of_their_scale():
    few = pairs([0.0, 5.0, 5.0, 2.5])
    assert label_text(few).endswith(": 0 25 %, 2.5 25 %, 5 50 %")
    many = label_text(pairs([row / 20 for row in range(101)]))
    assert "0 to 1 20 %" in many and "4 to 5 21 %" in many
    rare = label_text(pairs([0] * 300 + [1]))
    assert rare == "binary: 0 100 %, 1 < 1 %"


def test_scripts_are_counted_letter_by_letter():
    assert script_text(["我想提前还款"]) == "Chinese characters 100 %"
    assert script_text(["abc дом"]) == "Latin 50 %, Cyrillic 50 %"
    assert script_text(["12 % !", ""]) == "no letters"
    assert script_text(["a" * 500 + "я"]) == "Latin 100 %"  # below one in a hundred


def test_the_share_of_texts_that_a_model_cuts(tiny, tmp_path):
    model = load(str(save(tiny, tmp_path / "tiny")), precision="float32")
    longest = model.reading.longest
    data = pairs([0, 1, 1, 0], [("cat " * (2 * longest), "a cat"), *((f"cat {row}", f"dog {row}") for row in "abc")])
    table = count_unread([model, candidate(lambda a, b: 0.0)], [StsTask(data, dataset="long.tsv")])
    assert table.header == ["model", "tokens at most", "long.tsv"]
    assert table.rows == [[model.name, f"{longest:,}", "12 %"]]  # one of eight texts; texts without tokens have no row
    assert count_unread([candidate(lambda a, b: 0.0)], [StsTask(data)]) is None


def test_a_set_that_a_model_was_trained_on_is_named_but_its_test_set_is_not(tmp_path):
    seen_pairs = pairs([0, 1, 1])
    new = pairs([1, 0, 0])
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / "model" / "config.json").write_text("{}")
    record = {"data": {"train": {"sha256": seen_pairs.sha256}, "test": {"sha256": new.sha256}}}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(record))
    tasks = [StsTask(seen_pairs, dataset="known.tsv"), StsTask(new, dataset="new.tsv")]
    lines = trained_on({"mine": str(tmp_path / "run"), "code": "python:module:function"}, tasks)
    assert lines == ["mine knows known.tsv: these rows were its train data, which flatters its figures."]
    (tmp_path / "run" / "manifest.json").unlink()
    card = f"| train | set | 3 | `{seen_pairs.sha256[:16]}` |\n"
    (tmp_path / "run" / "model" / "README.md").write_text(f"# Model\n\n{card}", encoding="utf-8")
    assert len(trained_on({"mine": str(tmp_path / "run" / "model")}, tasks)) == 1
    (tmp_path / "run" / "model" / "README.md").write_text("# Model\n", encoding="utf-8")
    assert trained_on({"mine": str(tmp_path / "run" / "model")}, tasks) == []


def test_the_command_is_shown_as_it_can_be_typed_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/samesense", "compare", "my model", "--data", "a;b.tsv"])
    assert command_text() == "samesense compare 'my model' --data 'a;b.tsv'"
    monkeypatch.setattr(sys, "argv", ["/somewhere/notebook.py", "secret"])
    assert command_text() == "samesense.compare, called from Python"


def test_the_environment_has_what_a_figure_depends_on():
    record = describe_environment("float32")
    assert record["precision"] == "float32" and record["threads"] == str(torch.get_num_threads())
    assert record["processor"] and f"samesense {samesense.__version__}" in record["versions"]
    assert record["date"].endswith(" UTC")


def test_the_hash_of_a_model_is_of_its_files_without_its_card(tiny, tmp_path):
    folder = save(tiny, tmp_path / "tiny")
    spec = str(folder)
    [before] = model_fingerprints([spec]).values()
    assert len(before) == 12 and int(before, 16) >= 0
    (folder / "README.md").write_text("another card", encoding="utf-8")
    assert model_fingerprints([spec]) == {spec: before}
    config = folder / "config.json"
    config.write_text(config.read_text() + " ")
    assert model_fingerprints([spec])[spec] != before
    assert model_fingerprints(["python:module:function"]) == {}


@pytest.fixture
def saved(tiny, tmp_path):
    """A tiny model in a folder, as compare has it: by its name and opened."""
    spec = str(save(tiny, tmp_path / "tiny model"))
    return spec, load(spec, precision="float32")


def test_the_page_has_the_hashes_of_the_models(tiny, tmp_path):
    folder = save(tiny, tmp_path / "tiny")
    rows = [(f"a dog {word}", f"a cat {word}", row % 3) for row, word in enumerate(WORDS[:12])]
    page = tmp_path / "report.html"
    letters = Model(score=lambda pairs: [float(len(a + b)) for a, b in pairs], name="letters", protocol="their number")
    models = {"a folder": str(folder), "letters": letters}
    samesense.compare(models, rows, speed=False).save(page)
    (digits,) = model_fingerprints([str(folder)]).values()
    assert digits in page.read_text(encoding="utf-8")


def test_memory_is_asked_for_models_that_can_be_opened_again(saved, monkeypatch):
    requests = []

    def measure(specs, texts, precision):
        requests.append((specs, list(texts), precision))
        return {saved[0]: 123.0}

    monkeypatch.setattr(memory_module, "measure_memory", measure)
    models = [saved, ("python:module:function", saved[1]), ("x+whiten", saved[1]), ("in memory", object())]
    costs = add_memory([Cost(computed=str(row)) for row in range(4)], models, ["a", "b"], "float32")
    assert [cost.memory for cost in costs] == [123.0, None, None, None]
    assert [cost.computed for cost in costs] == ["0", "1", "2", "3"]
    assert requests == [({saved[0]: True}, ["a", "b"], "float32")]


class Program:
    """A helper process that printed this, or could not be started."""

    def __init__(self, output):
        self.output = output

    def __call__(self, program, **options):
        if self.output is None:
            raise OSError("no process")
        self.request = json.loads(options["input"])
        self.stdout = self.output
        return self


@pytest.mark.parametrize(
    ("output", "peaks"),
    [
        (b'a model that prints\n{"a": 100.5}\n{"b": 2', {"a": 100.5}),
        (b"", {}),
        (None, {}),
    ],
)
def test_what_was_measured_before_the_time_was_up_is_kept(monkeypatch, output, peaks):
    program = Program(output)
    monkeypatch.setattr(memory_module.subprocess, "run", program)
    assert measure_memory({"b": True, "a": False}, ["text"], "float32") == peaks
    if output is not None:
        specs = [model["spec"] for model in program.request["models"]]
        assert specs == ["a", "b"]  # without torch first


@pytest.mark.skipif(not memory_module.STATUS.is_file(), reason="only Linux tells a peak")
def test_the_peak_counts_what_was_freed_again():
    before = peak_memory()
    block = bytearray(hashlib.sha256(b"x").digest() * 3_000_000)
    del block
    assert peak_memory() >= before
    assert peak_memory() > 50


@pytest.mark.slow
@pytest.mark.skipif(not memory_module.STATUS.is_file(), reason="only Linux tells a peak")
def test_a_process_for_each_model_tells_its_peak_and_one_that_fails_stops_no_other(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(memory_module, "SECONDS", 10 * SECONDS)
    missing = str(tmp_path / "absent")
    peaks = measure_memory({missing: True, saved[0]: True}, ["a cat", "a dog"], "float32")
    assert set(peaks) == {saved[0]}
    assert 100 < peaks[saved[0]] < 4000

"""Figures reach standard output though the disk has no room for their file."""

import json

import numpy as np
import pytest

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.saving.storage import save
from samesense.errors import DataError, OutputError, UnfinishedError, UnwrittenError
from samesense.inference.models.load import load

FULL = "No space left on device"


@pytest.fixture
def fill_disk(monkeypatch):
    """Makes a function that writes files fail as on a full disk."""

    def fill(name):
        def fail(path, *_, **__):
            raise OutputError(f"{path} cannot be written: {FULL}")

        monkeypatch.setattr(f"samesense.{name}", fail)

    return fill


@pytest.fixture
def folder(tiny_trunk, tmp_path):
    return save(build(str(tiny_trunk), device="cpu"), tmp_path / "model")


@pytest.fixture
def labelled(folder, sentences, tmp_path):
    """A file of pairs whose labels rise with the model's cosine."""
    pairs = [(sentences[index % 40], sentences[(index * 7 + 3 + index // 40) % 40]) for index in range(120)]
    pairs = [(first, second) for first, second in pairs if first != second]
    scores = load(str(folder), precision="float32").scores(pairs)
    labels = np.round(5 * (scores - scores.min()) / np.ptp(scores), 1)
    rows = [f"{label}\t{first}\t{second}" for label, (first, second) in zip(labels, pairs, strict=True)]
    path = tmp_path / "labelled.tsv"
    path.write_text("\n".join(["score\tsentence1\tsentence2", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
@pytest.mark.parametrize(
    ("words", "writer", "printed"),
    [
        (["compare", "--no-speed", "--output", "page.html"], "reports.report.write_text", "spearman"),
        (
            ["compare", "--no-speed", "--output", "page.html", "--results", "r.jsonl"],
            "reports.store.write_bytes",
            "spearman",
        ),
        (["evaluate", "--output", "r.jsonl"], "reports.store.write_bytes", "spearman"),
        (["calibrate", "--output", "c.json"], "inference.calibration.storage.write_json", "mae"),
    ],
)
def test_figures_are_shown(run, fill_disk, folder, labelled, tmp_path, monkeypatch, words, writer, printed, json_flag):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    fill_disk(writer)
    command, *options = words
    code, out, err = run(command, folder, "--data", labelled, *options, *json_flag)
    assert (code, err.splitlines()[-1].endswith(FULL)) == (2, True), err
    assert printed in out.lower()
    if json_flag:
        assert all(map(json.loads, out.splitlines()))


def test_a_set_without_a_figure_does_not_stop_the_others(run, folder, labelled, tmp_path):
    equal = tmp_path / "equal.tsv"
    equal.write_text("sentence1\tsentence2\tscore\na dog\ta cat\t1\na dog\ta cat\t2\n", encoding="utf-8")
    results = tmp_path / "r.jsonl"
    code, out, err = run("evaluate", folder, "--data", equal, labelled, "--output", results)
    assert code == 2
    assert "labelled.tsv" in out and "labelled.tsv" in results.read_text(encoding="utf-8")
    assert "mean" not in out
    assert "error: equal.tsv: The correlation is undefined because scores are all" in err
    with pytest.raises(UnfinishedError, match=r"^equal\.tsv: The correlation is undefined") as caught:
        samesense.evaluate(folder, [equal, labelled])
    assert {result.dataset for result in caught.value.result} == {"labelled.tsv"}
    with pytest.raises(DataError, match=r"^equal\.tsv: The correlation is undefined"):
        samesense.evaluate(folder, equal)


def test_a_set_without_a_figure_is_said_beside_a_full_disk(run, fill_disk, folder, labelled, tmp_path):
    equal = tmp_path / "equal.tsv"
    equal.write_text("sentence1\tsentence2\tscore\na dog\ta cat\t1\na dog\ta cat\t2\n", encoding="utf-8")
    fill_disk("reports.store.write_bytes")
    code, out, err = run("evaluate", folder, "--data", equal, labelled, "--output", tmp_path / "r.jsonl")
    assert (code, "labelled.tsv" in out) == (2, True)
    assert f"{FULL} equal.tsv: The correlation is undefined because scores are all" in err.splitlines()[-1]


def test_a_suite_in_which_no_set_lacks_a_figure_has_its_mean(folder, labelled, tmp_path):
    (tmp_path / "equal.tsv").write_text("sentence1\tsentence2\tscore\na dog\ta cat\t1\na dog\ta cat\t2\n")
    lines = labelled.read_text(encoding="utf-8").splitlines()[1:]
    rows = [f"{row % 2}\t{line.partition(chr(9))[2]}\n" for row, line in enumerate(lines)]
    binary = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    for path in binary:
        path.write_text("label\tsentence1\tsentence2\n" + "".join(rows), encoding="utf-8")
    with pytest.raises(UnfinishedError) as caught:
        samesense.evaluate(folder, [tmp_path / "equal.tsv", *binary], suites="sts,binary", intervals=False)
    means = {(result.task, result.dataset) for result in caught.value.result if "mean" in result.dataset}
    assert means == {("binary", "mean of 2")}


def test_figures_of_a_drift_are_shown_without_its_map(run, fill_disk, tiny_trunk, sentences, tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(sentences) + "\n")
    fill_disk("reports.maps.write_text")
    arguments = ("drift", tiny_trunk, f"{tiny_trunk}?cls", "--texts", tmp_path / "t.txt", "--map", tmp_path / "m.html")
    code, out, err = run(*arguments)
    assert (code, "neighbours" in out, err.splitlines()[-1].endswith(FULL)) == (2, True, True), err


def test_an_error_of_a_function_holds_its_result(fill_disk, tiny_trunk, toy_pairs, tmp_path):
    fill_disk("reports.store.write_bytes")
    with pytest.raises(UnwrittenError, match=FULL) as caught:
        samesense.evaluate(str(tiny_trunk), toy_pairs / "test.tsv", output=tmp_path / "r.jsonl")
    assert {row.metric for row in caught.value.result} == {"spearman", "pearson"}

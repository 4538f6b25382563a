"""Folders saved by datasets, and hub names, without a network."""

import sys

import pytest

import samesense
from samesense.data import load_rows, read_pairs
from samesense.data.rows.sources import as_sources
from samesense.errors import DataError, MissingExtraError
from samesense.evaluation.suites import find_tasks

datasets = pytest.importorskip("datasets")

COLUMNS = {"premise": ["a", "c", "e", "g"], "hypothesis": ["b", "d", "f", "h"], "label": [0, 2, 1, -1]}


@pytest.fixture
def saved():
    names = datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])
    features = datasets.Features(
        {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string"), "label": names}
    )
    return datasets.Dataset.from_dict(COLUMNS, features=features)


def test_class_labels_arrive_as_names(tmp_path, saved):
    saved.save_to_disk(tmp_path / "one")
    data = read_pairs(tmp_path / "one")
    assert (data.labels, data.kind, data.dropped_unlabelled) == ([2.0, 0.0, 1.0], "nli", 1)
    assert next(load_rows(tmp_path / "one")) == (1, {"premise": "a", "hypothesis": "b", "label": "entailment"})


@pytest.mark.parametrize("names", [["duplicate", "not_duplicate"], ["not_duplicate", "duplicate"]])
def test_class_labels_of_parquet_and_arrow_arrive_as_names(tmp_path, names):
    features = datasets.Features(
        {
            "sentence1": datasets.Value("string"),
            "sentence2": datasets.Value("string"),
            "label": datasets.ClassLabel(names=names),
        }
    )
    columns = {"sentence1": ["a", "c", "e"], "sentence2": ["b", "d", "f"], "label": [0, 1, -1]}
    dataset = datasets.Dataset.from_dict(columns, features=features)
    dataset.to_parquet(tmp_path / "a.parquet")
    expected = [float(not name.startswith("not")) for name in names]
    for source in (tmp_path / "a.parquet", dataset.with_format("arrow")[:], dataset):
        data = read_pairs(source)
        assert (data.labels, data.kind, data.dropped_unlabelled) == (expected, "binary", 1)


@pytest.mark.parametrize(
    "metadata",
    [
        "[]",
        "[" * 5000,
        '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}',
        '{"info": {"features": {"label": {"_type": "ClassLabel", "names": ["yes"]}, "sentence1": 3}}}',
    ],
)
def test_metadata_that_name_no_classes_of_a_column_are_ignored(tmp_path, metadata):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"sentence1": ["a", "c"], "sentence2": ["b", "d"], "label": [0.0, 1.0]})
    assert read_pairs(table.replace_schema_metadata({"huggingface": metadata})).labels == [0.0, 1.0]


def test_the_only_split_of_a_folder_is_read(tmp_path, saved):
    datasets.DatasetDict({"dev": saved}).save_to_disk(tmp_path / "one")
    assert len(read_pairs(str(tmp_path / "one"))) == len(read_pairs(f"{tmp_path / 'one'}:dev"))


def test_a_folder_of_several_splits_needs_one_named(tmp_path, saved):
    folder = tmp_path / "many"
    datasets.DatasetDict({"train": saved, "dev": saved.select([0, 1])}).save_to_disk(folder)
    assert len(read_pairs(f"{folder}:dev")) == 2
    for source, received in [(str(folder), "none was named"), (f"{folder}:test", "received 'test'")]:
        with pytest.raises(DataError) as caught:
            load_rows(source)
        assert str(caught.value) == (
            f"{folder}: this folder holds several splits and one must be named; {received}. Splits available: "
            f"train, dev. Write for example {folder}:train"
        )


def test_a_split_of_a_folder_is_a_name_in_a_list_too(tmp_path, saved, monkeypatch):
    monkeypatch.chdir(tmp_path)
    datasets.DatasetDict({"train": saved, "dev": saved.select([0, 1])}).save_to_disk("many")
    assert as_sources(["many:dev"]) == ["many:dev"]
    assert samesense.doctor("many:dev").rows == len(samesense.read(["many:dev"])) == 2
    assert as_sources(["many: they are", "none:dev"]) == [["many: they are", "none:dev"]], "texts"
    (task,) = [task for task in find_tasks("many:dev").tasks if task.suite == "sts"]
    assert len(task.data) == 2


def test_a_split_of_a_folder_without_splits_is_refused(tmp_path, saved):
    saved.save_to_disk(tmp_path / "one")
    with pytest.raises(DataError) as caught:
        load_rows(f"{tmp_path / 'one'}:train")
    assert str(caught.value) == (
        f"{tmp_path / 'one'}: this folder holds one dataset without splits; received ':train'. Leave out ':train'."
    )


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        load_rows(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: a folder must be one written by save_to_disk of datasets; it could not be")
    assert "end in .txt, .md, .html, .pdf or .docx. Name a file inside it" in message


@pytest.mark.parametrize(
    ("source", "called"),
    [
        ("owner/name", ("owner/name", None, "train")),
        ("owner/name@small", ("owner/name", "small", "train")),
        ("owner/name:dev", ("owner/name", None, "dev")),
        ("owner/my.name@small-v1:test[:10%]", None),
        ("owner/my.name@small-v1:test", ("owner/my.name", "small-v1", "test")),
    ],
)
def test_a_hub_name_may_carry_a_config_and_a_split(monkeypatch, saved, source, called):
    calls = []

    def load_dataset(name, config, *, split):
        calls.append((name, config, split))
        return saved

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    if called is None:
        with pytest.raises(DataError):
            load_rows(source)
        return
    assert len(list(load_rows(source))) == 4
    assert calls == [called]


def test_a_failure_of_the_hub_is_told_in_one_line(monkeypatch):
    def fail(*_, **__):
        raise ConnectionError("no route\n  to host")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    monkeypatch.setattr("samesense.hub.unreachable", lambda **_: "")
    with pytest.raises(DataError) as caught:
        load_rows("owner/name")
    assert str(caught.value) == (
        "owner/name: no such file or folder, and it could not be loaded from the hub (ConnectionError: no route to "
        "host). Check the spelling and the network; a local file works offline."
    )


def test_what_is_neither_path_nor_hub_name_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError) as caught:
        load_rows("stsb")
    assert str(caught.value) == (
        "stsb: this is no existing file or folder, and no hub name of the form owner/name, owner/name@config or "
        "owner/name:split. Name a file that ends in .tsv, .csv, .jsonl, .ndjson, .json, .parquet (or one of these "
        "with .gz, .bz2, .xz, .zip), or in .txt. From Python, texts are given in a list."
    )
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as missing:
        load_rows("data/stsb")
    assert str(missing.value) == "data/stsb: there is no such file. Check the spelling and the working directory."


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError) as caught:
        load_rows(tmp_path)
    assert str(caught.value) == (
        "datasets is needed here and is not installed. Install it with: pip install 'samesense[train]'"
    )

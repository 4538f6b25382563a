"""Many labelled pairs are memory-mapped from a file, with the same results as in memory."""

import gzip
import json
import random
import tracemalloc
from array import array
from dataclasses import replace

import pytest

from samesense.data import mapped
from samesense.data.mapped import MappedTexts, is_mapped
from samesense.data.pairs.data import concat
from samesense.data.pairs.doctor import examine
from samesense.data.pairs.read import read_pairs
from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.held_out.pairs import write_pairs
from samesense.recipes.planning.dev_split import describe_leaks, describe_shared, hold_out
from samesense.training.batches import share_without_comparison
from samesense.training.dataset import as_dataset
from tests.data.made import DATA

LABELS = {
    "scored": [0, 0.25, 3, 5],
    "binary": [0, 1],
    "nli": ["entailment", "neutral", "contradiction", "-"],
    "triplet": ["s1", "other"],
}
THIRD = {"scored": "score", "binary": "label", "nli": "label", "triplet": "negative"}


def few(monkeypatch, most=60):
    monkeypatch.setattr(mapped, "MOST_IN_MEMORY", most)
    monkeypatch.setattr(mapped, "BLOCK", 37)


def plain(data):
    """Return the same data as lists."""
    sides = {name: list(getattr(data, name)) for name in ("sentences1", "sentences2", "labels")}
    columns = {name: None if getattr(data, name) is None else list(getattr(data, name)) for name in ("subsets", "rows")}
    return replace(data, **sides, **columns)


def same(first, second):
    return plain(first) == plain(second) and plain(first).rows == plain(second).rows and first.sha256 == second.sha256


def table(kind, rows=150, bad=False, subset=True):
    """Yield rows of few sentences with many duplicates; some lack a text if they may be bad."""
    source = random.Random(kind)
    third = THIRD[kind]
    names = ("anchor", "positive") if kind == "triplet" else ("sentence1", "sentence2")
    for number in range(rows):
        texts = [f"S{source.randrange(60)}{source.choice(['', '!'])}" for _ in range(2)]
        texts[0] = " " if bad and number % 20 == 7 else texts[0]
        row = dict(zip(names, texts, strict=True)) | {third: source.choice(LABELS[kind])}
        yield row | ({"subset": f"part {number % 3}" if number % 5 else ""} if subset else {})


def written(path, rows):
    rows = list(rows)
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        mark = "," if ".csv" in path.name else "\t"
        text = "".join(mark.join(map(str, row)) + "\n" for row in [list(rows[0]), *(row.values() for row in rows)])
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "parquet", "tsv.gz"])
def test_files_are_read_the_same(kind, form, tmp_path, monkeypatch):
    path = written(tmp_path / f"pairs.{form}", table(kind))
    held = read_pairs(path)
    few(monkeypatch)
    pairs_read = read_pairs(path)
    columns = (pairs_read.sentences1, pairs_read.sentences2, pairs_read.subsets)
    assert all(map(is_mapped, columns)) and isinstance(pairs_read.labels, array) and isinstance(held.sentences1, list)
    assert same(pairs_read, held)
    for rows in ([5, 99, 5], range(90), reversed(range(90))):
        assert same(pairs_read.take(rows := list(rows)), held.take(rows))
    assert same(concat([pairs_read, pairs_read.take([3, 1]), pairs_read]), concat([held, held.take([3, 1]), held]))


@pytest.mark.parametrize("kind", LABELS)
def test_rows_are_left_out_the_same(kind, tmp_path, monkeypatch):
    path = written(tmp_path / "pairs.tsv", table(kind, bad=True, subset=False))
    held = read_pairs(path, drop_bad_rows=True)
    with pytest.raises(Exception, match="rows cannot be used") as before:
        read_pairs(path)
    few(monkeypatch)
    pairs_read = read_pairs(path, drop_bad_rows=True)
    assert is_mapped(pairs_read.sentences1) and same(pairs_read, held) and pairs_read.dropped > 0
    with pytest.raises(type(before.value)) as after:
        read_pairs(path)
    assert str(after.value) == str(before.value)


def mapped_pairs(data):
    """The same pairs, mapped."""
    names = ["sentence1", "sentence2"]
    first, second = mapped.collect_columns(zip(data.sentences1, data.sentences2, strict=True), names)
    assert isinstance(first, MappedTexts)
    return replace(data, sentences1=first, sentences2=second, labels=array("d", data.labels))


@pytest.mark.parametrize("kind", DATA)
def test_the_doctor_and_the_dev_part_find_the_same(kind, monkeypatch, tmp_path):
    held = DATA[kind]
    test = held.take(range(0, 40, 3))
    few(monkeypatch)
    mapped_data = mapped_pairs(held)
    assert examine(mapped_data, against={"test": test}) == examine(held, against={"test": test})
    for seed in range(3):
        splits = hold_out(mapped_data, seed)
        same_parts = hold_out(held, seed)
        assert is_mapped(splits[0].sentences1) and all(map(same, splits, same_parts))
        assert describe_shared(splits[1], splits[0]) == describe_shared(same_parts[1], same_parts[0])
    assert describe_leaks(mapped_data, test, "test") == describe_leaks(held, test, "test")
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    assert write_pairs(tmp_path / "a", mapped_data).read_bytes() == write_pairs(tmp_path / "b", held).read_bytes()


@pytest.mark.parametrize(
    ("loss", "kind"),
    [(loss, kind) for loss in PAIR_LOSSES.names("bi") for kind in DATA if kind in PAIR_LOSSES.spec(loss).kinds],
)
def test_losses_are_trained_on_the_same_examples(loss, kind, monkeypatch):
    bins = {"bins": 5} if loss == "softmax" else {}
    held = PAIR_LOSSES.targets(DATA[kind], loss, **bins)
    few(monkeypatch)
    mapped_targets = PAIR_LOSSES.targets(mapped_pairs(DATA[kind]), loss, **bins)
    assert (mapped_targets.summary, mapped_targets.settings, len(mapped_targets)) == (
        held.summary,
        held.settings,
        len(held),
    )
    assert list(mapped_targets.columns) == list(held.columns)
    assert all(is_mapped(column) or isinstance(column, array) for column in mapped_targets.columns.values())
    mapped_dataset = as_dataset(mapped_targets.columns)
    held_dataset = as_dataset(held.columns)
    assert mapped_dataset.column_names == held_dataset.column_names
    assert mapped_dataset.to_dict() == held_dataset.to_dict()
    if "label" in held.columns:
        assert share_without_comparison(mapped_targets.columns["label"], 4) == share_without_comparison(
            held.columns["label"], 4
        )


def test_groups_are_the_same(monkeypatch):
    held = PAIR_LOSSES.targets(DATA["nli"], "cosent", groups="first")
    few(monkeypatch)
    mapped_targets = PAIR_LOSSES.targets(mapped_pairs(DATA["nli"]), "cosent", groups="first")
    assert mapped_targets.groups.tolist() == held.groups.tolist()
    mapped_dataset = as_dataset(mapped_targets.trainer_columns())
    assert mapped_dataset.to_dict() == as_dataset(held.trainer_columns()).to_dict()
    assert len(mapped_dataset["label"][0]) == 2


def long_pairs(path, rows, words=40):
    source = random.Random(0)
    with path.open("w", encoding="utf-8") as stream:
        stream.write("sentence1\tsentence2\tscore\n")
        for number in range(rows):
            body = " ".join(source.choices(["cat", "dog", "house", "sleeps"], k=words))
            stream.write(f"{body} {number}\t{body} too {number}\t{number % 6}\n")
    return path


def test_reading_and_checking_hold_no_texts(tmp_path, monkeypatch):
    path = long_pairs(tmp_path / "pairs.tsv", 4000)
    few(monkeypatch, 1000)
    read_pairs(path)  # warm-up, so that imports are not counted
    monkeypatch.setattr(mapped, "BLOCK", 200)
    monkeypatch.setattr("samesense.data.pairs.read.BLOCK", 200)
    tracemalloc.start()
    pairs_read = read_pairs(path)
    train, dev = pairs_read.split(0.1, 0, apart="sentences")
    examine(train, against={"dev": dev})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(train) + len(dev) == 4000
    assert peak < 0.7 * path.stat().st_size, (peak, path.stat().st_size)

"""Tables of thousands of columns: they cost what the columns that are needed cost, and messages name a few of them."""

import csv
import json
import logging

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.benchmarks.sentences import read_sentences
from samesense.data.doctor import report_on
from samesense.data.sentences import all_texts
from samesense.data.texts import read_texts
from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError
from samesense.inference.columns import kept_columns
from samesense.parquet.table import ParquetTable

WIDTH = 1000
LONGEST_MESSAGE = 2500
"""Limit in characters of an error or a warning, for any columns of a table."""

TEXTS = [f"a man plays a guitar for the time {row}" for row in range(30)]


def remarks(width=WIDTH):
    return {f"is remark {number} right?": [f"remark {row} of {number}" for row in range(30)] for number in range(width)}


def wide_tables(folder, columns):
    """Return the same table in every format."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    pq.write_table(pa.table(columns), folder / "wide.parquet")
    (folder / "wide.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with (folder / "wide.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(columns))
        writer.writeheader()
        writer.writerows(rows)
    return sorted(folder.glob("wide.*"))


@pytest.fixture
def columns_read(monkeypatch):
    """Return the Parquet columns that had a block decoded."""
    read = set()
    blocks = ParquetTable.blocks
    monkeypatch.setattr(ParquetTable, "blocks", lambda self, group, name: read.add(name) or blocks(self, group, name))
    return read


NAMED = {
    "pairs": ({"sentence1": TEXTS, "sentence2": TEXTS[::-1], "score": [row / 30 for row in range(30)]}, None),
    "chosen pairs": ({"a": TEXTS, "b": TEXTS[::-1], "c": [row / 30 for row in range(30)]}, "a,b,c"),
    "chosen triplets": ({"a": TEXTS, "b": TEXTS[::-1], "c": TEXTS[1:] + TEXTS[:1]}, "a,b,c"),
    "triplets": ({"text": TEXTS, "text_pos": TEXTS[::-1], "text_neg": TEXTS[1:] + TEXTS[:1]}, None),
    "anchors": ({"query": TEXTS, "pos": TEXTS[::-1], "neg_1": TEXTS[1:] + TEXTS[:1], "neg_2": TEXTS[:]}, None),
    "classes": ({"a": TEXTS, "b": [f"of class {row % 3}" for row in range(30)]}, "a,b"),
}


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("read", [samesense.read, report_on], ids=["read", "doctor"])
def test_only_the_columns_that_are_needed_are_read_beside_thousands_of_texts(tmp_path, columns_read, kind, read):
    columns, chosen = NAMED[kind]
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({**columns, **remarks()}), path)
    read(path, {}, columns=chosen) if read is report_on else read(path, columns=chosen)
    assert columns_read == set(columns)


@pytest.mark.parametrize("read", [samesense.read, report_on, read_texts], ids=["read", "doctor", "texts"])
def test_columns_of_unknown_names_are_looked_into_up_to_a_number(tmp_path, columns_read, read):
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table(remarks()), path)
    with pytest.raises(DataError, match="columns"):
        read(path, {}) if read is report_on else read(path)
    assert len(columns_read) <= 200


def test_the_only_columns_of_texts_among_thousands_of_numbers_are_told_by_their_cells(tmp_path):
    numbers = {f"x{number}": [row * number for row in range(30)] for number in range(WIDTH)}
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"alpha": TEXTS, "beta": TEXTS[::-1], **numbers, "score": [1.5, 2, 3] * 10}), path)
    assert len(samesense.read(path)) == 30
    pq.write_table(pa.table({"alpha": TEXTS, **numbers}), path)
    assert read_texts(path) == TEXTS


READS = {
    "read": samesense.read,
    "doctor": lambda path: report_on(path, {}),
    "unknown columns": lambda path: samesense.read(path, columns="p,q,r"),
    "too few columns": lambda path: read_pairs(path, columns="p"),
    "texts": read_texts,
    "every text": lambda path: list(all_texts(path)),
    "an unknown text": lambda path: read_texts(path, "p"),
    "tuples": lambda path: read_tuples([path]),
    "four columns": lambda path: read_tuples([path], columns="p,q,r,s"),
    "classes": read_sentences,
}


@pytest.mark.parametrize("name", READS)
def test_messages_name_a_few_of_thousands_of_columns(tmp_path, caplog, name):
    labelled = {"sentence1": TEXTS, "sentence2": TEXTS[::-1], "score": [row / 30 for row in range(30)]}
    for columns in (remarks(), {"text": TEXTS, **remarks()}, {**labelled, **remarks()}):
        for path in wide_tables(tmp_path, columns):
            caplog.clear()
            with caplog.at_level(logging.INFO, "samesense"):
                message = ""
                try:
                    READS[name](path)
                except (DataError, ConfigError) as error:
                    message = str(error)
            for text in [message, *(record.getMessage() for record in caplog.records)]:
                assert len(text) < LONGEST_MESSAGE, (path.name, text[:300])


def test_the_number_of_columns_that_are_not_named_is_said():
    names = [f"column {number}" for number in range(5000)]
    with pytest.raises(DataError, match=r"column 0, .*column 29 and 4,970 more"):
        kept_columns(names, "column 0", "none", "a.csv")


def test_a_name_of_thousands_of_signs_is_cut_short(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"x" * 100_000: 1, "y": 2}) + "\n")
    with pytest.raises(DataError) as raised:
        samesense.read(path)
    assert len(str(raised.value)) < LONGEST_MESSAGE


MANY = [f"column {number}" for number in range(5000)]
LONG = "a text that is no label " * 5000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("repeated.csv", f"{','.join([*MANY, *MANY])}\n"),
        ("ragged.csv", f"{','.join(MANY)}\na,b\n"),
        ("table.txt", f"text1,text2,score,{','.join(MANY)}\na,b,1\n"),
        ("labels.csv", "text1,text2,score\n" + f"a,b,{LONG}\n" * 20 + "a,b,1\n" * 20),
        ("classes.csv", "premise,hypothesis,label\n" + f"a,b,{LONG}\n" * 20 + "a,b,neutral\n" * 20),
    ],
)
def test_errors_of_reading_show_the_beginnings_of_names_and_cells(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    for read in (samesense.read, lambda source: read_tuples([source])):
        with pytest.raises(DataError) as raised:
            read(path)
        assert len(str(raised.value)) < LONGEST_MESSAGE, str(raised.value)[:300]

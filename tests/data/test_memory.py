"""Data that are in memory already are read by the same rules as files."""

import csv
import io
from collections import namedtuple
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy
import pandas
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, Features, Value
from pydantic import create_model

import samesense
from samesense.data import read_pairs
from samesense.data.kinds import detect_kind
from samesense.data.rows.load import load_rows
from samesense.data.rows.sources import as_sources
from samesense.data.sentences import read_unlabelled
from samesense.data.texts import read_texts
from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError
from samesense.parquet.arrays import values_of

ROWS = [
    ("A cat sleeps.", "The cat is asleep.", 4.5),
    ("A cat sleeps.", "It rains.", 0.5),
    ("Snow falls.", "Noon.", 1.0),
]
NAMED = [dict(zip(("sentence1", "sentence2", "score"), row, strict=True)) for row in ROWS]


class Interchanged:
    """A table of another library that offers Arrow's protocol only."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@dataclass
class Pair:
    """A pair as a program holds it."""

    sentence1: str
    sentence2: str
    label: float


def forms():
    table = pa.Table.from_pylist(NAMED)
    yield "rows", ROWS
    yield "dicts", NAMED
    yield "arrow", table
    yield "interchanged", Interchanged(table)
    yield "pandas", table.to_pandas()
    yield "dataset", Dataset.from_list(NAMED)


@pytest.mark.parametrize(("name", "data"), [pytest.param(*form, id=form[0]) for form in forms()])
def test_pairs_are_those_of_a_file(name, data, tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("sentence1\tsentence2\tscore\n" + "".join("\t".join(map(str, row)) + "\n" for row in ROWS))
    expected = read_pairs(file)
    in_memory = read_pairs(data)
    assert (in_memory.sha256, in_memory.labels, in_memory.scale) == (expected.sha256, expected.labels, expected.scale)
    assert in_memory.name.endswith("in memory")


@pytest.mark.parametrize(
    "labels",
    [
        pandas.period_range("2020", periods=3, freq="M"),
        pandas.period_range("2020", periods=3, freq="Y"),
        pandas.date_range("2020", periods=3),
        pandas.timedelta_range("1s", periods=3),
        pandas.interval_range(0, 3),
        numpy.array(["2020", "2021", "2022"], "datetime64[ns]"),
        numpy.array(["2020", "2021", "2022"], "datetime64[Y]"),
        numpy.array([1, 2, 3], "timedelta64[D]"),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_times_are_no_labels(labels):
    columns = {"sentence1": ["a b", "c d", "e f"], "sentence2": ["g h", "i j", "k l"], "score": labels}
    for data in (pandas.DataFrame(columns), columns, [tuple(row) for row in zip(*columns.values(), strict=True)]):
        with pytest.raises(DataError, match=r"score|labels"):
            read_pairs(data)


def test_an_open_file_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sentence1,sentence2,score\na,b,1\nc,d,0\n")
    for file in (path.open(), path.open("rb"), io.StringIO("a\nb\n")):
        with file, pytest.raises(DataError, match=r"an open file does not say what its lines are. Give its path"):
            samesense.read(file)
    with path.open() as file:
        assert read_pairs(csv.DictReader(file), label_range=(0, 5)).labels == [1.0, 0.0]


def test_periods_are_texts_and_missing_ones_stay_so():
    periods = pandas.Series(pandas.PeriodIndex(["2020-03", None], freq="M"))
    frame = pandas.DataFrame({"text": ["a", "b"], "month": periods})
    assert [row["month"] for _, row in load_rows(frame)] == ["2020-03", None]
    assert str(frame["month"].dtype).startswith("period"), "the frame of the caller is as it was"


def test_the_index_of_a_frame_is_no_column(tmp_path):
    frame = pa.Table.from_pylist(NAMED).to_pandas()
    expected = read_pairs(NAMED)
    mixed = frame.set_index(frame.index[::-1] + 5)
    mixed.to_parquet(tmp_path / "mixed.parquet")
    for data in (mixed, tmp_path / "mixed.parquet", Dataset.from_pandas(mixed), mixed.set_axis([0, 1, 2], axis=1)):
        in_memory = read_pairs(data)
        assert (in_memory.labels, in_memory.pairs()) == (expected.labels, expected.pairs())
    texts = mixed[["sentence1", "sentence2"]].rename(columns={"sentence1": "anchor", "sentence2": "positive"})
    assert set(samesense.read(texts).anchors) == set(expected.sentences1)  # with positives, and no label


def test_polars():
    polars = pytest.importorskip("polars")
    assert len(read_pairs(polars.DataFrame(NAMED))) == 3


def test_a_lazy_frame_is_refused_before_its_query_is_planned():
    class LazyFrame:
        @property
        def columns(self):
            raise AssertionError

    with pytest.raises(DataError, match=r"a lazy frame has no rows yet\. Collect it first"):
        samesense.read(LazyFrame())


def test_the_batches_of_an_arrow_reader_are_rows():
    table = pa.Table.from_pylist(NAMED)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
    assert samesense.read(reader).pairs() == samesense.read(table).pairs()


def test_class_labels_of_a_dataset_are_read_by_name():
    features = Features(
        premise=Value("string"), hypothesis=Value("string"), label=ClassLabel(names=["entailment", "contradiction"])
    )
    rows = {"premise": ["a", "b", "c"], "hypothesis": ["d", "e", "f"], "label": [0, 1, -1]}
    in_memory = read_pairs(Dataset.from_dict(rows, features=features))
    assert (in_memory.kind, in_memory.labels, in_memory.dropped_unlabelled) == ("nli", [2.0, 0.0], 1)


def test_plain_rows_are_named_by_their_form():
    nli = [("Snow falls.", "It is cold.", "entailment"), ("Snow falls.", "It is hot.", "contradiction")]
    assert read_pairs(nli).kind == "nli"
    triplets = [("one", "first", "third"), ("two", "second", "fourth")]
    assert read_pairs(triplets).kind == "triplet"
    assert read_tuples(triplets).anchors == ["one", "two"]
    assert read_unlabelled(["A cat sleeps.", "It rains.", "It rains."]).texts == ["A cat sleeps.", "It rains."]


def test_missing_texts_are_refused_by_row():
    rows = [*NAMED, {"sentence1": None, "sentence2": "x", "score": 1.0}]
    with pytest.raises(DataError, match=r"in memory: 1 of 4 rows cannot be used.\s+row 4"):
        read_pairs(pa.Table.from_pylist(rows))
    assert read_pairs(rows, drop_bad_rows=True).dropped == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([("a", "b", 1.0), ("c", "d", 1.0, "e")], "Row 2 in memory: a row is a dict, a text, or a tuple"),
        (numpy.array("one text"), r"Data must be a path.*received ndarray"),
        ({"text": "one text"}, r"the columns of a dictionary are lists; 'text' is one cell, 'one text'"),
        ({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": 1.0}, r"lists; 'score' is one cell, '1.0'"),
        (pandas.DataFrame([["a", "b", "c", 1]], columns=["x", "y", "y", "score"]), "names must differ; 'y' stands"),
        (pandas.DataFrame({"sentence1": ["a", 5], "sentence2": ["b", "c"], "score": [0, 1]}), "received int '5'"),
        ({"train": [("a", "b", 1)], "test": []}, r"several splits or columns.*train"),
        (3, r"Data must be a path.*received int"),
    ],
)
def test_what_is_no_data_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        read_pairs(data)


@pytest.mark.parametrize("kind", [numpy.array, pandas.Series])
def test_a_list_of_arrays_that_may_be_rows_is_refused(kind):
    with pytest.raises(DataError, match=r"may be rows or columns of texts"):
        samesense.read([kind(["a", "b", "1"]), kind(["c", "d", "0"])])


def test_named_tuples_are_read_by_their_names():
    triplet = namedtuple("Triplet", ("anchor", "negative", "positive"))
    read = read_tuples([triplet("a cat", "noon", "the cat"), triplet("snow", "a dog", "the snow")])
    assert (read.positives[0], read.negatives[0]) == (["the cat"], ["noon"])
    assert samesense.read(list(pandas.DataFrame(NAMED).itertuples())).labels == [4.5, 0.5, 1.0]


def test_a_column_without_a_name_is_texts():
    for rows in (
        [("a cat",), ("a dog",)],
        pandas.DataFrame([["a cat"], ["a dog"]]),
        numpy.array([["a cat"], ["a dog"]]),
    ):
        assert list(samesense.read(rows).texts) == ["a cat", "a dog"]


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA])
def test_missing_texts_of_a_column_are_bad_rows(missing):
    rows = ["a cat", missing, "a dog"]
    for data in (rows, pandas.Series(rows), tuple(rows)):
        with pytest.raises(DataError, match=r"row 2, column 'sentence': there is no text"):
            read_texts(data)
        assert list(samesense.read(data).texts) == ["a cat", "a dog"]


def test_categories_of_polars_are_read():
    categories = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.uint8()), pa.array(["yes", "no"], pa.string_view())
    )
    assert values_of(categories) == ["yes", "no", None]


def test_a_list_of_strings_is_texts_unless_one_looks_like_a_name(tmp_path):
    assert as_sources(["A cat sleeps.", "Noon."]) == [["A cat sleeps.", "Noon."]]
    assert as_sources(["train.tsv", "owner/name:dev"]) == ["train.tsv", "owner/name:dev"]
    assert as_sources(["mispelt.tsv", "Noon."]) == ["mispelt.tsv", "Noon."]
    assert as_sources([tmp_path]) == [tmp_path]
    assert as_sources(ROWS) == [ROWS]
    assert as_sources("train.tsv") == ["train.tsv"]


def test_yes_and_no_behind_two_texts_are_labels():
    assert samesense.read([("a", "b", "yes"), ("c", "d", "No")]).labels == [1.0, 0.0]


def test_texts_too_long_for_a_name_are_texts():
    texts = ["蚂蚁花呗怎么还款" * 40, "~nobody", "short"]
    assert samesense.read(texts).texts == texts


def test_a_single_column_is_read_as_sentences(tmp_path):
    (tmp_path / "t.csv").write_text("title,body\na,some text\nb,more text\n")
    assert samesense.read(tmp_path / "t.csv", columns="body").texts == ["some text", "more text"]
    assert samesense.read([{"x": "a"}, {"x": "b"}], columns="x").texts == ["a", "b"]
    with pytest.raises(ConfigError, match="is read as unlabelled sentences"):
        samesense.read(tmp_path / "t.csv", columns="body", label_range=(0, 5))


def _columns_of_every_library():
    import numpy
    import pandas

    texts = ["a cat", "b"]
    second_texts = ["c", "d dog"]
    labels = [0.25, 1.0]
    makers = {
        "lists": list,
        "tuples": tuple,
        "arrays": numpy.array,
        "object arrays": lambda cells: numpy.array(cells, dtype=object),
        "series": pandas.Series,
        "indexed series": lambda cells: pandas.Series(cells, index=[7, 3]),
        "arrow": pa.array,
        "datasets": lambda cells: Dataset.from_dict({"x": cells})["x"],
        "chunked arrow": lambda cells: pa.chunked_array([pa.array(cells[:1]), pa.array(cells[1:])]),
    }
    if find_spec("polars"):
        import polars

        makers["polars"] = polars.Series
    for name, make in makers.items():
        yield name, {"sentence1": make(texts), "sentence2": make(second_texts), "score": make(labels)}
    yield "mixed", {"sentence1": texts, "sentence2": numpy.array(second_texts), "score": pandas.Series(labels)}


def test_a_dict_of_columns_of_any_library_is_read():
    for name, columns in _columns_of_every_library():
        data = samesense.read(columns)
        assert (data.sentences1, data.sentences2, data.labels) == (["a cat", "b"], ["c", "d dog"], [0.25, 1.0]), name
        assert samesense.doctor(columns).rows == 2
        texts = {"text": columns["sentence1"]}
        assert list(samesense.read(texts).texts) == ["a cat", "b"], name


def test_columns_of_different_lengths_are_refused_with_their_lengths():
    with pytest.raises(DataError, match=r"of different lengths.*'sentence1' 2, 'sentence2' 1\."):
        samesense.read({"sentence1": ["a", "b"], "sentence2": ("c",)})


def test_a_dict_of_splits_is_still_refused():
    import pandas

    frame = pandas.DataFrame({"text": ["a", "b"]})
    with pytest.raises(DataError, match="Give one split"):
        samesense.read({"train": frame, "test": frame})


def test_a_repeated_column_name_of_a_table_is_refused():
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pytest.raises(DataError, match="column names must differ; 'text' stands more than once"):
        list(load_rows(table))


def test_fields_beyond_the_header_of_a_reader_of_csv_are_refused_with_their_row():
    lines = ["sentence1,sentence2,score", "a,b,1", "c,d,0", "e,f, g,1"]
    with pytest.raises(DataError, match=r"Row 3 in memory: .* received None for \['1'\]. csv.DictReader gives"):
        samesense.read(csv.DictReader(lines))
    with pytest.raises(DataError, match=r"Row 1 in memory: the names of columns are texts; received 0 for 'a'. Name"):
        samesense.read([{0: "a", 1: "b", 2: 1.0}])


@pytest.mark.parametrize("rows_of", ["iterrows", "groupby"])
def test_parts_of_a_frame_as_cells_are_refused(rows_of):
    frame = pandas.DataFrame({"sentence1": ["a", "c"], "sentence2": ["b", "d"], "score": [0, 1]})
    with pytest.raises(DataError, match=r"one is a part of a data frame.*Give the frame itself"):
        samesense.read(frame.iterrows() if rows_of == "iterrows" else frame.groupby("score"))


def test_objects_with_fields_are_rows():
    model = create_model("Pair", sentence1=(str, ...), sentence2=(str, ...), label=(float, ...))
    for kind in (Pair, SimpleNamespace, model):
        cells = [dict(zip(("sentence1", "sentence2", "label"), row, strict=True)) for row in ROWS]
        read = samesense.read([kind(**row) for row in cells])
        assert (read.pairs()[0], read.labels) == (ROWS[0][:2], [row[2] for row in ROWS]), kind
    data = samesense.read(ROWS)
    assert samesense.doctor([data, data])[1].rows == len(ROWS), "PairData are sources"


@pytest.mark.parametrize("labels", [["positive", "negative"], ["neutral", "positive", "negative"]])
def test_third_cells_of_few_words_may_be_labels_or_negatives(labels):
    rows = [(f"a text {number}", f"words {number}", labels[number % len(labels)]) for number in range(9)]
    with pytest.raises(DataError, match=rf"are few words, {', '.join(map(repr, labels))}: .* Name negatives in dicts"):
        samesense.read(rows)
    named = [dict(zip(("anchor", "positive", "negative"), row, strict=True)) for row in rows]
    assert samesense.read(named).kind == "triplet"
    triplets = [(first, second, f"{third} words") for first, second, third in rows]
    assert samesense.read(triplets).kind == "triplet"
    assert samesense.read([("king", "queen", "car"), ("man", "woman", "bus")] * 5).kind == "triplet"


@pytest.mark.parametrize(
    "cells",
    [
        [1, "x"],
        [object(), object()],
        [numpy.zeros((2, 2)), None],
        [[1, "x"], []],
        [Path("x"), Path("y")],
        pandas.arrays.SparseArray([0, 1]),
        [2**70, 1],
        [1j, 2j],
    ],
)
def test_a_column_that_no_one_asks_for_may_hold_anything(cells):
    frame = pandas.DataFrame({"sentence1": ["a b", "c d"], "sentence2": ["e", "f"], "score": [0.5, None]})
    frame["other"] = pandas.Series(cells, dtype=None if hasattr(cells, "sp_values") else object)
    with pytest.raises(DataError, match="row 2, column 'score': there is no label"):
        read_pairs(frame)
    frame["score"] = [0.5, 1]
    assert read_pairs(frame).labels == [0.5, 1.0]
    assert read_pairs(frame.set_index("sentence1")).sentences1 == ["a b", "c d"]
    assert read_texts(frame, "sentence2") == ["e", "f"]


def test_texts_and_integers_in_memory_are_sentences_with_classes():
    rows = [(f"text number {number}", number % 2) for number in range(12)]
    cells = numpy.array([number for _, number in rows])
    arrays = [list(zip(dict(rows), array, strict=True)) for array in (cells, cells.astype(bool))]
    for source in (rows, pandas.DataFrame(rows), [(text, bool(number)) for text, number in rows], *arrays):
        assert detect_kind(source).kind == "classes"
        assert len(set(samesense.read(source).labels)) == 2
    assert samesense.read(rows).labels == ["0", "1"] * 6


def test_bytes_are_one_text_that_is_to_be_decoded():
    with pytest.raises(DataError, match=r"received bytes .*decode it: text.decode\(\)"):
        read_texts([b"a text", b"another"])

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.errors import DataError
from samesense.inference.collection.entries import Entry, read_entries


def read(path, **options):
    return list(read_entries(str(path), **options))


def test_every_form_gives_the_same(tmp_path):
    (tmp_path / "a.txt").write_text("one text\nanother\n\n \n")  # lines that editors leave
    assert read(tmp_path / "a.txt") == [Entry("one text"), Entry("another")]
    expected = [Entry("one text", 5, {"topic": "x"}), Entry("another", 6, {"topic": "y"})]
    (tmp_path / "a.tsv").write_text("id\ttext\ttopic\n5\tone text\tx\n6\tanother\ty\n")
    (tmp_path / "a.jsonl").write_text(
        '{"id": 5, "text": "one text", "topic": "x"}\n{"id": "6", "text": "another", "topic": "y", "gone": null}\n'
    )
    table = pa.table({"id": [5, 6], "text": ["one text", "another"], "topic": ["x", "y"]})
    pq.write_table(table, tmp_path / "a.parquet")
    for name in ("a.tsv", "a.jsonl", "a.parquet"):
        assert read(tmp_path / name) == expected
    (tmp_path / "b.tsv").write_text("title\ttext\nheading\tbody\n")
    assert read(tmp_path / "b.tsv", columns="title") == [Entry("heading", None, {"text": "body"})]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "one\n\ntwo\n", r"a\.txt, row 2: a text that is not empty is needed"),
        ("a.tsv", "title\tbody\na x\ta y\n", r"several columns hold texts \(title, body\)\. .*`columns` title"),
        ("a.jsonl", '{"text": 3}\n', r"a\.jsonl, row 1, column 'text': a text is needed, received 3"),
        ("a.jsonl", '{"text": "x", "id": "doc-17"}\n', r"row 1: an id is a whole number .* received 'doc-17'"),
        (
            "a.csv",
            "id,text\n007,x\n",
            r"row 2: an id is a whole number .* without leading zeros or decimals; received '007'",
        ),
        ("a.csv", "id,text\n1.0,x\n", r"row 2: an id is a whole number .* without leading zeros or decimals"),
        ("a.csv", f"id,text\n{'9' * 5000},x\n", "row 2: an id is a whole number"),
        ("a.jsonl", '{"text": "x", "n": NaN}\n', "row 1, column 'n': text and metadata must be JSON"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        read(tmp_path / name)


def test_a_missing_file(tmp_path):
    for name in ("none.txt", "none.tsv"):
        with pytest.raises(DataError, match=r"there is no such file|neither"):
            read(tmp_path / name)


def test_an_id_that_only_later_rows_have_is_an_id(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"Id": 7, "text": "two"}\n{"text": "three", "id": null}\n')
    assert read(tmp_path / "a.jsonl") == [Entry("one"), Entry("two", 7), Entry("three")]


def test_texts_as_bytes_of_python_are_warned_of(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text("text\n" + "".join(f"b'text {number}'\n" for number in range(5)))
    for columns in (None, "text"):
        assert len(list(read_entries(str(path), columns=columns))) == 5
    assert caplog.text.count("are written as bytes of Python") == 1

import gzip
import json

import pytest

from samesense.data.documents import read_documents
from samesense.errors import ConfigError, DataError
from tests.messages import listen

TEXT = "Rain fell. It was\ncold.\n\nThe sun came back.\n\n雨停了。天晴了。\n"
SECTIONS = [["Rain fell.", "It was cold."], ["The sun came back."], ["雨停了。", "天晴了。"]]


def read(source, **settings):
    return list(read_documents(source, **settings))


def test_a_text_file_is_one_document_or_one_a_paragraph(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeff" + TEXT, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("a.txt", "b.txt.gz"):
        assert read(tmp_path / name) == [SECTIONS]
        assert read(str(tmp_path / name), paragraphs="documents") == [[section] for section in SECTIONS]


def test_a_folder_gives_one_document_a_file_by_name(tmp_path):
    (tmp_path / "deep").mkdir()
    for name, text in {"b.txt": "B.", "a.txt": "It rained. We left.", "deep/c.txt": "", "notes.rst": "No."}.items():
        (tmp_path / name).write_text(text)
    heard = listen()
    assert read(tmp_path) == [[["It rained.", "We left."]], [["B."]]]
    assert any("c.txt" in line for line in heard)  # which has no text


def test_formatted_documents_have_their_headings_as_sections(tmp_path):
    (tmp_path / "a.md").write_text("Before.\n\n# One\n\nFirst. Second.\n\n| t | u |\n|---|---|\n\n## Two\n\nThird.\n")
    (tmp_path / "b.html").write_text("<p>A paragraph.</p><p>Another. More.</p><pre>code. here.</pre>")
    sections = [["Before."], ["First.", "Second."], ["Third."]]
    assert read(tmp_path) == [sections, [["A paragraph."], ["Another.", "More."]]]
    assert read(tmp_path / "a.md") == [sections]


def test_what_a_folder_holds_beside_its_documents_is_counted(tmp_path):
    (tmp_path / "a.txt").write_text("It rained. We left.")
    heard = listen()
    read(tmp_path)
    assert heard == []
    for name in ("more.jsonl", "most.jsonl", "notes.rst", ".hidden.txt"):
        (tmp_path / name).write_text('{"text": "Not read."}\n')
    (tmp_path / "loop").symlink_to(tmp_path)
    read(tmp_path)
    assert heard == [f"{tmp_path}: 1 document; not read: 2 .jsonl, 1 .rst, 1 hidden, 1 links to folders"]


def test_a_document_of_a_folder_that_cannot_be_read_is_left_out_and_named(tmp_path):
    (tmp_path / "a.md").write_text("Text.")
    (tmp_path / "b.pdf").write_bytes(b"nonsense")
    heard = listen()
    assert read(tmp_path) == [[["Text."]]]
    assert any("left out" in line and "b.pdf" in line for line in heard)
    with pytest.raises(DataError, match=r"b\.pdf"):
        read(tmp_path / "b.pdf")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"text": TEXT, "id": 1}, {"text": ""}], [SECTIONS, []]),
        ([{"article": "One. Two."}], [[["One.", "Two."]]]),
        ([{"sentences": ["One. Two.", "3"], "text": "other"}], [[["One. Two.", "3"]]]),
        (
            [{"sections": [{"title": "t", "sentences": ["A.", "B."]}, {"sentences": []}]}, {"sections": [["C."]]}],
            [[["A.", "B."]], [["C."]]],
        ),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "parquet", "datasets"])
def test_rows_are_documents(tmp_path, rows, expected, form):
    path = tmp_path / "documents"
    if form == "jsonl":
        path = path.with_suffix(".jsonl.gz")
        path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    elif rows[0].get("sections") and form != "jsonl":
        rows = rows[:1]
        expected = expected[:1]  # columns of one type
    if form == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"))
        path = path.with_suffix(".parquet")
    if form == "datasets":
        pytest.importorskip("datasets").Dataset.from_list(rows).save_to_disk(path)
    assert read(path) == expected


def test_documents_come_one_by_one(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"text": "One."}\nbroken')
    documents = read_documents(tmp_path / "d.jsonl")
    assert next(documents) == [["One."]]
    with pytest.raises(DataError, match="row 2"):
        next(documents)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"text": 3}', "row 2, column 'text': a text is needed, none blank; received '3'"),
        ('{"other": "x"}', "row 2, column 'text': a text is needed"),
    ],
)
def test_a_row_that_is_no_document_is_named(tmp_path, second, message):
    (tmp_path / "d.jsonl").write_text('{"text": "One."}\n' + second)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "d.jsonl")


@pytest.mark.parametrize("value", ["x", [3], [["fine", " "]], [{"title": "t"}], ["a sentence"]])
def test_sections_that_are_none_are_refused(tmp_path, value):
    (tmp_path / "d.jsonl").write_text(json.dumps({"sections": value}))
    with pytest.raises(DataError, match="row 1, column 'sections': a list of lists of sentences is needed"):
        read(tmp_path / "d.jsonl")


def test_errors(tmp_path):
    (tmp_path / "d.jsonl").write_text("")
    with pytest.raises(DataError, match="holds no document"):
        read(tmp_path / "d.jsonl")
    (tmp_path / "e.jsonl").write_text('{"body": "x"}')
    with pytest.raises(DataError, match="received the columns body"):
        read(tmp_path / "e.jsonl")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "absent.txt")
    with pytest.raises(ConfigError, match="sections, documents; received 'lines'"):
        read(tmp_path / "d.jsonl", paragraphs="lines")
    (tmp_path / "f.txt").write_text("One.")
    with pytest.raises(ConfigError, match="language must be one of"):
        read(tmp_path / "f.txt", language="fr")

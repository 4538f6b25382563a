"""Documents in JSON lines: read in order, refused by line."""

import gzip
import json

import pytest

from samesense.data.documents import holds_documents, read_documents, text_files
from samesense.errors import DataError

DOCUMENTS = [
    {"id": "one", "sections": [{"title": "", "sentences": ["Rain fell.", "It was cold."]}, {"sentences": ["Later."]}]},
    {"sections": [["A plain list.", "也可以。"]]},
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "documents.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(d) for d in DOCUMENTS).encode()))
    return path


def test_sections_in_order(file):
    assert read_documents(file) == [[["Rain fell.", "It was cold."], ["Later."]], [["A plain list.", "也可以。"]]]


def test_texts_of_a_folder_whatever_the_case_of_their_ending(tmp_path):
    for name in ("A.TXT", "b.txt", "c.Txt.gz", "d.txt.md"):
        (tmp_path / name).write_text("")
    assert [file.name for file in text_files(tmp_path)] == ["A.TXT", "b.txt", "c.Txt.gz"]


def test_only_json_lines_with_sections_hold_documents(file, tmp_path):
    assert holds_documents(file)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence1": "a", "sentence2": "b", "score": 1}\n')
    assert not holds_documents(pairs)
    assert not holds_documents(tmp_path / "pairs.tsv")


@pytest.mark.parametrize("second", [{"text": "no sections"}, {"sections": "x"}, {"sections": [{"sentences": [1]}]}])
def test_a_line_that_is_no_document_is_named(tmp_path, second):
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(json.dumps(d) for d in [DOCUMENTS[0], second]))
    with pytest.raises(DataError, match="row 2: a document is an object whose sections"):
        read_documents(path)


def test_an_empty_file_holds_no_document(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("")
    with pytest.raises(DataError, match="holds no document"):
        read_documents(path)

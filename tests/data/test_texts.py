import gzip

import pytest

from samesense.data.sentences import unlabelled_texts
from samesense.data.texts import read_text_rows, read_texts, read_usable
from samesense.errors import DataError


def test_lines_of_a_text_file_without_the_empty_ones(tmp_path):
    content = "one text\n\n  \ntwo\tof it\r\none text\nlast\u2028line"
    (tmp_path / "a.txt").write_text(content, newline="")
    (tmp_path / "corpus.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("a.txt", "corpus.gz"):
        assert unlabelled_texts(tmp_path / name) == ["one text", "two\tof it", "one text", "last\u2028line"]


@pytest.mark.parametrize(
    ("header", "rows", "texts"),
    [
        ("subset\tscore\tsentence1\tsentence2", ["x\t1\ta\tb", "x\t2\tc\ta"], ["a", "b", "c", "a"]),
        ("anchor\tpositive\tnegative", ["a\tb\tc", "d\te\t"], ["a", "b", "c", "d", "e"]),
        ("label\tSentence", ["1\ta", "0\tb"], ["a", "b"]),
    ],
)
def test_text_columns_of_tables_need_no_labels(tmp_path, header, rows, texts):
    (tmp_path / "t.tsv").write_text("\n".join([header, *rows]) + "\n")
    assert unlabelled_texts(str(tmp_path / "t.tsv")) == texts


def test_rows_of_json_have_their_own_columns(tmp_path):
    rows = ['{"anchor": "a", "positive": "b"}', '{"anchor": "c", "positive": "d", "negative": "e"}', '{"text": "f"}']
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    assert unlabelled_texts(tmp_path / "t.jsonl") == ["a", "b", "c", "d", "e", "f"]
    (tmp_path / "t.jsonl").write_text("\n".join([*rows, '{"what": "g"}']))
    with pytest.raises(DataError, match="row 4: no column of texts could be found"):
        unlabelled_texts(tmp_path / "t.jsonl")


@pytest.mark.parametrize("rows", [["a", "b", "a"], ["a", " ", "b", ""], ["", "a"]])
def test_texts_alone_are_those_of_the_rows(tmp_path, rows):
    path = tmp_path / "t.txt"
    path.write_text("\n".join([*rows, "last"]) + "\n")
    for source in (str(path), [*rows, "last"], (*rows, "last")):
        text_rows, read = (reader(source, drop_bad_rows=True) for reader in (read_text_rows, read_usable))
        assert (read.texts, list(read.indices)) == (text_rows.texts, list(text_rows.indices))
        assert (read.total, read.names) == (text_rows.total, text_rows.names) == (len(rows) + 1, read.names)
        if "" in rows:
            with pytest.raises(DataError, match="rows cannot be used"):
                read_usable(source)


def test_errors(tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "t.jsonl").write_text('{"text": "a"}\n{"text": 3}\n')
    for name, message in {
        "empty.txt": "holds no text",
        "absent.txt": "there is no such file",
        "absent.tsv": "there is no such file",
        "t.tsv": "no column of texts could be found. Its columns: a, b. Name the one to read: `columns` NAME",
        "t.jsonl": "row 2, column 'text': a text is needed, received int",
    }.items():
        with pytest.raises(DataError, match=message):
            unlabelled_texts(tmp_path / name)


def test_gzip_is_told_by_the_end_of_the_name_in_any_case(tmp_path):
    import gzip

    (tmp_path / "T.TXT.GZ").write_bytes(gzip.compress(b"one\ntwo\n"))
    assert unlabelled_texts(tmp_path / "T.TXT.GZ") == ["one", "two"]


def test_columns_of_passages_are_no_columns_of_the_user(tmp_path, caplog):
    caplog.set_level("INFO", logger="samesense")
    (tmp_path / "notes.md").write_text("# Trains\n\nThe train leaves at noon.\n")
    (tmp_path / "more.txt").write_text("It is late.\n")
    assert len(read_texts(str(tmp_path))) == 2
    assert "texts of column" not in caplog.text
    assert "`columns`" not in caplog.text

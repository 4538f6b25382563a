"""Lists of texts in the cells of CSV: read as pandas and datasets write them, or refused with the row."""

import csv
import json

import pytest

import samesense
from samesense.data.conventions.list_cells import LONGEST_LITERAL, ListCellError, list_in, texts_in
from samesense.data.documents import read_documents
from samesense.data.kinds import detect_kind
from samesense.data.pairs.read import read_pairs
from samesense.errors import DataError

TEXTS = ["forgotten password", 'it\'s "quoted"', "a, b] [c", "tab\tline\nend\\", "ü 😡"]


def table(path, rows):
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)
    return path


@pytest.mark.parametrize("write", [str, json.dumps, lambda texts: str(tuple(texts))])
@pytest.mark.parametrize("name", ["a.csv"])
def test_lists_of_positives_and_negatives_are_read_as_they_were_written(tmp_path, write, name):
    rows = [["reset password", write(TEXTS), write(["delete account"])], ["buy", write(["order"]), write([])]]
    path = table(tmp_path / name, [["query", "pos", "neg"], *rows])
    data = samesense.read(path)
    assert data.positives == [TEXTS, ["order"]]
    assert data.negatives == [["delete account"], []]
    assert samesense.read(path, columns="query,pos,neg").positives == data.positives


def test_pandas_writes_what_is_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"anchor": ["a", "b"], "positives": [TEXTS, ["c", "d"]]})
    for name, mark in (("a.csv", ","),):
        frame.to_csv(tmp_path / name, index=False, sep=mark)
        assert samesense.read(tmp_path / name).positives == [TEXTS, ["c", "d"]]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("['a' 'b']", "as NumPy prints arrays"),
        ("['a'\n 'b']", "as NumPy prints arrays"),
        ("['a', 'b'", "begins like a list and is none"),
        ('["a", "b"', "begins like a list and is none"),
        ("['a', ..., 'b']", "cut short"),
        ("['a', 1]", "something else than texts"),
        ("['a', None]", "something else than texts"),
        ("['a', nan]", "begins like a list and is none"),
        ("[['a'], ['b']]", "something else than texts"),
        ("{'a', 'b'}", "is a set"),
        ("array(['a', 'b'], dtype=object)", "as Python prints it"),
        ("[np.str_('a'), np.str_('b')]", "begins like a list and is none"),
        ("{'text': 'a'}", "is an object"),
        ('{"text": "a"}', "is an object"),
        ("['a'] + ['b']", "begins like a list and is none"),
    ],
)
def test_what_begins_like_a_list_and_is_none_is_refused_with_row_and_fix(tmp_path, cell, reason):
    path = table(tmp_path / "a.csv", [["query", "pos"], ["q", "['a', 'b']"], ["r", cell]])
    with pytest.raises(DataError, match=rf"row 3, column 'pos': .*{reason}.*Fix: write the cell as a JSON list"):
        samesense.read(path)
    alone = table(tmp_path / "b.csv", [["query", "pos"], ["q", cell]])
    with pytest.raises(DataError, match="row 2, column 'pos'"):
        samesense.read(alone)


@pytest.mark.parametrize("cell", ["[laughs] no", "[MASK] is", "(see above)", "[sic]", "{x}", "a [1]", "(1, 2)"])
def test_texts_in_brackets_stay_texts(cell):
    assert texts_in(cell) == [cell]


def test_lists_beside_single_texts_in_one_column_are_refused(tmp_path):
    path = table(tmp_path / "a.csv", [["query", "pos"], ["q", "['a', 'b']"], ["s", ""], ["r", "one text"]])
    with pytest.raises(
        DataError, match=r"column 'pos': the cell of row 2 is a list of texts, and that of row 4 is one"
    ):
        samesense.read(path)
    with pytest.raises(DataError, match="is one text"):
        samesense.read(path, drop_bad_rows=True)


def test_an_anchor_that_is_a_list_is_a_bad_row(tmp_path):
    path = table(tmp_path / "a.csv", [["query", "pos"], ["['q']", "['a']"], ["r", "['b']"]])
    with pytest.raises(DataError, match="row 2, column 'query': one text is needed, received a list of texts"):
        samesense.read(path)


def test_documents_in_lists_of_a_csv(tmp_path):
    sections = [["A one.", "It's two."], ["B one."]]
    path = table(tmp_path / "a.csv", [["sections"], [str(sections)], [json.dumps(sections)]])
    assert detect_kind(path).kind == "documents"
    assert list(read_documents(path)) == [sections, sections]
    path = table(tmp_path / "b.csv", [["id", "sentences"], ["1", str(sections[0])], ["2", "['x.']"]])
    assert list(read_documents(path)) == [[sections[0]], [["x."]]]
    path = table(tmp_path / "c.csv", [["sentences"], [str(sections[0])], ["['x' 'y']"]])
    with pytest.raises(DataError, match=r"row 3, column 'sentences': .*as NumPy prints arrays"):
        list(read_documents(path))
    objects = str([{"sentences": sections[0]}])
    assert list(read_documents(table(tmp_path / "d.csv", [["sections"], [objects]]))) == [[sections[0]]]


@pytest.mark.parametrize("columns", [None, "body"])
def test_lists_where_one_text_a_row_is_read_are_refused(tmp_path, columns):
    path = table(tmp_path / "a.csv", [["id", "body"], ["1", "['a b', 'c']"], ["2", "['d']"]])
    with pytest.raises(DataError, match=r"column 'body' is read as one text a row, and its cells are lists"):
        samesense.read(path, columns=columns)
    pairs = table(tmp_path / "b.csv", [["text1", "text2", "score"], ["['a', 'b']", "c", "1"], ["['d']", "e", "0"]])
    with pytest.raises(DataError, match=r"column 'text1' is read as one text"):
        samesense.read(pairs)


def test_lists_are_parsed_within_bounds():
    with pytest.raises(ListCellError, match="more than 8 deep"):
        list_in("['a', " + "[" * 100_000)
    with pytest.raises(ListCellError, match="more than 8 deep"):
        list_in("[" * 100_000)
    with pytest.raises(ListCellError, match="characters"):
        list_in(f"['{'a' * LONGEST_LITERAL}']")
    assert list_in(f'["{"a" * LONGEST_LITERAL}"]') == ["a" * LONGEST_LITERAL]


def test_lists_of_scores_are_no_labels_that_are_proposed(tmp_path, caplog):
    row = {"query": "buy", "positive": "order", "negatives": ["sell", "give"], "scores": [9.1, 1.2, 0.3]}
    path = tmp_path / "teacher.jsonl"
    path.write_text("".join(json.dumps(row | {"query": f"buy {number}"}) + "\n" for number in range(5)))
    caplog.set_level("INFO")
    samesense.read(path)
    assert f"{path.name}: not read: scores" in caplog.text
    with pytest.raises(DataError, match=r"Its columns: .*scores\. Use three of these\. Where another"):
        samesense.read(path, columns="anchor,positive,score")
    with pytest.raises(DataError, match=r"label \[9\.1, 1\.2, 0\.3\] is a list, and a pair has one label"):
        read_pairs(path, columns="query,positive,scores")

"""TSV files whose fields are quoted as those of CSV are: read so if all rows say it, and as they stand if not."""

import csv
import logging

import pytest

from samesense.data import load_rows, read_pairs
from samesense.data.formats import quoting
from samesense.data.formats.blocks import blocks, rows_at
from samesense.errors import DataError

ROWS = [
    ["1", 'He said "no" to it', "He, too, refused.", "4"],
    ["2", "A dog sleeps.", 'It is "asleep"', "3"],
    ["3", "Two\tcolumns", "Two\nlines", "0"],
    ["4", "", "plain", "1"],
]
HEADER = ["id", "sentence1", "sentence2", "score"]


def written(path, rows=ROWS, **how):
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t", **how).writerows([HEADER, *rows])
    return path


@pytest.mark.parametrize("quoting_of", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_a_program_has_quoted_is_read_as_it_was_and_that_is_said(tmp_path, quoting_of, end, caplog):
    caplog.set_level(logging.INFO, "samesense")
    path = written(tmp_path / "a.tsv", quoting=quoting_of, lineterminator=end)
    rows = list(load_rows(path))
    assert [list(cells.values()) for _, cells in rows] == ROWS
    assert [number for number, _ in rows] == [2, 3, 4, 6]
    assert list(load_rows(path)) == rows
    said = f"{path}: fields stand in double quotes, with quotes in them doubled; it is read by these rules"
    assert [record.message for record in caplog.records] == [said]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_blocks_of_it_are_read_in_the_same_way(tmp_path, size):
    path = str(written(tmp_path / "a.tsv"))
    found = [cells for block in blocks(path, size) for _, cells in block.rows]
    assert found == [cells for _, cells in load_rows(path)]
    again = [cells for one in blocks(path, size) for _, cells in rows_at(path, one.start, one.end, one.header)]
    assert again == found


@pytest.mark.parametrize(
    "texts",
    [
        ['"He" said "no"', '"a ""b"" c"', '"d ""e"" f"'],  # quotes within a text that is not quoted
        ['an inch is 1"', '"a ""b"" c"', '"d ""e"" f"'],
        ['"a ""b"" c"', '"d ""e"" f', "g"],  # one is never closed
        ['"one ""row"" alone"', "a", "b"],
        ['"a whole text"', '"one more"', "bare"],
        ["no quote", "at all", "here"],
    ],
)
def test_quotes_of_the_texts_own_stay(tmp_path, texts, caplog):
    caplog.set_level(logging.INFO, "samesense")
    path = tmp_path / "a.tsv"
    path.write_text("text1\ttext2\tscore\n" + "".join(f"{text}\tb\t{at}\n" for at, text in enumerate(texts)))
    assert read_pairs(path).sentences1 == texts
    assert not caplog.records


def test_rows_of_unequal_fields_are_refused_as_ever(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text1\ttext2\tscore\n"a ""b"""\tc\t1\n"d ""e"""\tf\n')
    with pytest.raises(DataError, match=r"row 3: every row must have the 3 fields of the header"):
        read_pairs(path)


def test_a_file_is_looked_at_anew_once_it_has_been_changed(tmp_path):
    path = written(tmp_path / "a.tsv")
    assert quoting.is_quoted(path)
    path.write_text('text\na "b"\n')
    assert not quoting.is_quoted(path)
    assert not quoting.is_quoted(tmp_path / "absent.tsv")


def test_a_file_without_quotes_is_not_read_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(quoting, "LOOKED_AT", 2)
    path = written(tmp_path / "late.tsv", [["9", "plain", "text", "1"], *ROWS[:2]])
    assert not quoting.is_quoted(path)

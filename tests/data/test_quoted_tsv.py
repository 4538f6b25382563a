"""Quotes in TSV: CSV quoting is undone where the row or the header shows it; other quotes stay."""

import csv
import logging

import pytest

from samesense.data import load_rows, read_pairs
from samesense.data.rows.blocks import blocks, rows_at
from samesense.data.rows.text import TableOptions, table_options
from samesense.errors import DataError

ROWS = [
    ["1", 'He said "no" to it', "He, too, refused.", "4"],
    ["2", "A dog sleeps.", 'It is "asleep"', "3"],
    ["3", "Two\tcolumns", "Two\nlines", "0"],
    ["4", "", "plain", "1"],
]
HEADER = ["id", "sentence1", "sentence2", "score"]


def written(path, rows=ROWS, **options):
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t", **options).writerows([HEADER, *rows])
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
    message = (
        f"{path}: fields stand in double quotes, with quotes in them doubled, which are taken off; to keep all quotes: "
        "`quoting` none"
    )
    assert [record.message for record in caplog.records] == [message]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_blocks_of_it_are_read_in_the_same_way(tmp_path, size):
    path = str(written(tmp_path / "a.tsv"))
    read_rows = [cells for block in blocks(path, size) for _, cells in block.rows]
    assert read_rows == [cells for _, cells in load_rows(path)]
    again = [
        cells
        for read_block in blocks(path, size)
        for _, cells in rows_at(path, read_block.start, read_block.end, read_block.form)
    ]
    assert again == read_rows


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('"He" said "no"', None),  # quotes within a text that is not quoted
        ('an inch is 1"', None),
        ('"d ""e"" f', None),  # never closed
        ('"a whole text', None),
        ('""', None),
        ('"', None),
        ('"""', None),
        ('""two""', None),
        ('"one""two""three"', None),  # three phrases, each in its own quotes
        ('"one ""row"" alone"', 'one "row" alone'),
        ('"""Yes."""', '"Yes."'),
        ('"two\tcolumns"', "two\tcolumns"),
        ('"two\nlines"', "two\nlines"),
        ('"two\r\nlines, ""q"""', 'two\r\nlines, "q"'),
    ],
)
@pytest.mark.parametrize("other_texts", [[], ['"Yes sir."'], ['"a ""b"" c"'], ["plain"], ['"open', 'x"y']])
@pytest.mark.parametrize("column", [0, 1])
def test_a_row_reads_the_same_beside_any_other_rows(tmp_path, text, read, other_texts, column):
    path = tmp_path / "a.tsv"
    for first in (True, False):
        texts = [text, *other_texts] if first else [*other_texts, text]
        rows = [(text_of_row, "b") if column == 0 else ("b", text_of_row) for text_of_row in texts]
        path.write_text(
            "text1\ttext2\tscore\n" + "".join(f"{a}\t{b}\t{number}\n" for number, (a, b) in enumerate(rows))
        )
        texts_read = [cells[f"text{column + 1}"] for _, cells in load_rows(path)]
        assert texts_read[0 if first else -1] == (text if read is None else read)


def test_line_breaks_in_the_last_column(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('id\ttext\n1\t"two\nlines"\n2\t"open\n3\tc\n4\t"three\n\nlines ""q"""\n')
    assert [cells["text"] for _, cells in load_rows(path)] == ["two\nlines", '"open', "c", 'three\n\nlines "q"']


def test_texts_in_quotes_of_unknown_origin_are_read_with_them_and_warned_of_once(tmp_path, caplog):
    path = tmp_path / "a.tsv"
    row = '"Yes sir."\t"No sir."\t1\n'
    for content in (row, row + 'Plain one.\t"Said."\t3\n', "text1\ttext2\tlabel\n" + row + row):
        path.write_text(content)
        assert next(iter(load_rows(path)))[1]["text1"] == '"Yes sir."'
    (record,) = caplog.records
    assert (record.levelname, record.message) == (
        "WARNING",
        f'{path}, row 1: "Yes sir." is read with its quotes, as nothing in the row says that a program wrote them; '
        "other rows are read alike. Where a program wrote them: `quoting` csv; where they belong to the texts: "
        "`quoting` none.",
    )


@pytest.mark.parametrize(("quoting", "text"), [(None, '"Yes sir."'), ("none", '"Yes sir."'), ("csv", "Yes sir.")])
def test_the_option_settles_it(tmp_path, quoting, text, caplog):
    path = tmp_path / f"{quoting}.tsv"
    path.write_text('"Yes sir."\t"No sir."\t1\n')
    with table_options(TableOptions(quoting=quoting)):
        assert next(iter(load_rows(path)))[1]["text1"] == text
    assert bool(caplog.records) == (quoting is None)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('"text1"\t"text2"\t"score"', "Yes sir."),
        ('"text1"\ttext2\tscore', "Yes sir."),
        ('"Frage A"\t"Frage B"\t"gleich"', "Yes sir."),
        ("text1\ttext2\tscore", '"Yes sir."'),
        ('"One sir."\t"Two sir."\t1', '"Yes sir."'),  # a row of data
    ],
)
def test_names_in_quotes_say_that_texts_are_quoted(tmp_path, header, text):
    path = tmp_path / "a.tsv"
    path.write_text(f'{header}\n"Yes sir."\tb\t1\n')
    assert next(iter(list(load_rows(path))[-1][1].values())) == text


def test_quotes_of_csv_can_be_characters(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text1,text2,score\n"He" said,"no,1\n')
    with pytest.raises(DataError, match="`quoting` none"):
        list(load_rows(path))
    with table_options(TableOptions(quoting="none")):
        assert list(load_rows(path)) == [(2, {"text1": '"He" said', "text2": '"no', "score": "1"})]


def test_rows_of_unequal_fields_are_refused_as_ever(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text1\ttext2\tscore\n"a ""b"""\tc\t1\n"d ""e"""\tf\n')
    with pytest.raises(DataError, match=r"row 3: every row must have the 3 fields of the header"):
        read_pairs(path)

"""The table of rules of reading: every reader of rows follows it, whichever block or file a row stands in."""

import csv
import logging
import re
from pathlib import Path

import numpy as np
import pytest

import samesense
from samesense.data import load_rows
from samesense.data.rows.blocks import blocks, rows_at
from samesense.data.rows.table_options import OPTIONS, TableOptions, table_options
from samesense.data.sentences import all_texts
from samesense.errors import ConfigError, DataError
from tests.data.reading_rules import HEADER, QUOTES, RULES, Labels, Pairs, Positives, Refused, Rows, Rule, Texts, scored

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def write(folder: Path, rule: Rule) -> Path:
    path = folder / rule.name
    path.write_bytes(rule.content.encode() if isinstance(rule.content, str) else rule.content)
    return path


def reading(rule: Rule) -> TableOptions:
    return TableOptions(**{name: value for name, value in rule.options.items() if name in OPTIONS})


def identify(rule: Rule) -> str:
    return f"{rule.section}: {str(rule.content)[:40]!r} {rule.options or ''}"


@pytest.mark.parametrize("rule", RULES, ids=identify)
def test_every_rule(tmp_path, rule, caplog):
    path = write(tmp_path, rule)
    match rule.expected:
        case Rows(cells):
            with table_options(reading(rule)):
                assert [list(row.values()) for _, row in load_rows(path)] == cells
        case Refused(message):
            with pytest.raises(DataError, match=message):
                samesense.read(path, **rule.options)
        case Labels(labels):
            assert samesense.read(path, **rule.options).labels == pytest.approx(labels)
        case Pairs(pairs):
            assert samesense.read(path, **rule.options).pairs() == pairs
        case Positives(positives):
            assert samesense.read(path, **rule.options).positives == positives
        case Texts(texts):
            assert list(samesense.read(path, **rule.options).texts) == texts
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == bool(rule.warning)
    assert rule.warning in "".join(warnings)


@pytest.mark.parametrize("rule", [rule for rule in RULES if isinstance(rule.expected, Rows)], ids=identify)
@pytest.mark.parametrize("size", [1, 2])
def test_blocks_of_a_file_are_read_by_the_same_rules(tmp_path, rule, size):
    path = str(write(tmp_path, rule))
    with table_options(reading(rule)):
        file_blocks = list(blocks(path, size))
        expected = [cells for _, cells in load_rows(path)]
    assert [cells for block in file_blocks for _, cells in block.rows] == expected
    # A block is read again without the options, as another process does.
    assert [
        cells for block in file_blocks for _, cells in rows_at(path, block.start, block.end, block.form)
    ] == expected


@pytest.mark.parametrize(("written", "read", "warning"), QUOTES)
@pytest.mark.parametrize("other_texts", [[], ['"Yes sir."'], ['"a ""b"" c"'], ["plain"], ['"open', 'x"y']])
@pytest.mark.parametrize("column", [0, 1])
def test_a_row_reads_the_same_beside_any_other_rows(tmp_path, written, read, warning, other_texts, column):
    path = tmp_path / "a.tsv"
    for first in (True, False):
        texts = [written, *other_texts] if first else [*other_texts, written]
        rows = [(text, "b") if column == 0 else ("b", text) for text in texts]
        path.write_text(HEADER + "".join(f"{a}\t{b}\t{number}\n" for number, (a, b) in enumerate(rows)))
        texts_read = [cells[f"text{column + 1}"] for _, cells in load_rows(path)]
        assert texts_read[0 if first else -1] == read


def test_every_section_of_the_page_with_rules_has_rules_here():
    headings = set(re.findall(r"^##+ (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {rule.section for rule in RULES} <= headings
    assert {rule.section for rule in RULES} == {"Options", "Quotes in TSV", "Lists in cells", "Columns", "Labels"}


PROGRAM_ROWS = [
    ["1", 'He said "no" to it', "He, too, refused.", "4"],
    ["2", "A dog sleeps.", 'It is "asleep"', "3"],
    ["3", "Two\tcolumns", "Two\nlines", "0"],
    ["4", "", "plain", "1"],
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_a_program_has_quoted_is_read_as_it_was_and_that_is_logged_once(tmp_path, quoting, end, caplog):
    caplog.set_level(logging.INFO, "samesense")
    path = tmp_path / "a.tsv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", quoting=quoting, lineterminator=end)
        writer.writerows([["id", "sentence1", "sentence2", "score"], *PROGRAM_ROWS])
    for _ in range(2):
        rows = list(load_rows(path))
        assert [list(cells.values()) for _, cells in rows] == PROGRAM_ROWS
        assert [number for number, _ in rows] == [2, 3, 4, 6]
    (record,) = caplog.records
    assert record.message == (
        f"{path}: fields stand in double quotes, with quotes in them doubled, which are taken off; to keep all quotes: "
        "`quoting` none"
    )


def test_the_warning_of_quotes_names_the_row_and_both_options(tmp_path, caplog):
    path = tmp_path / "a.tsv"
    path.write_text('"Yes sir."\t"No sir."\t1\n')
    for _ in range(2):
        list(load_rows(path))
    (record,) = caplog.records
    assert record.message == (
        f'{path}, row 1: "Yes sir." is read with its quotes, as nothing in the row says that a program wrote them; '
        "other rows are read alike. Where a program wrote them: `quoting` csv; where they belong to the texts: "
        "`quoting` none."
    )


@pytest.mark.parametrize("labels", [["1", "0"] * 3, ["ja", "nein"] * 3, ["0,5", "0,75"] * 3])
def test_the_fix_names_the_column_of_labels(tmp_path, labels):
    people = ["Ann", "Bob", "Ann", "Eve", "Bob", "Ann"]
    cells = enumerate(zip(people, labels, strict=True))
    rows = "".join(f'"Wie geht\n{row}";Wie läuft {row};{who};{label}\n' for row, (who, label) in cells)
    (tmp_path / "a.csv").write_text(f"Text links;Text rechts;Bearbeiter;Gleich?\n{rows}")
    with pytest.raises(DataError, match=r"`columns` \"Text links,Text rechts,Gleich\?\""):
        samesense.data.read_pairs(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("delimiter", value) for value in ("", "ab", '"', "\n")),
        *(("encoding", value) for value in ("base64", "unicode_escape", "no-such")),
        ("quoting", "all"),
        ("header", "maybe"),
    ],
)
def test_values_of_options_are_checked(name, value):
    with pytest.raises(ConfigError, match=f"`{name}` is "):
        TableOptions(**{name: value})


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.csv", {"header": "no"}),
        ("a.tsv", {"quoting": "none"}),
        ("a.tsv", {"delimiter": "comma", "quoting": "none"}),
        ("a.csv", {"delimiter": "semicolon"}),
        ("a.csv", {"encoding": "cp1251"}),
        ("a.txt", {"encoding": "utf-16"}),
        ("a.csv", {"encoding": "utf-16-le"}),
        ("a.csv", {"encoding": "gb18030", "header": "no"}),
    ],
)
def test_blocks_in_other_encodings_and_dialects(tmp_path, name, options, size):
    mark = {"comma": ",", "semicolon": ";"}.get(options.get("delimiter"), "\t" if name == "a.tsv" else ",")
    text = f"id{mark}text\n" + "".join(f"{row}{mark}{'дом' * row}{' ' * 3}x\n" for row in range(7))
    path = tmp_path / name
    byte_order_mark = "\ufeff" if options.get("encoding") == "utf-16-le" else ""
    path.write_bytes((byte_order_mark + text).encode(options.get("encoding", "utf-8")))
    with table_options(TableOptions(**options)):
        file_blocks = list(blocks(str(path), size))
        if name != "a.txt":
            assert [row for block in file_blocks for row in block.rows] == list(load_rows(path))
    for block in file_blocks:
        again = [cells for _, cells in rows_at(str(path), block.start, block.end, block.form)]
        assert again == [cells for _, cells in block.rows]


@pytest.mark.parametrize("cells", [["59 %", "0 %", "100 %"], ["0,5", "0,25", "1"], ["0.5", "0.25", "1"]])
def test_labels_in_memory_follow_the_rules_of_files(cells):
    data = samesense.read([(f"a dog {row}", f"a cat {row}", cell) for row, cell in enumerate(cells)])
    assert (len(data), max(data.labels)) == (3, 1)


@pytest.mark.parametrize("cells", [["3/5", "4/5"], ["4 stars", "1 star"], ["$5", "$4"]])
def test_units_in_memory_are_refused_and_never_texts(cells):
    with pytest.raises(DataError, match="without a unit"):
        samesense.read([("a", "b", cells[0]), ("c", "d", cells[1])])


def test_arrays_in_cells_are_lists():
    cells = [np.array(["x", "y"], dtype=object), np.array(["z"], dtype=object)]
    assert samesense.read({"query": ["a", "b"], "pos": cells}).positives == [["x", "y"], ["z"]]


@pytest.mark.parametrize(
    "read",
    [
        samesense.read,
        samesense.doctor,
        samesense.data.read_pairs,
        lambda path: list(all_texts(path)),
        lambda path: samesense.encode("default", path),
        lambda path: samesense.dedup(path),
    ],
)
@pytest.mark.parametrize("content", ["red shoes\nblue hat\ncrimson sneakers\n", "text,text\na,b\n"])
def test_every_reader_refuses_alike(tmp_path, read, content):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"may be a row of data|column names must differ|two text columns could not"):
        read(str(path))


@pytest.mark.parametrize("read", [samesense.doctor, samesense.data.read_pairs])
def test_distances_are_refused_by_every_reader_of_pairs(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_text(scored("0", "0.5", "1", names="sentence1;sentence2;distance"))
    with pytest.raises(DataError, match="says how different two texts are"):
        read(path)


def test_names_in_memory_and_in_parquet_are_names_for_certain(tmp_path):
    import pandas

    frame = pandas.DataFrame({"red shoes": ["blue hat", "green hat"]})
    assert len(samesense.read(frame)) == 2
    frame.to_parquet(tmp_path / "a.parquet")
    assert len(samesense.read(tmp_path / "a.parquet")) == 2


def test_the_doctor_warns_of_labels_that_fall_as_texts_share_more_words():
    words = [f"w{i}" for i in range(10)]
    rows = [(" ".join(words), " ".join([*words[:k], *(f"x{i}{k}" for i in range(10 - k))]), k) for k in range(10)] * 3
    straight = samesense.doctor([(a, b, k / 9) for a, b, k in rows])
    turned = samesense.doctor([(a, b, 1 - k / 9) for a, b, k in rows])
    assert not any("distances" in warning for warning in straight.warnings)
    assert any("labels fall as two texts share more words (Spearman -1.00)" in warning for warning in turned.warnings)

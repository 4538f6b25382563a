"""Every format gives the same pairs, the same row numbers in errors, and refuses what it cannot read."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from samesense.data import load_rows, read_pairs
from samesense.data.conventions.texts import is_blank
from samesense.data.rows.compression import split_suffix
from samesense.errors import DataError

ROWS = [
    {"sentence1": "A dog sleeps.", "sentence2": "The dog is asleep, “again”.", "score": 4.5, "subset": "animals"},
    {"sentence1": 'He said "no" to it', "sentence2": "一只狗在睡觉", "score": 0.0, "subset": "talk"},
    {"sentence1": "Ça coûte 5 €", "sentence2": "it's cheap, 'ish", "score": 2.0, "subset": "talk"},
]
FORMATS = ["tsv", "csv", "jsonl", "ndjson", "json", "parquet", "tsv.gz", "csv.gz", "jsonl.gz", "ndjson.gz", "json.gz"]
FORMATS += ["tsv.bz2", "csv.xz", "jsonl.zip", "json.zip", "TSV.GZ"]


def write(path, rows, bom=False):
    """Write rows in the format that the file name says."""
    kind = split_suffix(path.name).suffix.removeprefix(".")
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    if kind == "json":
        text = json.dumps(rows, ensure_ascii=False)
    elif kind in ("jsonl", "ndjson"):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif kind == "tsv":
        table = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
        text = "".join("\t".join(cells) + "\n" for cells in table)
    else:
        partial = path.with_name("partial")
        with partial.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)
        text = partial.read_bytes().decode("utf-8")
    content = ("\ufeff" if bom else "").encode() + text.encode("utf-8")
    path.write_bytes(compressed(path.name, content))
    return path


def compressed(name, content):
    """Compress bytes as the ending of a name says."""
    if not name.endswith(".zip"):
        by_ending = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        return by_ending.get(split_suffix(name).packing, bytes)(content)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._pairs", b"\0\1")  # as a Mac writes beside each file
        archive.writestr("pairs" + split_suffix(name).suffix, content)
    return stream.getvalue()


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_reads_to_the_same_pairs(tmp_path, ending):
    reference = read_pairs(write(tmp_path / "reference.jsonl", ROWS))
    data = read_pairs(write(tmp_path / f"pairs.{ending}", ROWS))
    assert replace(data, source="") == replace(reference, source="")
    assert data.sentences1 == [row["sentence1"] for row in ROWS]
    assert data.sentences2 == [row["sentence2"] for row in ROWS]
    assert (data.labels, data.subsets) == ([4.5, 0.0, 2.0], ["animals", "talk", "talk"])
    assert (data.kind, data.scale, data.label_column) == ("scored", (0.0, 5.0), "score")


@pytest.mark.parametrize("ending", [ending for ending in FORMATS if ending != "parquet"])
def test_every_text_format_may_start_with_a_byte_order_mark(tmp_path, ending):
    plain = read_pairs(write(tmp_path / f"plain.{ending}", ROWS))
    marked = read_pairs(write(tmp_path / f"marked.{ending}", ROWS, bom=True))
    assert marked.sha256 == plain.sha256


@pytest.mark.parametrize(
    ("ending", "row"),
    [("tsv", 3), ("csv", 3), ("jsonl", 2), ("ndjson", 2), ("json", 2), ("parquet", 2), ("tsv.gz", 3), ("tsv.zip", 3)],
)
def test_every_format_numbers_a_bad_row_as_its_file_does(tmp_path, ending, row):
    rows = [ROWS[0], {**ROWS[1], "sentence2": " "}, ROWS[2]]
    path = write(tmp_path / f"pairs.{ending}", rows)
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert str(caught.value) == (
        f"{path}: 1 of 3 rows cannot be used.\n"
        f"  row {row}, column 'sentence2': the text is empty. Fix: give the text or delete the row.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "json"])
def test_every_format_refuses_an_empty_file(tmp_path, ending):
    path = tmp_path / f"empty.{ending}"
    path.write_text("")
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert str(caught.value) == f"{path}: there are no rows. Check that this is the right file."


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "ndjson", "json", "parquet"])
def test_every_format_reports_a_missing_file(tmp_path, ending):
    path = tmp_path / f"absent.{ending}"
    with pytest.raises(DataError) as caught:
        load_rows(str(path))
    assert str(caught.value) == f"{path}: there is no such file. Check the spelling and the working directory."


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_every_line_format_names_the_line_that_is_not_utf8(tmp_path, ending):
    path = write(tmp_path / f"pairs.{ending}", ROWS)
    content = path.read_bytes().replace("Ça".encode(), "Ça".encode("latin-1"))
    path.write_bytes(content)
    lines = content.split(b"\n")
    row = next(number for number, line in enumerate(lines, 1) if b"\xc7a" in line)
    position = lines[row - 1].index(b"\xc7")
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert str(caught.value) == (
        f"{path}, row {row}: text must be UTF-8; byte 0xc7 at position {position} of the line is not, and rows before "
        "it are. The row is damaged, or comes from a file in another encoding: correct it."
    )


TEXT = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1)
# Texts that show nothing and escapes of ISO-2022-JP are refused; quotes of TSV see tests/data/reading_rules.py.
TEXT = TEXT.filter(lambda text: not is_blank(text) and not text.startswith('"') and not re.search(r"\x1b\$[@B(]", text))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXT, TEXT, st.floats(0, 1, width=32)), min_size=2, max_size=8))
@example([("\x1b$", "an escape alone", 0.0), ("a price of \x1b$5", "b", 1.0)])
def test_any_text_survives_tsv_csv_and_json_lines(tmp_path, triples):
    rows = [
        {"sentence1": first, "sentence2": second, "score": score}
        for (first, second, _), score in zip(triples, [0.0, 1.0, *(score for *_, score in triples[2:])], strict=True)
    ]
    read = [read_pairs(write(tmp_path / f"pairs.{ending}", rows)) for ending in ("tsv", "csv", "jsonl")]
    assert len({data.sha256 for data in read}) == 1
    assert read[0].sentences1 == [row["sentence1"] for row in rows]
    assert read[0].labels == [row["score"] for row in rows]

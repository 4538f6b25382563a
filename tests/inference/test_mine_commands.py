"""The commands mine, dedup and match, on vectors that need no model."""

import io
import json

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.data.rows.load import read_rows
from samesense.encoder.vectors.quantize import Quantizer
from samesense.errors import DataError
from samesense.inference.output import Encoded, write_encoded
from samesense.inference.tables import Table, write_tables
from tests.command import run_command
from tests.inference.made_vectors import encode


class Hashed:
    choice, embeds, reading, tells_tasks_apart = None, True, None, False

    def encode(self, texts, *, normalize, on_progress, task=None):
        on_progress(len(texts))
        return encode(texts)


@pytest.fixture
def run(monkeypatch, capsys):
    loaded = []

    def call(*arguments, stdin=None):
        monkeypatch.setattr(
            "samesense.inference.models.load.load", lambda name, **options: loaded.append(name) or Hashed()
        )
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        return run_command(capsys, *arguments)

    call.loaded = loaded
    return call


LINES = b"same\nother\nsame\n"
KEPT = "2 of 3 texts kept, 1 removed at a cosine of 0.9 or more\n"


def test_pairs_and_groups_of_a_file_and_of_standard_input(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(LINES)
    for source, stdin in ((tmp_path / "a.txt", None), ("-", LINES)):
        code, out, err = run("mine", source, "--threshold", "0.9", stdin=stdin)
        assert (code, out, err) == (0, "1.0000\tsame\tsame\n", "1 pairs of 3 texts\n")
        code, out, err = run("dedup", source, stdin=stdin)
        assert (code, out, err) == (0, "same\nother\n", KEPT)
    pair = json.loads(run("mine", "-", "--top", "1", "--json", stdin=LINES)[1])
    assert pair == {"row1": 1, "row2": 3, "score": 1.0, "text1": "same", "text2": "same"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mine", "-", "--top", "0"), "--top is a whole number of 1 or more; received 0"),
        (("mine", "-", "--threshold", "-1.5"), "A threshold is a cosine"),
        (("dedup", "-", "--threshold", "2"), "A threshold is a cosine"),
        (("dedup", "-", "--output", "a.doc"), "An output ends in .txt, .tsv, .csv, .jsonl, .parquet; received 'a.doc'"),
        (("dedup", "-", "--removed", "a.csv", "--groups", "a.csv"), "Each output is a file of its own"),
        (("dedup", "-", "--output", "a.csv", "--removed", "./a.csv"), "Each output is a file of its own"),
        (
            ("dedup", "-", "--threshold", "0.5", "--min-precision", "0.9"),
            "received --threshold 0.5 and --min-precision",
        ),
        (("dedup", "-", "--min-precision", "2"), "A precision is above 0 and up to 1"),
        (("match", "-", "-"), "Standard input can be one of the two files"),
        (
            ("match", "-", "x.txt", "--output", "a.txt"),
            "A table ends in .tsv, .csv, .jsonl, .parquet; received 'a.txt'",
        ),
        (("match", "-", "-", "--top", "0"), "Standard input can be"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_a_model_is_loaded(run, words, message):
    code, out, err = run(*words, stdin=LINES)
    assert (code, out, run.loaded) == (2, "", [])
    assert message in err
    assert err.count("\n") == 1


def test_standard_input_that_is_no_text(run):
    code, _, err = run("mine", "-", stdin=b"a\n\xff\n")
    assert code == 2
    assert err == (
        "samesense: error: standard input, row 2: text must be UTF-8; byte 0xff at position 0 of the line is not. "
        "The bytes do not prove in which encoding it is: name the one that it was written in by --encoding, such as "
        "cp1252 (Western Europe), cp1250 (Central Europe), cp1251 (Cyrillic), cp1254 (Turkish), gb18030 and big5 "
        "(Chinese), cp932 (Japanese), cp949 (Korean), or re-save as UTF-8.\n"
    )


def write(path):
    """Write the same three rows, with an identifier, in the format that the name says."""
    rows = [{"id": str(number), "body": line} for number, line in enumerate(LINES.decode().split(), 1)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = "," if path.suffix == ".csv" else "\t"
        path.write_text("\n".join(mark.join(row) for row in [["id", "body"], *(row.values() for row in rows)]) + "\n")


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.jsonl", "t.parquet"])
def test_tables_are_read_by_column(run, tmp_path, name):
    write(tmp_path / name)
    code, out, err = run("mine", tmp_path / name, "--threshold", "0.9")
    assert (code, out) == (0, "1.0000\tsame\tsame\n")
    assert err == f"{tmp_path / name}: texts of column 'body'\n1 pairs of 3 texts\n"
    code, out, err = run("dedup", tmp_path / name, "--columns", "body")
    assert (code, out, err) == (0, "id\tbody\n1\tsame\n2\tother\n", KEPT)
    code, out, _ = run("encode", "m", tmp_path / name)
    assert (code, [json.loads(line)["text"] for line in out.splitlines()]) == (0, ["same", "other", "same"])


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("match t.csv t.csv --columns question1", "--target-columns"),
        ("mine-negatives a.csv --corpus t.csv --output n.jsonl", "--corpus-columns"),
    ],
)
def test_the_flag_of_a_second_table_is_named(run, tmp_path, monkeypatch, command, flag):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("question1,question2,is_duplicate\nIs it?,Is it not?,yes\n")
    (tmp_path / "a.csv").write_text("anchor,positive\nIs it?,Is it so?\nIs it now?,Is it so now?\n")
    code, _, err = run(*command.split())
    assert (code, f"Name the one to read: {flag} question1\n" in err) == (2, True), err


@pytest.mark.parametrize(
    "command",
    [
        "dedup a.csv --columns anchor --pairs bad.csv --min-precision 0.5",
        "match a.csv a.csv --columns anchor --target-columns anchor --pairs bad.csv",
        "drift m m --texts a.csv --columns anchor --pairs bad.csv --threshold 0.5",
        "distil a.csv --columns anchor --teacher m --student static:4 --dev bad.csv --output run",
        "distil a.csv --columns anchor --teacher m --student static:4 --guard bad.csv --output run",
        "train bad.csv --method simcse --supervised --output run",
        "augment bad.jsonl",
    ],
)
def test_rows_that_no_option_leaves_out_are_to_be_corrected(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("anchor,positive\nIs it?,Is it so?\nIs it now?,Is it so now?\n")
    (tmp_path / "bad.csv").write_text("sentence1,sentence2,label\na b,c d,1\ne f,g h,0\ni j,,1\n")
    (tmp_path / "bad.jsonl").write_text('{"anchor": "a", "positives": ["b"]}\n{"anchor": "c", "positives": []}\n')
    code, _, err = run(*command.split())
    assert (code, err.endswith("\nCorrect these rows.\n")) == (2, True), err


@pytest.mark.parametrize("command", ["mine", "dedup", "encode m", "rerank --query q --cross c --model m"])
def test_a_table_of_several_columns_of_texts_is_refused_with_the_flag(run, tmp_path, command):
    (tmp_path / "t.csv").write_text("question1,question2,is_duplicate\nIs it?,Is it not?,yes\n")
    code, out, err = run(*command.split(), tmp_path / "t.csv")
    assert (code, out, run.loaded) == (2, "", [])
    assert err == (
        f"samesense: error: {tmp_path}/t.csv: several columns hold texts (question1, question2). Its columns: "
        "question1, question2, is_duplicate. Name the one to read: --columns question1\n"
    )
    code, _, err = run(*command.split(), "-", "--columns", "question1", stdin=LINES)
    assert (code, "--columns is for tables" in err) == (2, True)
    (tmp_path / "empty.csv").write_text("text,label\nIs it?,yes\n,no\n")
    code, _, err = run(*command.split(), tmp_path / "empty.csv")
    assert (code, "row 3, column 'text': the text is empty" in err) == (2, True)


def test_a_row_stays_one_line_whatever_its_texts(run, tmp_path):
    (tmp_path / "t.txt").write_text("same\tthing\u2028here\nsame\tthing\u2028here\nno tab\n")
    code, out, _ = run("mine", tmp_path / "t.txt", "--threshold", "0.9")
    assert (code, out) == (0, "1.0000\tsame thing here\tsame thing here\n")


def read(path):
    """The rows of a file that was written."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [cells for _, cells in read_rows(path)]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("source", ["t.tsv", "t.csv", "t.jsonl", "t.parquet"])
def test_every_column_is_carried_into_every_format(run, tmp_path, source, suffix):
    write(tmp_path / source)
    kept_path, removed, groups = (tmp_path / f"{name}{suffix}" for name in ("kept", "removed", "groups"))
    code, out, _ = run(
        "dedup", tmp_path / source, "--columns", "body", "-o", kept_path, "--removed", removed, "--groups", groups
    )
    assert (code, out) == (0, "")
    assert read(kept_path) == [{"id": "1", "body": "same"}, {"id": "2", "body": "other"}]
    record = {"id": "3", "body": "same", "row": 3, "kept_row": 1, "kept_text": "same", "cosine": 1.0}
    texts = {name: value if isinstance(value, str) else str(value) for name, value in record.items()}
    assert read(removed) == [texts if suffix in (".tsv", ".csv") else record]
    assert [(int(row["group"]), int(row["row"]), str(row["kept"]).lower()) for row in read(groups)] == [
        (1, 1, "true"),
        (1, 3, "false"),
    ]


def test_cells_that_need_care(run, tmp_path):
    rows = [
        {"text": 'a "b",\nc', "row": 7, "tags": ["x", 1], "none": None, "cosine": True},
        {"text": "other", "row": 8, "tags": [], "none": None, "cosine": False},
        {"text": 'a "b",\nc', "row": 9, "tags": ["y"], "none": None, "cosine": None},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for suffix in (".tsv", ".csv", ".jsonl", ".txt"):
        flags = ("--output", tmp_path / f"k{suffix}", "--removed", tmp_path / f"r{suffix}")
        assert run("dedup", tmp_path / "t.jsonl", "--columns", "text", *flags)[0] == 0
    assert read(tmp_path / "k.jsonl") == rows[:2]
    ours = {"row_": 3, "kept_row": 1, "kept_text": rows[0]["text"], "cosine_": 1.0}
    assert read(tmp_path / "r.jsonl") == [{**rows[2], **ours}]
    assert read(tmp_path / "k.csv")[0] == {
        "text": rows[0]["text"],
        "row": "7",
        "tags": '["x", 1]',
        "none": "",
        "cosine": "true",
    }
    assert read(tmp_path / "k.tsv")[0]["text"] == 'a "b", c'
    assert (tmp_path / "k.txt").read_text() == 'a "b", c\nother\n'
    mixed = [{"text": "same", "value": 1}, {"text": "other", "value": "one"}, {"text": "same", "value": "two"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    flags = ("-o", tmp_path / "m.csv", "--removed", tmp_path / "m.tsv", "--groups", tmp_path / "m.parquet")
    code, _, err = run("dedup", tmp_path / "t.jsonl", "--columns", "text", *flags)
    assert (code, "m.parquet, row 2, column 'value': a column of Parquet holds values" in err) == (2, True)
    assert not list(tmp_path.glob("m.*")), "of several files all are written, or none"


RAGGED = [{"text": "same", "id": 1}, {"text": "other"}, {"text": "same", "row": "7", "extra": 2}]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet"])
def test_tables_have_the_columns_of_every_row(run, tmp_path, suffix):
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RAGGED))
    kept_path, removed, matched = (tmp_path / f"{name}{suffix}" for name in ("kept", "removed", "matched"))
    assert run("dedup", tmp_path / "t.jsonl", "--columns", "text", "-o", kept_path, "--removed", removed)[0] == 0
    columns = ["text", "id", "row", "extra"]
    added = ["row_", "kept_row", "kept_text", "cosine"]
    assert [list(row) for row in read(kept_path)] == [columns] * 2
    assert [list(row) for row in read(removed)] == [[*columns, *added]]
    assert [str(read(removed)[0][name]) for name in ("row", "row_", "kept_row")] == ["7", "3", "1"]
    same = (tmp_path / "t.jsonl", tmp_path / "t.jsonl")
    assert run("match", *same, "--columns", "text", "--target-columns", "text", "-o", matched)[0] == 0
    theirs = ["text_", "id_", "row_", "extra_", "row__", "match_row", "cosine"]
    assert [list(row) for row in read(matched)] == [[*columns, *theirs]] * 3


def test_json_lines_keep_each_row_as_it_is_and_columns_beside_it_have_one_name(run, tmp_path):
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*RAGGED, {"text": "other"}]))
    removed = tmp_path / "removed.jsonl"
    flags = ("-o", tmp_path / "kept.jsonl", "--removed", removed)
    assert run("dedup", tmp_path / "t.jsonl", "--columns", "text", *flags)[0] == 0
    assert read(tmp_path / "kept.jsonl") == RAGGED[:2]
    assert [(row.get("row"), row["row_"]) for row in read(removed)] == [("7", 3), (None, 4)]


def test_json_lines_hold_no_number_that_json_has_not(run, tmp_path):
    nan, inf = float("nan"), float("inf")
    rows = [{"text": "one", "value": nan, "list": [1.0, inf], "deep": {"a": [{"b": nan}]}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    clean = {"text": "one", "value": None, "list": [1.0, None], "deep": {"a": [{"b": None}]}}
    source = tmp_path / "t.parquet"
    assert run("dedup", source, "--columns", "text", "-o", tmp_path / "kept.jsonl")[0] == 0
    assert (tmp_path / "kept.jsonl").read_text() == json.dumps(clean) + "\n"
    columns = pa.Table.from_pylist(rows).drop_columns("text")
    encoded = Encoded(["one"], np.ones((1, 2), dtype=np.float32), Quantizer("float32", 2), columns)
    write_encoded(encoded, str(tmp_path / "e.jsonl"), "jsonl")
    assert json.loads((tmp_path / "e.jsonl").read_text()) == {**clean, "embedding": [1.0, 1.0]}
    assert run("dedup", source, "--columns", "text", "-o", tmp_path / "kept.csv")[0] == 0
    assert "NaN" not in (tmp_path / "kept.csv").read_text()


def test_an_input_is_not_written_over(run, tmp_path):
    (tmp_path / "t.txt").write_bytes(LINES)
    code, _, err = run("dedup", tmp_path / "t.txt", "-o", tmp_path / "t.txt")
    assert (code, "would be written over" in err, run.loaded) == (2, True, [])
    assert (tmp_path / "t.txt").read_bytes() == LINES


@pytest.mark.parametrize("command", [("dedup", "t.txt"), ("match", "t.txt", "t.txt")])
def test_labelled_pairs_are_not_written_over(run, tmp_path, command):
    (tmp_path / "t.txt").write_bytes(LINES)
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\na\ta\t1\na\tb\t0\n")
    before = (tmp_path / "pairs.tsv").read_bytes()
    name, *files = command
    flags = ("--pairs", tmp_path / "pairs.tsv", "--output", tmp_path / "pairs.tsv")
    code, _, err = run(name, *(tmp_path / file for file in files), *flags)
    assert (code, "would be written over" in err, run.loaded) == (2, True, [])
    assert (tmp_path / "pairs.tsv").read_bytes() == before


def test_parquet_loses_no_column_and_is_whole_without_rows(run, tmp_path):
    rows = [{"text": "same", "note": None}, {"text": "other", "note": "kept"}]
    (tmp_path / "t.jsonl").write_text('{"text": "same"}\n{"text": "other", "note": "kept"}\n')
    assert run("dedup", tmp_path / "t.jsonl", "--columns", "text", "--output", tmp_path / "k.parquet")[0] == 0
    assert pq.read_table(tmp_path / "k.parquet").to_pylist() == rows
    rows = [{"text": f"text {number}", "note": None if number < 9000 else "late"} for number in range(9001)]
    write_tables(Table(rows, str(tmp_path / "late.parquet"), ".parquet"))
    assert pq.read_table(tmp_path / "late.parquet").to_pylist() == rows
    (tmp_path / "t.txt").write_bytes(b"same\n")
    (tmp_path / "u.txt").write_bytes(b"other\n")
    assert run("match", tmp_path / "t.txt", tmp_path / "u.txt", "--output", tmp_path / "m.parquet")[0] == 0
    assert pq.read_table(tmp_path / "m.parquet").num_rows == 0


def test_parquet_keeps_the_types_of_its_source_and_takes_what_comes_late(run, tmp_path):
    schema = pa.schema([("body", pa.string()), ("none", pa.int32()), ("late", pa.int64())])
    rows = [{"body": f"text {i}", "none": None, "late": None if i < 8500 else i} for i in range(9000)]
    source = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), source)
    write_tables(Table(rows, str(tmp_path / "o.parquet"), ".parquet"), source=str(source))
    assert pq.read_table(tmp_path / "o.parquet") == pq.read_table(source)
    write_tables(Table(rows, str(tmp_path / "p.parquet"), ".parquet"))  # of a source without types
    late = pq.read_table(tmp_path / "p.parquet")["late"].to_pylist()
    assert late == [None] * 8500 + [str(i) for i in range(8500, 9000)]
    few = tmp_path / "few.parquet"
    pq.write_table(pa.Table.from_pylist(rows[:3], schema=schema), few)
    assert run("dedup", few, "--columns", "body", "--output", tmp_path / "kept.parquet")[0] == 0
    assert pq.read_schema(tmp_path / "kept.parquet").types == schema.types


def test_lines_of_an_address_are_rows_of_one_text(run):
    files = fsspec.filesystem("memory")
    files.pipe("/lines/t.txt", LINES)
    try:
        code, out, err = run("dedup", "memory://lines/t.txt")
        assert (code, out, err) == (0, "same\nother\n", KEPT)
    finally:
        files.rm("/lines", recursive=True)


def test_matches_of_two_files(run, tmp_path):
    write(tmp_path / "t.csv")
    (tmp_path / "others.txt").write_bytes(b"new\nsame\n")
    flags = ("--columns", "body", "--unmatched", tmp_path / "rest.csv")
    code, out, err = run("match", tmp_path / "t.csv", tmp_path / "others.txt", *flags)
    assert (code, err) == (0, "2 of 3 texts matched at a cosine of 0.9 or more\n")
    assert out == "id\tbody\ttext\trow\tmatch_row\tcosine\n1\tsame\tsame\t1\t2\t1.0\n3\tsame\tsame\t3\t2\t1.0\n"
    assert read(tmp_path / "rest.csv") == [{"id": "2", "body": "other"}]
    code, out, _ = run("match", "-", tmp_path / "t.csv", "--target-columns", "body", "--one-to-one", stdin=LINES)
    assert [line.split("\t")[-3:-1] for line in out.splitlines()[1:]] == [["1", "1"], ["2", "2"], ["3", "3"]]
    code, out, _ = run("match", "-", tmp_path / "others.txt", stdin=b"nothing\n")
    assert (code, out) == (0, "text\ttext_\trow\tmatch_row\tcosine\n")


def test_whole_numbers_of_64_bits_go_into_parquet(run, tmp_path):
    (tmp_path / "t.jsonl").write_text(f'{{"text": "same", "hash": {2**64 - 1}}}\n{{"text": "other", "hash": 1}}\n')
    assert run("dedup", tmp_path / "t.jsonl", "--columns", "text", "--output", tmp_path / "k.parquet")[0] == 0
    assert pq.read_table(tmp_path / "k.parquet")["hash"].to_pylist() == [2**64 - 1, 1]


@pytest.mark.parametrize("late", [0.5, True, {"a": 1}, 2**64])
def test_a_value_of_another_type_far_down_is_not_changed_without_a_word(tmp_path, monkeypatch, late):
    monkeypatch.setattr("samesense.inference.tables.BATCH", 2)
    rows = [{"value": 1}, {"value": 2}, {"value": 3}, {"value": late}]
    with pytest.raises(DataError, match=r"k\.parquet, row 4, column 'value': a column of Parquet holds values of one"):
        write_tables(Table(rows, str(tmp_path / "k.parquet"), ".parquet"))
    assert not (tmp_path / "k.parquet").exists()


def test_parquet_stores_no_objects_without_keys(tmp_path):
    with pytest.raises(DataError, match="column 'value': Parquet stores no objects without keys"):
        write_tables(Table([{"value": {}}], str(tmp_path / "k.parquet"), ".parquet"))

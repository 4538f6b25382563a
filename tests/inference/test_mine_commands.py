"""The commands mine and cluster, on vectors that need no model."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import run_command
from tests.inference.made_vectors import encode


class Hashed:
    choice, embeds = None, True

    def encode(self, texts, *, normalize, on_progress):
        on_progress(len(texts))
        return encode(texts)


@pytest.fixture
def run(monkeypatch, capsys):
    loaded = []

    def call(*arguments, stdin=None):
        monkeypatch.setattr("samesense.inference.models.load.load", lambda name, **how: loaded.append(name) or Hashed())
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        return run_command(capsys, *arguments)

    call.loaded = loaded
    return call


LINES = b"same\nother\nsame\n"


def test_pairs_and_groups_of_a_file_and_of_standard_input(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(LINES)
    for source, stdin in ((tmp_path / "a.txt", None), ("-", LINES)):
        code, out, err = run("mine", source, "--threshold", "0.9", stdin=stdin)
        assert (code, out, err) == (0, "1.0000\tsame\tsame\n", "1 pairs of 3 texts\n")
        code, out, err = run("cluster", source, stdin=stdin)
        assert (code, out, err) == (0, "1\t*\tsame\n1\t\tsame\n", "1 groups with 2 of 3 texts\n")
    found = json.loads(run("mine", "-", "--top", "1", "--json", stdin=LINES)[1])
    assert found == {"row1": 1, "row2": 3, "score": 1.0, "text1": "same", "text2": "same"}
    found = json.loads(run("cluster", "-", "--json", stdin=LINES)[1])
    assert found == {"rows": [1, 3], "centre": 1, "lowest": 1.0, "texts": ["same", "same"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mine", "-", "--top", "0"), "At least one pair must be asked for; received 0"),
        (("mine", "-", "--threshold", "-1.5"), "A threshold is a cosine"),
        (("cluster", "-", "--threshold", "2"), "A threshold is a cosine"),
        (("cluster", "-", "--smallest", "0"), "A cluster has one member or more; received 0"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_a_model_is_loaded(run, words, said):
    code, out, err = run(*words, stdin=LINES)
    assert (code, out, run.loaded) == (2, "", [])
    assert said in err
    assert err.count("\n") == 1


def test_standard_input_that_is_no_text(run):
    code, _, err = run("mine", "-", stdin=b"a\n\xff\n")
    assert code == 2
    assert err == (
        "samesense: error: standard input, row 2: text must be UTF-8; byte 0xff at position 0 of the line is not. "
        "Re-save as UTF-8, for example: iconv -f LATIN1 -t UTF-8\n"
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
    code, out, err = run("cluster", tmp_path / name, "--columns", "body")
    assert (code, out, err) == (0, "1\t*\tsame\n1\t\tsame\n", "1 groups with 2 of 3 texts\n")
    code, out, _ = run("encode", "m", tmp_path / name)
    assert (code, [json.loads(line)["text"] for line in out.splitlines()]) == (0, ["same", "other", "same"])


@pytest.mark.parametrize("command", ["mine", "cluster", "encode m", "rerank --query q --cross c --model m"])
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
    (tmp_path / "t.txt").write_text("same\tthing\u2028here\nsame\tthing\u2028here\n")
    code, out, _ = run("mine", tmp_path / "t.txt")
    assert (code, out) == (0, "1.0000\tsame thing here\tsame thing here\n")

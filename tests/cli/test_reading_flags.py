"""How tables are read: the same flags, and the same rows, in every command and function that reads them."""

import inspect
import json

import numpy as np
import pytest

import samesense
from samesense.cli.main import COMMANDS
from samesense.data.rows.table_options import current_options
from samesense.errors import ConfigError, DataError
from samesense.recipes.sweep.data_entry import DataEntry
from tests.command import run_command
from tests.conftest import random_bert

TEXTS = ["Собака бежит по улице", '"Да" сказал он', "plain; text"]


KNOWN = sorted({word for text in TEXTS for word in text.replace('"', " ").lower().split()})


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Vectors of words, and texts in another encoding between other marks, without a header, and with quotes."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(len(KNOWN), 4))
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in row)}\n" for word, row in zip(KNOWN, rows, strict=True)]
    (tmp_path / "words.vec").write_text("".join(lines))
    (tmp_path / "texts.csv").write_bytes("".join(f"{i}|{text}\n" for i, text in enumerate(TEXTS)).encode("cp1251"))
    pairs = [(TEXTS[0], TEXTS[1], 1), (TEXTS[0], TEXTS[2], 0), (TEXTS[1], TEXTS[2], 3)]
    (tmp_path / "pairs.csv").write_bytes("".join(f"{a}|{b}|{n}\n" for a, b, n in pairs).encode("cp1251"))
    return "words:words.vec"


FLAGS = ("--encoding", "cp1251", "--delimiter", "bar", "--quoting", "none", "--header", "no")
OPTIONS = {"encoding": "cp1251", "delimiter": "bar", "quoting": "none", "header": "no"}


NO_TABLES = {
    "explain": "the texts are arguments",
    "harvest": "the corpus is in the folder of the Origin",
    "push": "a model is read",
    "quickstart": "the sample of the library is read",
    "serve": "collections and models are read",
    "sweep": "each data set of its file has these options",
}
"""Commands that read no table of the user, and why."""

NO_FILES = {"load", "open_index", "read_vectors", "app", "similarity", "SentenceEncoder", "Model", *NO_TABLES}
"""Functions and classes that read no table of the user."""


def flags_in_help(capsys, *command):
    out = run_command(capsys, *command, "--help")[1]
    return {flag for flag in FLAGS if flag.startswith("--") and f"{flag} " in out}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "index"])
def test_every_command_that_reads_tables_has_the_flags(command, capsys):
    expected = set() if command in NO_TABLES else set(FLAGS[::2])
    assert flags_in_help(capsys, command) == expected


@pytest.mark.parametrize("command", ["build", "add", "update"])
def test_the_commands_of_an_index_that_read_files_have_the_flags(command, capsys):
    assert flags_in_help(capsys, "index", command) == set(FLAGS[::2])


def test_every_function_that_reads_tables_has_the_options():
    for name in samesense.__all__:
        function = getattr(samesense, name)
        if callable(function) and name not in NO_FILES and not name.endswith("progress_bars"):
            assert OPTIONS.keys() <= inspect.signature(function).parameters.keys(), name


def test_each_data_set_of_a_sweep_has_the_options():
    assert OPTIONS.keys() <= DataEntry.model_fields.keys()


@pytest.mark.parametrize(
    "command",
    [
        "encode MODEL texts.csv --columns column2",
        "encode MODEL texts.csv --columns column2 --shard-size 2 --workers 1 --format parquet --output shards",
        "dedup texts.csv --model MODEL --columns column2 --overwrite --output kept.jsonl",
        "match texts.csv texts.csv --model MODEL --columns column2 --target-columns column2 --overwrite -o m.jsonl",
        "mine texts.csv --model MODEL --columns column2",
        "index build folder texts.csv --model MODEL --columns column2",
        "rerank texts.csv --model MODEL --cross MODEL --query plain --columns column2",
        "evaluate MODEL --data pairs.csv --no-intervals",
        "doctor pairs.csv",
        "doctor texts.csv --columns column2",
    ],
)
def test_every_command_takes_them(words, command, capsys):
    arguments = command.replace("MODEL", words).split(" ")
    code, _, err = run_command(capsys, *arguments, *FLAGS)
    assert code == 0, err
    code, _, err = run_command(capsys, *arguments)
    assert code == 2
    assert "text must be UTF-8" in err
    assert current_options().encoding is None


def test_what_commands_write_has_the_texts_as_they_were(words, tmp_path, capsys):
    columns = ("--columns", "column2", *FLAGS)
    assert run_command(capsys, "dedup", "texts.csv", "--model", words, "-o", "kept.jsonl", *columns)[0] == 0
    kept_texts = [json.loads(line)["column2"] for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept_texts == TEXTS
    shards = ("--shard-size", "2", "--workers", "2", "--format", "parquet", "--output", "shards")
    assert run_command(capsys, "encode", words, "texts.csv", *shards, *columns)[0] == 0
    import pyarrow.parquet as pq

    shard_paths = sorted((tmp_path / "shards").rglob("*.parquet"))
    assert [text for shard in shard_paths for text in pq.read_table(shard)["text"].to_pylist()] == TEXTS
    with_header = (*columns[:-1], "yes")
    code, _, err = run_command(capsys, "encode", words, "texts.csv", *shards, *with_header)
    assert code == 2, err  # other rows than those of the shards


def test_functions_take_them(words):
    pairs = samesense.read("pairs.csv", **OPTIONS)
    assert (pairs.sentences1[2], pairs.labels) == ('"Да" сказал он', [1, 0, 3])
    assert samesense.doctor("pairs.csv", **OPTIONS).rows == 3
    texts = {"columns": "column2", **OPTIONS}
    vectors = samesense.encode(words, "texts.csv", **texts)
    assert vectors.shape == (3, 4)
    assert len(samesense.mine("texts.csv", model=words, threshold=-1, **texts)) == 3
    assert len(samesense.dedup("texts.csv", model=words, **texts).kept_by) == 3
    assert len(samesense.evaluate(words, "pairs.csv", intervals=False, **OPTIONS)) > 0
    with pytest.raises(DataError, match="UTF-8"):
        samesense.read("pairs.csv")
    with pytest.raises(ConfigError, match="`quoting` is one of csv, none; received 'all'"):
        samesense.read("pairs.csv", quoting="all")


def test_a_file_in_utf8_is_not_read_in_another_encoding(words, tmp_path):
    (tmp_path / "dev.csv").write_text("text1,text2,score\nдом,сад,1\nдом,лес,0\n")
    with pytest.raises(DataError, match="this is UTF-8, and `encoding` is cp1251"):
        samesense.read("dev.csv", encoding="cp1251")
    assert len(samesense.read("dev.csv", encoding="utf-8")) == 2
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        with pytest.raises(DataError, match=f"this is UTF-8, and `encoding` is {encoding}"):
            samesense.read("dev.csv", encoding=encoding)
    with pytest.raises(DataError, match="text must be in ascii, as `encoding` says"):
        samesense.read("pairs.csv", **{**OPTIONS, "encoding": "ascii"})


def test_similarity_reads_pairs_by_the_same_rules(words, capsys, monkeypatch):
    import io
    import sys

    def given(text, encoding="utf-8"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode(encoding))))

    given('plain\t"text\twith tab"\n"one ""q"""\ttext\n')
    code, out, err = run_command(capsys, "similarity", words, "--json")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["text1"], row["text2"]) for row in rows] == [("plain", "text\twith tab"), ('one "q"', "text")]
    given("a|b\nплюс|минус\n", "cp1251")
    code, out, err = run_command(
        capsys, "similarity", words, "--json", "--delimiter", "bar", "--encoding", "cp1251", "--header", "yes"
    )
    assert code == 0, err
    assert [json.loads(line)["text1"] for line in out.splitlines()] == ["плюс"]


def test_training_reads_all_its_files_alike(words, tmp_path, capsys):
    trunk = random_bert(tmp_path / "trunk", KNOWN, layers=1)
    flags = (*FLAGS, "--max-steps", "1", "--precision", "float32")
    arguments = ("train", "pairs.csv", "--dev", "pairs.csv", "--test", "pairs.csv", "--model", trunk)
    code, _, err = run_command(capsys, *arguments, "--output", "run", *flags)
    assert code == 0, err
    run = samesense.train("pairs.csv", dev="pairs.csv", model=str(trunk), output="run2", max_steps=1, **OPTIONS)
    assert run.output.steps == 1


def test_pretraining_reads_documents_in_another_encoding(tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = {"max_steps": 1, "max_seq_length": 16, "precision": "float32"}
    (tmp_path / "texts.txt").write_bytes(("Собака бежит по улице. " * 20).encode("cp1251"))
    with pytest.raises(DataError, match="text must be UTF-8"):
        samesense.pretrain("texts.txt", model=str(tiny_trunk), output="run", **short)
    samesense.pretrain("texts.txt", model=str(tiny_trunk), output="run", encoding="cp1251", **short)


def test_an_option_by_which_nothing_was_read_is_warned_of(words, tmp_path, capsys):
    (tmp_path / "texts.jsonl").write_text('{"text": "plain"}\n{"text": "text"}\n')
    _, _, err = run_command(capsys, "encode", words, "texts.jsonl", "--delimiter", "bar", "--header", "no")
    assert "--delimiter and --header had no effect: no file that was read is a table of text" in err
    _, _, err = run_command(capsys, "encode", words, "texts.jsonl", "--encoding", "latin1")
    assert "no effect" not in err
    _, _, err = run_command(capsys, "encode", words, "texts.csv", "--columns", "column2", *FLAGS)
    assert "no effect" not in err

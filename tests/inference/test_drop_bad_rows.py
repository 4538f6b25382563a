"""Rows without a text: refused by every command, or left out where that is asked for, and then said to be."""

import json
from pathlib import Path

import numpy as np
import pytest

from samesense.cli.commands import index
from tests.command import run_command
from tests.inference.made_vectors import embedder

TABLE = "id,text,topic\n1,a cat,x\n2,,y\n3,a dog,z\n4, ,y\n5,a cat,w\n"
LINES = "a cat\n\na dog\n \na cat\n"
WHY = "rows left out, because they hold no text that can be used"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(index, "_embedder", lambda name, precision: embedder())
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "a.txt").write_text(LINES)
    (tmp_path / "blank.txt").write_text("\n \n")
    return lambda *words: run_command(capsys, *map(str, words))


def commands(model, source):
    return {
        "encode": ("encode", model, source, "--output", "v.npy"),
        "match": ("match", source, source, "--model", model, "--output", "matches.jsonl"),
        "dedup": ("dedup", source, "--model", model, "--output", "kept.jsonl"),
        "mine": ("mine", source, "--model", model, "--json"),
        "index": ("index", "build", "made", source),
    }


@pytest.mark.parametrize("name", ["encode", "dedup", "match", "mine", "index"])
@pytest.mark.parametrize(("source", "first"), [("a.csv", 3), ("a.txt", 2)])
def test_rows_without_a_text_are_refused_and_the_flag_is_named(run, tiny_trunk, name, source, first):
    code, out, err = run(*commands(tiny_trunk, source)[name])
    assert (code, out) == (2, "")
    assert f"row {first}" in err
    assert "--drop-bad-rows" in err


@pytest.mark.parametrize("name", ["encode", "dedup", "match", "mine", "index"])
@pytest.mark.parametrize(("source", "rows"), [("a.csv", "3, 5"), ("a.txt", "2, 4")])
def test_they_are_left_out_on_request_and_numbered(run, tiny_trunk, name, source, rows):
    code, _, err = run(*commands(tiny_trunk, source)[name], "--drop-bad-rows")
    assert code == 0, err
    assert f"warning: {source}: 2 of 5 rows left out, because " in err
    assert f": {rows}\n" in err


@pytest.mark.parametrize("name", ["encode", "dedup", "match", "mine", "index"])
def test_a_file_of_which_nothing_is_left_is_refused(run, tiny_trunk, name):
    code, _, err = run(*commands(tiny_trunk, "blank.txt")[name], "--drop-bad-rows")
    assert code == 2
    assert ("blank.txt holds no text to keep; " if name == "index" else "blank.txt holds no text; ") in err


@pytest.mark.parametrize("name", ["encode", "dedup", "match", "mine"])
def test_blank_lines_at_the_end_of_a_text_file_are_no_rows(run, tiny_trunk, tmp_path, name):
    (tmp_path / "end.txt").write_text("a cat\na dog\na cat\n\n  \n")
    code, _, err = run(*commands(tiny_trunk, "end.txt")[name])
    assert code == 0, err
    assert "left out" not in err


def test_mine_numbers_the_rows_of_the_file(run, tiny_trunk):
    code, out, err = run("mine", "a.txt", "--model", tiny_trunk, "--json", "--top", 1, "--drop-bad-rows")
    assert (code, [json.loads(out)[name] for name in ("row1", "row2")]) == (0, [1, 5]), err


def test_vectors_stand_beside_the_rows_that_are_left(run, tiny_trunk):
    flags = ("--drop-bad-rows", "--keep", "id,topic")
    assert run("encode", tiny_trunk, "a.csv", "a.csv", "--output", "v.jsonl", *flags)[0] == 0
    rows = rows_in("v.jsonl")
    assert [(row["id"], row["text"]) for row in rows] == 2 * [("1", "a cat"), ("3", "a dog"), ("5", "a cat")]
    assert run("encode", tiny_trunk, "a.txt", "--output", "v.npy", "--drop-bad-rows")[0] == 0
    assert np.load("v.npy").shape[0] == 3
    code, _, err = run("encode", tiny_trunk, "a.txt", "--output", "shards", "--shard-size", "2", "--drop-bad-rows")
    assert (code, "--drop-bad-rows is for one output" in err) == (2, True)


def test_rows_keep_their_numbers_and_columns_where_some_are_left_out(run, tiny_trunk):
    outputs = ("--output", "kept.jsonl", "--removed", "removed.jsonl", "--groups", "groups.jsonl")
    assert run("dedup", "a.csv", "--model", tiny_trunk, "--threshold", "0.9999", *outputs, "--drop-bad-rows")[0] == 0
    kept_rows, (removed,), groups = map(rows_in, outputs[1::2])
    assert [row["topic"] for row in kept_rows] == ["x", "z"]
    assert (removed["topic"], removed["row"], removed["kept_row"], removed["kept_text"]) == ("w", 5, 1, "a cat")
    assert [(row["topic"], row["row"], row["kept"]) for row in groups] == [("x", 1, True), ("w", 5, False)]


def test_matches_have_the_numbers_of_the_files(run, tiny_trunk):
    Path("b.txt").write_text("\na bird\n\na dog\n")
    outputs = ("--output", "pairs.jsonl", "--unmatched", "rest.jsonl")
    options = ("--model", tiny_trunk, "--threshold", "0.9999", "--drop-bad-rows")
    assert run("match", "a.csv", "b.txt", *outputs, *options)[0] == 0
    (pair,), unmatched = map(rows_in, outputs[1::2])
    assert (pair["topic"], pair["row"], pair["match_row"]) == ("z", 3, 4)
    assert [row["topic"] for row in unmatched] == ["x", "w"]


def rows_in(name):
    return list(map(json.loads, Path(name).read_text().splitlines()))


def test_a_collection_leaves_out_what_it_cannot_keep(run, tmp_path):
    (tmp_path / "ids.csv").write_text("id,text\n1,first\nx,second\n3,\n4,fourth\n")
    code, _, err = run("index", "build", "made", "ids.csv", "--drop-bad-rows")
    assert code == 0
    why = "ids.csv, row 3: an id is a whole number from 0 to 2**63 - 2, without leading zeros or decimals; received 'x'"
    assert f"ids.csv: 2 of 4 rows left out, because they cannot be kept (the first: {why}" in err
    assert "made: 2 texts" in err
    assert run("index", "add", "made", "a.csv", "--drop-bad-rows", "--upsert")[0] == 0
    assert run("index", "info", "made")[1].startswith("made: 4 texts")


@pytest.mark.parametrize("many", [10, 13])
def test_of_many_rows_the_first_numbers_are_shown(run, tmp_path, tiny_trunk, many):
    (tmp_path / "many.txt").write_text("a text\n" + many * "\n" + "more\n")
    err = run("encode", tiny_trunk, "many.txt", "--output", "v.npy", "--drop-bad-rows")[2]
    remainder = " and 3 more" if many > 10 else ""
    assert f"many.txt: {many} of {many + 2} {WHY}: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11{remainder}\n" in err

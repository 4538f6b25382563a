"""The commands index, on vectors that need no model."""

import json
import os
from pathlib import Path

import pytest

from samesense.cli.commands import index
from samesense.inference.collection import embedder
from samesense.inference.search import hnsw as search_approximate
from tests.command import run_command
from tests.inference.made_vectors import embedder as made_embedder


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    opened_models = []

    def fake(name, precision):
        opened_models.append((name, precision))
        return made_embedder(identity="moved" if name == "wrong" else "hashed words")

    monkeypatch.setattr(index, "_embedder", fake)
    monkeypatch.setattr(embedder, "open_for_queries", lambda name, built, texts: fake(name, built.precision))
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return run_command(capsys, "index", *arguments)

    call.asked = opened_models
    return call


def test_from_file_to_answer_and_back(run, tmp_path):
    (tmp_path / "a.tsv").write_text("text\tyear\nfirst\t2020\nsecond\t2021\nthird\t2020\n")
    (tmp_path / "b.txt").write_text("first\nfourth\n")
    code, out, err = run("build", "made", "a.tsv", "--model", "some/model")
    assert (code, out) == (0, "")
    assert "made: 3 texts, 0 deleted ones" in err
    assert run("add", "made", "b.txt")[2].startswith("2 texts added\nmade: 5 texts")
    assert run.asked == [("some/model", "auto"), ("hashed", "float32")]
    code, out, _ = run("query", "made", "first", "--top", "2", "--json")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"query": "first", "id": 0, "score": 1.0, "text": "first", "metadata": {"year": "2020"}},
        {"query": "first", "id": 3, "score": 1.0, "text": "first", "metadata": {}},
    ]
    _, out, _ = run("query", "made", "first", "--where", "year=2020")
    assert [line.split("\t")[1:] for line in out.splitlines()] == [["0", "first"], ["2", "third"]]
    assert run("query", "made", "FOURTH", "--words")[1].split("\t")[1:] == ["4", "fourth\n"]
    _, out, _ = run("query", "made", "fourth", "--hybrid", "--where", "year IS NULL", "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [4, 3]
    (tmp_path / "c.tsv").write_text("id\ttext\tyear\n1\tsecond again\t2021\n")
    summary = "c.tsv: texts of column 'text'\n0 texts added, 1 replaced\nmade: 5 texts, 1 deleted ones"
    assert run("add", "made", "c.tsv", "--upsert")[2].startswith(summary)
    assert run("query", "made", "again", "--words")[1].endswith("\t1\tsecond again\n")
    assert run("delete", "made", "0", "3")[2].startswith("2 texts deleted\nmade: 3 texts, 3 deleted")
    assert run("delete", "made", "--where", "year >= 2021")[2].startswith("1 texts deleted\nmade: 2 texts")
    assert json.loads(run("compact", "made", "--json")[1])["deleted"] == 0
    about = json.loads(run("info", "made", "--json")[1])
    assert {key: about[key] for key in ("texts", "deleted", "next_id", "search")} == {
        "texts": 2,
        "deleted": 0,
        "next_id": 5,
        "search": "exact",
    }


def test_misuse_is_one_line_and_code_2(run, tmp_path):
    (tmp_path / "a.txt").write_text("first\n")
    run("build", "made", "a.txt")
    for words, message in (
        (("build", "made", "a.txt"), "holds a collection"),
        (("query", "nowhere", "x"), "holds no collection"),
        (("query", "made", "x", "--model", "wrong"), "used with the model it was built with"),
        (("query", "made", "x", "--where", "year"), "A condition is like"),
        (("query", "made", "x", "--words", "--hybrid"), "received both"),
        (("delete", "made"), "give one of the two"),
        (("delete", "made", "8"), "no text with the id 8"),
    ):
        code, _, err = run(*words)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1


def test_what_needs_no_approximate_index_works_without_the_extra(run, tmp_path, monkeypatch):
    pytest.importorskip("usearch")
    (tmp_path / "a.txt").write_text("first\nsecond\nthird\n")
    (tmp_path / "b.txt").write_text("fourth\n")
    run("build", "made", "a.txt", "--approximate", "always")
    monkeypatch.setattr(search_approximate, "has_usearch", lambda: False)
    assert "pip install 'samesense[search]'" in run("query", "made", "second")[2]
    assert run("query", "made", "second", "--exact", "--top", "1") == (0, "1.0000\t1\tsecond\n", "")
    assert run("add", "made", "b.txt")[0] == run("delete", "made", "0")[0] == 0


def test_migrate_and_check(run, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("first\nsecond\n")
    assert run("build", "made", "a.txt")[0] == 0
    code, out, _ = run("info", "made", "--check")
    assert (code, out.splitlines()[-1]) == (0, "model: gives the same vectors as at the build, lowest cosine 1.0000")
    assert json.loads(run("info", "made", "--check", "--json")[1])["lowest_cosine"] == pytest.approx(1)
    code, _, err = run("migrate", "made", "--model", "wrong")
    assert (code, err.splitlines()[0]) == (0, "2 texts encoded again")
    assert run("query", "made", "first", "--top", "1", "--model", "wrong")[1] == "1.0000\t0\tfirst\n"
    code, _, err = run("query", "made", "first")
    assert (code, "index migrate made --model NEW" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x", "--where", "year >"), "A condition is like"),
        (("x", "--where", "month = 2"), "No text has metadata named 'month'. There are: year."),
        (("x", "--top", "0"), "--top is a whole number of 1 or more; received 0"),
        ((" ",), "A query must hold a text"),
    ],
)
def test_a_query_is_checked_before_the_model_is_loaded(run, tmp_path, words, message):
    (tmp_path / "a.tsv").write_text("text\tyear\nfirst\t2020\n")
    run("build", "made", "a.tsv")
    run.asked.clear()
    code, out, err = run("query", "made", *words)
    assert (code, out, run.asked) == (2, "", [])
    assert message in err


@pytest.mark.parametrize("words", [["build", "new.index"], ["add", "texts.index"]])
def test_a_file_is_looked_at_before_the_model_is_loaded(run, tmp_path, words):
    (tmp_path / "a.txt").write_text("a text\n")
    run("build", "texts.index", "a.txt")
    run.asked.clear()
    code, out, err = run(*words, "none.txt")
    assert (code, out, run.asked) == (2, "", [])
    assert "none.txt: there is no such file" in err


def test_added_and_replaced_texts_are_counted_apart(run, tmp_path):
    (tmp_path / "a.tsv").write_text("id\ttext\n1\tfirst\n2\tsecond\n")
    run("build", "made", "a.tsv")
    (tmp_path / "b.tsv").write_text("id\ttext\n2\tsecond again\n3\tthird\n3\tthird again\n4\tfourth\n")
    summary = "b.tsv: texts of column 'text'\n2 texts added, 2 replaced\nmade: 4 texts"
    assert run("add", "made", "b.tsv", "--upsert")[2].startswith(summary)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--where", "year = 1900"), "meets 'year = 1900'"),
        (("--words",), "has one of its words"),
        (("--words", "--where", "year = 1900", "--json"), "has one of its words and meets 'year = 1900'"),
    ],
)
def test_that_nothing_was_found_is_said_beside_the_data(run, tmp_path, words, why):
    (tmp_path / "a.tsv").write_text("text\tyear\nfirst\t2020\n")
    run("build", "made", "a.tsv")
    message = f"nothing found for 'other': no text {why}\n"
    assert run("query", "made", "other", *words) == (0, "", message)
    run("delete", "made", "0")
    assert run("query", "made", "other") == (0, "", "nothing found for 'other': no text is there\n")


@pytest.mark.parametrize("command", [("add", "made", "b.txt"), ("update", "made")])
def test_a_collection_that_may_not_be_written_to_is_refused_before_its_model_is_opened(
    run, tmp_path, monkeypatch, command
):
    (tmp_path / "b.txt").write_text("first\nfourth\n")
    assert run("build", "made", "b.txt", "--model", "some/model")[0] == 0
    run.asked.clear()

    monkeypatch.setattr(os, "access", lambda path, mode: path != Path("made"))
    code, _, err = run(*command)
    assert (code, run.asked) == (2, [])
    assert "made/collection.sqlite cannot be written: [Errno 13] Permission denied: 'made'. Name" in err

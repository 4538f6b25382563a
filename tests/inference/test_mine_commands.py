"""The commands mine and cluster, on vectors that need no model."""

import io
import json

import pytest

from tests.command import run_command
from tests.inference.made_vectors import encode


class Hashed:
    def encode(self, texts, *, normalize, on_progress):
        on_progress(len(texts))
        return encode(texts)


@pytest.fixture
def run(monkeypatch, capsys):
    loaded = []

    def call(*arguments, stdin=None):
        monkeypatch.setattr(
            "samesense.inference.models.load.load", lambda name, precision: loaded.append(name) or Hashed()
        )
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
    assert err.startswith("samesense: error: Standard input must be utf-8 text: ")
    assert err.count("\n") == 1


def test_a_row_stays_one_line_whatever_its_texts(run, tmp_path):
    (tmp_path / "t.txt").write_text("same\tthing\u2028here\nsame\tthing\u2028here\n")
    code, out, _ = run("mine", tmp_path / "t.txt")
    assert (code, out) == (0, "1.0000\tsame thing here\tsame thing here\n")

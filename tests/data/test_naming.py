"""Names of sources are unambiguous, and as short as that allows."""

import pytest

import samesense
from samesense.data.rows.sources import distinct_names
from tests.command import run_command


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["a/train.tsv", "b/test.tsv"], ["train.tsv", "test.tsv"]),
        (["a/train.tsv", "b/train.tsv", "b/test.tsv"], ["a/train.tsv", "b/train.tsv", "test.tsv"]),
        (["/x/a/ü/t.tsv", "/y/a/ü/t.tsv"], ["x/a/ü/t.tsv", "y/a/ü/t.tsv"]),
        (["t.tsv", "b/t.tsv"], ["t.tsv", "b/t.tsv"]),
        (["b/t.tsv", "a/b/t.tsv", "c/t.tsv"], ["b/t.tsv", "a/b/t.tsv", "c/t.tsv"]),
        (["a/t.tsv", "a/t.tsv"], ["t.tsv", "t.tsv"]),
    ],
)
def test_the_shortest_end_that_no_namesake_has(sources, names):
    assert distinct_names([source.rpartition("/")[2] for source in sources], sources) == names


def test_joined_sources_and_names_of_the_hub_stay_whole():
    joined = ["x/a.tsv + x/b.tsv", "y/a.tsv + y/b.tsv", "owner/set:train"]
    assert distinct_names(["a.tsv + b.tsv", "a.tsv + b.tsv", "owner/set:train"], joined) == joined


def test_the_doctor_tells_files_of_one_name_apart(tmp_path, capsys):
    for folder in ("alt", "neu"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "paare.tsv").write_text(
            "label\tsentence1\tsentence2\n1\ta b\tc\n0\td\te ü\n", encoding="utf-8"
        )
    old, new = (str(tmp_path / folder / "paare.tsv") for folder in ("alt", "neu"))
    assert samesense.doctor(old).name == "paare.tsv"
    assert samesense.doctor(old, against=new).name == "alt/paare.tsv"
    assert [report.name for report in samesense.doctor([old, new])] == ["alt/paare.tsv", "neu/paare.tsv"]
    code, out, _ = run_command(capsys, "doctor", old, new)
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")] == [
        "alt/paare.tsv",
        "neu/paare.tsv",
    ]

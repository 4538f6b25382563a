import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from samesense.errors import DataError, OutputError
from samesense.reports import append_results, read_results
from samesense.types import Result


def result(**changes):
    names = {"task": "sts", "dataset": "d", "split": "test", "subset": "all", "metric": "spearman", "model": "m"}
    return Result(**{**names, "value": 0.8, "n": 10, "protocol": "p", **changes})


FULL = result(low=0.7, high=0.9, seed=3, seconds=1.5, model="模型\u2028\n x", value=1 / 3)


def test_what_was_appended_is_read_back(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    append_results(path, [result()])
    append_results(str(path), [FULL, result(subset="x")])
    assert read_results(path) == [result(), FULL, result(subset="x")]
    assert len(path.read_bytes().splitlines()) == 3
    assert [file.name for file in path.parent.iterdir()] == ["results.jsonl"]


def test_results_that_are_appended_at_the_same_moment_are_all_there(tmp_path):
    path = tmp_path / "results.jsonl"
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda number: append_results(path, [result(value=number / 100)]), range(40)))
    assert sorted(kept.value for kept in read_results(path)) == [number / 100 for number in range(40)]
    assert [file.name for file in tmp_path.iterdir()] == ["results.jsonl"]


def test_a_missing_last_newline_is_added(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(result().to_dict()))
    append_results(path, [FULL])
    assert read_results(path) == [result(), FULL]


def test_an_interruption_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    append_results(path, [result()])

    def full(handle):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match="no space left"):
        append_results(path, [FULL])
    assert read_results(path) == [result()]
    assert [file.name for file in tmp_path.iterdir()] == ["results.jsonl"]


@pytest.mark.posix
def test_a_link_stays_a_link(tmp_path):
    path = tmp_path / "results.jsonl"
    link = tmp_path / "link.jsonl"
    append_results(path, [result()])
    link.symlink_to(path)
    append_results(link, [FULL])
    assert link.is_symlink()
    assert read_results(path) == [result(), FULL]


def test_a_folder_cannot_be_written(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        append_results(tmp_path, [result()])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("{", "line 3 is not a result"),
        ("[]", "line 3 is not a result"),
        ({"extra": 1}, "`extra` is damaged: Unexpected keyword argument"),
        ({"n": None}, "`n` is damaged: Input should be a valid integer"),
        ({"n": 2.5}, "`n` is damaged: Input should be a valid integer"),
        ({"seed": True}, "`seed` is damaged: Input should be a valid integer"),
        ({"value": "0.8"}, "`value` is damaged: Input should be a valid number"),
        ({"value": float("nan")}, "finite"),
        ({"dataset": 3}, "`dataset` is damaged: Input should be a valid string"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, text):
    path = tmp_path / "results.jsonl"
    append_results(path, [result()])
    wrong = line if isinstance(line, str) else json.dumps({**result().to_dict(), **line})
    path.write_text(path.read_text() + "\n" + wrong + "\n")
    with pytest.raises(DataError, match=text) as caught:
        read_results(path)
    assert "results.jsonl, line 3 " in str(caught.value)


def test_a_missing_field_is_named(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"task": "sts"}\n')
    with pytest.raises(DataError, match=r"line 1 is not a result: `dataset` is damaged: Field required"):
        read_results(path)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_results(tmp_path / "absent.jsonl")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        read_results(tmp_path / "binary.jsonl")

"""A folder of shards: whole or absent, resumed after any stop, refused to any other job."""

import hashlib
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from samesense.errors import DataError, OutputError, SamesenseError
from samesense.execution.shards import folders
from samesense.execution.shards import job as sharded
from samesense.execution.shards.job import ShardedJob
from tests.execution.sharded_world import SIZES, Digits, make, manifest, shards
from tests.messages import listen

ROOT = Path(__file__).parents[2]


def program(*words):
    return [sys.executable, "-m", "tests.execution.sharded_world", *map(str, words)]


def test_the_manifest_lists_what_was_made_and_what_it_cost(tmp_path):
    cost = make(Digits(tmp_path), tmp_path / "s")
    assert cost == {"cells": 120, "rows": 60, "seconds": 4.5}
    content = manifest(tmp_path / "s")
    assert (content["method"], content["status"], content["total"]) == ("digits", "finished", 60)
    assert (content["settings"], content["cost"]) == ({"seed": 1}, cost)
    written = [(name, hashlib.sha256(item).hexdigest()) for name, item in shards(tmp_path / "s").items()]
    assert [(item["file"], item["sha256"]) for item in content["shards"]] == written
    assert [item["rows"] for item in content["shards"]] == SIZES


@pytest.mark.posix
def test_it_resumes_with_any_workers_and_makes_nothing_twice(tmp_path):
    lines = listen()
    make(Digits(tmp_path), tmp_path / "s")
    whole = shards(tmp_path / "s")
    listed = manifest(tmp_path / "s")["shards"]
    for number in (0, 5, 8):
        (tmp_path / "s" / "shards" / f"{number:05}.bin").unlink()
    (tmp_path / "s" / "shards" / ".00005.bin.99999999-0123abcd.part").write_bytes(b"cut off")
    history = tmp_path / "s" / "history.jsonl"
    history.write_text(history.read_text()[:-20])  # the last line cut off: the shard is hashed again
    (tmp_path / "dies-now").touch()
    make(Digits(tmp_path), tmp_path / "s", workers=2)
    assert not (tmp_path / "dies-now").exists()
    assert lines == ["6 of 9 shards are there already"]
    assert shards(tmp_path / "s") == whole and manifest(tmp_path / "s")["shards"] == listed
    before = manifest(tmp_path / "s")
    (tmp_path / "dies-now").touch()
    make(Digits(tmp_path / "moved"), tmp_path / "s")  # the name of the folder does not count
    assert manifest(tmp_path / "s") == before and lines[-1] == "9 of 9 shards are there already"


def test_shards_that_fail_are_said_and_the_others_kept(tmp_path, monkeypatch):
    original = Digits.__call__

    def fails(work, number):
        if number == 4:
            raise OSError("no luck")
        return original(work, number)

    monkeypatch.setattr(Digits, "__call__", fails)
    with pytest.raises(SamesenseError, match=r"1 shards could not be made, .* 3 attempts: shard 4, OSError: no luck"):
        make(Digits(tmp_path), tmp_path / "s")
    assert len(shards(tmp_path / "s")) == 8 and manifest(tmp_path / "s")["status"] == "running"
    monkeypatch.setattr(Digits, "__call__", lambda work, number: 1 / 0)
    monkeypatch.setattr(sharded, "MAX_FAILED", 3)
    with pytest.raises(SamesenseError, match="3 shards could not be made"):
        make(Digits(tmp_path), tmp_path / "other")


@pytest.mark.parametrize("missing", [(), (8,)])
def test_damaged_shards_do_not_count_as_finished(tmp_path, missing):
    make(Digits(tmp_path), tmp_path / "s")
    whole = shards(tmp_path / "s")
    for number in missing:
        (tmp_path / "s" / "shards" / f"{number:05}.bin").unlink()
    # One bit, and the end.
    damaged = {3: b"3333332", 5: b"555"}
    for number, content in damaged.items():
        (tmp_path / "s" / "shards" / f"{number:05}.bin").write_bytes(content)
    before = shards(tmp_path / "s")
    with pytest.raises(DataError, match=r"00003\.bin, .*00005\.bin\. They are damaged.*Delete them"):
        make(Digits(tmp_path), tmp_path / "s")
    assert shards(tmp_path / "s") == before
    for number in damaged:
        (tmp_path / "s" / "shards" / f"{number:05}.bin").unlink()
    make(Digits(tmp_path), tmp_path / "s")
    assert shards(tmp_path / "s") == whole


def test_ctrl_c_says_what_is_kept(tmp_path, monkeypatch):
    original = Digits.__call__

    def pressed(work, number):
        if number == 3:
            raise KeyboardInterrupt
        return original(work, number)

    monkeypatch.setattr(Digits, "__call__", pressed)
    with pytest.raises(KeyboardInterrupt, match="Finished shards are kept: the same command resumes"):
        make(Digits(tmp_path), tmp_path / "s")
    assert len(shards(tmp_path / "s")) == 3


def test_another_job_is_refused_even_if_it_was_begun_meanwhile(tmp_path, monkeypatch):
    make(Digits(tmp_path), tmp_path / "s")
    with pytest.raises(OutputError, match="other settings: seed was 1 and is 2; size was None and is 3"):
        make(Digits(tmp_path), tmp_path / "s", settings={"seed": 2, "size": 3})
    held = folders.only_writer

    @contextmanager
    def after_another(folder):
        monkeypatch.setattr(folders, "only_writer", held)
        make(Digits(tmp_path), folder, settings={"seed": 7})
        with held(folder):
            yield

    monkeypatch.setattr(folders, "only_writer", after_another)
    with pytest.raises(OutputError, match="seed was 7 and is 1"):
        make(Digits(tmp_path), tmp_path / "meanwhile")


def test_other_folders_are_left_alone(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "thesis.txt").write_text("much work")
    with pytest.raises(OutputError, match="not empty and holds no shards of samesense digits"):
        make(Digits(tmp_path), folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    (folder / "manifest.json").write_text('{"method": "harvest"}')
    with pytest.raises(OutputError, match="holds a run of harvest"):
        make(Digits(tmp_path), folder)
    make(Digits(tmp_path), tmp_path / "mine")
    with FileLock(tmp_path / "mine" / ".lock"), pytest.raises(OutputError, match="one writer at a time"):
        make(Digits(tmp_path), tmp_path / "mine")


def test_files_that_are_no_shards_are_named(tmp_path):
    job = ShardedJob(tmp_path, "digits", ".bin")
    assert job.finished(9) == set()
    for name in ("00003.bin", "123456.bin", ".hidden"):
        job.path(0).parent.mkdir(exist_ok=True)
        (job.path(0).parent / name).touch()
    assert job.finished(200_000) == {3, 123456}
    with pytest.raises(OutputError, match=r"shards 0 to 8, and 123456\.bin is none of them"):
        job.finished(9)
    (job.path(0).parent / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt is none"):
        job.finished(200_000)


def test_shards_made_with_other_libraries_are_said_and_noted(tmp_path, monkeypatch):
    lines = listen()
    make(Digits(tmp_path), tmp_path / "s")
    before = sharded.environment()
    now = {**before, "versions": {**before["versions"], "numpy": "0.1"}}
    monkeypatch.setattr(sharded, "environment", lambda: now)
    make(Digits(tmp_path), tmp_path / "s")
    assert "numpy" not in "".join(lines)  # nothing was made
    for _ in range(2):
        (tmp_path / "s" / "shards" / "00003.bin").unlink()
        make(Digits(tmp_path), tmp_path / "s")
    messages = [line for line in lines if line.startswith("numpy was")]
    assert len(messages) == 1 and "and is '0.1': new shards may differ" in messages[0]
    content = manifest(tmp_path / "s")
    assert content["other_versions"] == [now] and content["versions"] == before["versions"]


@pytest.mark.posix
def test_a_job_killed_at_any_file_operation_resumes(tmp_path, pytestconfig):
    stride = 1 if pytestconfig.getoption("--runslow") else 13
    done = subprocess.run(program("killed", tmp_path, stride), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * stride > 40


@pytest.mark.posix
@pytest.mark.slow
def test_processes_killed_at_random_lose_and_double_nothing(tmp_path):
    """Kills the main process, its workers, and presses Ctrl-C, in turn."""
    make(Digits(tmp_path), tmp_path / "whole")
    (tmp_path / "slow").write_text("0.1")
    chance = random.Random(0)
    for number in range(3):
        process = subprocess.Popen(program("s", tmp_path, 2), cwd=ROOT, stderr=subprocess.DEVNULL)
        had = len(list(tmp_path.glob("s/shards/*.bin")))
        while len(list(tmp_path.glob("s/shards/*.bin"))) < min(9, had + 2) and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.1))
        if number == 0:
            (tmp_path / "dies-now").touch()
            time.sleep(0.3)
        process.send_signal((signal.SIGKILL, signal.SIGKILL, signal.SIGINT)[number])
        process.wait()
    (tmp_path / "dies-now").unlink(missing_ok=True)
    (tmp_path / "slow").unlink()
    make(Digits(tmp_path), tmp_path / "s")
    assert shards(tmp_path / "s") == shards(tmp_path / "whole")

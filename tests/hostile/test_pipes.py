"""Pipes and devices: read once as an input, written into as an output, and never replaced."""

import os
import shlex
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from samesense.errors import OutputError
from samesense.files import replacing, replacing_folder, write_text
from samesense.places import check_folder, check_place
from samesense.reports import append_results
from tests.command import run_command

pytestmark = pytest.mark.posix
DEDUP = ("--model", "words:words.vec", "--threshold", "0.999")


def fed(path, content):
    """Write into a pipe while it is read."""
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_text, args=(content,), daemon=True)
    thread.start()
    return thread


def drained(path):
    """Read a pipe while it is written; returns a function that gives what came."""
    os.mkfifo(path)
    came = []
    thread = threading.Thread(target=lambda: came.append(path.read_text()), daemon=True)
    thread.start()
    return lambda: thread.join(20) or came[0]


@pytest.mark.parametrize("name", ["p.tsv", "p.txt", "p", "p.jsonl", "p.csv"])
def test_a_pipe_is_read_as_a_file_is(here, capsys, name):
    content = {
        ".tsv": "text\ta\nx y\t1\nz\t2\n",
        ".csv": "text,a\nx y,1\nz,2\n",
        ".jsonl": '{"text": "x"}\n{"text": "z"}\n',
    }
    text = content.get(Path(name).suffix, "a man eats\na dog\na man eats\n")
    (here / f"file-{name}").write_text(text)
    expected = run_command(capsys, "dedup", f"file-{name}", *DEDUP)
    writer = fed(here / name, text)
    assert run_command(capsys, "dedup", name, *DEDUP)[:2] == expected[:2]
    writer.join(20)  # its end comes after the last byte
    assert expected[0] == 0 and not writer.is_alive()


def test_what_reads_by_place_refuses_a_pipe(here, capsys):
    os.mkfifo(here / "p.txt")
    code, _, err = run_command(capsys, "encode", "words:words.vec", "p.txt", "--shard-size", "2", "--output", "out")
    assert code == 2 and "p.txt is a pipe. Write what it brings to a file first." in err


@pytest.mark.slow
def test_process_substitution_is_read(here):
    line = f"{shlex.quote(sys.executable)} -m samesense dedup <(cat texts.txt) {' '.join(DEDUP)}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)
    assert ended.returncode == 0 and len(ended.stdout.splitlines()) > 30, ended.stderr


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.txt"])
def test_a_pipe_is_written_into_and_stays(here, capsys, name):
    content = drained(here / name)
    assert run_command(capsys, "dedup", "texts.txt", *DEDUP, "--output", name)[0] == 0
    expected = f"x-{name}"
    assert run_command(capsys, "dedup", "texts.txt", *DEDUP, "--output", expected)[0] == 0
    assert content() == (here / expected).read_text()
    assert stat.S_ISFIFO((here / name).stat().st_mode)


def test_devices_are_written_into_and_stay(tmp_path):
    before = Path("/dev/null").stat()
    check_place("/dev/null")
    write_text("/dev/null", "text")
    append_results("/dev/null", [])
    assert Path("/dev/null").stat().st_rdev == before.st_rdev
    with (tmp_path / "log").open("a+b") as log:
        log.write(b"before\n")
        log.flush()
        check_place(f"/dev/fd/{log.fileno()}")
        write_text(f"/dev/fd/{log.fileno()}", "text\n")
    assert (tmp_path / "log").read_text() == "before\ntext\n"
    with pytest.raises(ValueError, match="stopped"), replacing("/dev/null") as beside:
        beside.write_text("half")
        raise ValueError("stopped")


def test_no_folder_replaces_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "p")
    for path in (tmp_path / "p", "/dev/null"):
        with pytest.raises(OutputError, match="is not replaced by a folder"):
            check_folder(path)
    with pytest.raises(OutputError, match="is not replaced by a folder"), replacing_folder(tmp_path / "p"):
        pass
    assert stat.S_ISFIFO((tmp_path / "p").stat().st_mode)

"""Files are written atomically beside other writers; and the hashes that identify caches and runs."""

import errno
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import samesense
from samesense import files, hashes, locks, places, urls
from samesense.encoder.names import resolve
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.execution.shards.folders import append_json, parsed_lines
from samesense.failures import TEMPORARY_FOLDER, system_reason, writing
from samesense.files import replacing_folder
from samesense.scratch import HELD, ScratchFolder
from samesense.urls import matching

HOLD = """
import sys
from pathlib import Path
from samesense.locks import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
# No process has so high a number.
LEFT = ".b.txt.99999999-0123abcd.part"


LEAVE = """
import os, signal, sys
from samesense.scratch import ScratchFolder
folder = ScratchFolder()
print(folder.name, flush=True)
if sys.argv[1] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.posix
def test_a_file_is_replaced_and_its_folders_are_made(tmp_path):
    path = tmp_path / "made" / "a.txt"
    assert files.write_text(path, "one\r\ntwö") == path
    assert path.read_bytes() == "one\r\ntwö".encode()
    path.chmod(0o600)
    files.write_bytes(path, b"three", sync=True)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"three", 0o600)
    assert names(path.parent) == ["a.txt"]


@pytest.mark.posix
@pytest.mark.posix
def test_a_pattern_is_one_below_a_folder_of_any_name(tmp_path, monkeypatch):
    folder = tmp_path / "run[1]*"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.txt").write_text("a")
    monkeypatch.chdir(folder)
    for pattern in ("in/*.txt", "**/a.*", "file://in/*.txt"):
        assert matching(pattern) == [str(folder / "in" / "a.txt")]
    monkeypatch.chdir(tmp_path)
    assert matching("*/in/[ab].txt") == [str(folder / "in" / "a.txt")]


def test_an_input_named_as_a_url_is_not_written_over(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(OutputError, match="read here"):
        places.check_place(tmp_path / "a.txt", [f"file://{tmp_path}/a.txt"])


@pytest.mark.parametrize("check", [places.check_place, places.check_folder])
def test_an_output_named_as_a_url_is_refused_and_makes_no_folders_here(tmp_path, monkeypatch, check):
    monkeypatch.chdir(tmp_path)
    for url in ("s3://bucket/scored.tsv", Path("s3://bucket/scored.tsv")):
        with pytest.raises(OutputError, match=r"is a URL\. Name a path, and copy the result there\."):
            check(url)
    with pytest.raises(OutputError, match=r"is a URL\. Name a path, /data/scored\.tsv\."):
        check("file:///data/scored.tsv")
    assert list(tmp_path.iterdir()) == []
    # As an earlier output of this name may have left it.
    (tmp_path / "s3:").mkdir()
    with pytest.raises(OutputError, match="is a URL"):
        check("s3://bucket/scored.tsv")
    check("run:/scored.tsv")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    files.write_text(tmp_path / "link", "one")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a.txt").read_text() == "one"


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = files.write_text(tmp_path / "a.txt", "old")
    expected = OutputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected), files.replacing(path) as beside:
        beside.write_text("half")
        raise error
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_what_cannot_be_written_is_said_before_and_after(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "a.txt"):
        with pytest.raises(OutputError):
            places.check_place(path)
        with pytest.raises(OutputError, match="cannot be written"):
            files.write_text(path, "text")
    places.check_place(tmp_path / "made" / "a.txt")
    assert (tmp_path / "made").is_dir()


def write_often(path, digit):
    for _ in range(200):
        files.write_text(Path(path), digit * 50_000)


def test_of_a_temporary_file_that_has_no_room_the_variable_is_named_that_moves_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    full = OSError(errno.ENOSPC, "No space left on device")
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_FOLDER) as folder:
        for place, fix in ((Path(folder) / "a.bin", "set TMPDIR"), (tmp_path / "samesense-a.bin", "name a place")):
            message = rf"No space left.*, or {fix}.* on another disk\. The disk at"
            with pytest.raises(OutputError, match=message), writing(place):
                raise full
    # What becomes of a pipe or device is written there first.
    with pytest.raises(OutputError, match="set TMPDIR"), files.replacing(os.devnull):
        raise full
    nowhere = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    assert "set TMPDIR" in str(system_reason(nowhere))


@pytest.mark.posix
def test_a_copy_of_standard_input_or_of_a_pipe_that_has_no_room_is_named(tmp_path, monkeypatch):
    def fill(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", fill)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\n")))
    with pytest.raises(OutputError, match=r"standard-input\.tsv cannot be written: .* set TMPDIR"):
        samesense.score("-", model="default")
    monkeypatch.setattr(urls, "_pipes", {})
    monkeypatch.setattr(urls, "is_pipe", lambda _: True)
    (tmp_path / "pipe").touch()
    with pytest.raises(OutputError, match="set TMPDIR"):
        urls.file_of(tmp_path / "pipe")


def test_processes_that_write_one_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "a.txt"
    writers = [get_context("fork").Process(target=write_often, args=(path, digit)) for digit in "123"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = path.read_text() if path.exists() else "1" * 50_000
        assert len(content) == 50_000 and len(set(content)) == 1
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    path = files.write_text(tmp_path / "made" / "model", "a file in the way")
    for content in ("one", "two"):
        with files.replacing_folder(path) as beside:
            (beside / content).touch()
        assert names(path) == [content] and names(path.parent) == ["model"]
    with pytest.raises(KeyboardInterrupt), files.replacing_folder(path) as beside:
        raise KeyboardInterrupt
    assert names(path) == ["two"] and names(path.parent) == ["model"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one_there(tmp_path, monkeypatch, error):
    model_folder = tmp_path / "model"
    rename = Path.rename
    with replacing_folder(model_folder) as beside:
        (beside / "old").touch()

    def failing(path, target):
        if files.is_temporary(path.name):
            raise error
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises((OutputError, KeyboardInterrupt)), replacing_folder(model_folder):
        pass
    assert (names(tmp_path), names(model_folder)) == (["model"], ["old"])


@pytest.mark.posix
@pytest.mark.parametrize("name", ["runs/model", "runs"])
def test_what_a_writer_set_aside_before_it_was_killed_is_named(tmp_path, monkeypatch, name):
    model_folder = tmp_path / "runs" / "model"
    with replacing_folder(model_folder) as beside:
        (beside / "modules.json").touch()
    child = os.fork()
    if child == 0:
        rename = Path.rename
        monkeypatch.setattr(Path, "rename", lambda path, to: rename(path, to) and os._exit(0))
        with replacing_folder(model_folder):
            pass
    os.waitpid(child, 0)
    with pytest.raises(ModelError, match=rf"before is .*\.model-old-{child}: rename it to model\."):
        resolve(str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"rename it to model\."):
        resolve(name)


@pytest.mark.parametrize("name", [".", "../here"])
def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OutputError, match="the current one cannot be"), files.replacing_folder(Path(name)):
        pytest.fail("begun")
    assert names(tmp_path) == ["here"]


def test_json_and_arrays_come_back(tmp_path):
    files.write_json(tmp_path / "a.json", {"é": [1, None]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "é": [\n    1,\n    null\n  ]\n}\n'
    assert files.read_json(tmp_path / "a.json") == {"é": [1, None]}
    files.write_json_lines(tmp_path / "a.jsonl", [{"é": 1}, [2]])
    assert (tmp_path / "a.jsonl").read_text(encoding="utf-8") == '{"é": 1}\n[2]\n'
    files.write_array(tmp_path / "a.npy", np.arange(3))
    assert np.load(tmp_path / "a.npy").tolist() == [0, 1, 2]


@pytest.mark.parametrize("content", [None, "{", "[1]", b"\xff"])
def test_what_is_no_json_object_is_refused_with_what_to_do(tmp_path, content):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=r"a\.json must .*Train anew\."):
        files.read_json(path, "Train anew.")


def test_lines_of_json_outlive_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "history.jsonl"
    assert parsed_lines(b"") == []
    append_json(path, {"shard": 0})
    with path.open("a") as stream:
        stream.write('{"shard": 1, "sec')
    append_json(path, {"shard": 2})
    append_json(path, {"shard": 3})
    assert parsed_lines(path.read_bytes()) == [{"shard": 0}, {"shard": 2}, {"shard": 3}]
    assert path.read_text().count("\n") == 4


def test_an_array_grows_and_is_mapped(tmp_path):
    path = tmp_path / "a.bin"
    files.truncate(path, 0)
    assert files.map_array(path, np.int64, 0).shape == (0,)
    files.append(path, np.arange(6)[::2])
    files.append(path, b"cut")
    files.truncate(path, 24)
    assert files.map_array(path, np.int64, 3).tolist() == [0, 2, 4]
    for refused in (lambda: files.truncate(path, 25), lambda: files.map_array(path, np.int64, 4)):
        with pytest.raises(DataError, match="holds 24 bytes"):
            refused()


def test_hashes_are_those_of_the_bytes(tmp_path):
    def sha256(content):
        return hashlib.sha256(content).hexdigest()

    path = files.write_bytes(tmp_path / "one" / "a.bin", bytes(3 << 20))
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    whole = sha256(b"a" + bytes(3 << 20) + matrix.tobytes())
    assert hashes.content_hash(iter([b"a", path, matrix.data])) == whole
    assert hashes.text_hash("é\ud800") == sha256("é".encode() + b"\xed\xa0\x80") == hashes.text_digest("é\ud800").hex()
    assert hashes.json_hash({"b": 1, "a": [2]}) == sha256(b'{"a": [2], "b": 1}') == hashes.json_hash({"a": [2], "b": 1})
    assert hashes.rows_hash([("é", 1)], b"kind") == sha256(b'kind["\\u00e9", 1]\n')
    assert hashes.folder_hash(tmp_path, [path]) == sha256(f"one/a.bin {sha256(bytes(3 << 20))}\n".encode())


def test_a_second_process_is_kept_out_until_the_first_is_killed(tmp_path):
    folder = tmp_path / "made" / "here"
    words = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="has one writer at a time") as refused, locks.only_writer(folder):
            pass
        assert str(folder) in str(refused.value)
        waited = []

        def kill():
            waited.append(True)
            holder.kill()

        with locks.locked(folder / locks.LOCK, on_wait=kill):
            assert waited
    with locks.only_writer(folder):
        assert locks.is_empty(folder)
        (folder / "something").touch()
        assert not locks.is_empty(folder)
    assert set(names(folder)) <= {locks.LOCK, "something"}


def test_the_writer_clears_what_killed_ones_left_and_nothing_else(tmp_path):
    retained = [".vectors-1.part", ".b.txt.part", "b.txt.99999999-0123abcd.part"]
    for name in (LEFT, *retained):
        (tmp_path / name).touch()
    assert files.is_temporary(LEFT) and not any(map(files.is_temporary, retained))
    with files.replacing_folder(tmp_path / "model") as beside:
        assert files.is_temporary(beside.name)
    with locks.only_writer(tmp_path):
        assert set(names(tmp_path)) - {locks.LOCK} == {"model", *retained}


@pytest.mark.posix
def test_a_killed_writer_leaves_a_folder_that_counts_as_empty(tmp_path):
    child = os.fork()
    if child == 0:
        with files.replacing(tmp_path / "manifest.json") as beside:
            beside.write_text(json.dumps({"half": 1}))
            os._exit(0)
    os.waitpid(child, 0)
    assert len(names(tmp_path)) == 1 and locks.is_empty(tmp_path)


@pytest.mark.posix
def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "big disk").mkdir()
    (tmp_path / "models").symlink_to(tmp_path / "big disk")
    for content in ("one", "two"):
        with replacing_folder(tmp_path / "models") as beside:
            (beside / "file").write_text(content)
        assert (tmp_path / "models").is_symlink()
        assert (tmp_path / "big disk" / "file").read_text() == content


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a device that is always full")
@pytest.mark.parametrize("add", [lambda path: files.append(path, b"line"), lambda path: append_json(path, {"a": 1})])
def test_what_cannot_be_appended_to_is_named(add):
    with pytest.raises(OutputError, match=r"^/dev/full cannot be written: .*No space left"):
        add(Path("/dev/full"))


def test_a_message_names_no_temporary_file(tmp_path):
    with pytest.raises(OutputError) as caught, files.replacing(tmp_path / "a.tsv") as beside:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(beside))
    assert f"a.tsv cannot be written: [Errno 13] Permission denied: '{tmp_path}'. Name" in str(caught.value)
    beside = files.temporary(tmp_path / "model")
    within = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(beside / "a.bin"))
    assert f"No space left on device: '{tmp_path}/model/a.bin'" in str(system_reason(within))


WRITE_BEYOND_A_LIMIT = """
import resource, sys
from pathlib import Path
import numpy as np
from samesense.failures import writing
from samesense.inference.labelling.file import open_labels

folder = Path(sys.argv[1])
with open_labels(folder / "labels.tsv", "me") as labels:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    for write in (
        lambda: np.save(folder / "a.npy", np.zeros(1000)),
        lambda: (folder / "a.txt").write_text("a" * 8000),
        lambda: labels.add([(("a" * 8000, "b"), 1.0)]),
    ):
        try:
            with writing(folder / "a"):
                write()
        except Exception as error:
            print(type(error).__name__, error)
"""


@pytest.mark.posix
def test_a_limit_of_file_sizes_is_no_full_disk(tmp_path):
    command = [sys.executable, "-c", WRITE_BEYOND_A_LIMIT, str(tmp_path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("OutputError ") and "File too large" in line and "ulimit -f unlimited" in line
        assert "No space left" not in line


def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(tmp_path):
    others = [".b.txt.more.99999999-0123abcd.part", ".a.txt.99999999-0123abcd.part", ".b.txt.part"]
    for name in (LEFT, *others):
        (tmp_path / name).touch()
    with locks.only_writer_of(tmp_path / "b.txt"):
        pass
    assert names(tmp_path) == sorted(others)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_temporary_folders_of_killed_processes_are_removed_by_the_next(tmp_path, monkeypatch):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", LEAVE]
    dead = [Path(subprocess.run([*words, "die"], env=environment, capture_output=True, text=True).stdout.strip())]
    alive = subprocess.Popen([*words, "wait"], env=environment, stdin=-1, stdout=-1, text=True)
    held = Path(alive.stdout.readline().strip())
    (tmp_path / "samesense-of-others").mkdir()
    for folder in (*dead, held):
        assert (folder / HELD).exists()
        os.utime(folder / HELD, (0, 0))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ScratchFolder() as name:
        assert names(tmp_path) == sorted({"samesense-of-others", held.name, Path(name).name})
    alive.communicate("")
    assert names(tmp_path) == ["samesense-of-others"]


def test_a_new_temporary_folder_is_left_alone_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(platform, "node", lambda: "here")
    new = tmp_path / "samesense-here-1234abcd"
    new.mkdir()
    (new / HELD).touch()
    with ScratchFolder():
        assert new.is_dir()


@pytest.mark.parametrize("node", ["there", "here-there"])
def test_temporary_folders_of_other_machines_are_left_alone(tmp_path, monkeypatch, node):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(platform, "node", lambda: node)
    other = ScratchFolder()
    other._lock.release()  # where locks hold on one machine only, this one sees none
    (Path(other.name) / HELD).touch()
    os.utime(Path(other.name) / HELD, (0, 0))
    monkeypatch.setattr(platform, "node", lambda: "here")
    with ScratchFolder():
        assert Path(other.name).is_dir()
    monkeypatch.setattr(platform, "node", lambda: node)
    with ScratchFolder():
        assert not Path(other.name).exists()


@pytest.mark.posix
def test_temporary_folders_of_other_users_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = ScratchFolder()
    other._lock.release()
    (Path(other.name) / HELD).touch()
    os.utime(Path(other.name) / HELD, (0, 0))
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    with ScratchFolder():
        assert Path(other.name).is_dir()


@pytest.mark.posix
@pytest.mark.parametrize("hold", [lambda path: locks.only_writer_of(path), lambda path: locks.only_writer(path.parent)])
def test_the_file_of_a_writer_without_a_lock_outlives_the_start_of_another_one(tmp_path, hold):
    path = tmp_path / "b.txt"
    with files.replacing(path) as beside:
        beside.write_text("new")
        other = path.with_name(f".b.txt.{os.getppid()}-0123abcd.part")
        other.write_text("of another process")
        with hold(path):
            assert beside.exists()
            assert other.exists()
    assert path.read_text() == "new"


@pytest.mark.posix
def test_the_file_of_a_killed_process_of_the_same_number_is_removed(tmp_path, monkeypatch):
    left = tmp_path / f".b.txt.{os.getpid()}-0123abcd.part"
    left.touch()
    monkeypatch.setattr(files, "STARTED", time.time() + 2 * files.CLOCK_ERROR)
    with locks.only_writer_of(tmp_path / "b.txt"):
        assert not left.exists()


@pytest.mark.posix
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_written_to_with_one_warning(tmp_path, monkeypatch, caplog, number):
    import fcntl

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(locks, "_WITHOUT_LOCKS", set())
    with locks.only_writer(tmp_path / "folder"), locks.only_writer_of(tmp_path / "a.txt"):
        files.write_text(tmp_path / "a.txt", "written")
    with locks.in_turn(tmp_path / "a.txt"), locks.locked(tmp_path / "other.lock", on_wait=pytest.fail):
        assert (tmp_path / "a.txt").read_text() == "written"
    with ScratchFolder() as scratch:
        assert Path(scratch).is_dir()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"{tmp_path / 'folder'}: this file system has no locks")


@pytest.mark.posix
def test_a_lock_that_the_disk_refuses_names_its_file(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OutputError, match=r"\.a\.txt\.lock cannot be locked: .*Input/output error"):
        locks.only_writer_of(tmp_path / "a.txt").__enter__()


def test_two_outputs_in_one_file_are_refused(tmp_path):
    names = (tmp_path / "a.png", tmp_path / "b" / ".." / "a.png")
    with pytest.raises(ConfigError, match="Each output is a file of its own; received"), places.holding(*names):
        pass
    with places.holding(tmp_path / "a.png", tmp_path / "b.png", None, "/dev/stdout"):
        assert len(list(tmp_path.iterdir())) == 2


def test_a_temporary_folder_ends_with_its_object_without_a_warning():
    program = (
        "from samesense.scratch import ScratchFolder; ScratchFolder(); folder = ScratchFolder(); print(folder.name)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).exists()

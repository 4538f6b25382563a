"""Outputs never replace inputs or foreign files, and one that cannot be written is refused before the work."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from transformers import Trainer

import samesense
from samesense.errors import DataError, OutputError
from samesense.execution.shards.job import sharded_job
from samesense.files import replacing_folder, write_text
from samesense.locks import only_writer_of
from samesense.places import check_folder, check_inside, check_place
from tests.command import run_command

MODEL = ("words:words.vec",)
LONG = "x" * 300


def refused(capsys, *command):
    code, out, err = run_command(capsys, *command)
    assert code == 2 and err.count("samesense: error: ") == 1 and "Traceback" not in err, (command, code, err)
    assert not out
    return err


TO_FILES = {
    "encode": ("encode", *MODEL, "texts.txt", "--format", "npy", "--output"),
    "evaluate": ("evaluate", *MODEL, "--data", "pairs.tsv", "--output"),
    "compare": ("compare", *MODEL, "--data", "pairs.tsv", "--output"),
    "compare-results": ("compare", *MODEL, "--data", "pairs.tsv", "--output", "page.html", "--results"),
    "compare-markdown": ("compare", *MODEL, "--data", "pairs.tsv", "--output", "page.html", "--markdown"),
}
TO_FOLDERS = {
    "shards": ("encode", *MODEL, "texts.txt", "--shard-size", "9", "--workers", "1", "--output"),
    "index": ("index", "build", "--model", *MODEL, "--", "FOLDER", "texts.txt"),
    "export": ("export", "STATIC", "--output"),
    "whiten": ("whiten", "STATIC", "texts.txt", "--output"),
    "train": ("train", "pairs.tsv", "--model", "STATIC", "--dev", "none", "--max-steps", "1", "--output"),
    "folds": ("train", "pairs.tsv", "--model", "STATIC", "--folds", "2", "--max-steps", "1", "--output"),
    "distil": ("distil", "texts.txt", "--teacher", "STATIC", "--student", "static:4", "--max-steps", "1", "--output"),
    "origin": ("origin", "texts.txt", "--output"),
}


def to_folder(name, folder, static_model):
    words = [str(static_model) if word == "STATIC" else word for word in TO_FOLDERS[name]]
    return [folder if word == "FOLDER" else word for word in words] if "FOLDER" in words else [*words, folder]


@pytest.mark.posix
@pytest.mark.parametrize("command", TO_FILES)
@pytest.mark.parametrize("name", ["texts.txt", "pairs.tsv", "words.vec", "hard.link", "a.link"])
def test_no_file_that_is_read_is_written_to(here, contents, capsys, command, name):
    reads = "texts.txt" if command == "encode" else "pairs.tsv"
    os.link(here / reads, here / "hard.link")
    (here / "a.link").symlink_to(reads)
    before = contents()
    if name not in (*TO_FILES[command], "words.vec", "hard.link", "a.link"):
        return  # it reads another one
    assert name in refused(capsys, *TO_FILES[command], name)
    assert contents() == before


@pytest.mark.parametrize(
    ("command", "name"),
    [("evaluate", "r.csv"), ("compare", "r.txt"), ("compare-results", "r.json"), ("compare-markdown", "r.html")],
)
def test_nothing_is_written_under_the_name_of_another_format(here, contents, capsys, command, name):
    before = contents()
    assert f"received '{name}'" in refused(capsys, *TO_FILES[command], name)
    assert contents() == before


def test_results_are_added_to_results_alone(here, contents, capsys):
    (here / "notes.jsonl").write_text('{"a diary": "of the user"}\n')
    before = contents()
    for command in ("evaluate", "compare-results"):
        assert "file of results" in refused(capsys, *TO_FILES[command], "notes.jsonl")
    assert contents() == before
    for lines in (2, 4):
        assert run_command(capsys, *TO_FILES["evaluate"], "results.jsonl")[0] == 0
        assert len((here / "results.jsonl").read_text().splitlines()) == lines


TABLES = {
    "encode": ("encode", *MODEL, "texts.txt", "--format", "npy", "--output", "out.npy"),
    "score": ("score", "pairs.tsv", "--prefix", "new_", "--model", *MODEL, "--output", "out.tsv"),
    "dedup": ("dedup", "texts.txt", "--model", *MODEL, "--output", "out.txt"),
    "dedup-removed": ("dedup", "texts.txt", "--model", *MODEL, "--removed", "out.tsv"),
    "match": ("match", "texts.txt", "texts.txt", "--model", *MODEL, "--output", "out.tsv"),
    "match-unmatched": ("match", "texts.txt", "texts.txt", "--model", *MODEL, "--unmatched", "out.txt"),
    "mine-negatives": ("mine-negatives", "anchors.tsv", "--model", *MODEL, "--output", "out.jsonl"),
}


@pytest.mark.parametrize("command", TABLES)
def test_a_file_of_rows_is_replaced_only_when_that_is_said(here, contents, capsys, command):
    (here / "anchors.tsv").write_text("anchor\tpositive\na man eats a meal\ta man eats\na dog runs\ta dog\n")
    words = TABLES[command]
    output = here / words[-1]
    output.write_text("the user's\n")
    before = contents()
    err = refused(capsys, *words)
    assert f"{words[-1]} is there. Name another output, or pass --overwrite to replace it." in err
    assert contents() == before
    assert run_command(capsys, *words, "--overwrite")[0] == 0
    assert output.read_bytes() != b"the user's\n"
    # as mktemp makes it
    output.write_bytes(b"")
    assert run_command(capsys, *words)[0] == 0


def test_a_page_may_lie_in_the_folder_of_a_run_but_no_vectors_in_that_of_a_model(here):
    write_text(here / "run" / "model" / "weights.npy", "weights")
    check_place(here / "run" / "page.html", [here / "run" / "model"])
    with pytest.raises(OutputError, match="would be written over"):
        check_place(here / "run" / "model" / "weights.npy", [here / "run" / "model"])
    write_text(here / "run" / "dev.tsv", "pairs")
    for joined in (f"more.tsv + {here / 'run' / 'dev.tsv'}", f"{here / 'run' / 'dev.tsv'} + more.tsv"):
        with pytest.raises(OutputError, match="would be written over"):
            check_place(here / "run" / "dev.tsv", [joined])
    check_place(here / "run" / "other.npy", ["no/such-model", "\0", "x" * 5000, here / "run"])


@pytest.mark.parametrize("command", TO_FOLDERS)
def test_a_folder_of_the_user_is_left_alone(here, contents, capsys, command, static_model):
    for name in ("mine.txt", "model/a.txt", "fold-notes/a.txt", "vectors-01234567-89abcdef.bin", ".diary.part"):
        write_text(here / "D" / name, "the user's")
    before = contents()
    assert "D " in refused(capsys, *to_folder(command, "D", static_model))
    if command in ("export", "whiten", "index"):
        refused(capsys, *to_folder(command, "D", static_model), "--overwrite")
    assert contents() == before


def test_a_model_is_not_replaced_by_what_is_made_of_it(here, contents, capsys, static_model):
    with replacing_folder(here / "run" / "model") as beside:
        shutil.copytree(static_model, beside, dirs_exist_ok=True)
    (here / "run" / "manifest.json").write_text('{"method": "cosent"}')
    before = contents()
    for model, output in (("run/model", "run/model"), ("run", "run"), ("run", "run/model"), ("run", "run/./model")):
        assert "read here" in refused(capsys, "export", model, "--output", output, "--overwrite")
        assert "read here" in refused(capsys, "whiten", model, "texts.txt", "--output", output, "--overwrite")
    flags = ("--model", "run", "--dev", "none", "--max-steps", "1", "--output", "run", "--overwrite")
    assert "read here" in refused(capsys, "train", "pairs.tsv", *flags)
    assert contents() == before


def test_what_a_run_reads_is_not_what_it_removes(here, contents, capsys, static_model):
    (here / "run").mkdir()
    (here / "run" / "manifest.json").write_text('{"method": "cosent"}')
    rows = (
        '{"sentence1": "a man", "sentence2": "a dog", "score": 0.2}\n{"sentence1": "a", "sentence2": "b", "score": 1}\n'
    )
    (here / "run" / "results.jsonl").write_text(rows)
    before = contents()
    command = (
        "train",
        "run/results.jsonl",
        "--model",
        static_model,
        "--dev",
        "none",
        "--max-steps",
        "1",
        "--overwrite",
    )
    assert "read here" in refused(capsys, *command, "--output", "run")
    assert contents() == before


def test_held_out_pairs_and_teachers_are_not_removed_by_a_run_that_reads_them(here, contents, capsys, static_model):
    shutil.copytree(static_model, here / "run" / "model")
    (here / "run" / "manifest.json").write_text('{"method": "cosent"}')
    shutil.copy(here / "pairs.tsv", here / "run" / "dev.tsv")
    before = contents()
    flags = ("--max-steps", "1", "--output", "run", "--overwrite")
    dev = ("--dev", "run/dev.tsv", "--model", static_model)
    assert "read here" in refused(capsys, "train", "pairs.tsv", *dev, *flags)
    assert "read here" in refused(capsys, "distil", "texts.txt", "--teacher", "run", *flags)
    assert contents() == before


@pytest.mark.posix
@pytest.mark.parametrize("command", [*TO_FILES, *TO_FOLDERS])
@pytest.mark.parametrize("kind", ["full", "read-only", "long", "file"])
def test_a_place_that_cannot_be_written_is_said_at_once(request, here, capsys, command, kind, static_model):
    output = {
        "full": lambda: request.getfixturevalue("disk")(0) / "out",
        "read-only": lambda: request.getfixturevalue("read_only") / "out",
        "long": lambda: Path(LONG),
        "file": lambda: Path("texts.txt") / "out",
    }[kind]()
    words = (*TO_FILES[command], output) if command in TO_FILES else to_folder(command, output, static_model)
    message = refused(capsys, *words)
    assert str(output)[:60] in message and any(
        word in message for word in ("space", "Read-only", "ermission", "long", "file")
    )
    assert "vectors of" not in message and "cross-validation" not in message  # the work had not begun


def test_a_collection_that_cannot_be_written_is_refused_before_the_model_is_loaded(here, capsys):
    words = ("index", "build", "texts.txt/out", "texts.txt", "--model", "./no-model")
    assert "texts.txt/out cannot be written" in refused(capsys, *words)
    with pytest.raises(OutputError, match="cannot be written"):
        samesense.build_index("texts.txt/out", "texts.txt", model="./no-model")


@pytest.mark.parametrize("command", [*TO_FOLDERS, "encode"])
@pytest.mark.parametrize("free", [8, *(pytest.param(free, marks=pytest.mark.slow) for free in (4, 16))])
def test_a_disk_that_fills_up_is_said(here, disk, capsys, command, free, static_model):
    if command == "encode":
        (here / "texts.txt").write_text("a man eats a meal\n" * 1000)
        words = (*TO_FILES["encode"], disk(free) / "out")
    else:
        words = to_folder(command, disk(free) / "out", static_model)
    code, _, err = run_command(capsys, *words)
    assert code in (0, 2) and "Traceback" not in err
    assert code == 0 or command == "origin" or re.search("No space left|disk full|disk is full", err), err


@pytest.mark.parametrize("words", ["I/O error: x (os error 28)", "inline_container.cc:672] . unexpected pos 64 vs 0"])
def test_a_checkpoint_that_fills_the_disk_is_said_and_removed(here, disk, capsys, monkeypatch, static_model, words):
    run = disk(800) / "run"
    flags = ("--model", static_model, "--dev", "pairs.tsv", "--max-steps", "4", "--eval-steps", "1", "--no-report")
    command = ("train", "pairs.tsv", *flags, "--output", run)
    save = Trainer._save_optimizer_and_scheduler

    def fill(*_):
        # As safetensors and torch say it.
        raise RuntimeError(words)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_save_optimizer_and_scheduler", fill)
        err = refused(capsys, *command)
    assert f"{run / 'checkpoints' / 'checkpoint-1'} cannot be written: {words}" in err and "No space left" in err
    assert re.search(rf"The disk at {run.parent} has 0\.\d MB free of 1\.0 MB\.", err)
    assert not (run / "checkpoints" / "checkpoint-1").exists()
    assert Trainer._save_optimizer_and_scheduler is save
    code, _, err = run_command(capsys, *command)
    assert code == 0, err


@pytest.mark.parametrize("free", [0, 8])
def test_a_map_is_written_whole_or_not_at_all(here, disk, contents, capsys, free):
    place = disk(free) / "map.html"
    before = contents()
    command = ("dedup", "texts.txt", "--model", *MODEL, "--output", "kept.txt", "--map", place)
    assert re.search("No space left|disk full|disk is full", refused(capsys, *command))
    assert contents() == before


@pytest.mark.parametrize("command", ["encode", "mine", "doctor", "evaluate", "similarity", "query", "train", "sweep"])
def test_a_name_that_no_file_can_have_is_misuse(here, capsys, command):
    words = {
        "encode": ("encode", *MODEL, LONG),
        "mine": ("mine", LONG),
        "doctor": ("doctor", LONG),
        "evaluate": ("evaluate", *MODEL, "--data", LONG),
        "similarity": ("similarity", LONG, "a", "b"),
        "query": ("index", "query", LONG, "a"),
        "train": ("train", LONG, "--output", "run"),
        "sweep": ("sweep", LONG, "--output", "run"),
    }[command]
    assert len(refused(capsys, *words)) < 3 * len(LONG)


def test_names_up_to_the_limit_can_be_written(here, static_model):
    check_place("é" * 125 + ".npy")
    with replacing_folder(here / ("m" * 255)) as beside:
        (beside / "a").touch()
    with replacing_folder(here / ("m" * 255)) as beside:
        (beside / "b").touch()
    assert [path.name for path in (here / ("m" * 255)).iterdir()] == ["b"]
    check_folder("m" * 255)


def test_two_encodings_into_one_file_do_not_disturb_each_other(here):
    words = ["encode", "words:words.vec", "texts.txt", "--output", "out.npy", "--overwrite"]
    code = f"from samesense.cli.main import main; main({words})"
    both = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(child.wait(), child.stderr.read()) for child in both]
    # The second is refused if it starts while the first writes.
    assert 0 in [code for code, _ in ends]
    assert all(code == 0 or "one writer at a time" in err for code, err in ends)
    assert np.load(here / "out.npy").shape[0] == len((here / "texts.txt").read_text(encoding="utf-8").splitlines())
    assert not list(here.glob(".*"))


HELD = {
    "encode": ("encode", *MODEL, "texts.txt", "--output", "out.npy"),
    "dedup": ("dedup", "texts.txt", "--model", *MODEL, "--output", "kept.txt", "--removed", "out.npy.tsv"),
    "match": ("match", "texts.txt", "texts.txt", "--model", *MODEL, "--output", "out.tsv"),
    "score": ("score", "pairs.tsv", "--model", *MODEL, "--output", "out.tsv"),
    "mine-negatives": ("mine-negatives", "pairs.tsv", "--model", *MODEL, "--output", "out.jsonl"),
}


PAGES = {
    "compare": ("compare", *MODEL, "--data", "pairs.tsv", "--output", "out.html"),
    "compare-markdown": ("compare", *MODEL, "--data", "pairs.tsv", "--output", "out.html", "--markdown", "out.md"),
    "compare-latex": ("compare", *MODEL, "--data", "pairs.tsv", "--output", "out.html", "--latex", "out.tex"),
    "compare-figures": ("compare", *MODEL, "--data", "pairs.tsv", "--output", "out.html", "--figures", "figures"),
    "dedup-map": ("dedup", "texts.txt", "--model", *MODEL, "--output", "kept.txt", "--map", "map.html"),
    "drift-map": ("drift", *MODEL, *MODEL, "--texts", "texts.txt", "--map", "map.html"),
    "index-map": ("index", "map", "built", "--output", "map.html"),
    "calibrate": ("calibrate", "STATIC", "--data", "twice.tsv", "--output", "calibration.json"),
    "calibrate-figure": ("calibrate", "STATIC", "--data", "twice.tsv", "--output", "c.json", "--figure", "c.png"),
}


@pytest.mark.parametrize("command", PAGES)
def test_a_page_that_another_process_writes_is_refused_before_the_work(here, contents, capsys, static_model, command):
    words = [str(static_model) if word == "STATIC" else word for word in PAGES[command]]
    header, *rows = (here / "pairs.tsv").read_text().splitlines(keepends=True)
    (here / "twice.tsv").write_text(header + "".join(rows + rows))
    if command == "index-map":
        assert run_command(capsys, *TO_FOLDERS["index"][:3], *MODEL, "--", "built", "texts.txt")[0] == 0
    before = contents()
    with only_writer_of((here / words[-1]).resolve()):
        message = refused(capsys, *words)
    assert f"another process writes to {here.resolve() / words[-1]}. Wait for it" in message
    assert contents() == before


@pytest.mark.parametrize("command", HELD)
@pytest.mark.parametrize("flags", [(), ("--overwrite",)])
def test_a_file_that_another_process_writes_is_refused_before_the_work(here, contents, capsys, command, flags):
    words = HELD[command]
    before = contents()
    with only_writer_of((here / words[-1]).resolve()):
        message = refused(capsys, *words, *flags)
    assert f"another process writes to {here.resolve() / words[-1]}. Wait for it, or name another." in message
    assert contents() == before


@pytest.mark.posix
def test_shards_do_not_leave_their_folder(here, capsys):
    shards = TO_FOLDERS["shards"]
    assert run_command(capsys, *shards, "out")[0] == 0
    outside = write_text(here / "outside" / "kept.npy", "the user's")
    for name in ("shards/00001.npy", "manifest.json", "history.jsonl"):
        content = (here / "out" / name).read_bytes()
        (here / "out" / name).unlink()
        (here / "out" / name).symlink_to(outside)
        assert "leads out" in refused(capsys, *shards, "out")
        (here / "out" / name).unlink()
        (here / "out" / name).write_bytes(content)
    assert outside.read_text() == "the user's"
    assert run_command(capsys, *shards, "out")[0] == 0
    (here / "elsewhere").mkdir()
    (here / "linked").mkdir()
    (here / "linked" / "shards").symlink_to(here / "elsewhere")
    with pytest.raises(DataError, match="leads out"), sharded_job(here / "linked", "encode", ".npy"):
        pass


@pytest.mark.posix
def test_names_in_a_folder_stay_in_it(here):
    (here / "D").mkdir()
    (here / "D" / "inner").symlink_to("file")
    check_inside(here / "D", "a", "b/c", "inner", here / "D" / "d")
    for name in ("../a", "/etc/passwd", "b/../../a"):
        with pytest.raises(DataError, match="leads out"):
            check_inside(here / "D", name)
    blob = write_text(here / "cache" / "blobs" / "0", "of the hub")
    snapshot = here / "cache" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "a").symlink_to(blob)
    check_inside(snapshot, "a")


def test_files_of_a_model_follow_the_umask(here, static_model):
    for path in static_model.rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~current_umask(), path


def test_names_are_no_markup_in_the_markdown_of_a_comparison(here, capsys):
    odd = "a*b_[x](http://y)<b>.tsv"
    (here / odd.replace("/", "_")).write_bytes((here / "pairs.tsv").read_bytes())
    name = "m_*[z](y)<i>`c`|d"
    command = ("compare", f"{name}={MODEL[0]}", "--data", odd.replace("/", "_"), "--output", "page.html")
    assert run_command(capsys, *command, "--markdown", "page.md")[0] == 0
    page = (here / "page.md").read_text()
    bare = re.sub(r"\\.", "", page).replace("**", "")  # without what is escaped, and without our own bold
    assert not set("*_[]<>`") & set(bare), bare
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({line.count("|") - line.count("\\|") for line in table.splitlines()}) == 1, table


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Cells in separate processes, and the number of parallel ones."""

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import get_context
from types import SimpleNamespace

import pytest

from samesense.errors import OutputError
from samesense.files import write_json, write_json_lines
from samesense.recipes.sweep import cell as cells
from samesense.recipes.sweep import workers
from samesense.recipes.sweep.cell import read_record, status_of
from samesense.recipes.sweep.gather import gather, rows
from samesense.recipes.sweep.pace import describe_progress
from samesense.recipes.sweep.run import begin, run
from tests.messages import listen
from tests.recipes.sweeps import content, quick

pytest.importorskip("matplotlib")


def job_of(plan, folder):
    return cells.CellJob(plan.cells[0], plan.splits_of(plan.cells[0]), folder, "float32")


@pytest.fixture
def toy(tiny_trunk, toy_pairs):
    return content(tiny_trunk, toy_pairs)


def test_a_process_that_dies_is_a_failed_cell(toy, tmp_path):
    plan = quick(toy)
    work = cells.CellJob(plan.cells[0], plan.splits_of(plan.cells[0]), tmp_path / "cell", "float32")
    cells.record(work, "running")
    assert workers._outcome(work, -9, False) == "failed"
    assert read_record(work.folder)["error"] == "Its process ended with code -9, perhaps for want of memory."
    cells.record(work, "running")
    assert workers._outcome(work, -2, True) == status_of(work.folder) == "interrupted"


def test_ctrl_c_is_passed_on_but_on_windows_where_a_signal_would_kill(monkeypatch):
    sent = []
    for system in ("posix", "nt"):
        kill = partial(lambda *arguments: sent.append(arguments), system)
        monkeypatch.setattr(workers, "os", SimpleNamespace(name=system, kill=kill))
        workers._interrupt([SimpleNamespace(pid=7), SimpleNamespace(pid=None)])
    assert sent == [("posix", 7, signal.SIGINT)]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", ["scores.npz", "cell.json"])
def test_a_full_disk_ends_a_sweep_and_the_same_call_goes_on(toy, tmp_path, monkeypatch, capfd, jobs, name):
    plan = quick(toy, grid={}, seeds=[1, 2] if jobs == 1 else [1])  # two at a time would be two processes
    folder = plan.cells[0].folder(tmp_path)
    begin(plan, tmp_path)
    # A folder in the place of a file cannot be written either.
    (folder / name / "full").mkdir(parents=True)
    with pytest.raises(OutputError, match=f"{folder.name}/{name} cannot be written"):
        run(plan, tmp_path, jobs=jobs)
    assert "Traceback" not in capfd.readouterr().err
    assert jobs == 2 or status_of(plan.cells[1].folder(tmp_path)) == "absent"
    shutil.rmtree(folder / name)
    assert run(plan, tmp_path, jobs=1).finished == len(plan.cells)


def test_a_process_hears_of_ctrl_c_and_a_report_is_made_before_torch_is_imported():
    modules = "samesense.recipes.sweep.workers, samesense.recipes.sweep.report"
    subprocess.run([sys.executable, "-c", f"import sys; sys.modules['torch'] = None; import {modules}"], check=True)


@pytest.mark.posix
@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.6])
def test_ctrl_c_ends_a_process_that_is_just_starting_without_a_word(toy, tmp_path, capfd, seconds):
    job = job_of(quick(toy), tmp_path)
    process = workers._process_of(job, 1)
    with workers._held_back():
        process.start()
    time.sleep(seconds)  # it opens a Python, reads its job and imports torch
    workers._interrupt([process])
    process.join()
    assert (process.exitcode, capfd.readouterr().err) == (0, "")
    assert status_of(job.folder) != "finished"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.posix
def test_ctrl_c_while_a_process_is_started_reaches_it(toy, tmp_path, monkeypatch):
    kind = get_context("spawn").Process
    processes = []
    start = kind.start

    def interrupted(process):
        processes.append(process)
        start(process)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(kind, "start", interrupted)
    job = job_of(quick(toy), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        list(workers.run_cells(iter([job]), workers.Places(2), lambda running: None))
    assert processes[0].exitcode == 0 and status_of(job.folder) == "interrupted"


@pytest.mark.parametrize("when", ["the next is made ready", "the last one ends"])
def test_ctrl_c_ends_a_sweep_though_no_cell_was_stopped_by_it(monkeypatch, when):
    class Ended:
        sentinel = None
        exitcode = 0
        pid = None

        def start(self):
            pass

        def is_alive(self):
            return False

    def cells_of():
        yield SimpleNamespace(cell=SimpleNamespace(name="one"), folder=None)
        if when == "the next is made ready":
            raise KeyboardInterrupt
        yield SimpleNamespace(cell=SimpleNamespace(name="two"), folder=None)

    def waited(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "status_of", lambda folder: "finished")
    monkeypatch.setattr(workers, "_process_of", lambda job, threads: Ended())
    monkeypatch.setattr(workers, "_outcome", lambda *_: "finished")
    if when == "the last one ends":
        monkeypatch.setattr(workers, "wait", waited)
    slots = SimpleNamespace(count=2 if when == "the next is made ready" else 1, jobs=2, learn=lambda *_: None)
    finished = workers.run_cells(cells_of(), slots, lambda running: None)
    assert next(finished)[1] == "finished"
    with pytest.raises(KeyboardInterrupt):
        next(finished)


@pytest.mark.long
def test_cells_in_processes_give_the_same_figures_and_all_models_are_kept_on_request(toy, tmp_path, monkeypatch):
    messages = listen()
    running_counts = []
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "LOOK", 0.05)
    progress = "samesense.recipes.sweep.run.describe_progress"
    monkeypatch.setattr(progress, lambda running: running_counts.append(len(running)) or {})
    plan = quick(toy, grid={}, seeds=[1, 2, 3], keep="all")
    run(plan, tmp_path / "one")
    ended = run(plan, tmp_path / "two", jobs="auto")
    assert (ended.finished, ended.failed) == (3, 0)
    assert max(running_counts) >= 1  # their progress is polled while they run
    assert len(list(tmp_path.glob("*/runs/*/model"))) == 6
    first, second = ([row["spearman"] for row in rows(gather(tmp_path / name))] for name in ("one", "two"))
    assert first == pytest.approx(second, abs=1e-6)
    assert sum(line.startswith("two runs at a time make ") for line in messages) == 1


def test_cells_in_processes_are_seen_at_their_last_step(toy, tmp_path):
    plan = quick(toy)
    work = [cells.CellJob(plan.cells[0], plan.splits_of(plan.cells[0]), tmp_path / name, "float32") for name in "abc"]
    logged = [{"step": 0, "eval_dev_spearman": 0.5}, {"step": 8, "loss": 2.0}], []
    for job, logs in zip(work[:2], logged, strict=True):
        write_json(job.folder / "manifest.json", {})
        write_json_lines(job.folder / "history.jsonl", logs)
    assert describe_progress(work) == {"at step": "8 (dev 50.00)"}  # the other cells have not begun
    write_json_lines(work[1].folder / "history.jsonl", [{"step": 4, "loss": 1.0}])
    assert describe_progress(work) == {"at step": "8 (dev 50.00) and 4"}
    assert describe_progress(work[2:]) == {}


def test_two_cells_at_a_time_are_kept_where_they_make_more_steps(toy, tmp_path, monkeypatch):
    plan = quick(toy, start=True, seeds=[1, 2], grid={"learning_rate": [1e-3, 2e-3], "loss": ["cosent", "mse"]})
    seconds = [None, 1.0, 1.1, 1.5, 1.6, 1.7]
    monkeypatch.setattr(workers, "_seconds_a_step", lambda job: seconds[work.index(job)])
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "_has_gpu", lambda: False)
    work = [cells.CellJob(cell, plan.splits_of(cell), tmp_path, "float32") for cell in plan.cells[:6]]
    assert [cell_job.cell.settings.loss for cell_job in work[1:]] == ["cosent", "mse", "cosent", "mse", "cosent"]

    def counts(steps, jobs="auto"):
        slots = workers.Places(jobs)
        slot_counts = [slots.count]
        for number, beside in steps:
            slots.learn(work[number], beside)
            slot_counts.append(slots.count)
        return slot_counts

    assert counts([(0, 1), (1, 1), (4, 2), (3, 2)]) == [1, 1, 2, 2, 2]  # mse says nothing of cosent: 2 * 1.0 / 1.5
    seconds[3] = 2.1
    assert counts([(1, 1), (3, 2)]) == [1, 2, 1]
    assert counts([(1, 1), (3, 2)], jobs=2) == [2, 2, 2]
    dying = workers.Places("auto")
    dying.learn(work[1], 1)
    dying.lessen()
    assert dying.count == 1
    monkeypatch.setattr(workers, "_has_gpu", lambda: True)
    assert counts([(1, 1), (3, 2)]) == [1, 1, 1]


def test_a_start_that_cannot_be_cut_is_a_failed_cell(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("samesense.recipes.sweep.workers.run_cell", lambda job: cells.record(job, "interrupted"))
    plan = quick(toy, seeds=[1], grid={"layers": [99, 1]})
    ended = run(plan, tmp_path)
    assert (ended.failed, ended.left, ended.interrupted) == (1, 1, True)
    assert "99" in read_record(plan.cells[0].folder(tmp_path))["error"]

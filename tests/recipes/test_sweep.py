import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.covariance import LedoitWolf

from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.errors import OutputError
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.sts import StsTask
from samesense.files import read_json, write_json
from samesense.recipes.sweep import cell as cells
from samesense.recipes.sweep.cell import read_record, status_of, write_scores
from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.gather import PlannedCell, _evidence, gather, rows
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.report import write_report
from samesense.recipes.sweep.run import run
from tests.evaluation.toy import pair_data
from tests.messages import listen
from tests.recipes.sweeps import content, entry, quick

pytest.importorskip("matplotlib")


@pytest.fixture
def toy(tiny_trunk, toy_pairs):
    return content(tiny_trunk, toy_pairs)


def test_the_start_is_whitened_by_the_training_texts(toy, toy_pairs, tmp_path):
    data = read_pairs(toy_pairs / "train.tsv")
    test = read_pairs(toy_pairs / "test.tsv")
    plan = quick(toy, start=["none", "whiten"], seeds=[1], grid={}, base={**toy["base"], "standardize": "mean"})
    assert [cell.name for cell in plan.cells] == ["toy, start", "toy, start whitened", "toy, base, seed 1"]
    assert [cell.settings.standardize for cell in plan.cells] == ["none", "whiten", "mean"]
    figures = {}
    for cell in plan.cells[:2]:
        job = cells.CellJob(cell, plan.splits_of(cell), tmp_path / cell.key, "float32")
        assert cells.run_cell(job) == "finished"
        [figures[cell.variant]] = [row["value"] for row in rows_in(job.folder) if row["metric"] == "spearman"]
    model = build(toy["base"]["model"], device="cpu")
    vectors = model.encode(list(dict.fromkeys([*data.sentences1, *data.sentences2])))
    inverse = LedoitWolf().fit(vectors).precision_
    a, b = (model.encode(side) - vectors.mean(axis=0) for side in (test.sentences1, test.sentences2))
    products = [np.einsum("ij,jk,ik->i", left, inverse, right) for left, right in ((a, b), (a, a), (b, b))]
    cosines = products[0] / np.sqrt(products[1] * products[2])
    assert figures["start whitened"] == pytest.approx(spearmanr(cosines, test.labels).statistic, abs=2e-4)
    assert figures["start"] != figures["start whitened"]


def rows_in(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_cell_that_is_run_again_has_its_results_once(toy, tmp_path):
    plan = quick(toy, start=True, seeds=[1], grid={})
    job = cells.CellJob(plan.cells[0], plan.splits_of(plan.cells[0]), tmp_path / "cell", "float32")
    assert cells.run_cell(job) == "finished"
    once = rows_in(job.folder)
    assert cells.run_cell(job) == "finished"
    assert len(rows_in(job.folder)) == len(once)


def test_thresholds_are_fitted_on_dev_unless_that_is_the_test():
    data = pair_data([("a", "b", 1), ("c", "d", 0), ("e", "f", 1)], kind="binary", scale=(0, 1))
    other_data = pair_data([("a", "c", 1), ("c", "e", 0)], kind="binary", scale=(0, 1))
    for dev, fitted in ((data, None), (other_data, other_data), (None, None)):
        sts, binary = cells._tasks("toy", data, dev)
        assert (type(sts), type(binary), binary.dev) == (StsTask, BinaryTask, fitted)


def test_scores_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_scores(tmp_path / "scores.npz", {"dev": np.ones(2)})

    def cut_off(stream, **scores):
        stream.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(cells.np, "savez_compressed", cut_off)
    with pytest.raises(KeyboardInterrupt):
        write_scores(tmp_path / "scores.npz", {"dev": np.zeros(2)})
    assert np.load(tmp_path / "scores.npz")["dev"].tolist() == [1, 1]


@pytest.mark.slow
def test_a_sweep_leaves_figures_scores_tables_and_no_models(toy, tmp_path):
    messages = listen()
    ended = run(quick(toy, start=True, against="temperature 0.05"), tmp_path)
    assert (ended.finished, ended.failed, ended.left, ended.interrupted) == (5, 0, 0, False)
    assert not list(tmp_path.glob("runs/*/model")) + list(tmp_path.glob("runs/*/checkpoints"))
    text, written = write_report(tmp_path)
    assert [path.name for path in written] == ["results.jsonl", "comparisons.jsonl", "tables.md", "report.html"]
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [line["variant"] for line in lines] == ["start", *["temperature 0.05", "temperature 0.1"] * 2]
    assert lines[1]["rows"] == {"train": 160, "dev": 60, "tests": {"toy": 60}}
    assert [point[0] for point in lines[1]["curve"]] == [0, 2, 4, 6]
    assert str(tmp_path) not in (tmp_path / "results.jsonl").read_text()
    for left in gather(tmp_path):
        [evidence] = left.evidence
        value = next(row.value for row in left.results if (row.metric, row.subset) == ("spearman", "all"))
        assert value == pytest.approx(spearmanr(evidence.values, evidence.labels).statistic, abs=1e-12)
    assert "| temperature 0.05 |" in text
    assert "±" in text
    assert "## Differences from temperature 0.05" in text
    assert "## Steps to the best dev score of each: toy" in text
    assert "Not run" not in text
    page = (tmp_path / "report.html").read_text()
    assert (
        page.count("<figure>") + page.count("<figure ") >= 3
    )  # learning curves, the grid's setting, the spread of scores
    before = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/*/scores.npz"))]
    again = run(quick(toy, start=True, seeds=[1, 2]), tmp_path)
    assert again.finished == 5
    assert "5 runs, 5 of them finished" in messages
    assert before == [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/*/scores.npz"))]


@pytest.mark.slow
def test_more_seeds_are_added(toy, tmp_path):
    run(quick(toy, grid={}, seeds=[1]), tmp_path)
    first = rows(gather(tmp_path))[0]["spearman"]
    run(quick(toy, grid={}, seeds=[1, 2]), tmp_path)
    both = rows(gather(tmp_path))
    assert [row["seed"] for row in both] == [1, 2]
    assert both[0]["spearman"] == first != both[1]["spearman"]


@pytest.mark.slow
def test_a_failing_cell_is_recorded_and_the_rest_is_run(toy, tmp_path, monkeypatch):
    real = cells._train

    def broken(job):
        if job.cell.variant == "temperature 0.1" and job.cell.seed == 1:
            raise MemoryError("no room")
        return real(job)

    monkeypatch.setattr(cells, "_train", broken)
    plan = quick(toy, seeds=[1])
    ended = run(plan, tmp_path)
    assert (ended.finished, ended.failed) == (1, 1)
    text, _ = write_report(tmp_path)
    assert "## Failed\n\n- toy, temperature 0.1, seed 1: MemoryError: no room" in text
    assert "MemoryError" not in (tmp_path / "results.jsonl").read_text()
    monkeypatch.setattr(cells, "_train", real)
    assert run(plan, tmp_path).finished == 2


@pytest.mark.slow
def test_an_interrupted_cell_goes_on_where_it_was(toy, tmp_path, monkeypatch):
    from transformers import TrainerCallback

    from samesense.recipes.run import job as run_job
    from samesense.training import fit as module

    class Interrupt(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 3:
                signal.raise_signal(signal.SIGINT)

    whole = quick(toy, grid={}, seeds=[1])
    run(whole, tmp_path / "whole")
    real = module.fit
    monkeypatch.setattr(run_job, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [Interrupt()]}))
    ended = run(whole, tmp_path / "cut")
    assert (ended.finished, ended.left, ended.interrupted) == (0, 1, True)
    [folder] = (tmp_path / "cut" / "runs").iterdir()
    assert status_of(folder) == "interrupted"
    assert "## Not run\n\n- toy, base, seed 1: not run yet" in write_report(tmp_path / "cut")[0]
    monkeypatch.setattr(run_job, "fit", real)
    taken = read_json(folder / "cell.json")
    assert taken["seconds"] > 0
    write_json(folder / "cell.json", taken | {"seconds": 1000.0})
    assert run(whole, tmp_path / "cut").finished == 1
    assert read_json(folder / "cell.json")["seconds"] > 1000  # of all calls
    assert len(json.loads((folder / "manifest.json").read_text())["resumed"]) == 1
    uninterrupted, interrupted = (rows(gather(tmp_path / name))[0] for name in ("whole", "cut"))
    assert uninterrupted["spearman"] == pytest.approx(interrupted["spearman"], abs=1e-9)
    assert uninterrupted["curve"] == interrupted["curve"]


@pytest.mark.slow
def test_an_interrupted_cell_goes_on_though_its_files_were_moved(toy, tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    from samesense.recipes.run import job as run_job
    from samesense.training import fit as module
    from tests.training.test_fit import At

    real = module.fit
    stop = At(3, lambda: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(run_job, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [stop]}))
    run(quick(toy, grid={}, seeds=[1]), tmp_path / "out")
    monkeypatch.setattr(run_job, "fit", real)
    trunk = shutil.copytree(tiny_trunk, tmp_path / "trunk")
    data = entry(shutil.copytree(toy_pairs, tmp_path / "pairs"))
    base = {**toy["base"], "model": str(trunk), "license": "mit"}
    messages = listen()
    assert run(quick(toy, grid={}, seeds=[1], base=base, data=[data]), tmp_path / "out").finished == 1
    assert not [line for line in messages if "started again" in line]
    [path] = (tmp_path / "out").glob("runs/*/manifest.json")
    manifest = read_json(path)
    assert len(manifest["resumed"]) == 1 and manifest["settings"]["model"] == str(trunk)
    assert manifest["data"]["train"]["source"] == data["train"]


@pytest.mark.slow
def test_models_that_are_wanted_and_gone_are_said(toy, tmp_path):
    run(quick(toy, seeds=[1]), tmp_path)
    messages = listen()
    run(quick(toy, seeds=[1], keep="best"), tmp_path)
    assert [line.partition(":")[0] for line in messages if "no model any more" in line] == ['keep = "best"']
    messages.clear()
    run(quick(toy, seeds=[1], keep="all", start=True), tmp_path)
    [line] = [line for line in messages if "no model any more" in line]
    assert line.startswith('keep = "all": 2 finished runs have no model any more, as it was not kept when they ended.')
    assert all(path.name in line for path in (tmp_path / "runs").iterdir() if "seed" in path.name)
    messages.clear()
    run(quick(toy, seeds=[1]), tmp_path)
    assert not [line for line in messages if "no model any more" in line]


def test_a_second_process_is_kept_out(toy, tmp_path):
    words = [
        "import sys; from filelock import FileLock; lock = FileLock(sys.argv[1]); lock.acquire()",
        "print('held', flush=True); sys.stdin.read()",
    ]
    holder = [sys.executable, "-c", "; ".join(words), str(tmp_path / ".lock")]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="one writer at a time"):
            run(quick(toy), tmp_path)
        process.stdin.close()
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_the_best_model_is_kept_on_request(toy, tmp_path):
    run(quick(toy, keep="best", seeds=[1]), tmp_path)
    (model_folder,) = tmp_path.glob("runs/*/model")
    best = {row["variant"]: row["outcome"]["best_dev_spearman"] for row in rows(gather(tmp_path))}
    assert read_record(model_folder.parent)["variant"] == max(best, key=best.get)


@pytest.fixture
def binary(toy_pairs, tmp_path):
    """The toy pairs with labels 0 and 1, in three files."""
    lines = (toy_pairs / "train.tsv").read_text().splitlines()
    folder = tmp_path / "binary"
    folder.mkdir()
    for split, chosen in (("train", lines[1:81]), ("dev", lines[81:121]), ("test", lines[121:])):
        labelled = [[str(int(float(row[0]) > 2)), *row[1:]] for row in (line.split("\t") for line in chosen)]
        (folder / f"{split}.tsv").write_text(
            "\n".join(["label\tsentence1\tsentence2", *map("\t".join, labelled)]) + "\n"
        )
    return folder


def test_layers_are_cut_once_and_binary_data_have_an_accuracy(tiny_trunk, binary, tmp_path):
    file = {**content(tiny_trunk, binary), "seeds": [1], "start": True, "grid": {"loss": ["cosent", "softmax"]}}
    file["base"] = {**file["base"], "layers": 2}
    run(make_plan(SweepFile(**file)), tmp_path / "out")
    [start] = (tmp_path / "out" / "starts").iterdir()
    assert json.loads((start / "config.json").read_text())["num_hidden_layers"] == 2
    result_rows = rows(gather(tmp_path / "out"))
    assert [row["variant"] for row in result_rows] == ["start", "cosent", "softmax"]
    for row in result_rows:
        assert 0 <= row["accuracy"] <= 1
        assert row["layers"] == 2
        assert set(row["cosines"]) == {"0", "1"}
    scores = np.load(next((tmp_path / "out" / "runs").glob("*cosent*")) / "scores.npz")
    assert scores["dev"].shape == (40,)
    of_binary = {f"binary:toy:{metric}" for metric in ("average_precision", "accuracy", "f1")}
    assert set(scores.files) == {"dev", "sts:toy:spearman"} | of_binary


def test_cut_starts_of_two_names_on_the_hub_are_kept_apart(toy, tmp_path):
    cell = quick(toy, base={**toy["base"], "layers": 1}).cells[0]
    owner = "sentence-transformers"
    starts = {
        cells.with_cut_start(replace(cell, identity={**cell.identity, "start": start}), tmp_path).settings.model
        for start in (f"{owner}/one", f"{owner}/two", cell.identity["start"])
    }
    assert len(starts) == 3


def test_scores_of_a_data_set_with_colons_in_its_name_are_read(tmp_path):
    values = np.array([0.1, 0.9])
    write_scores(tmp_path / "scores.npz", {"sts:a: b:spearman": values, "dev": values})
    planned = PlannedCell(folder="cells/base", variant="base", dataset="a", seed=1)
    pairs = {"hash": ([("a", "b"), ("c", "d")], np.array([0.0, 1.0]))}
    [evidence] = _evidence(tmp_path, planned, {"identity": {"tests": {"a: b": "hash"}}}, pairs)
    assert (evidence.task, evidence.dataset, evidence.metric) == ("sts", "a: b", "spearman")
    assert evidence.values.tolist() == values.tolist()


@pytest.mark.slow
def test_losses_of_tuples_and_cross_encoders_go_through_a_sweep(tiny_trunk, binary, tmp_path):
    cases = [{"loss": "info-nce"}, {"loss": "cross-entropy", "encoder": "cross"}]
    file = {**content(tiny_trunk, binary), "seeds": [1], "grid": {}, "case": cases}
    ended = run(make_plan(SweepFile(**file)), tmp_path / "out")
    text, _ = write_report(tmp_path / "out")
    assert (ended.finished, ended.failed) == (2, 0), text
    assert len({row["spearman"] for row in rows(gather(tmp_path / "out"))}) == 2

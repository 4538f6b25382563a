"""A dry run checks all that a run would, says steps and an estimate of the time, and leaves nothing behind."""

import json
import re

import pytest

from samesense.recipes.planning.plan import plan
from tests.command import run_command
from tests.context.worlds import some_documents
from tests.recipes.test_context import HARVEST, ORIGIN

REFUSED = {
    "an infinite rate": (["--learning-rate", "inf"], "learning_rate: input should be a finite number; received inf"),
    "no number": (["--learning-rate", "nan"], "learning_rate: input should be a finite number; received nan"),
    "an infinite temperature": (["--loss", "info-nce", "--temperature", "inf"], "temperature: input should be a fin"),
    "epochs beyond a float": (["--epochs", "1e400"], "epochs: input should be a finite number"),
    "a long seed": (["--seed", "12345678901234567890"], "seed: input should be at most 4294967295"),
    "a huge learning rate": (["--learning-rate", "1e9"], "learning_rate: input should be at most 1; received"),
    "a huge batch": (["--batch-size", "1000000000000"], "batch_size: input should be at most 1000000"),
    "no folds": (["--folds", "0"], "There can be 2 to 30 folds, got 0"),
    "folds of no number": (["--folds", "-3"], "folds is a number of folds that share no sentence"),
    "an absent test set": (["--test", "absent.tsv"], "absent.tsv"),
    "an absent model": (["--model", "absent/model"], "absent/model"),
}


class StopAsking(Exception):  # noqa: N818 - no error
    pass


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize("case", REFUSED)
def test_the_same_is_refused_with_and_without_dry_run(capsys, toy_pairs, tiny_trunk, tmp_path, case, dry):
    flags, message = REFUSED[case]
    model = [] if "--model" in flags else ["--model", tiny_trunk]
    output = tmp_path / "run"
    code, out, err = run_command(capsys, "train", toy_pairs / "train.tsv", "-o", output, *model, *flags, *dry)
    assert (code, out) == (2, "") and message in err.splitlines()[-1] and not output.exists()


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_absent_documents_are_refused(capsys, tiny_trunk, tmp_path, dry):
    absent = tmp_path / "absent.jsonl"
    output = tmp_path / "run"
    options = ["--method", "context", "--model", tiny_trunk, "-o", output, *dry]
    code, out, err = run_command(capsys, "train", absent, *options)
    assert (code, out) == (2, "") and str(absent) in err.splitlines()[-1] and not output.exists()


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_a_sweep_needs_a_job(capsys, tmp_path, dry):
    (tmp_path / "sweep.toml").write_text("")
    code, _, err = run_command(capsys, "sweep", tmp_path / "sweep.toml", "-o", tmp_path / "out", "--jobs", "0", *dry)
    assert code == 2 and "--jobs must be auto, or 1 or more; received 0" in err


def test_a_dry_run_says_steps_and_an_estimate_and_leaves_nothing(capsys, toy_pairs, tiny_trunk, tmp_path):
    output = tmp_path / "run"
    files = {split: toy_pairs / f"{split}.tsv" for split in ("train", "dev", "test")}
    options = ["--model", tiny_trunk, "--dev", files["dev"], "--test", files["test"], "--epochs", "3", "-o", output]
    code, out, err = run_command(capsys, "train", files["train"], *options, "--dry-run")
    assert code == 0 and json.loads(out)["epochs"] == 3
    assert "steps: 30 of 16 examples each, of 160; 11 evaluations on dev" in err
    durations = r"loading \d+:\d\d, training \d+:\d\d, evaluation \d+:\d\d, saving \d+:\d\d"
    assert re.search(rf"estimate of the time: \d+:\d\d in all: {durations}; by 4 steps of [\d.e-]+ s", err)
    assert not output.exists()
    output.mkdir()
    (output / "manifest.json").write_text("{}")
    code, _, err = run_command(capsys, "train", files["train"], *options, "--dry-run")
    assert code == 2 and "overwrite" in err


def test_folds_count_as_so_many_runs(toy_pairs, tiny_trunk, tmp_path):
    settings = {"model": str(tiny_trunk), "epochs": 1, "precision": "float32"}
    planned = plan(toy_pairs / "train.tsv", folds="auto", settings={**settings, "loss": "cosent"})
    steps = "steps: 10 of 16 examples each, of 160; 5 evaluations of each fold; 5 folds, then a run on all"
    assert steps in planned.dry_run(tmp_path / "run")
    selection = "selection: the folds choose how much of the training is kept"
    assert f"{selection}; 5 folds, which share no sentence" in planned.lines()
    planned = plan(toy_pairs / "train.tsv", folds="auto", settings=settings)
    assert steps.replace("5 evaluations", "1 evaluation") in planned.dry_run(tmp_path / "run")
    assert "selection: none, the last state is kept; 5 folds, which share no sentence" in planned.lines()


def test_teachers_are_asked_about_a_part(tiny_trunk, sentences, tmp_path, monkeypatch):
    (tmp_path / "bare.txt").write_text("\n".join(sentences) + "\n")
    asked_about = []
    monkeypatch.setattr(
        "samesense.recipes.unsupervised.rankcse.teacher_store",
        lambda teacher, train, *_, **__: asked_about.append(len(train)) or (_ for _ in ()).throw(StopAsking),
    )
    settings = {"model": str(tiny_trunk), "teacher": (str(tiny_trunk),), "batch_size": 4, "precision": "float32"}
    planned = plan(tmp_path / "bare.txt", settings=settings)
    assert len(planned.train) > 24
    with pytest.raises(StopAsking):
        planned.dry_run(tmp_path / "run")
    assert asked_about == [24]  # two more than the timed ones


@pytest.mark.slow
@pytest.mark.usefixtures("smallest_generator")
def test_documents_are_gone_through_with_little(capsys, tiny_trunk, tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(json.dumps({"sentences": stage[0]}) for stage in some_documents(12)) + "\n")
    settings = {
        "model": str(tiny_trunk),
        "max_steps": 40,
        "batch_size": 8,
        "precision": "float32",
        "max_seq_length": 32,
        "held_out_share": 0.2,
        "origin": ORIGIN,
        "harvest": HARVEST,
    }
    steps, time = plan(path, method="context", settings={"origin_config": "scaled", **settings}).dry_run(
        tmp_path / "run"
    )
    assert re.fullmatch(r"documents: [\d,]+ sentences; harvest: 60 pairs; surrogate: 40 steps", steps)
    for stage in ("corpus", "discriminator", "generator", "harvest", "surrogate"):
        assert f"{stage} " in time
    assert [entry.name for entry in tmp_path.iterdir()] == ["some.jsonl"]

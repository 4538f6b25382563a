import json
import shutil
from dataclasses import replace

import pytest

from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.recipes.cosent.recipe import prepare
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.methods import METHODS
from samesense.recipes.planning.dev_split import hold_out, hold_out_share
from samesense.recipes.run import job as run_job
from samesense.recipes.run import runner, training_phase
from samesense.recipes.run.job import Job
from samesense.recipes.run.run_folder import check_new
from samesense.recipes.settings import OTHER_NAMES, bind, read_settings, shipped
from samesense.reports import read_results
from samesense.training import manifest
from samesense.training.batches import share_without_comparison
from tests.messages import listen


@pytest.fixture
def parts(toy_pairs):
    return {split: read_pairs(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}


@pytest.fixture
def settings(tiny_trunk):
    return CosentSettings(model=str(tiny_trunk), learning_rate=2e-3, epochs=3, precision="float32", seed=1)


def test_raises_the_score_and_leaves_a_whole_run(parts, settings, tmp_path):
    messages = listen()
    trained = METHODS["cosent"].run(parts["train"], settings, tmp_path / "run", dev=parts["dev"], test=parts["test"])
    scores = {(r.model, r.metric): r.value for r in trained.results}
    before = scores[f"{settings.model} (before)", "spearman"]
    after = scores[str(tmp_path / "run"), "spearman"]
    assert after > before + 0.4
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock",
        "history.jsonl",
        "manifest.json",
        "model",
        "results.jsonl",
    ]
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert record["status"] == "finished"
    assert record["settings"] == settings.for_start(bare=True).model_dump(mode="json")
    assert record["data"]["train"]["sha256"] == parts["train"].sha256
    assert record["data"]["train"]["rows"] == 160
    assert record["versions"]["torch"]
    assert record["outcome"]["best_dev_spearman"] == trained.output.best_dev_spearman
    assert read_results(tmp_path / "run" / "results.jsonl") == trained.results
    assert messages == [
        f"model {settings.model}, pooling mean, 0.0 M parameters, at most 64 tokens",
        "arithmetic: float32 (as asked for)",
        "cosent: labels as they are, their order counts",
    ]
    build(str(tmp_path / "run"), device="cpu")  # a run folder is a model name


def test_resume_refuses_another_run(parts, settings, tmp_path):
    run = tmp_path / "run"
    METHODS["cosent"].run(parts["train"], settings, run, dev=parts["dev"])
    with pytest.raises(OutputError) as error:
        METHODS["cosent"].run(parts["train"], settings, run, dev=parts["dev"], resume=True)
    assert str(error.value) == f"The run in {run} is finished: its model is there. Overwrite it to train again."
    shutil.rmtree(run / "model")
    changed = settings.model_copy(update={"learning_rate": 0.5})
    with pytest.raises(ConfigError) as error:
        METHODS["cosent"].run(parts["train"], changed, run, dev=parts["dev"], resume=True)
    assert str(error.value) == (
        f"resume continues the run in {run} as it was begun, but settings.learning_rate was 0.002 and is 0.5. "
        "Give the same settings, data and number of processes, or another output folder."
    )
    with pytest.raises(ConfigError, match=r"data\.train\.scale was \[0.*\] and is \[0.*9.*\]"):
        METHODS["cosent"].run(replace(parts["train"], scale=(0.0, 9.0)), settings, run, dev=parts["dev"], resume=True)
    with pytest.raises(ConfigError) as error:
        METHODS["cosent"].run(parts["train"], settings, tmp_path / "none", dev=parts["dev"], resume=True)
    assert str(error.value) == (
        f"resume continues a run, and {tmp_path / 'none'} holds none (no manifest.json). Start it without resume."
    )


@pytest.mark.parametrize("stopped_at", ["save", "evaluate", "end"])
def test_a_run_stopped_after_its_training_is_evaluated_by_resume(parts, settings, tmp_path, monkeypatch, stopped_at):
    quick = settings.model_copy(update={"max_steps": 7})
    sets = {"dev": parts["dev"], "test": parts["test"]}
    whole = METHODS["cosent"].run(parts["train"], quick, tmp_path / "whole", **sets)
    target = {
        "save": (training_phase, "save"),
        "evaluate": (runner, "evaluate_saved"),
        "end": (runner.run_folder, "end"),
    }[stopped_at]

    def stop(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(*target, stop)
        METHODS["cosent"].run(parts["train"], quick, tmp_path / "run", **sets)
    if stopped_at != "save":
        monkeypatch.setattr(run_job, "fit", stop)  # nothing is trained again
    resumed = METHODS["cosent"].run(parts["train"], quick, tmp_path / "run", **sets, resume=True)
    assert [row.value for row in resumed.results] == [row.value for row in whole.results]
    assert read_results(tmp_path / "run" / "results.jsonl") == resumed.results
    assert resumed.output.steps == 7 and not (tmp_path / "run" / "checkpoints").exists()
    with pytest.raises(OutputError, match="is finished"):
        METHODS["cosent"].run(parts["train"], quick, tmp_path / "run", **sets, resume=True)


def test_overwrite_is_asked_for_and_takes_only_its_own(parts, settings, tmp_path):
    quick = settings.model_copy(update={"max_steps": 2})
    METHODS["cosent"].run(parts["train"], quick, tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    for name, file in (
        ("fold-01", "manifest.json"),
        ("fold-02", "notes.txt"),
    ):  # a file of a cross-validation, and one of the user
        (tmp_path / "run" / name).mkdir()
        (tmp_path / "run" / name / file).write_text("{}")
    with pytest.raises(OutputError) as error:
        METHODS["cosent"].run(parts["train"], quick, tmp_path / "run")
    assert str(error.value) == (
        f"{tmp_path / 'run'} is not empty. Choose another output folder, or pass `overwrite` to replace it."
    )
    record = manifest.read(tmp_path / "run")
    manifest.write(tmp_path / "run", record | {"status": "interrupted"})
    message = r"of cosent that is not finished\. Give the same command with `resume` to go on with it, or pass"
    with pytest.raises(OutputError, match=message):
        METHODS["cosent"].run(parts["train"], quick, tmp_path / "run")
    manifest.write(tmp_path / "run", record | {"status": "interrupted", "method": "simcse"})
    with pytest.raises(OutputError, match="of simcse that is not finished"):
        METHODS["cosent"].run(parts["train"], quick, tmp_path / "run")
    METHODS["cosent"].run(parts["train"], quick, tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert [path.name for path in (tmp_path / "run").glob("fold-*")] == ["fold-02"]


def test_a_run_that_came_to_nothing_is_replaced(parts, settings, tmp_path):
    run = METHODS["cosent"].run
    quick = settings.model_copy(update={"max_steps": 2})
    with pytest.raises(ModelError, match="diverged at step"):
        run(parts["train"], quick.model_copy(update={"learning_rate": 1e30, "max_steps": 9}), tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert (tmp_path / "run" / "history.jsonl").exists()
    assert run(parts["train"], quick, tmp_path / "run").output.steps == 2
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    with pytest.raises(OutputError, match="is not empty"):
        run(parts["train"], quick, tmp_path / "run")


@pytest.mark.parametrize("left", ["checkpoints/checkpoint-1", "model", "fold-01", "refit"])
def test_a_run_that_can_be_resumed_is_not_replaced(tmp_path, left):
    record = {"method": "cosent", "processes": 1, "status": "running"}
    manifest.write(tmp_path, record)
    check_new(tmp_path, overwrite=False)
    (tmp_path / left).mkdir(parents=True)
    check_new(tmp_path, overwrite=False)
    (tmp_path / left / "config.json").write_text("{}")
    with pytest.raises(OutputError, match="with `resume` to go on with it"):
        check_new(tmp_path, overwrite=False)
    check_new(tmp_path, overwrite=True)


@pytest.mark.parametrize("record", [{"method": "harvest", "status": "running"}, {"mine": 1}])
def test_a_manifest_of_something_else_is_not_replaced(tmp_path, record):
    manifest.write(tmp_path, record)
    with pytest.raises(OutputError, match="is not empty"):
        check_new(tmp_path, overwrite=False)


def test_a_model_that_cannot_be_loaded_costs_nothing(parts, settings, tmp_path):
    METHODS["cosent"].run(parts["train"], settings.model_copy(update={"max_steps": 2}), tmp_path / "run")
    broken = settings.model_copy(update={"model": str(tmp_path / "absent")})
    with pytest.raises(Exception, match="There is no model folder"):
        METHODS["cosent"].run(parts["train"], broken, tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "model" / "modules.json").is_file()


def test_a_run_refused_before_its_training_leaves_the_folder_to_the_corrected_one(
    parts, settings, tmp_path, monkeypatch
):
    quick = settings.model_copy(update={"max_steps": 2})
    output = tmp_path / "run"

    def refuse(*args, **options):
        raise ConfigError("the settings do not fit")

    def diverge(model, dataset, loss, settings, folder, **options):
        (folder / "history.jsonl").write_text("{}\n")
        raise ModelError("the training diverged")

    with monkeypatch.context() as patch, pytest.raises(ConfigError, match="do not fit"):
        patch.setattr(run_job, "fit", refuse)
        METHODS["cosent"].run(parts["train"], quick, output)
    assert [path.name for path in output.iterdir()] == [".lock"]
    with monkeypatch.context() as patch, pytest.raises(ModelError, match="diverged"):
        patch.setattr(run_job, "fit", diverge)
        METHODS["cosent"].run(parts["train"], quick, output)
    # Its history can be read until the corrected run.
    assert {"manifest.json", "history.jsonl"} <= {path.name for path in output.iterdir()}
    METHODS["cosent"].run(parts["train"], quick, output)


def test_shipped_settings_are_the_defaults_and_the_papers():
    assert {"cosent", "cosent-cross", "cosent-nli"} <= set(shipped())
    paper = bind(CosentSettings, read_settings("cosent"))
    assert paper == CosentSettings()
    nli = bind(CosentSettings, read_settings("cosent"), read_settings("cosent-nli"))
    assert (paper.learning_rate, paper.weight_decay, paper.warmup_ratio, paper.batch_size, paper.epochs) == (
        2e-5,
        0.01,
        0.1,
        16,
        4,
    )
    assert (paper.temperature, nli.batch_size, nli.epochs) == (1 / 20, 64, 1)


def test_settings_are_checked_before_anything_runs(tmp_path):
    with pytest.raises(ConfigError) as error:
        bind(CosentSettings, {"learning_rat": 1})
    assert str(error.value) == "There is no setting 'learning_rat'. Did you mean 'learning_rate'?"
    for other, name in OTHER_NAMES.items():
        with pytest.raises(ConfigError, match=f"no setting '{other}'. Did you mean '{name}'"):
            bind(CosentSettings, {other: 1})
    with pytest.raises(ConfigError) as error:
        bind(CosentSettings, {"temperature": 0})
    assert str(error.value) == "temperature: input should be greater than 0; received 0."
    message = rf"`config` takes a TOML file or one of {', '.join(shipped())}; received 'cosine', which is neither\."
    with pytest.raises(ConfigError, match=f"^{message}$"):
        read_settings("cosine")
    (tmp_path / "bad.toml").write_text("epochs = = 2")
    with pytest.raises(ConfigError, match=r"bad\.toml is no TOML file that can be read: Invalid value"):
        read_settings(str(tmp_path / "bad.toml"))


def test_steps(monkeypatch):
    settings = CosentSettings()
    assert settings.steps(5749) == 1440
    assert settings.steps_between_evaluations(5749) == 144
    assert settings.steps(3) == 4
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert settings.steps(5749) == 356 and settings.steps_between_evaluations(5749) == 35
    assert CosentSettings(max_steps=7).steps(5749) == 7
    assert CosentSettings(epochs=0.5).steps(32) == 1


def test_too_few_pairs_for_the_processes_are_refused_before_the_folder_is_taken(parts, settings, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    many = settings.model_copy(update={"batch_size": 100})
    with pytest.raises(ConfigError, match=r"2 processes with batch_size 100 each takes 200 examples; received 160\."):
        METHODS["cosent"].run(parts["train"], many, tmp_path / "run", dev=parts["dev"])
    assert not (tmp_path / "run").exists()


def test_batches_without_a_comparison_are_those_of_all_processes(parts, settings, tiny_trunk, tmp_path, monkeypatch):
    model = build(str(tiny_trunk), device="cpu")
    labels = parts["train"].labels

    def said(**overrides):
        chosen = settings.model_copy(update={"batch_size": 2, **overrides})
        return prepare(model, Job(method="cosent", data=parts["train"], settings=chosen, output=tmp_path)).summary[1:]

    (alone,) = said()
    assert f"batches: {share_without_comparison(labels, 2):.1%} have one label only" in alone
    monkeypatch.setenv("WORLD_SIZE", "2")
    lacking = share_without_comparison(labels, 4)
    assert lacking < 0.01 and said() == []
    assert f"of random ones {lacking:.1%} would" in said(batches="label-aware")[0]


def test_hold_out_needs_two_labels_on_both_sides(tmp_path):
    rows = "".join(f"{int(i == 0)}\ta {i}\tb {i}\n" for i in range(30))
    (tmp_path / "rare.tsv").write_text("label\tsentence1\tsentence2\n" + rows)
    pairs = read_pairs(tmp_path / "rare.tsv")
    with pytest.raises(DataError, match=r"holding out 10% of 30 pairs leaves one label only .* `dev` none"):
        hold_out(pairs, seed=0)
    with pytest.raises(DataError, match=r"one side\. Hold out another share, or give `test` FILE\.$"):
        hold_out_share(pairs, 0.5, "test", seed=0)

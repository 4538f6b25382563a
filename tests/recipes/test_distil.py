"""Distillation end to end: a student from sentences and teachers, its retained quality and its speed."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from samesense.cli.main import main
from samesense.data import read_pairs
from samesense.data.sentences import read_unlabelled
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError, OutputError
from samesense.evaluation.sts import evaluate_pairs
from samesense.execution.speed import Speed
from samesense.inference.models.load import load
from samesense.metrics import spearman
from samesense.recipes.distil import recipe as distil
from samesense.recipes.distil import report as distil_report
from samesense.recipes.distil.settings import DistilSettings, choose_distil
from samesense.recipes.run import evaluation_phase, run_folder
from samesense.recipes.settings import bind, read_settings
from samesense.training.manifest import read as read_manifest
from tests.conftest import WORDS

TOPICS = {word: index // 8 for index, word in enumerate(WORDS[:48])}


@pytest.fixture(autouse=True)
def _short_timing(monkeypatch):
    monkeypatch.setattr(distil_report, "TIMED", 16)


@pytest.fixture
def corpus(toy_pairs):
    return read_unlabelled(toy_pairs / "train.tsv")


def settings(tiny_trunk, **changes):
    overrides = {"teacher": (str(tiny_trunk),), "precision": "float32", "learning_rate": 2e-3, "seed": 1, **changes}
    return choose_distil("auto", overrides)[1]


def by_topic(texts):
    """How many words of each hidden topic a sentence has: what the wise teacher knows."""
    rows = [np.bincount([TOPICS[word] for word in text.split()], minlength=6) for text in texts]
    return (np.array(rows) + 0.01).astype(np.float32)


def job(train, chosen):
    return distil.Job(method="distil", data=train, settings=chosen, output=Path("run"))


def distilled(train, chosen, folder, *, resume=False, **sets):
    return distil.DistilPlan(train, chosen, **sets).run(folder, resume=resume)


@pytest.fixture
def wise(corpus, tmp_path):
    np.savez(tmp_path / "wise.npz", texts=np.array(corpus.texts), embeddings=by_topic(corpus.texts))
    return f"vectors:{tmp_path / 'wise.npz'}"


@pytest.mark.parametrize("model", ["layers:1", "static:8"])
def test_a_student_learns_what_its_teacher_knows(tiny_trunk, corpus, wise, tmp_path, model):
    """Of sentences that it was not trained on: made from the first teacher, it learns from the second."""
    teachers = {"teacher": (str(tiny_trunk), wise), "teacher_weights": (0.0, 1.0)}
    rate = 2e-2 if "static" in model else 2e-3
    chosen = settings(tiny_trunk, model=model, epochs=10.0, learning_rate=rate, batch_size=32, **teachers)
    train = corpus.take(range(240))
    held_out = corpus.texts[240:]
    before = distil.build_student(job(train, chosen))
    done = distilled(train, chosen, tmp_path / "run")

    def agreement(encoder):
        pair = [encode(encoder, held_out, precision="float32", normalize=True), by_topic(held_out)]
        pair[1] /= np.linalg.norm(pair[1], axis=1, keepdims=True)
        return spearman(*((rows @ rows.T)[np.triu_indices(len(held_out), 1)] for rows in pair))

    assert agreement(build(str(tmp_path / "run"))) > agreement(before) + 0.3
    assert done.report.lines[0].spearman == {}
    assert "quality kept" not in done.report.table()


@pytest.mark.parametrize(("student", "lines"), [("layers:1", 0), ("FOLDER", 1)])
def test_only_a_named_student_is_said_to_be_untuned(
    student, lines, tiny_trunk, toy_pairs, corpus, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(evaluation_phase, "is_untuned", lambda scorer, cosines: True)
    model = student.replace("FOLDER", str(tiny_trunk))
    with caplog.at_level("INFO", "samesense"):
        distilled(
            corpus,
            settings(tiny_trunk, model=model, max_steps=1),
            tmp_path / "run",
            tests=[read_pairs(toy_pairs / "test.tsv")],
        )
    assert caplog.text.count("never tuned for sentences") == lines


def test_quality_and_speed_are_in_table_manifest_results_and_card(tiny_trunk, toy_pairs, corpus, tmp_path):
    tests = [read_pairs(toy_pairs / name) for name in ("dev.tsv", "test.tsv")]
    chosen = settings(tiny_trunk, model="layers:1", max_steps=2, eval_steps=1)
    done = distilled(corpus, chosen, tmp_path / "run", dev=tests[0], tests=tests)
    student, teacher = done.report.lines
    assert set(student.spearman) == {"dev.tsv", "test.tsv"}
    means = [np.mean(list(line.spearman.values())) for line in (student, teacher)]
    assert teacher.retained_share == (pytest.approx(means[0] / means[1]) if means[1] > 0 else None)
    assert student.parameters < teacher.parameters
    assert min(teacher.faster) > 0
    manifest = read_manifest(tmp_path / "run")
    assert [line["model"] for line in manifest["distilled"]["models"]] == ["student", str(tiny_trunk)]
    assert f"1 x distance from 1 x {tiny_trunk}" in manifest["summary"][1]
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert f"## Distilled\n\n{done.report.text()}\n" in card
    assert f"| base model | {tiny_trunk.name} |" in card
    assert "trained by distil into layers:1" in card
    results = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    values = {(row["model"], row["dataset"]): row["value"] for row in results if row["metric"] == "spearman"}
    assert values[str(tmp_path / "run"), "test.tsv"] == student.spearman["test.tsv"]
    assert values[str(tiny_trunk), "dev.tsv"] == teacher.spearman["dev.tsv"]
    with pytest.raises(OutputError):
        distilled(corpus, chosen, tmp_path / "run")


def test_few_sentences_are_warned_of(tiny_trunk, corpus):
    chosen = settings(tiny_trunk, model="layers:1")
    for count, rows in ((1, range(1)), (1, [0] * 40), (31, range(31)), (32, range(32))):
        train = corpus.take(rows)
        work = job(train, chosen)
        summary = distil.prepare(distil.build_student(work), work).summary
        warnings = [line for line in summary if line.startswith("warning: the sentences are few, ")]
        assert len(warnings) == (count < 32)
        assert all(f", {count} different ones for vectors of 32 dimensions" in line for line in warnings)


def test_a_run_killed_while_it_was_evaluated_is_evaluated_by_resume(
    tiny_trunk, toy_pairs, corpus, tmp_path, monkeypatch
):
    tests = [read_pairs(toy_pairs / "test.tsv")]
    chosen = settings(tiny_trunk, model="layers:1", max_steps=2)
    run = partial(distilled, corpus, folder=tmp_path / "run", tests=tests)

    def killed(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run_folder, "end", killed)
        run(chosen=chosen)
    with pytest.raises(ConfigError, match=r"settings\.seed was 1 and is 2"):
        run(chosen=chosen.model_copy(update={"seed": 2}), resume=True)
    done = run(chosen=chosen, resume=True)
    assert done.output.steps == 2
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert card.count("## Distilled") == 1
    assert f"{done.report.text()}\n" in card
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert len(lines) == len(done.report.results) + 2  # two of the student before training
    assert distil_report.KEPT in read_manifest(tmp_path / "run")
    with pytest.raises(OutputError, match="is finished"):
        run(chosen=chosen, resume=True)


def test_the_pooling_of_teachers(tiny_trunk, toy_pairs, corpus, tmp_path):
    tests = [read_pairs(toy_pairs / "test.tsv")]
    chosen = settings(tiny_trunk, model="layers:1", max_steps=1, teacher_pooling="cls")
    done = distilled(corpus, chosen, tmp_path / "run", tests=tests)
    assert build(str(tmp_path / "run"))[1].pooling_mode == "cls"
    cls = evaluate_pairs(load(tiny_trunk, pooling="cls", precision="float32"), tests[0])
    assert done.report.lines[1].spearman["test.tsv"] == next(r.value for r in cls if r.metric == "spearman")
    teachers = [
        distil.build_student(job(corpus, settings(tiny_trunk, model="static", teacher_pooling=pooling)))
        for pooling in (None, "cls")
    ]
    assert not torch.allclose(*(model[0].embedding.weight for model in teachers))


def test_a_teacher_that_is_no_model_teaches_and_is_not_evaluated(tiny_trunk, toy_pairs, corpus, wise, tmp_path):
    chosen = settings(tiny_trunk, teacher=(str(tiny_trunk), wise), teacher_weights=(1.0, 2.0), max_steps=1)
    done = distilled(corpus, chosen, tmp_path / "run", tests=[read_pairs(toy_pairs / "test.tsv")])
    assert [line.model for line in done.report.lines] == ["student", str(tiny_trunk)]
    assert done.report.notes[0] == f"Not evaluated, as it is no model: {wise}."


def test_the_student_reads_as_many_tokens_as_its_teacher(tiny_trunk, corpus, tmp_path):
    chosen = settings(tiny_trunk, model="layers:2", max_seq_length=5, max_steps=1)
    distilled(corpus, chosen, tmp_path / "run")
    assert build(str(tmp_path / "run")).max_seq_length == build(str(tiny_trunk)).max_seq_length > 5


def test_a_student_whose_vectors_are_cut_is_refused(tiny, tiny_trunk, corpus, tmp_path):
    tiny.truncate_dim = 8
    truncated = str(save(tiny, tmp_path / "cut"))
    for overrides in ({"teacher": (truncated,), "model": "layers:1"}, {"model": truncated}):
        with pytest.raises(ModelError, match="vectors are cut to their first 8 numbers"):
            distil.build_student(job(corpus, settings(tiny_trunk, **overrides)))


def test_the_weight_of_the_distance_reaches_the_loss(tiny, tiny_trunk):
    chosen = settings(tiny_trunk, regress=0.25, gamma=0.5, teacher=("a", "b"), teacher_weights=(1.0, 3.0))
    stores = [SimpleNamespace(rows=torch.eye(4).__getitem__, dim=4)] * 2
    loss = distil.loss_of(tiny, chosen, stores)
    assert (loss.regress, loss.settings["gamma"], loss.weights) == (0.25, 0.5, [0.25, 0.75])
    assert [matrix.weight.shape for matrix in loss.maps] == [(4, 32)] * 2


def test_layers_are_kept_at_the_distances_asked_for(tiny_trunk, corpus):
    def queries(**overrides):
        student = distil.build_student(job(corpus, settings(tiny_trunk, **overrides)))
        return [layer.attention.self.query.weight for layer in student[0].model.encoder.layer]

    whole = queries(model="layers:3")
    retained = {}
    for spacing in ("even", "first"):
        layers = queries(model="layers:2", spacing=spacing)[1]
        retained[spacing] = [torch.equal(layers, layer) for layer in whole]
    assert retained == {"even": [False, False, True], "first": [False, True, False]}


def test_the_share_kept_has_no_figure_where_a_teacher_knows_nothing():
    assert distil_report._share({"a": 0.5}, {"a": 0.8}) == 0.625
    assert distil_report._share({"a": 0.5, "b": 0.7}, {"a": 0.8, "b": 0.8}) == pytest.approx(0.75)
    assert distil_report._share({"a": 0.5}, {"a": -0.1}) is None
    assert distil_report._share({}, {}) is None


def test_a_student_that_takes_half_the_time_is_twice_as_fast(tiny, tiny_trunk, sentences, tmp_path, monkeypatch):
    save(tiny, tmp_path / "run")
    speeds = [Speed((512.0, 256.0, 128.0)), Speed((256.0, 128.0, 51.2))]
    monkeypatch.setattr(distil_report, "time_in_turns", lambda runs: (speeds[: len(runs)], "others were at work"))
    chosen = settings(tiny_trunk, model="layers:1")
    report = distil_report.report_student(tmp_path / "run", chosen, sentences, [])
    student, teacher = report.lines
    assert (student.faster, teacher.faster) == (None, (2.0, 2.0, 2.5))
    assert student.sentences_per_second == (256.0, 128.0, 512.0)
    assert "| 2.00 (2.00 to 2.50) |" in report.table() and "| 256 (128 to 512) |" in report.table()
    assert "The machine was not quiet while speeds were measured (others were at work)" in report.text()


def test_shipped_settings_are_the_defaults_and_a_static_student_has_its_own(tmp_path):
    assert bind(DistilSettings, read_settings("encoder", "distil")) == DistilSettings()
    name, chosen = choose_distil("auto", {"teacher": ("default",), "model": "static:64"})
    assert (name, chosen.model, chosen.batch_size) == ("distil of static", "static:64", 128)
    mine = tmp_path / "mine.toml"
    mine.write_text('model = "static"\nteacher = ["default"]\nlearning_rate = 0.5\n')
    assert choose_distil(str(mine), {"seed": 7})[1].learning_rate == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "A student learns from a teacher, and none was named. Give a teacher"),
        ({"teacher": ("a",), "gamma": 0.0, "regress": 0.0}, "Give regress or gamma"),
        ({"teacher": ("a",), "contrast": 1.0}, "compare two views of a sentence"),
        ({"teacher": ("a",), "teacher_weights": (1.0, 2.0)}, "one number a teacher"),
        ({"teacher": ("a",), "spacin": "even"}, "Did you mean 'spacing'"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        choose_distil("auto", options)


def test_the_command(tiny_trunk, toy_pairs, tmp_path, capsys, shown):
    words = ["distil", str(toy_pairs / "train.tsv"), "--teacher", str(tiny_trunk), "-o", str(tmp_path / "run")]
    words += ["--student", "layers:1", "--max-steps", "1", "--precision", "float32"]

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([*words, *arguments])
        assert not stop.value.code
        return capsys.readouterr()

    captured = run("--dry-run")
    assert json.loads(captured.out)["model"] == "layers:1"
    assert "settings: distil of encoder, max_steps = 1" in captured.err
    assert "steps: 1 of 64 examples each" in captured.err and "estimate of the time: " in captured.err
    assert not (tmp_path / "run").exists()
    captured = run("--test", str(toy_pairs / "dev.tsv"), str(toy_pairs / "test.tsv"), "--json")
    assert captured.err.splitlines()[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert "time: " in captured.err and "teachers 0:" in captured.err
    lines = [json.loads(line) for line in captured.out.splitlines()]
    assert [line["model"] for line in lines[:-1]] == ["student", str(tiny_trunk)]
    assert lines[-1]["verdict"] in ("better", "no difference", "worse")
    assert set(lines[0]["spearman"]) == {"dev.tsv", "test.tsv"}

import json
import random

import numpy as np
import pytest
from sentence_transformers import CrossEncoder
from transformers import TrainerCallback

from samesense.data import read_pairs
from samesense.errors import ConfigError, DataError, OutputError
from samesense.inference.models.load import load
from samesense.losses.cosent import CrossCoSENT
from samesense.metrics import spearman
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.methods import METHODS
from samesense.recipes.run import job as run_job
from samesense.recipes.settings import bind, read_settings
from samesense.reports import read_results
from tests.conftest import WORDS
from tests.messages import listen


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Scores are the share of words of the second text from the first half of the vocabulary."""
    source = random.Random(1)
    half = len(WORDS) // 2
    splits = {}
    for split, rows in (("train", 160), ("dev", 60), ("test", 60)):
        path = tmp_path_factory.mktemp("pairs") / f"{split}.tsv"
        lines = ["score\tsentence1\tsentence2"]
        for _ in range(rows):
            overlap = source.randint(0, 4)
            second = source.sample(WORDS[:half], overlap) + source.sample(WORDS[half:], 4 - overlap)
            source.shuffle(second)
            lines.append(f"{overlap * 5 / 4:.2f}\t{' '.join(source.sample(WORDS, 4))}\t{' '.join(second)}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        splits[split] = read_pairs(path)
    return splits


@pytest.fixture
def settings(tiny_trunk):
    overrides = {"model": str(tiny_trunk), "learning_rate": 3e-3, "epochs": 6, "precision": "float32", "seed": 1}
    return bind(CosentSettings, read_settings("cosent"), read_settings("cosent-cross"), overrides)


def test_the_shipped_settings_are_the_papers(settings):
    assert (settings.encoder, settings.loss, settings.temperature) == ("cross", "cosent", 1.0)
    assert (settings.batch_size, settings.weight_decay, settings.warmup_ratio) == (16, 0.01, 0.1)


@pytest.mark.parametrize(
    ("loss", "summary"),
    [
        ("cosent", "cosent: labels as they are, their order counts"),
        ("cross-entropy", "cross-entropy: labels divided by 5"),
    ],
)
def test_both_losses_learn_and_leave_a_whole_run(parts, settings, tmp_path, loss, summary):
    overrides = {**settings.model_dump(exclude_defaults=True), "loss": loss}
    overrides = overrides if loss == "cosent" else {k: v for k, v in overrides.items() if k != "temperature"}
    settings = CosentSettings(**overrides)
    run = tmp_path / "run"
    messages = listen()
    trained = METHODS["cosent"].run(parts["train"], settings, run, dev=parts["dev"], test=parts["test"])
    assert {(r.model, r.metric) for r in trained.results} == {(str(run), "spearman"), (str(run), "pearson")}
    assert trained.results[0].value > 0.5
    assert sorted(p.name for p in run.iterdir()) == [
        ".lock",
        "history.jsonl",
        "manifest.json",
        "model",
        "results.jsonl",
    ]
    record = json.loads((run / "manifest.json").read_text())
    assert (record["method"], record["status"], record["settings"]) == (
        "cosent",
        "finished",
        settings.for_start(bare=True).model_dump(mode="json"),
    )
    assert record["outcome"]["best_dev_spearman"] == trained.output.best_dev_spearman
    assert read_results(run / "results.jsonl") == trained.results
    assert messages == [
        f"{settings.model} has no head that gives one score: classifier.bias, classifier.weight are new and start at "
        "random.",
        f"model {settings.model}, cross-encoder with a new head, 0.0 M parameters, at most 64 tokens a pair",
        "arithmetic: float32 (as asked for)",
        summary,
    ]
    pairs = parts["dev"].pairs()
    labels = parts["dev"].labels
    theirs = CrossEncoder(str(run / "model"), device="cpu").predict(pairs)
    np.testing.assert_allclose(load(str(run), precision="float32").scores(pairs), theirs, rtol=1e-5)
    assert spearman(theirs, labels) == pytest.approx(trained.output.best_dev_spearman, abs=1e-3)


def test_training_goes_on_from_a_cross_encoder_and_judges_it_before(parts, settings, tmp_path):
    short = settings.model_copy(update={"max_steps": 2, "eval_steps": 1})
    METHODS["cosent"].run(parts["train"], short, tmp_path / "first")
    second = short.model_copy(update={"model": str(tmp_path / "first")})
    messages = listen()
    trained = METHODS["cosent"].run(parts["train"], second, tmp_path / "second", test=parts["test"])
    assert "with its own head" in messages[0]
    before = trained.results[0]
    assert before.model == f"{tmp_path / 'first'} (before)"
    scores = load(str(tmp_path / "first"), precision="float32").scores(parts["test"].pairs())
    assert before.value == pytest.approx(spearman(scores, parts["test"].labels), abs=1e-6)


class Killed(BaseException):
    pass


class KillAtStep13(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 13:
            raise Killed


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_result(parts, settings, tmp_path, monkeypatch):
    settings = settings.model_copy(update={"epochs": 2.0, "eval_steps": 5})
    sets = {"dev": parts["dev"], "test": parts["test"]}
    whole = METHODS["cosent"].run(parts["train"], settings, tmp_path / "whole", **sets)
    real = run_job.fit
    monkeypatch.setattr(run_job, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [KillAtStep13()]}))
    with pytest.raises(Killed):
        METHODS["cosent"].run(parts["train"], settings, tmp_path / "killed", **sets)
    monkeypatch.setattr(run_job, "fit", real)
    assert json.loads((tmp_path / "killed" / "manifest.json").read_text())["status"] == "running"
    resumed = METHODS["cosent"].run(parts["train"], settings, tmp_path / "killed", **sets, resume=True)
    assert [r.value for r in resumed.results] == [r.value for r in whole.results]
    with pytest.raises(OutputError, match="is finished: its model is there"):
        METHODS["cosent"].run(parts["train"], settings, tmp_path / "killed", **sets, resume=True)


def test_label_aware_batches(parts, tiny_trunk, tmp_path, monkeypatch):
    batches = []
    real = CrossCoSENT.loss
    monkeypatch.setattr(CrossCoSENT, "loss", lambda self, f, y: (batches.append(y.tolist()), real(self, f, y))[1])
    settings = CosentSettings(
        encoder="cross",
        batches="label-aware",
        batch_size=2,
        max_steps=8,
        precision="float32",
        model=str(tiny_trunk),
    )
    train = parts["train"].take(sorted(range(160), key=lambda i: parts["train"].labels[i])[:60])  # mostly two labels
    METHODS["cosent"].run(train, settings, tmp_path / "run")
    assert len(batches) == 8
    assert all(len(set(labels)) == 2 for labels in batches)


def test_nli_is_graded(tmp_path, settings):
    rows = "".join(f"{label}\ta dog {i}\tthe cat {i}\n" for i in range(4) for label in (0, 1, 2))
    (tmp_path / "nli.tsv").write_text("label\tpremise\thypothesis\n" + rows)
    data = read_pairs(tmp_path / "nli.tsv", label_order="contradiction,neutral,entailment")
    assert data.kind == "nli"
    overrides = {"encoder": "cross", "loss": "cross-entropy"}
    prepared = CosentSettings(**overrides).targets(data)
    assert prepared.summary == "cross-entropy: contradiction 0, neutral 0.5, entailment 1"
    assert sorted(set(prepared.columns["label"])) == [0, 0.5, 1]


def test_refusals(parts, settings, tmp_path):
    with pytest.raises(
        ConfigError, match="`early_stopping_patience` counts evaluations on a dev set, and there is none"
    ):
        METHODS["cosent"].run(
            parts["train"], settings.model_copy(update={"early_stopping_patience": 1}), tmp_path / "patience"
        )
    assert not (tmp_path / "patience").exists()
    constant = parts["train"].take([i for i, label in enumerate(parts["train"].labels) if label == 0])
    with pytest.raises(
        DataError,
        match=r"CoSENT compares pairs with different labels; all \d+ pairs of .*train\.tsv .* have the label 0\.",
    ):
        METHODS["cosent"].run(constant, settings, tmp_path / "run")

"""Every loss through the recipe: a run of each, what it leaves, and that it resumes as it would have gone on."""

import json
import random

import pytest
import torch
from scipy.stats import hypergeom
from transformers import TrainerCallback

from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.errors import DataError
from samesense.execution import trainer
from samesense.losses.contrastive import Contrastive
from samesense.losses.cosent import CoSENT
from samesense.losses.info_nce import InfoNCE
from samesense.losses.mse import MSE
from samesense.losses.registry import PAIR_LOSSES
from samesense.losses.softmax import Softmax
from samesense.losses.triplet import Triplet
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.methods import METHODS
from samesense.recipes.run import job as run_job
from samesense.recipes.run import runner
from samesense.recipes.run.model_adapters import BiEncoder
from samesense.recipes.run.training_phase import dev_score
from samesense.training import fit as module
from tests.conftest import WORDS
from tests.messages import listen

QUICK = {"learning_rate": 2e-3, "precision": "float32", "seed": 1}


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """Binary pairs: positive if both sentences, without a word in common, are of one of six topics."""
    source = random.Random(2)
    folder = tmp_path_factory.mktemp("topics")
    themes = [WORDS[start : start + 8] for start in range(0, 48, 8)]
    for split, rows in (("train", 192), ("dev", 80)):
        first_halves, second_halves = (
            [[" ".join(source.sample(theme[start : start + 4], 3)) for _ in range(6)] for theme in themes]
            for start in (0, 4)
        )
        lines = ["label\tsentence1\tsentence2"]
        for row in range(rows):
            topic, other_topic = source.sample(range(6), 2)
            label = int(row % 3 == 0)
            lines.append(
                f"{label}\t{source.choice(first_halves[topic])}"
                f"\t{source.choice(second_halves[topic if label else other_topic])}"
            )
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return {split: read_pairs(folder / f"{split}.tsv") for split in ("train", "dev")}


@pytest.mark.parametrize("loss", PAIR_LOSSES.names("bi"))
def test_every_loss_learns(loss, topics, tiny_trunk, tmp_path):
    settings = CosentSettings(model=str(tiny_trunk), loss=loss, epochs=3, **QUICK)
    messages = listen()
    before = dev_score(BiEncoder(), topics["dev"])(build(str(tiny_trunk), device="cpu"))
    trained = METHODS["cosent"].run(topics["train"], settings, tmp_path / "run", dev=topics["dev"])
    if loss == "softmax":  # its loss may fall without a better cosine, as the CoSENT paper argues
        history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
        values = [entry["loss"] for entry in history if "loss" in entry]
        assert sum(values[-5:]) / 5 < sum(values[:5]) / 5 - 0.1
    else:
        assert trained.output.best_dev_spearman > before + 0.15
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert record["summary"][0].startswith(f"{loss}: ")
    assert record["settings"]["loss"] == loss
    assert record["summary"][0] in messages
    build(str(tmp_path / "run"), device="cpu")


@pytest.mark.parametrize(
    ("settings", "kind", "expected"),
    [
        (
            {"loss": "cosent", "temperature": 0.1, "margin": 0.2, "similarity": "angle"},
            CoSENT,
            {"temperature": 0.1, "margin": 0.2, "similarity": "angle"},
        ),
        ({"loss": "contrastive", "threshold": 0.5, "literal": True}, Contrastive, {"threshold": 0.5, "literal": True}),
        ({"loss": "mse"}, MSE, {}),
        ({"loss": "softmax", "product": True}, Softmax, {"classes": 2, "product": True}),
        (
            {"loss": "triplet", "distance": "euclidean", "triplet_margin": 0.7},
            Triplet,
            {"distance": "euclidean", "triplet_margin": 0.7},
        ),
        ({"loss": "info-nce", "temperature": 0.1, "hard_negatives": False}, InfoNCE, {"temperature": 0.1}),
        (
            {"loss": "info-nce", "symmetric": True, "hardness": 5.0},
            InfoNCE,
            {"temperature": 0.05, "symmetric": True, "hardness": 5.0},
        ),
    ],
)
def test_settings_reach_the_loss_module(settings, kind, expected, topics, tiny):
    chosen = CosentSettings(mini_batch_num_tokens=512, **settings)
    module = chosen.spec.build(tiny, chosen, chosen.targets(topics["train"]))
    assert type(module) is kind
    assert module.mini_batch_num_tokens == 512
    assert {name: module.settings[name] for name in expected} == expected


def test_info_nce_takes_the_hard_negatives_there_are(tiny, tmp_path):
    rows = [
        ("a cat", "a feline", "entailment"),
        ("a dog", "an animal", "entailment"),
        ("a cat", "a bus", "contradiction"),
    ]
    path = tmp_path / "nli.tsv"
    path.write_text("premise\thypothesis\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows))
    settings = CosentSettings(loss="info-nce")
    prepared = settings.targets(read_pairs(path))
    assert prepared.summary == "info-nce: 2 entailment pairs, 1 of them with a hard negative; 0 of 3 pairs not used"
    assert settings.spec.build(tiny, settings, prepared).labels == "binary"
    without = CosentSettings(loss="info-nce", hard_negatives=False)
    assert without.spec.build(tiny, without, without.targets(read_pairs(path))).labels == "none"


class Killed(BaseException):
    pass


class KillAtStep8(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 8:
            raise Killed


@pytest.mark.parametrize(
    ("loss", "batches"), [("softmax", "random"), ("cosent", "label-aware"), ("info-nce", "no-duplicates")]
)
@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(loss, batches, topics, tiny_trunk, tmp_path, monkeypatch):
    overrides = {**QUICK, "precision": "auto" if loss == "cosent" else "float32"}
    epochs = 12 if loss == "info-nce" else 3  # its positives fill fewer batches
    settings = CosentSettings(
        model=str(tiny_trunk), loss=loss, batches=batches, epochs=epochs, eval_steps=3, **overrides
    )
    train = topics["train"].take(range(64))
    test = topics["dev"]

    def run(name, **options):
        return METHODS["cosent"].run(train, settings, tmp_path / name, test=test, **options)

    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0)
    if loss == "cosent":
        monkeypatch.setattr(runner, "pick_precision", lambda *_: runner.PrecisionChoice("bfloat16", "measured first"))
    whole = run("whole")
    real = module.fit
    monkeypatch.setattr(run_job, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [KillAtStep8()]}))
    with pytest.raises(Killed):
        run("killed")
    monkeypatch.setattr(run_job, "fit", real)
    head = tmp_path / "killed" / "checkpoints" / "checkpoint-7" / "loss.pt"
    assert head.exists() == (loss == "softmax")
    assert json.loads((tmp_path / "killed" / "manifest.json").read_text())["status"] == "running"
    torch.manual_seed(99)  # earlier work of the process must not matter
    monkeypatch.setattr(runner, "pick_precision", lambda *_: runner.PrecisionChoice("float32", "measured later"))
    resumed = run("killed", resume=True)
    assert resumed.output.precision == whole.output.precision == ("bfloat16" if loss == "cosent" else "float32")
    assert [r.value for r in resumed.results] == [r.value for r in whole.results]
    uninterrupted, continued = (build(str(tmp_path / name), device="cpu").state_dict() for name in ("whole", "killed"))
    assert all(torch.equal(uninterrupted[name], continued[name]) for name in uninterrupted)
    history = [(tmp_path / name / "history.jsonl").read_text() for name in ("whole", "killed")]
    losses = [[json.loads(line).get("loss") for line in text.splitlines()] for text in history]
    assert losses[0] == losses[1]
    assert whole.output.steps > 8


def test_label_aware_batches_are_spoken_of_and_random_ones_where_it_matters(topics, tiny_trunk, tmp_path):
    rare = topics["train"].take([*range(0, 192, 12), *(index for index in range(192) if index % 3)])  # 11 % positive
    lacking = float(hypergeom.pmf(0, 144, 16, 16))

    def said(data, **overrides):
        lines = listen()
        settings = CosentSettings(model=str(tiny_trunk), max_steps=1, **QUICK, **overrides)
        METHODS["cosent"].run(data, settings, tmp_path / str(len(list(tmp_path.iterdir()))))
        return [line for line in lines if line.startswith("batches")]

    assert said(rare) == [
        f"batches: {lacking:.1%} have one label only and teach nothing; take `batches` label-aware, which has none"
    ]
    assert said(rare, batches="label-aware") == [
        f"batches: each with two labels; of random ones {lacking:.1%} would have one only"
    ]
    assert said(rare, loss="mse") == []
    assert said(topics["train"], batch_size=64) == []


def test_evaluations_are_spread_over_the_steps_that_label_aware_batches_make(topics, tiny_trunk, tmp_path):
    rare = topics["train"].take(
        [*range(0, 192, 12), *(index for index in range(192) if index % 3)]
    )  # 16 of 144 positive
    settings = CosentSettings(model=str(tiny_trunk), epochs=5, batches="label-aware", **{**QUICK, "batch_size": 4})
    assert (len(rare), settings.examples(rare), settings.steps(settings.examples(rare))) == (144, 64, 80)
    METHODS["cosent"].run(rare, settings, tmp_path / "run", dev=topics["train"])
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [row["step"] for row in history if any("dev" in name for name in row)] == list(range(0, 81, 8))


def test_what_does_not_fit_is_refused_before_anything_is_written(topics, tiny_trunk, toy_pairs, tmp_path):
    scored = read_pairs(toy_pairs / "train.tsv")
    for loss, words in (("softmax", "Give `bins`"), ("triplet", "These losses fit: cosent, contrastive, .*info-nce")):
        with pytest.raises(DataError, match=words):
            METHODS["cosent"].run(scored, CosentSettings(model=str(tiny_trunk), loss=loss, **QUICK), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_texts_in_a_script_that_the_model_does_not_know_are_spoken_of(tiny_trunk, tmp_path):
    rows = [f"{index % 2}\t第{index}只狗在跑\tthe dog {index}" for index in range(40)]
    (tmp_path / "zh.tsv").write_text("\n".join(["label\tsentence1\tsentence2", *rows]) + "\n", encoding="utf-8")
    messages = listen()
    settings = CosentSettings(model=str(tiny_trunk), max_steps=1, **QUICK)
    METHODS["cosent"].run(read_pairs(tmp_path / "zh.tsv"), settings, tmp_path / "run")
    assert [line for line in messages if "unknown to the model's tokenizer" in line]

"""A run without any batch that teaches is refused before its first step; with some, their share is printed."""

import json
import random

import pytest

import samesense
from samesense.data.tuples.read import read_tuples
from samesense.errors import DataError, ModelError
from samesense.recipes.methods import METHODS
from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.plan import make_plan
from tests.command import run_command
from tests.conftest import WORDS

DRAW = random.Random(0)
TEXTS = [" ".join(DRAW.sample(WORDS, 5)) for _ in range(120)]
PAIRS = [{"sentence1": TEXTS[index], "sentence2": TEXTS[index + 60], "label": index % 2} for index in range(60)]
CANNED = [{"anchor": text, "positive": "Thank you for your message."} for text in TEXTS[:40]]
SAME = [{"anchor": TEXTS[index], "positive": TEXTS[index + 40], "negative": TEXTS[index + 40]} for index in range(40)]

NOTHING = {
    "in-batch negatives of batches of one": (PAIRS, {"loss": "info-nce", "batch_size": 1}, "have no negative"),
    "one canned positive": (
        [{**row, "sentence2": "Thank you." if row["label"] else row["sentence2"]} for row in PAIRS],
        {"loss": "info-nce", "hard_negatives": False},
        "have no negative",
    ),
    "one canned positive, no doubles": (
        [{**row, "sentence2": "Thank you." if row["label"] else row["sentence2"]} for row in PAIRS],
        {"loss": "info-nce", "hard_negatives": False, "batches": "no-duplicates"},
        "have no negative",
    ),
    "CoSENT of batches of one": (PAIRS, {"batch_size": 1}, "have one label only"),
    "CoSENT within groups of batches of one": (
        [{**row, "sentence1": TEXTS[index // 4]} for index, row in enumerate(PAIRS)],
        {"batch_size": 1, "groups": "first"},
        "hold only groups that have one label only",
    ),
    "CoSENT with a margin above all labels": (PAIRS, {"margin": 1.5}, "have one label only"),
    "pairs of texts with themselves": (
        [{**row, "sentence2": row["sentence1"]} for row in PAIRS],
        {},
        "hold pairs of one text twice only",
    ),
    "sentences of batches of one": (TEXTS, {"batch_size": 1}, "have one sentence only"),
    "rankings of batches of one": (
        TEXTS,
        {"method": "rankcse", "teacher": ["a"], "batch_size": 1},
        "have fewer than 2 different sentences",
    ),
    "rankings alone of batches of two": (
        TEXTS,
        {"method": "rankcse", "teacher": ["a"], "batch_size": 2, "contrast": 0, "beta": 0, "rank": "listnet"},
        "have fewer than 3 different sentences",
    ),
    "SupMPN of batches of one": (CANNED, {"method": "supmpn", "batch_size": 1, "tuples": "ragged"}, "have no negative"),
    "SupMPN with one canned positive": (CANNED, {"method": "supmpn", "tuples": "ragged"}, "have no negative"),
}


@pytest.mark.parametrize(
    ("name", "train", "options"),
    [
        ("cosent", samesense.read(NOTHING["one canned positive"][0]), {"loss": "info-nce", "hard_negatives": False}),
        ("supmpn", read_tuples(CANNED), {"tuples": "ragged", "false_negative_filter": "off"}),
    ],
)
def test_the_opposite_direction_tells_one_canned_positive_from_other_anchors(name, train, options):
    method = METHODS[name]
    with pytest.raises(DataError, match="have no negative"):
        method.lessons(train, method.settings(**options))
    assert method.lessons(train, method.settings(**options, symmetric=True)) == []
    with pytest.raises(DataError, match="have no negative"):
        method.lessons(train, method.settings(**options, symmetric=True, batch_size=1))


@pytest.mark.parametrize("case", NOTHING)
def test_a_run_that_would_teach_nothing_is_refused(case, tiny_trunk, tmp_path):
    data, settings, why = NOTHING[case]
    with pytest.raises(DataError, match=f"no batch of this run would teach anything: all .*{why}.*To mend it"):
        samesense.train(data, model=str(tiny_trunk), max_steps=2, dev="none", output=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"batch_size": 1}, "raise batch_size."),
        ({"batch_size": 1, "batches": "label-aware"}, "raise batch_size."),
        ({"batch_size": 1, "encoder": "cross"}, "raise batch_size."),
        ({"batch_size": 1, "loss": "angle"}, "raise batch_size."),
        ({"batch_size": 1, "margin": 1.5}, "raise batch_size."),
        ({"margin": 1.5}, "lower margin: labels that differ by no more count as equal."),
        ({"margin": 1.5, "batches": "label-aware"}, "lower margin: labels that differ by no more count as equal."),
    ],
)
def test_the_advice_is_what_would_help(options, advice):
    method = METHODS["cosent"]
    with pytest.raises(DataError) as refusal:
        method.lessons(samesense.read(PAIRS), method.settings(**options))
    assert str(refusal.value).endswith(f"To mend it: {advice}")


def test_label_aware_batches_are_advised_where_random_ones_have_one_label():
    rows = [{**row, "label": int(index < 2)} for index, row in enumerate(PAIRS)]
    method = METHODS["cosent"]
    options = {"loss": "angle", "in_batch_weight": 0.0, "batch_size": 4}
    (line,) = method.lessons(samesense.read(rows), method.settings(**options))
    assert line.endswith("teach nothing; take `batches` label-aware, which has none")


def test_texts_of_which_the_tokenizer_knows_nothing_are_refused_before_the_training(tiny_trunk, tmp_path):
    signs = [{**row, "sentence1": "☀" * (i + 1), "sentence2": "☂" * (i + 1)} for i, row in enumerate(PAIRS)]
    with pytest.raises(ModelError, match="knows no token of the texts"):
        samesense.train(signs, model=str(tiny_trunk), max_steps=2, output=tmp_path / "run")
    assert not (tmp_path / "run/manifest.json").exists(), "another model may be trained there"


def test_the_command_refuses_it_too_with_folds_and_in_a_dry_run(tiny_trunk, tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    words = ["train", path, "--loss", "info-nce", "--batch-size", "1", "--model", tiny_trunk, "-o", tmp_path / "run"]
    for flags in ([], ["--dry-run"], ["--folds", "2"], ["--folds", "2", "--dry-run"]):
        code, _, err = run_command(capsys, *words, *flags)
        assert code == 2 and "no batch of this run would teach anything" in err.splitlines()[-1]
        assert not (tmp_path / "run").exists()


def test_a_sweep_refuses_it_while_it_is_planned(tiny_trunk, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    entry = {"name": "toy", "train": str(path), "test": str(path)}
    base = {"model": str(tiny_trunk), "loss": "info-nce", "max_steps": 2}
    make_plan(SweepFile(base=base, data=[entry]))
    with pytest.raises(DataError, match=r"batch_size 1: .*no batch of this run would teach anything"):
        make_plan(SweepFile(base=base, grid={"batch_size": [8, 1]}, data=[entry]))


@pytest.mark.parametrize(("size", "marks"), [(2, "warning: "), (8, "")])
def test_the_share_of_batches_that_teach_nothing_is_said(size, marks, tiny_trunk, tmp_path):
    rows = [{**row, "sentence2": "Thank you."} if index % 8 else row for index, row in enumerate(PAIRS * 2)]
    positives = [{**row, "label": 1} for row in rows] + [{**PAIRS[0], "label": 0}]
    settings = METHODS["cosent"].settings(loss="info-nce", batch_size=size, hard_negatives=False)
    (line,) = METHODS["cosent"].lessons(samesense.read(positives), settings)
    assert line.startswith(f"{marks}batches: ") and "have no negative" in line and "and teach nothing; raise" in line


def test_triplets_whose_positive_is_their_negative_teach_nothing(tiny_trunk, tmp_path):
    settings = METHODS["sections"].settings()
    data = METHODS["sections"].data[0](
        triplets=[tuple(row.values()) for row in SAME], documents=1, source="made", name="made"
    )
    with pytest.raises(DataError, match="hold triplets only whose positive is their negative"):
        METHODS["sections"].check(data, settings)


def test_runs_that_teach_are_not_spoken_of():
    for name, data in (("cosent", samesense.read(PAIRS)),):
        for loss in ("mse", "softmax", "contrastive", "info-nce", "triplet", "angle"):
            if loss == "triplet":
                continue
            assert METHODS[name].lessons(data, METHODS[name].settings(loss=loss, batch_size=16)) == []

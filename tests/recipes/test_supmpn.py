"""The recipe of SupMPN: its settings, what it says, and a whole run of every loss it is compared with."""

import json
import random
import tomllib
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import torch

from samesense.data import read_pairs
from samesense.data.tuples.convert import tuples_of_classes
from samesense.data.tuples.data import Group, tuple_data
from samesense.errors import ConfigError, DataError
from samesense.inference.models.load import load
from samesense.losses.registry import TUPLE_LOSSES
from samesense.recipes.methods import METHODS
from samesense.recipes.run.job import Job
from samesense.recipes.settings import read_settings
from samesense.recipes.supmpn import recipe as supmpn
from samesense.recipes.supmpn.recipe import prepare
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.supmpn.settings import read_for_supmpn as read
from tests.conftest import WORDS
from tests.messages import listen
from tests.pages import assert_settings_are_listed, section
from tests.training.registered import other_value

LOSSES = TUPLE_LOSSES.names()
OWNED = sorted({name for spec in TUPLE_LOSSES.specs for name in spec.fields})


@pytest.fixture(scope="module")
def nli(tmp_path_factory):
    """Premises of topics of eight words; entailments are of the same topic, contradictions of another."""
    source = random.Random(4)
    topics = [WORDS[start : start + 8] for start in range(0, 48, 8)]
    path = tmp_path_factory.mktemp("nli") / "nli.tsv"
    lines = ["premise\thypothesis\tlabel"]
    for number in range(60):
        topic, other_topic = source.sample(topics, 2)
        premise = " ".join(source.sample(topic, 5))
        for label, words, count in (
            ("entailment", topic, number % 4),
            ("contradiction", other_topic, 1),
            ("neutral", other_topic, 1),
        ):
            lines += [f"{premise}\t{' '.join(source.sample(words, 4))}\t{label}" for _ in range(count)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def settings_of(tiny_trunk, **overrides):
    defaults = {
        "max_steps": 6,
        "batch_size": 8,
        "learning_rate": 2e-3,
        "pooling": "mean",
        "precision": "float32",
        "eval_steps": 3,
    }
    return SupmpnSettings(model=str(tiny_trunk), **{**defaults, **overrides})


def test_the_shipped_settings_are_the_defaults():
    assert SupmpnSettings(**read_settings("supmpn")) == SupmpnSettings()
    large = SupmpnSettings(**read_settings("supmpn"), **{}).model_copy(update=read_settings("supmpn-large"))
    assert (large.batch_size, large.learning_rate) == (200, 1e-5)
    text = (Path(supmpn.__file__).parents[1] / "configs" / "supmpn.toml").read_text(encoding="utf-8")
    lines = [line.lstrip("# ") for line in text.splitlines() if " = " in line]
    names = set(tomllib.loads("\n".join(lines)))
    assert names == set(SupmpnSettings.model_fields)  # settings without a value are comments


@pytest.mark.parametrize("loss", LOSSES)
def test_a_setting_of_another_loss_is_refused_and_not_ignored(loss):
    for name in OWNED:
        value = other_value(SupmpnSettings.model_fields[name])
        options = {name: value, **({"augment": "synonym"} if name == "augment_share" else {})}
        if loss in TUPLE_LOSSES.owners(name):
            assert getattr(SupmpnSettings(loss=loss, **options), name) == value
        else:
            with pytest.raises(ConfigError, match=rf"belongs to loss .*, and this is loss {loss}"):
                SupmpnSettings(loss=loss, **options)


def test_a_share_without_an_augmentation():
    with pytest.raises(ConfigError, match="augment_share belongs to an augmentation, and augment is none"):
        SupmpnSettings(augment_share=0.2)


def test_sentences_of_a_step_decide_the_batch(nli, monkeypatch):
    sizes = {}
    for loss in LOSSES:
        settings = SupmpnSettings(loss=loss, sentences_per_step=132)
        sizes[loss] = settings.for_data(read([str(nli)], settings)).batch_size
    assert sizes == {
        "supmpn": 12,
        "info-nce": 44,
        "gist": 44,
        "triplet": 44,
        "softmax": 66,
        "supcon": 12,
        "batch-hard": 12,
    }
    ragged = SupmpnSettings(tuples="ragged", positives=2, sentences_per_step=100)
    data = read([str(nli)], ragged)
    usable_rows = [row for row, positives in enumerate(data.positives) if positives]
    each = 1 + sum(min(2, len(data.positives[row])) + len(data.negatives[row]) for row in usable_rows) / len(
        usable_rows
    )
    assert ragged.sentences_each(data) == pytest.approx(each)
    assert ragged.for_data(data).batch_size == round(100 / each)
    monkeypatch.setenv("WORLD_SIZE", "2")  # each process then takes half of the step
    assert ragged.for_data(data).batch_size == round(100 / each / 2)
    pairs = SupmpnSettings(loss="softmax", sentences_per_step=132)
    assert pairs.for_data(read([str(nli)], pairs)).batch_size == 33


@pytest.mark.parametrize("loss", ["info-nce", "triplet"])
def test_losses_of_one_positive_get_no_copies_of_the_anchor(tiny, nli, loss):
    settings = SupmpnSettings(loss=loss, batch_size=8)
    train = read([str(nli)], settings)
    train = replace(
        train, negatives=[[] if row % 4 == 1 else texts_of_row for row, texts_of_row in enumerate(train.negatives)]
    )
    lacking = sum(not texts_of_row for texts_of_row in train.positives)
    assert lacking == 15
    prepared = prepare(tiny, job(train, settings))
    used = {row["anchor"]: row["label"] for row in prepared.dataset}
    positives_of = {
        anchor: texts_of_row
        for anchor, texts_of_row in zip(train.anchors, train.positives, strict=True)
        if texts_of_row
    }
    assert set(used) == set(positives_of)
    for anchor, row in used.items():
        positives, negatives = prepared.collator.complete(row, 0)
        assert positives[0] in positives_of[anchor]
        assert (len(positives), len(negatives)) == (1, 1)
    assert prepared.summary[-3] == "15 anchors without a positive are not used"
    ragged = SupmpnSettings(loss=loss, tuples="ragged", batch_size=8)
    usable = ragged.usable(train)
    both = sum(
        bool(texts_of_row and negatives_of_row)
        for texts_of_row, negatives_of_row in zip(train.positives, train.negatives, strict=True)
    )
    assert both == 30
    assert len(usable) == (both if loss == "triplet" else len(train) - lacking)
    sizes = {tuple(map(len, prepare(tiny, job(train, ragged)).collator.complete(row, 0))) for row in range(len(usable))}
    assert sizes == ({(1, 1)} if loss == "triplet" else {(1, 1), (1, 0)})


def test_data_without_what_a_loss_needs_are_refused(nli):
    settings = SupmpnSettings(loss="triplet", tuples="ragged")
    train = read([str(nli)], settings)
    with pytest.raises(
        DataError, match=r"no anchor of 60 has a positive and a negative, which loss triplet with tuples"
    ):
        settings.usable(replace(train, negatives=[[] for _ in train.negatives]))
    texts, labels = ["a", "a", "b", "b", "c"], ["x", "y", "x", "y", "x"]
    classes = tuples_of_classes(texts, labels, source="a.csv", name="a.csv")
    with pytest.raises(DataError, match=r"needs \(left out: 2 sentences of several classes\)"):
        SupmpnSettings(tuples="ragged").usable(classes)


def test_a_step_is_said_to_be_that_of_all_processes(nli, tiny, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    lines = {}
    for loss in ("supmpn", "softmax"):
        settings = SupmpnSettings(loss=loss, batch_size=8)
        lines[loss] = prepare(tiny, job(read([str(nli)], settings), settings)).summary[-1]
    assert lines == {
        "supmpn": "sentences: about 176 a step (16 anchors)",
        "softmax": "sentences: 32 a step (16 pairs)",
    }


def job(train, settings):
    return Job(method="supmpn", data=train, settings=settings, output=Path("run"))


@pytest.fixture
def some():
    groups = [
        Group(f"anchor {number}", [f"near {number} {n}" for n in range(3)], [f"far {number}"], [])
        for number in range(12)
    ]
    return tuple_data(groups, source="some", name="some")


def collator_of(model, data, **overrides):
    return prepare(model, job(data, SupmpnSettings(batch_size=4, **overrides))).collator


def test_every_setting_of_tuples_reaches_the_collator(tiny, some):
    collator = collator_of(
        tiny,
        some,
        positives=2,
        negatives=3,
        seed=5,
        resample="fixed",
        false_negative_filter="near",
        encode_once=False,
        max_seq_length=7,
    )
    completion = collator.complete
    assert (completion.positives, completion.negatives, completion.padded) == (2, 3, True) and collator.places == (2, 3)
    assert (completion.fixed, completion.seed, completion.false_negative_filter) == (True, 5, "near")
    assert (collator.once, collator.apart, collator.preprocess.max_length) == (False, True, 7)
    assert collator.key("b a") == collator.key("a b")
    plain = collator_of(tiny, some)
    assert (plain.complete.fixed, plain.complete.seed, plain.once) == (False, SupmpnSettings().seed, True)
    assert not collator_of(tiny, some, tuples="ragged").complete.padded


@pytest.mark.parametrize("loss", ["supmpn", "info-nce"])
def test_both_directions_and_the_hardness_reach_the_loss(tiny, some, loss):
    settings = SupmpnSettings(loss=loss, symmetric=True, hardness=5.0, false_negative_filter="near")
    module = prepare(tiny, job(some, settings)).loss()
    assert module.settings == {
        "positives": settings.places[0],
        "temperature": 0.05,
        "symmetric": True,
        "hardness": 5.0,
        "false_negative_filter": "near",
    }


def test_augmented_positives_are_positives_of_their_anchor(tiny, some):
    options = {"positives": 5, "augment": "deletion", "negatives": 1}
    collator = collator_of(tiny, some, **options)
    supmpn._augment(
        collator,
        some,
        lambda variants: [f"made of {text} {number}" for text, number in variants],
        SupmpnSettings(**options),
    )
    assert collator.positives[0] == ["near 0 0", "near 0 1", "near 0 2", "made of near 0 0 0", "made of near 0 1 0"]
    assert collator.complete(0)[0] == collator.positives[0]


def test_texts_of_one_class_are_no_negatives_of_each_other(tiny):
    texts = [f"text {index}" for index in range(12)]
    labels = [str(index % 3) for index in range(12)]
    key = collator_of(tiny, tuples_of_classes(texts, labels, source="x", name="x"), negatives=2).key
    assert key("text 0") == key("text 3") != key("text 1")
    assert key("unknown") == key(" UNKNOWN") not in {key(text) for text in texts}


def test_tuples_that_cannot_be_filled_are_refused_before_training(tiny):
    few = tuple_data([Group("a", ["b"], ["c"], []), Group("d", ["e"], ["f"], [])], source="few", name="few")
    with pytest.raises(DataError, match="negatives must be drawn from the texts of other anchors"):
        collator_of(tiny, few, negatives=9)


def test_what_is_said_of_the_data(nli, tiny):
    settings = SupmpnSettings(batch_size=8)
    summary = prepare(tiny, job(read([str(nli)], settings), settings)).summary
    assert summary[0] == "60 anchors with 90 positives and 60 negatives"
    assert summary[2].split() == ["none", "0", "15", "0", "0"]
    assert summary[-2] == (
        "tuples: 5 positives, 70% of them copies of the anchor; 5 negatives, 80% of them drawn from other anchors"
    )
    assert summary[-1] == "sentences: about 88 a step (8 anchors)"
    settings = SupmpnSettings(tuples="ragged", batch_size=8)
    summary = prepare(tiny, job(read([str(nli)], settings), settings)).summary
    assert summary[-3:] == [
        "15 anchors without a positive are not used; tuples padded would use them",
        "tuples: at most 5 positives and 5 negatives, nothing filled up",
        "sentences: about 32 a step (8 anchors)",
    ]
    for module in tiny.modules():
        if hasattr(module, "p"):
            module.p = 0.0
    summary = prepare(tiny, job(read([str(nli)], SupmpnSettings()), SupmpnSettings())).summary
    assert summary[-1].startswith("warning: the model has no dropout")
    supmpn_settings = SupmpnSettings(dropout=0.2)
    prepared = prepare(tiny, job(read([str(nli)], supmpn_settings), supmpn_settings))
    assert prepared.summary[-1].startswith("sentences: ")
    assert prepared.collator.apart  # copies of an anchor have separate dropout masks
    assert {module.p for module in tiny.modules() if hasattr(module, "p")} == {0.2}


@pytest.mark.parametrize(
    "options",
    [{"loss": loss} for loss in LOSSES]
    + [{"loss": "info-nce", "symmetric": True, "hardness": 5.0}]
    + [{"tuples": "ragged", "false_negative_filter": "near"}, {"augment": "deletion", "resample": "fixed"}],
    ids=str,
)
def test_a_whole_run(nli, toy_pairs, tiny_trunk, tmp_path, options):
    guide = {"guide": str(tiny_trunk)} if options.get("loss") == "gist" else {}
    settings = settings_of(tiny_trunk, **options, **guide)
    messages = listen()
    trained = METHODS["supmpn"].run(
        read([str(nli)], settings), settings, tmp_path / "run", dev=read_pairs(toy_pairs / "dev.tsv")
    )
    assert trained.output.steps == 6
    assert (tmp_path / "run" / "model" / "modules.json").is_file()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["summary"][0] == "60 anchors with 90 positives and 60 negatives"
    assert any(line.startswith("equal sentences") for line in messages) == (settings.loss != "softmax")
    if "augment" in options:
        line_number = messages.index("augmented positives, such as:")
        assert messages[line_number + 1].startswith("  from: ")
        assert len(messages[line_number + 2].split()) == len(messages[line_number + 1].split()) - 1


def test_the_guide_embeds_every_text_once_and_its_rows_are_the_keys_of_the_tuples(tiny, tiny_trunk, nli, tmp_path):
    settings = settings_of(tiny_trunk, loss="gist", guide=str(tiny_trunk), teacher_cache=str(tmp_path / "cache"))
    train = read([str(nli)], settings)
    messages = listen()
    prepared = prepare(tiny, job(train, settings))
    prepared.before_training()
    loss = prepared.loss()
    usable = settings.usable(train)
    texts = list(dict.fromkeys([*usable.anchors, *chain(*usable.positives), *chain(*usable.negatives)]))
    assert [prepared.collator.key(text) for text in texts] == list(range(len(texts)))
    vectors = torch.from_numpy(load(str(tiny_trunk)).encode(texts))
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    torch.testing.assert_close(loss.guide(torch.arange(len(texts))), vectors, atol=1e-3, rtol=1e-3)
    prepare(tiny, job(train, settings)).before_training()
    assert [line.split(" sentences")[0] for line in messages if line.startswith("teacher ")] == [
        f"teacher {tiny_trunk}: encoding {len(texts):,} of {len(texts):,}",
        f"teacher {tiny_trunk}: vectors of {len(texts):,}",
    ]


def test_a_guide_is_needed_and_classes_need_none(tiny, tiny_trunk, nli, tmp_path):
    settings = settings_of(tiny_trunk, loss="gist")
    with pytest.raises(ConfigError, match="Loss gist takes a guide, a model that tells false negatives; received none"):
        prepare(tiny, job(read([str(nli)], settings), settings))
    path = tmp_path / "classes.tsv"
    path.write_text("text\tlabel\n" + "".join(f"text {row}\t{row % 2}\n" for row in range(8)), encoding="utf-8")
    guided = settings_of(tiny_trunk, loss="gist", guide=str(tiny_trunk))
    with pytest.raises(ConfigError, match=r"classes\.tsv has classes, which tell them"):
        prepare(tiny, job(read([str(path)], guided), guided))


@pytest.mark.slow
def test_training_brings_positives_nearer(nli, toy_pairs, tiny_trunk, tmp_path):
    settings = settings_of(tiny_trunk, max_steps=60, batch_size=16, eval_steps=20)
    trained = METHODS["supmpn"].run(
        read([str(nli)], settings),
        settings,
        tmp_path / "run",
        dev=read_pairs(toy_pairs / "dev.tsv"),
        test=read_pairs(toy_pairs / "test.tsv"),
    )
    before, after = (
        next(r.value for r in trained.results if r.metric == "spearman" and ("before" in r.model) == first)
        for first in (True, False)
    )
    assert after > before + 0.2


def test_data_that_softmax_cannot_tell_apart(tmp_path, tiny):
    path = tmp_path / "x.jsonl"
    path.write_text('{"query": "a", "pos": ["b", "c"]}\n')
    settings = SupmpnSettings(loss="softmax")
    with pytest.raises(DataError, match="softmax tells classes apart, and there are partners of entailment only"):
        prepare(tiny, job(read([str(path)], settings), settings))


def test_the_documented_settings_are_those_there_are():
    assert_settings_are_listed(section("methods/supmpn.md", "Settings"), SupmpnSettings.model_fields)

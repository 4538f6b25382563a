"""SimCSE: from unlabelled sentences, or NLI pairs, to a model folder."""

import json
from itertools import pairwise

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

import samesense
from samesense.data import read_pairs
from samesense.data.sentences import read_unlabelled
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.merge import copy_weights
from samesense.encoder.encode import encode
from samesense.errors import ConfigError, DataError
from samesense.recipes.methods import METHODS
from samesense.recipes.planning.plan import plan
from samesense.recipes.reading import Reading
from samesense.recipes.run import evaluation_phase
from samesense.recipes.run.training_phase import KEEPS_START
from samesense.recipes.unsupervised import simcse
from samesense.recipes.unsupervised.settings import SimcseSettings
from tests.messages import listen


@pytest.fixture
def corpus(toy_pairs):
    return read_unlabelled(toy_pairs / "train.tsv")


@pytest.fixture
def settings(tiny_trunk):
    return SimcseSettings(model=str(tiny_trunk), learning_rate=1e-3, batch_size=32, precision="float32", seed=1)


def history(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_bare_sentences_give_a_whole_run_without_the_head(corpus, settings, toy_pairs, sentences, tmp_path):
    dev = read_pairs(toy_pairs / "dev.tsv")
    messages = listen()
    settings = settings.model_copy(update={"epochs": 6.0, "eval_steps": 10, "pooling": "mean"})
    trained = METHODS["simcse"].run(corpus, settings, tmp_path / "run", dev=dev, test=dev)
    losses = [entry["loss"] for entry in history(tmp_path / "run") if "loss" in entry]
    assert losses[-1] < losses[0] - 0.5
    assert [e["step"] for e in history(tmp_path / "run") if "eval_dev_spearman" in e] == [0, 10, 20, 30, 40, 50, 60]
    model = build(str(trained.folder), device="cpu")
    assert len(list(model)) == 2
    after = [r.value for r in trained.results if r.model == str(tmp_path / "run") and r.metric == "spearman"]
    assert after[0] == pytest.approx(trained.output.best_dev_spearman, abs=1e-6)  # judged as selected: without it
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (record["method"], record["data"]["train"]["sha256"]) == ("simcse", corpus.sha256)
    assert corpus.summary in messages


@pytest.fixture
def nli(tmp_path, sentences):
    rows = ["premise\thypothesis\tlabel"]
    for i in range(0, 36, 3):
        anchor, near, far = sentences[i : i + 3]
        rows += [f"{anchor}\t{near}\tentailment", f"{anchor}\t{far}\tcontradiction"]
    (tmp_path / "nli.tsv").write_text("\n".join(rows) + "\n")
    return read_pairs(tmp_path / "nli.tsv")


def test_supervised_keeps_its_head(nli, settings, sentences, tmp_path):
    settings = SimcseSettings(
        **settings.model_dump()
        | {
            "supervised": True,
            "head": "kept",
            "batch_size": 4,
            "own_negative_weight": 0.7,
            "eval_steps": 2,
        }
    )
    messages = listen()
    trained = METHODS["simcse"].run(nli, settings, tmp_path / "run")
    assert "triplet: 12 triplets, 0 of 24 pairs not used" in messages
    model = build(str(trained.folder), device="cpu")
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Dense"]
    rows = encode(model, sentences, precision="float32")
    assert abs(rows).max() < 1  # behind a tanh


def test_the_hard_negative_of_an_anchor_weighs_what_it_is_told(nli, settings, tiny):
    """The recipe's objective against InfoNCE written down directly."""
    from samesense.losses import info_nce

    settings = SimcseSettings(**settings.model_dump() | {"supervised": True, "head": "none", "own_negative_weight": 2})
    columns = simcse.form(nli, settings).columns
    tiny.eval()
    features = [tiny.preprocess(column) for column in columns.values()]
    anchors, positives, negatives = (tiny(dict(column))["sentence_embedding"] for column in features)
    expected = info_nce(anchors, positives, negatives, own_negative_weight=2)
    torch.testing.assert_close(simcse.loss_of(tiny, settings, {})(features), expected, atol=1e-5, rtol=1e-5)


def test_every_setting_reaches_the_loss(tiny, monkeypatch):
    settings = SimcseSettings(temperature=0.2, mini_batch_num_tokens=99, head="none")
    loss = simcse.loss_of(tiny, settings, {})
    assert (loss.settings["temperature"], loss.mini_batch_num_tokens, loss.head) == (0.2, 99, None)
    shares = []
    monkeypatch.setattr(simcse, "Masking", lambda tokenizer, share=0.15: shares.append(share))
    monkeypatch.setattr(simcse, "masked_lm_head", lambda model: torch.nn.Linear(32, 5))
    masked = simcse._masked(tiny, SimcseSettings(mlm_weight=0.3, mlm_share=0.4))
    assert (shares, masked["mlm_weight"]) == ([0.4], 0.3)


def test_with_masked_language_modelling(corpus, settings, tiny_trunk, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    BertForMaskedLM(config).save_pretrained(tmp_path / "mlm")
    tokenizer.save_pretrained(tmp_path / "mlm")
    update = {"model": str(tmp_path / "mlm"), "mlm_weight": 1.0, "epochs": 6.0, "pooling": "mean"}
    trained = METHODS["simcse"].run(corpus, settings.model_copy(update=update), tmp_path / "run")
    losses = [entry["loss"] for entry in history(tmp_path / "run") if "loss" in entry]
    assert losses[-1] < losses[0] - 0.5
    assert len(list(build(str(trained.folder), device="cpu"))) == 2
    with pytest.raises(ConfigError, match="needs a checkpoint with its masked-LM head"):
        METHODS["simcse"].run(corpus, settings.model_copy(update={"mlm_weight": 0.1}), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_what_cannot_be_trained_is_refused_before_anything_is_written(corpus, nli, settings, tmp_path):
    run = tmp_path / "run"
    with pytest.raises(ConfigError, match="SimCSE without supervision takes unlabelled sentences; received PairData"):
        METHODS["simcse"].run(nli, settings, run)
    supervised = settings.model_copy(update={"supervised": True})
    with pytest.raises(ConfigError, match="with supervision takes labelled pairs; received Sentences"):
        METHODS["simcse"].run(corpus, supervised, run)
    with pytest.raises(DataError, match="a triplet needs a sentence with a positive and a negative partner"):
        METHODS["simcse"].run(nli.take(range(0, 24, 2)), supervised, run)
    assert not run.exists()


def test_without_dropout_it_says_what_to_do(corpus, settings, tiny_trunk, tmp_path):
    model = build(str(tiny_trunk), device="cpu")
    config = model[0].model.config
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    model.save(str(tmp_path / "dry"))
    dry = settings.model_copy(update={"model": str(tmp_path / "dry"), "max_steps": 2})
    with pytest.raises(ConfigError, match=r"this model has none.*samesense whiten MODEL TEXTS.*or set dropout"):
        METHODS["simcse"].run(corpus, dry, tmp_path / "run")
    assert METHODS["simcse"].run(corpus, dry.model_copy(update={"dropout": 0.1}), tmp_path / "run").output.steps == 2


@pytest.mark.parametrize(
    ("untuned", "keep_start", "steps"), [(False, "unless-better", 0), (True, "unless-better", 2), (False, "never", 2)]
)
def test_nothing_is_trained_where_nothing_could_show_its_help(
    tiny_trunk, sentences, tmp_path, monkeypatch, untuned, keep_start, steps
):
    monkeypatch.setattr(evaluation_phase, "is_untuned", lambda *_: untuned)
    messages = listen()
    (tmp_path / "texts.txt").write_text("\n".join(sentences))
    run = samesense.train(
        tmp_path / "texts.txt", model=str(tiny_trunk), output=tmp_path / "run", max_steps=2, keep_start=keep_start
    )
    assert run.output.steps == steps and (KEEPS_START in messages) == (not steps)
    start, end = (copy_weights(build(path, device="cpu")) for path in (str(tiny_trunk), str(run.folder)))
    assert all(torch.equal(start[name], end[name]) for name in start) == (not steps)
    assert bool(run.verdict.keep_reason) == (not steps)


@pytest.mark.parametrize("role", ["dev", "test", "guard"])
def test_bad_rows_of_pairs_beside_sentences_are_left_out_where_that_is_asked_for(tmp_path, sentences, role):
    pairs = tmp_path / "pairs.tsv"
    rows = [f"{first}\t{second}\t{number % 6}" for number, (first, second) in enumerate(pairwise(sentences))]
    pairs.write_text("\n".join(["sentence1\tsentence2\tscore", "\tlonely\t3", *rows]) + "\n")
    with pytest.raises(DataError, match="leave them out with `drop_bad_rows`"):
        plan(sentences, method="simcse", **{role: pairs})
    planned = plan(sentences, method="simcse", **{role: pairs}, reading=Reading(drop_bad_rows=True))
    (data,) = planned.guards if role == "guard" else [getattr(planned, role)]
    assert len(data) == len(rows)

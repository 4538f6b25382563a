"""Settings inherited from the start model: a tuned one keeps its own pooling, length and prompt."""

import json
import re

import pytest

from samesense import train
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build, is_bare
from samesense.encoder.assembly.pooling import describe_pooling
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError
from samesense.recipes.methods import METHODS
from tests.messages import listen

QUICK = {"max_steps": 2, "eval_steps": 2, "batch_size": 4, "precision": "float32"}


@pytest.fixture
def tuned(tiny_trunk, tmp_path):
    """Folder of an encoder with max pooling, 40 tokens and a default prompt."""
    model = build(str(tiny_trunk), pooling="max", max_seq_length=40, device="cpu")
    model.prompts["ask"], model.default_prompt_name = "the old man ", "ask"
    return str(save(model, tmp_path / "tuned"))


def test_what_is_bare(tiny_trunk, tuned):
    assert is_bare(str(tiny_trunk)) and not is_bare(tuned) and not is_bare("default")


@pytest.mark.parametrize(
    ("method", "pooling", "tokens"),
    [
        ("simcse", "cls", 32),
        ("rankcse", "cls", 32),
        ("supmpn", "first-last", 32),
        ("cosent", "mean", 128),
        ("surrogate", "mean", 128),
        ("context", "mean", 128),
        ("sections", "mean", 128),
    ],
)
def test_the_papers_pooling_and_length_are_for_bare_transformers(method, pooling, tokens):
    kind = METHODS[method].settings
    bare = kind().for_start(bare=True)
    assert (bare.pooling, bare.max_seq_length) == (pooling, tokens)
    assert kind().for_start(bare=False) == kind() and (kind().pooling, kind().max_seq_length) == (None, None)
    settings = kind(pooling="last-2", max_seq_length=7)
    assert settings.for_start(bare=True) == settings.for_start(bare=False) == settings


@pytest.mark.parametrize("method", ["simcse", "rankcse", "supmpn"])
def test_a_tuned_model_comes_out_with_its_own_pooling_length_and_prompt(method, tuned, lines, toy_pairs, tmp_path):
    source = lines
    options = {}
    if method == "supmpn":
        source = tmp_path / "lists.jsonl"
        source.write_text(
            "".join(json.dumps({"anchor": a, "pos": [b], "neg": []}) + "\n" for a, b in pairs_of(lines)), "utf-8"
        )
        options = {"positives": 1, "negatives": 1}
    if method == "rankcse":
        options = {"teacher": (tuned,)}
    messages = listen()
    run = train(
        source, method=method, dev=toy_pairs / "dev.tsv", output=tmp_path / "run", model=tuned, **QUICK, **options
    )
    model = build(str(run.folder), device="cpu")
    assert (describe_pooling(model), model.max_seq_length) == ("max", 40)
    assert model.prompts[model.default_prompt_name] == "the old man "
    assert f"model {tuned}, pooling max, 0.0 M parameters, at most 40 tokens" in messages
    assert not any("were cut to" in line for line in messages)


def cut_texts(messages):
    """Return the message about truncated texts (all of them are); their number depends on the trainer's read-ahead."""
    (match,) = (
        re.fullmatch(r"(\d+) of (\d+) texts (were cut .*)", line) for line in messages if " texts were cut" in line
    )
    assert int(match[1]) == int(match[2]) >= 8
    return match[3]


def pairs_of(lines):
    texts = lines.read_text().splitlines()
    return zip(texts[::2], texts[1::2], strict=False)


def test_a_given_pooling_and_length_win_and_the_length_is_that_of_training_alone(tuned, tiny_trunk, lines, tmp_path):
    messages = listen()
    options = {"model": tuned, **QUICK, "pooling": "cls", "max_seq_length": 6}
    run = train(lines, output=tmp_path / "run", **options)
    model = build(str(run.folder), device="cpu")
    assert (describe_pooling(model), model.max_seq_length) == ("cls", 40)
    assert model.prompts[model.default_prompt_name] == "the old man "
    assert f"model {tuned}, pooling cls, 0.0 M parameters, at most 40, in training 6 tokens" in messages
    assert cut_texts(messages) == "were cut to 6 tokens in training; the model reads 40, as before"
    longer = train(lines, output=tmp_path / "longer", **{**options, "max_seq_length": 500})
    assert build(str(longer.folder), device="cpu").max_seq_length == 64  # the number of its positions
    bare = train(lines, output=tmp_path / "bare", model=str(tiny_trunk), **QUICK)
    assert (describe_pooling(build(str(bare.folder))), build(str(bare.folder)).max_seq_length) == ("cls", 64)
    record = json.loads((bare.folder / "manifest.json").read_text())["settings"]
    assert (record["pooling"], record["max_seq_length"]) == ("cls", 32)


def test_a_cross_encoder_keeps_its_length_too(tiny_trunk, toy_pairs, tmp_path):
    messages = listen()
    settings = {"model": str(tiny_trunk), "encoder": "cross", "max_seq_length": 7, **QUICK}
    run = train(read_pairs(toy_pairs / "train.tsv"), dev=None, output=tmp_path / "run", **settings)
    assert cut_texts(messages) == "were cut to 7 tokens in training; the model reads 64, as before"
    record = json.loads((run.folder / "manifest.json").read_text())["settings"]
    assert (record["pooling"], record["max_seq_length"]) == (None, 7)


def test_every_run_ends_with_what_it_gained(tuned, toy_pairs, tmp_path):
    data = toy_pairs / "train.tsv"
    settings = {"model": tuned, **QUICK, "learning_rate": 2e-3, "max_steps": 20}
    run = train(data, dev=toy_pairs / "dev.tsv", test=toy_pairs / "test.tsv", output=tmp_path / "run", **settings)
    before, after = (100 * result_row.value for result_row in run.results if result_row.metric == "spearman")
    start = 100 * run.output.start_dev_spearman
    best = 100 * run.output.best_dev_spearman
    assert after != before  # 20 steps of such a small model may improve or harm it
    verdict, _, _, row, dev, following, page = str(run).splitlines()[-7:]
    assert verdict.startswith("verdict: ") and verdict.endswith(" the start on test.tsv, 60 examples")
    assert row.split()[:4] == ["test.tsv", f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}"]
    assert dev == f"dev, which selected: {best - start:+.2f} ({start:.2f} to {best:.2f})"
    assert following.startswith(f"next: samesense calibrate {tmp_path / 'run'} ")
    assert page == f"report: {tmp_path / 'run' / 'report.html'}"
    blind = train(data, dev="none", output=tmp_path / "blind", **settings)
    assert blind.conclusion()[0] == "no verdict: there are neither test nor dev pairs. Give `test` FILE"


def test_a_narrow_start_is_spread_before_training_and_evaluated_as_it_was(tiny_trunk, toy_pairs, tmp_path):
    data = {split: str(toy_pairs / f"{split}.tsv") for split in ("train", "test")}
    messages = listen()
    runs = {
        standardize: train(
            data["train"],
            dev="none",
            test=data["test"],
            output=tmp_path / standardize,
            model=str(tiny_trunk),
            standardize=standardize,
            **QUICK,
        )
        for standardize in ("none", "whiten")
    }
    before = [next(r.value for r in run.results if "(before)" in r.model) for run in runs.values()]
    assert before[0] == before[1]
    modules = [
        [type(module).__name__ for module in build(str(tmp_path / standardize), device="cpu")] for standardize in runs
    ]
    assert modules == [["Transformer", "Pooling"], ["Transformer", "Pooling", "Dense"]]
    start = [json.loads((tmp_path / standardize / "manifest.json").read_text())["start"] for standardize in runs]
    assert start[0] == "" and start[1] in messages and start[1].startswith("start whitened by ")


def test_a_cross_encoder_has_no_start_to_be_spread(toy_pairs, tmp_path):
    with pytest.raises(ConfigError, match="standardize belongs to encoder bi"):
        train(str(toy_pairs / "train.tsv"), output=tmp_path / "run", encoder="cross", standardize="mean")


def test_a_new_head_has_nothing_to_gain_over(tiny_trunk, toy_pairs, tmp_path):
    settings = {"model": str(tiny_trunk), "encoder": "cross", **QUICK}
    run = train(toy_pairs / "train.tsv", dev="none", test=toy_pairs / "test.tsv", output=tmp_path / "run", **settings)
    assert run.conclusion()[0].startswith("no verdict: the start has no score of its own, as its head is new; ")

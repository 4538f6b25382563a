"""The card of a saved model: valid on the hub, true to the run, and without a sentence of its data."""

import json

import pytest
from huggingface_hub import ModelCard

import samesense
from samesense.data import read_pairs
from samesense.encoder.saving.card import Card, CardData, add_section, is_ours, write_card
from samesense.encoder.saving.storage import save
from samesense.types import Result

FRONT = """---
license: mit
language:
- en
- de
base_model: owner/root
---
# base

a training sentence of somebody
"""


def row(value, *, subset="all", model="m", seed=1, task="sts", metric="spearman", dataset="dev.tsv"):
    return Result(
        task=task,
        dataset=dataset,
        split="dev",
        subset=subset,
        metric=metric,
        value=value,
        n=1234,
        protocol="cosine, mean pooling",
        model=model,
        seed=seed,
        low=value - 0.01,
        high=value + 0.01,
    )


def facts(base, **changes):
    defaults = {
        "name": "mine",
        "base": str(base),
        "method": "trained by cosent",
        "data": [CardData("train", "owner/pairs:train", 5000, "ab" * 32), CardData("dev", "dev.tsv", 100, "cd" * 32)],
        "settings": {"epochs": 2, "teacher": ("a|b", None), "pooling": None},
        "results": [row(0.8123), row(0.5, subset="part"), row(0.7, task="surrogate")],
        "start": [row(0.6, model="base (before)", seed=None)],
        "versions": {"torch": "2.9"},
        "sections": {"Distilled": "what was kept"},
    }
    return Card(**(defaults | changes))


@pytest.fixture
def base(tiny, tmp_path):
    folder = save(tiny, tmp_path / "private" / "base")
    (folder / "README.md").write_text(FRONT, encoding="utf-8")
    return folder


def test_the_front_matter_is_what_the_hub_reads(base, tmp_path):
    write_card(tmp_path, facts(base))
    card = ModelCard.load(tmp_path / "README.md")
    metadata = card.data
    assert (metadata.license, metadata.language, metadata.base_model) == ("mit", ["en", "de"], "owner/root")
    assert (metadata.library_name, metadata.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert metadata.datasets == ["owner/pairs"]
    assert metadata.model_name == "mine"
    [result] = metadata.eval_results
    assert (result.dataset_name, result.dataset_split, result.metric_type) == ("dev.tsv", "dev", "spearmanr")
    assert result.metric_value == 0.8123
    assert is_ours(tmp_path)
    assert not is_ours(base)


def test_the_body_says_what_it_was_made_of_and_how_it_was_evaluated(base, tmp_path):
    write_card(tmp_path, facts(base))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    for line in (
        "| base model | owner/root |",
        "| licence | mit |",
        "| language | en, de |",
        "| train | owner/pairs:train | 5,000 | `abababababababab` |",
        "| dev.tsv | spearman | 81.23 | 80.2 to 82.2 | 60.00 | 1,234 |",
        "How: cosine, mean pooling.",
        "## Distilled\n\nwhat was kept",
        "| epochs | `2` |",
    ):
        assert line in text
    assert "part" not in text.partition("## Evaluation")[2].partition("##")[0]
    assert str(tmp_path) not in text
    assert "training sentence" not in text


def test_what_is_asked_for_wins_over_the_base(base, tmp_path):
    write_card(tmp_path, facts(base, license="apache-2.0", language=["fr"], settings={"report_to": (), "trainer": {}}))
    card = ModelCard.load(tmp_path / "README.md")
    assert (card.data.license, card.data.language, card.data.base_model) == ("apache-2.0", "fr", "owner/root")
    assert "| licence | apache-2.0 |\n| language | fr |" in card.text
    assert "## Settings" not in card.text or "report_to" not in card.text


def test_what_is_not_known_is_said_and_not_guessed(tiny, tmp_path):
    plain = save(tiny, tmp_path / "plain")
    write_card(tmp_path, facts(plain, data=(), results=(), start=()))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| licence | not stated |" in text
    assert "| language | not stated |" in text
    assert "| base model | plain |" in text
    metadata = ModelCard.load(tmp_path / "README.md").data
    assert (metadata.license, metadata.base_model, metadata.datasets, metadata.eval_results) == (None, None, None, None)
    assert "was not evaluated" in text


def test_a_name_that_is_no_folder_is_a_base_on_the_hub(tmp_path):
    write_card(tmp_path, facts("owner/absent", is_cross_encoder=True))
    metadata = ModelCard.load(tmp_path / "README.md").data
    assert (metadata.base_model, metadata.pipeline_tag) == ("owner/absent", "text-ranking")
    assert "model.predict([(" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_section_is_added_once(base, tmp_path):
    write_card(tmp_path, facts(base))
    add_section(tmp_path, "Export", "first")
    add_section(tmp_path, "Export", "second")
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.endswith("\n\n## Export\n\nsecond\n")
    assert "first" not in text


def test_the_card_says_what_became_of_the_labels(tiny_trunk, toy_pairs, tmp_path):
    samesense.train(
        str(toy_pairs / "train.tsv"),
        dev=str(toy_pairs / "dev.tsv"),
        model=str(tiny_trunk),
        loss="softmax",
        bins=2,
        label_range=(0, 5),
        max_steps=2,
        precision="float32",
        report=False,
        output=tmp_path / "mine",
    )
    record = json.loads((tmp_path / "mine" / "manifest.json").read_text(encoding="utf-8"))
    assert record["summary"][0].startswith("softmax: 2 classes, scores in bins of equal width (pairs of 0 to 2.5: ")
    assert record["settings"]["bins"] == 2
    card = (tmp_path / "mine" / "model" / "README.md").read_text(encoding="utf-8")
    assert "Labels for softmax: 2 classes, scores in bins of equal width (pairs of 0 to 2.5: " in card
    assert "| bins | `2` |" in card


@pytest.mark.parametrize("encoder", ["bi", "cross"])
def test_a_trained_model_has_the_card_of_its_run(tiny_trunk, toy_pairs, tmp_path, encoder):
    files = {split: str(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}
    run = samesense.train(
        files["train"],
        dev=files["dev"],
        test=files["test"],
        model=str(tiny_trunk),
        encoder=encoder,
        keep_start="never",
        max_steps=2,
        precision="float32",
        license="mit",
        language="en, de",
        output=tmp_path / "mine",
    )
    model_card = ModelCard.load(tmp_path / "mine" / "model" / "README.md")
    value = next(result.value for result in run.results if result.seed is not None and result.metric == "spearman")
    assert model_card.data.eval_results[0].metric_value == round(value, 6)
    assert (model_card.data.license, model_card.data.language) == ("mit", ["en", "de"])
    assert model_card.data.pipeline_tag == ("text-ranking" if encoder == "cross" else "sentence-similarity")
    sha256 = read_pairs(files["train"]).sha256
    assert f"`{sha256[:16]}`" in model_card.text
    assert not [text for text in read_pairs(files["train"]).sentences1 if text in model_card.text]


def test_a_whitened_model_says_on_what(tiny_trunk, sentences, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    samesense.whiten(str(tiny_trunk), str(tmp_path / "texts.txt"), output=tmp_path / "white", dim=8)
    text = (tmp_path / "white" / "README.md").read_text(encoding="utf-8")
    assert "whitened to 8 dimensions" in text
    assert "| texts | texts.txt | 40 |" in text

"""Training sees the texts that ``encode`` sees."""

import pytest
import torch
from datasets import Dataset

from samesense.encoder.assembly.build import build
from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.packing import packing, takes_packed_texts
from samesense.losses.cosent import CoSENT
from samesense.training.dataset import as_dataset
from samesense.training.fit import fit
from samesense.training.settings import TrainingSettings
from samesense.training.texts import TrainingTexts


@pytest.fixture
def asking(tiny):
    tiny.prompts["ask"], tiny.default_prompt_name = "the old man ", "ask"
    return tiny


def test_a_loss_is_given_the_features_of_encode(asking, sentences, tmp_path):
    """Default prompt included, which makes a prefix of the very ids; dropout off, and nothing learnt."""
    ids = []

    class Seeing(CoSENT):
        def forward(self, features, labels=None):
            columns = list(features)
            for column in columns:
                ids.extend(column["input_ids"][column["attention_mask"].bool()].tolist())
            return super().forward(columns, labels)

    data = as_dataset({"a": sentences[:4], "b": sentences[4:8], "label": [0.0, 1.0, 2.0, 3.0]})
    fit(asking, data, Seeing(asking), TrainingSettings(max_steps=1, batch_size=4, precision="float32"), tmp_path)
    expected = tokenize_texts(asking, sentences[:8])
    assert sorted(ids) == sorted(expected["input_ids"][expected["attention_mask"].bool()].tolist())
    assert ids.count(asking.tokenizer.convert_tokens_to_ids("old")) >= 8


def test_a_longest_input_cuts_training_and_not_the_model(asking):
    texts = TrainingTexts(asking, 8)
    features = texts(["a dog", "a dog eats", "a dog eats fish", "red " * 30])
    assert features["attention_mask"].sum(dim=1).tolist() == [7, 8, 8, 8]  # [CLS] the old man a dog [SEP]
    assert (texts.truncated, texts.text_count) == (2, 4)  # the second has 8 tokens, and lost none
    assert asking.max_seq_length == 64
    whole = TrainingTexts(asking, 64)
    assert whole(["red " * 30])["input_ids"].shape == (1, 35) and (whole.truncated, whole.max_length) == (0, None)


def test_dev_is_scored_at_the_models_own_length(tiny_trunk, sentences, tmp_path):
    model = build(str(tiny_trunk), device="cpu")
    lengths = []
    data = Dataset.from_dict({"a": sentences[:8], "b": sentences[8:16], "label": [float(i) for i in range(8)]})
    settings = TrainingSettings(max_steps=2, eval_steps=1, precision="float32")

    def dev_score(evaluated_model):
        lengths.append(tokenize_texts(evaluated_model, ["red " * 30])["input_ids"].shape[1])
        return 0.5

    fit(model, data, CoSENT(model), settings, tmp_path, dev_score=dev_score, max_length=4)
    assert lengths == [32, 32, 32]  # the start, and two evaluations


def test_training_precision_is_timed_on_the_texts_of_training(asking, sentences, monkeypatch, measured):
    from samesense.encoder.forward import precision

    widths = []
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)
    monkeypatch.setattr(
        precision,
        "embed_columns",
        lambda model, columns: [widths.append(columns[0]["input_ids"].shape) or torch.ones(1)],
    )
    precision.training_precision(asking, sentences[:3], "auto", 9)
    assert set(widths) == {(3, 9)}


def test_training_precision_is_timed_on_packed_texts_as_in_training(tiny, sentences, monkeypatch):
    from samesense.training import fit as place

    packed = []
    monkeypatch.setattr(place, "training_precision", lambda model, *_: packed.append(takes_packed_texts(model)))
    data = Dataset.from_dict({"a": sentences[:4], "b": sentences[4:8], "label": [0.0, 1.0, 2.0, 3.0]})
    place.pick_precision(tiny, data, TrainingSettings())
    with packing(tiny):  # in a run that has begun
        place.pick_precision(tiny, data, TrainingSettings())
        packed.append(takes_packed_texts(tiny))
    assert packed == [True] * 3 and not takes_packed_texts(tiny)

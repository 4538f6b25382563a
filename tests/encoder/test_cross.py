import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from samesense.encoder.assembly.cross import is_cross_encoder
from samesense.encoder.forward import precision
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.inference.models.load import load


def head(tiny_trunk, folder, labels):
    """Return a bare BERT with a random head of this number of labels."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig.from_pretrained(tiny_trunk, num_labels=labels))
    model.bert.load_state_dict(BertForSequenceClassification.from_pretrained(tiny_trunk).bert.state_dict())
    with torch.no_grad():
        model.classifier.weight.mul_(50)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bare(tiny_trunk, tmp_path_factory):
    return head(tiny_trunk, tmp_path_factory.mktemp("cross") / "bare", 1)


@pytest.fixture
def pairs(sentences):
    return [(sentences[i], sentences[(7 * i + 3) % 40]) for i in range(40)]


def logits_by_hand(folder, pairs):
    """Score one pair at a time with transformers, without padding."""
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return np.array([model(**tokenizer(*pair, return_tensors="pt")).logits.item() for pair in pairs])


def opened(folder):
    model = load(folder, device="cpu", precision="float32", cache=True)
    return model.scores, model.protocol


def test_is_told_from_an_encoder(bare, tiny, tiny_trunk, tmp_path):
    CrossEncoder(str(bare), device="cpu").save(str(tmp_path / "saved"))
    assert is_cross_encoder(str(bare))
    assert is_cross_encoder(str(tmp_path / "saved"))
    assert not is_cross_encoder(str(tiny_trunk))
    assert not is_cross_encoder(str(save(tiny, tmp_path / "encoder")))
    assert not is_cross_encoder("nobody/no-such-model")


def test_scores_equal_the_model_run_pair_by_pair(bare, pairs):
    score, protocol = opened(bare)
    expected = 1 / (1 + np.exp(-logits_by_hand(bare, pairs)))
    np.testing.assert_allclose(score(pairs), expected, rtol=1e-4)
    np.testing.assert_allclose(score(pairs[::-1]), expected[::-1], rtol=1e-4)
    assert protocol == "cross-encoder, sigmoid of the logit, texts in the order given, float32, at most 64 tokens"
    assert score([]).shape == (0,)


def test_order_of_the_texts_counts(bare, pairs):
    score, _ = opened(bare)
    assert np.abs(score(pairs) - score([(b, a) for a, b in pairs])).max() > 1e-4


def test_each_distinct_pair_is_scored_once(bare, pairs, monkeypatch):
    requests = []
    real = CrossEncoder.predict
    monkeypatch.setattr(CrossEncoder, "predict", lambda self, p, **kw: (requests.extend(p), real(self, p, **kw))[1])
    score, _ = opened(bare)
    score([*pairs, *pairs])
    score(pairs[:5])
    assert requests == list(dict.fromkeys(pairs))


def test_what_is_remembered_is_bounded(bare, pairs, monkeypatch):
    requests = []
    real = CrossEncoder.predict
    monkeypatch.setattr(CrossEncoder, "predict", lambda self, p, **kw: (requests.extend(p), real(self, p, **kw))[1])
    monkeypatch.setattr("samesense.encoder.assembly.cross.CACHED_CHARACTERS", sum(map(len, pairs[0])))
    score, _ = opened(bare)
    first = score(pairs[:2])
    assert score(pairs[:2]).tolist() == first.tolist()
    assert requests == pairs[:2]
    np.testing.assert_allclose(
        score(pairs[1:4]), score(pairs[1:4]), rtol=1e-6
    )  # more pairs than the cache holds: evicted and scored again
    assert requests.count(pairs[0]) == 1
    score(pairs[:1])
    assert requests.count(pairs[0]) == 2


def test_large_logits_do_not_become_ties(bare, pairs, tmp_path):
    model = BertForSequenceClassification.from_pretrained(bare)
    logits = logits_by_hand(bare, pairs)
    stretch = 2 / logits.std()
    with torch.no_grad():  # logits of about 22, where a float32 sigmoid is 1
        model.classifier.weight.mul_(stretch)
        model.classifier.bias.mul_(stretch).add_(22 - stretch * logits.mean())
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(bare).save_pretrained(tmp_path)
    assert set(CrossEncoder(str(tmp_path), device="cpu").predict(pairs)) == {1.0}
    score, _ = opened(tmp_path)
    assert (score(pairs).argsort() == logits_by_hand(tmp_path, pairs).argsort()).all()


def test_the_models_own_activation_is_used(bare, pairs, tmp_path):
    CrossEncoder(str(bare), device="cpu", activation_fn=torch.nn.Identity()).save(str(tmp_path / "raw"))
    score, protocol = opened(tmp_path / "raw")
    np.testing.assert_allclose(score(pairs), logits_by_hand(bare, pairs), rtol=1e-3, atol=1e-4)
    assert protocol.startswith("cross-encoder, the logit, ")


def test_a_classifier_of_several_labels_is_refused(tiny_trunk, tmp_path):
    folder = head(tiny_trunk, tmp_path / "nli", 3)
    with pytest.raises(ModelError) as error:
        opened(folder)
    assert str(error.value) == (
        f"A cross-encoder must give one score a pair; '{folder}' gives 3, one for each of its classes. "
        "Use one that was trained on scores, or fine-tune it with one label."
    )


def test_it_scores_and_does_not_embed(bare, pairs):
    model = load(bare, device="cpu", precision="float32")
    assert (model.embeds, model.name, model.backend) == (False, str(bare), "")
    assert model.scores(pairs).shape == (40,)
    with pytest.raises(ModelError, match=r"scores pairs of texts and has no embeddings \(cross-encoder, sigmoid"):
        model.encode(["a"])
    with pytest.raises(ConfigError, match=r"\+whiten maps embeddings, and this model only scores pairs"):
        load(f"{bare}+whiten", device="cpu", fit_texts=["a"])
    with pytest.raises(ConfigError, match="A cross-encoder has no pooling to choose"):
        load(f"{bare}?cls")


def test_the_arithmetic_of_training_is_measured_for_a_cross_encoder_too(bare, pairs, monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)
    chosen = precision.training_precision(CrossEncoder(str(bare), device="cpu", num_labels=1), pairs[:4])
    assert "times as fast" in chosen.reason


def test_the_protocol_names_the_prompt(bare):
    model = load(str(bare), device="cpu", precision="float32", prompt="the dog ")
    assert model.protocol.endswith(", prompt 'the dog '")
    assert "prompt" not in load(str(bare), device="cpu", precision="float32").protocol

import json

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
)

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross, has_one_logit
from samesense.encoder.assembly.cross import as_logits, is_cross_encoder
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError
from samesense.inference.models.load import load
from tests.conftest import WORDS

PAIRS = [("a dog runs", "the cat sleeps"), ("snow", "rain and sun in the garden at noon"), ("the sea", "the sea")]


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """A bare, random Llama whose tokenizer has a chat template, no padding token, and nothing between two texts."""
    vocabulary = {token: i for i, token in enumerate(["[UNK]", "<end>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    tokenizer_of_model = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, unk_token="[UNK]", eos_token="<end>"
    )
    tokenizer_of_model.chat_template = "the dog runs {% for m in messages %}{{ m['content'] }}{% endfor %}"
    tokenizer_of_model.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        pad_token_id=None,
        eos_token_id=1,
        bos_token_id=None,
    )
    LlamaModel(config).save_pretrained(folder)
    return folder


def classifier(tiny_trunk, folder, labels):
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig.from_pretrained(tiny_trunk, num_labels=labels)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(folder)
    return folder


def one_by_one(model):
    """Score each pair alone with transformers, without padding."""
    inner = model[0].model.eval()
    tokenizer = model[0].tokenizer
    with torch.no_grad():
        return [inner(**tokenizer(*pair, return_tensors="pt")).logits.item() for pair in PAIRS]


@pytest.mark.parametrize("trunk", ["tiny_trunk", "language_model"])
def test_logits_do_not_depend_on_the_batch_and_survive_saving(trunk, request, tmp_path):
    model = build_cross(str(request.getfixturevalue(trunk)), device="cpu")
    logits = as_logits(model)(PAIRS)
    assert model.num_labels == 1
    assert logits.dtype == np.float64
    np.testing.assert_allclose(logits, one_by_one(model), atol=1e-5)
    assert len(set(logits)) == 3
    folder = save(model, tmp_path / "saved")
    assert is_cross_encoder(str(folder))
    saved = load(folder, device="cpu", precision="float32")
    np.testing.assert_allclose(saved.scores(PAIRS), 1 / (1 + np.exp(-logits)), rtol=1e-5)
    assert saved.protocol.endswith("at most 64 tokens")
    np.testing.assert_allclose(CrossEncoder(str(folder), device="cpu").predict(PAIRS), saved.scores(PAIRS), rtol=1e-5)


def test_a_language_model_reads_two_texts_and_no_system_prompt(language_model):
    bare = AutoTokenizer.from_pretrained(language_model)
    assert bare("a dog", "the cat").tokens() == ["a", "dog", "the", "cat"]
    model = build_cross(str(language_model), device="cpu")
    tokens = model[0].tokenizer.convert_ids_to_tokens
    assert tokens(model.preprocess([("a dog", "the cat")])["input_ids"][0]) == ["a", "dog", "<end>", "the", "cat"]
    assert model[0].model.config.pad_token_id == 1
    far, near = as_logits(model)([("a dog the", "cat"), ("a dog", "the cat")])
    assert abs(far - near) > 1e-4


def test_a_long_pair_is_cut_in_both_texts(language_model):
    model = build_cross(str(language_model), max_seq_length=9, device="cpu")
    tokens = model[0].tokenizer.convert_ids_to_tokens(model.preprocess([("dog " * 20, "cat " * 20)])["input_ids"][0])
    assert len(tokens) == 9
    assert {tokens.count("dog"), tokens.count("cat"), tokens.count("<end>")} == {4, 1}
    assert build_cross(str(language_model), max_seq_length=500, device="cpu").max_seq_length == 64


def test_a_head_of_one_logit_is_kept_and_any_other_is_new(tiny_trunk, tmp_path):
    one_logit, three = (classifier(tiny_trunk, tmp_path / str(labels), labels) for labels in (1, 3))
    weight = BertForSequenceClassification.from_pretrained(one_logit).classifier.weight
    assert torch.equal(build_cross(str(one_logit), device="cpu")[0].model.classifier.weight, weight)
    fresh = build_cross(str(three), device="cpu", seed=3)
    assert (fresh.num_labels, fresh[0].model.classifier.weight.shape) == (1, (1, 32))
    same, other_seed = (build_cross(str(three), device="cpu", seed=seed)[0].model.classifier.weight for seed in (3, 4))
    assert torch.equal(fresh[0].model.classifier.weight, same)
    assert not torch.equal(same, other_seed)
    assert [has_one_logit(str(folder)) for folder in (one_logit, three, tiny_trunk)] == [True, False, False]


def test_a_sentence_encoder_gives_its_trunk(tiny_trunk, tmp_path):
    folder = save(build(str(tiny_trunk), device="cpu"), tmp_path / "encoder")
    ours, bare = (build_cross(str(path), device="cpu") for path in (folder, tiny_trunk))
    np.testing.assert_allclose(as_logits(ours)(PAIRS), as_logits(bare)(PAIRS), atol=1e-6)


def test_what_cannot_be_a_start_point_is_named(tiny_trunk, language_model, tmp_path):
    with pytest.raises(ModelError, match="There is no model folder at /nowhere"):
        build_cross("/nowhere")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(ModelError, match=r"Cannot open '.*broken' as the start of a cross-encoder: "):
        build_cross(str(broken))
    folder = save(build_cross(str(tiny_trunk), device="cpu"), tmp_path / "modules")
    entries = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(
        json.dumps([*entries, {"idx": 1, "name": "1", "path": "1_LogitScore", "type": "x.LogitScore"}])
    )
    with pytest.raises(ModelError) as error:
        build_cross(str(folder))
    assert str(error.value) == (
        f"A cross-encoder that is trained further must be one transformer; {folder} is Transformer, LogitScore."
    )

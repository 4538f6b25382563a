"""Tiny random models of every architecture of transformers: a long text is truncated to the model's positions."""

import inspect

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.cross import as_logits, load_cross_encoder
from samesense.encoder.encode import encode
from samesense.errors import ModelError

POSITIONS = 40
SMALL = {
    32: ("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embedding_size", "word_embed_proj_dim"),
    48: ("intermediate_size", "d_ff", "hidden_dim", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim"),
    16: ("head_dim", "d_kv"),
    2: (
        "num_hidden_layers",
        "num_attention_heads",
        "n_layer",
        "n_head",
        "n_layers",
        "n_heads",
        "num_layers",
        "num_heads",
        "encoder_layers",
        "decoder_layers",
        "encoder_attention_heads",
        "decoder_attention_heads",
        "bos_token_id",
    ),
    3: ("eos_token_id",),
    1: ("num_key_value_heads",),
    POSITIONS: ("max_position_embeddings", "n_positions"),
    96: ("vocab_size",),
}
SEVERAL = [
    "bart",
    "bert",
    "camembert",
    "data2vec-text",
    "electra",
    "esm",
    "gpt2",
    "ibert",
    "longformer",
    "mpnet",
    "nystromformer",
    "opt",
    "roberta",
    "roberta-prelayernorm",
    "t5",
    "xlm-roberta",
    "xlm-roberta-xl",
]
READS = {"input_ids"}
READS_MORE = {"pixel_values", "input_features", "input_values"}


def small_config(kind, pad):
    whole = AutoConfig.for_model(kind)
    sizes = {name: size for size, names in SMALL.items() for name in names}
    present = {name: size for name, size in sizes.items() if getattr(whole, name, None) is not None}
    return AutoConfig.for_model(kind, **present, pad_token_id=pad)


def small_folder(kind, folder, tiny_trunk, opener=AutoModel, pad=0):
    """Save a small random model of a kind; skip kinds that cannot be made small or read no text."""
    try:
        config = small_config(kind, pad)
        with torch.device("meta"):
            model = opener.from_config(config)
        reads = set(inspect.signature(model.forward).parameters)
        if reads & READS_MORE or not reads & READS or sum(weight.numel() for weight in model.parameters()) > 3e6:
            pytest.skip("reads no text, or is too large")
        torch.manual_seed(0)
        opener.from_config(config).save_pretrained(folder)
    except pytest.skip.Exception:
        raise
    except Exception as error:
        pytest.skip(f"cannot be made small: {error}")
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(folder)
    return str(folder)


class OneLabel:
    """Cross-encoders."""

    @staticmethod
    def from_config(config):
        config.num_labels = 1
        return AutoModelForSequenceClassification.from_config(config)


def check_long_text(model):
    rows = encode(model, ["a dog " * 200, "a dog"], precision="float32")
    assert np.isfinite(rows).all()
    assert np.abs(rows[0] - rows[1]).max() > 0


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("kind", SEVERAL)
def test_a_long_text_is_cut_to_the_positions(kind, pad, tiny_trunk, tmp_path):
    model = build(small_folder(kind, tmp_path, tiny_trunk, pad=pad), device="cpu")
    check_long_text(model)
    assert model.max_seq_length >= POSITIONS - pad - 2


@pytest.mark.parametrize("kind", ["bert", "camembert", "mpnet", "roberta", "xlm-roberta-xl"])
def test_a_long_pair_is_cut_to_the_positions(kind, tiny_trunk, tmp_path):
    folder = small_folder(kind, tmp_path, tiny_trunk, OneLabel, pad=1)
    scores = as_logits(load_cross_encoder(folder, device="cpu"))([("a dog " * 200, "a cat " * 200), ("a dog", "a cat")])
    assert np.isfinite(scores).all()


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(config.model_type for config in MODEL_MAPPING))
def test_every_architecture_reads_a_long_text_or_is_refused(kind, tiny_trunk, tmp_path):
    folder = small_folder(kind, tmp_path, tiny_trunk)
    try:
        model = build(folder, device="cpu")
    except ModelError:
        return
    check_long_text(model)

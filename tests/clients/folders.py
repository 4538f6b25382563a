"""Models of every kind that the library writes, saved by it, beside the vectors or scores that it gives."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.modules import (
    CNN,
    Dropout,
    LayerNorm,
    Pooling,
    StaticEmbedding,
    WeightedLayerPooling,
)
from tokenizers import AddedToken
from transformers import AutoConfig, AutoModel, AutoTokenizer

from samesense.encoder.assembly.build import build, set_prompt
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.cross import as_scores
from samesense.encoder.encode import encode
from samesense.encoder.forward.routes import default_prompt
from samesense.encoder.maps.whitening import Whitening, append_whitening
from samesense.encoder.saving.storage import save
from samesense.inference.onnx.export import export
from tests.conftest import WORDS, random_bert

TEXTS = [
    "a dog runs",
    "The old man reads a book in the garden at noon.",
    "rain",
    " two women sing and play music by the sea  ",
    "unknown wordforms stand here",
    "no " + "fish " * 80 + "end",  # longer than any of the models reads
]
PAIRS = [("a dog runs", "the cat sleeps"), ("rain at noon", "rain at noon"), ("no fish", "fish " * 80)]

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "hidden_size": 32}
LANGUAGE = {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}

TRUNKS = {
    "roberta": {**SMALL, "pad_token_id": 0, "type_vocab_size": 1},
    "xlm-roberta": {**SMALL, "pad_token_id": 0, "type_vocab_size": 1},
    "mpnet": {**SMALL, "pad_token_id": 0},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "albert": {**SMALL, "embedding_size": 16},
    "electra": {**SMALL, "embedding_size": 32},
    "deberta-v2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
    "modernbert": {
        **SMALL,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "global_rope_theta": 3e5,
        "local_rope_theta": 5e3,
        "local_attention": 8,
        "global_attn_every_n_layers": 2,
    },
    "llama": {**LANGUAGE, "rope_theta": 5e5, "rope_scaling": LLAMA_3},
    "mistral": {**LANGUAGE, "rope_theta": 1e6},
    "qwen2": {**LANGUAGE, "rope_theta": 1e6},
    "qwen3": {**LANGUAGE, "rope_theta": 1e6, "head_dim": 16},
    "phi3": {**LANGUAGE, "rope_theta": 5e5},
    "olmo2": {**LANGUAGE, "rope_theta": 5e5},
    "smollm3": {**LANGUAGE, "rope_theta": 5e6},
    "stablelm": {**LANGUAGE, "rope_theta": 2e4, "partial_rotary_factor": 0.5},
    "gemma": {**LANGUAGE, "head_dim": 16, "rope_theta": 7e4},
    "gemma3_text": {
        **LANGUAGE,
        "head_dim": 16,
        "rope_theta": 3e6,
        "rope_local_base_freq": 2e4,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "gpt_neox": {**SMALL, "rotary_emb_base": 50000, "rotary_pct": 0.5, "pad_token_id": 0},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "pad_token_id": 0},
}
"""Model types, with settings that are none of the defaults."""

LAST = {"llama", "mistral", "qwen2", "qwen3", "phi3", "olmo2", "smollm3", "stablelm", "gemma", "gpt_neox", "gpt2"}


def trunk_of(kind, folder, words):
    """Save a random transformer of a model type with the tokenizer of words, and return its folder."""
    torch.manual_seed(0)
    config = {"vocab_size": 5 + len(words), "max_position_embeddings": 72, **TRUNKS[kind]}
    model = AutoModel.from_config(AutoConfig.for_model(kind, **config))
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    side = "left" if kind in LAST - {"gpt2"} else "right"  # gpt2 counts positions from the padding on
    tokenizer = AutoTokenizer.from_pretrained(words_folder(folder.parent), padding_side=side)
    tokenizer.save_pretrained(folder)
    return folder


def words_folder(home):
    return home / "bert"


def behind(trunk, *modules, pooling="mean"):
    """A model with modules behind its pooling."""
    torch.manual_seed(1)
    model = build(str(trunk), pooling=pooling, device="cpu")
    for module in modules:
        model.append(module)
    return model


def layered(trunk, pooling):
    return build(str(trunk), pooling=pooling, device="cpu")


def pooled(trunk, mode):
    body = Transformer(str(trunk))
    return SentenceTransformer(modules=[body, Pooling(32, mode)], device="cpu")


def prompted(trunk, include):
    model = pooled(trunk, "mean")
    model[1].include_prompt = include
    return set_prompt(model, "the old dog: ")


def extracted(trunk, module):
    """A model with a module between the transformer and the pooling."""
    torch.manual_seed(2)
    body = Transformer(str(trunk))
    return SentenceTransformer(modules=[body, module, Pooling(module.get_embedding_dimension(), "mean")], device="cpu")


def weighed(trunk):
    body = Transformer(str(trunk), config_kwargs={"output_hidden_states": True})
    weights = torch.nn.Parameter(torch.tensor([0.2, 1.0, 3.0]))
    layers = WeightedLayerPooling(32, num_hidden_layers=3, layer_start=1, layer_weights=weights)
    return SentenceTransformer(modules=[body, layers, Pooling(32, "cls")], device="cpu")


def static(trunk, *modules):
    torch.manual_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(trunk).backend_tokenizer
    words = StaticEmbedding(tokenizer, embedding_weights=torch.randn(tokenizer.get_vocab_size(), 32))
    return SentenceTransformer(modules=[words, *modules], device="cpu")


def whitened(trunk):
    model = build(str(trunk), device="cpu")
    rows = np.random.default_rng(0).normal(size=(200, 32)).astype(np.float32)
    return append_whitening(model, Whitening.shrunk(rows))


def routed(trunk):
    query = static(trunk)[0]
    document = Transformer(str(trunk))
    router = Router.for_query_document([query], [document, Pooling(32, "mean")])
    return SentenceTransformer(modules=[router, Normalize()], device="cpu")


def with_more_tokens(trunk):
    """A tokenizer that has special tokens besides the usual ones."""
    model = build(str(trunk), device="cpu")
    model.tokenizer.add_special_tokens({"extra_special_tokens": [AddedToken("<topic>", normalized=False)]})
    model[0].model.resize_token_embeddings(len(model.tokenizer))
    return model


def cross(trunk, activation=None):
    model = build_cross(str(trunk), device="cpu")
    if activation is not None:
        model.activation_fn = activation
    return model


@dataclass(frozen=True)
class Kind:
    """One kind of model: how it is built from a trunk's folder, and its group in the documentation."""

    name: str
    group: str
    make: object
    trunk: str = "bert"
    pairs: bool = False
    batch: int = 32  # 1 for modules that are affected by padding

    @property
    def forwards(self):
        """Whether it is a causal language model."""
        return self.trunk in LAST


def kinds():
    """Every kind of model that is tried."""
    dense = Dense(32, 8, activation_function=torch.nn.Identity())
    tanh = Dense(32, 16, bias=False)
    of = [
        *(Kind(mode, "one pooling", partial(pooled, mode=mode)) for mode in Pooling.POOLING_MODES),
        Kind("cls-max-mean", "several poolings", partial(pooled, mode=("cls", "max", "mean"))),
        Kind("mean-cls", "several poolings in an order of their own", partial(pooled, mode=("mean", "cls"))),
        Kind("first-last", "weighted layers", partial(layered, pooling="first-last")),
        Kind("last-2", "weighted layers", partial(layered, pooling="last-2")),
        Kind("weighed", "weighted layers", weighed),
        Kind("dense", "layers behind the pooling", lambda trunk: behind(trunk, tanh, Normalize())),
        Kind("identity", "layers behind the pooling", lambda trunk: behind(trunk, Normalize(), dense)),
        Kind("layer-norm", "layers behind the pooling", lambda trunk: behind(trunk, LayerNorm(32), Dropout(0.3))),
        Kind("whitened", "layers behind the pooling", whitened),
        Kind("cnn", "layers before the pooling", lambda trunk: extracted(trunk, CNN(32, 8, [1, 3], [1, 1])), batch=1),
        Kind("prompt", "a default prompt", partial(prompted, include=True)),
        Kind("prompt-left-out", "a default prompt that is not pooled", partial(prompted, include=False)),
        Kind("static", "static words", static),
        Kind("static-normalized", "static words", lambda trunk: static(trunk, Normalize())),
        Kind("more-tokens", "one pooling", with_more_tokens),
        Kind("router", "routes for queries and documents", routed),
        Kind("cross", "cross-encoders", cross, pairs=True),
        Kind("cross-logit", "cross-encoders", partial(cross, activation=torch.nn.Identity()), pairs=True),
    ]
    for trunk in TRUNKS:
        pooling = "lasttoken" if trunk in LAST else "mean"
        of.append(Kind(trunk, "other transformers", partial(layered, pooling=pooling), trunk=trunk))
    for trunk in ("xlm-roberta", "llama"):
        of.append(Kind(f"cross-{trunk}", "cross-encoders", cross, trunk=trunk, pairs=True))
    return of


def rows_of(model, batch):
    """The vectors of the texts, alone or together."""
    blocks = [TEXTS[start : start + batch] for start in range(0, len(TEXTS), batch)]
    return np.concatenate([encode(model, block, precision="float32") for block in blocks]).tolist()


def write_folders(home: Path) -> dict[str, Path]:
    """Save every kind of model below ``home``, with its outputs in a JSON file; return name to folder."""
    trunks = home / "trunks"
    random_bert(words_folder(trunks), WORDS)
    folders = {}
    for kind in kinds():
        trunk = trunks / kind.trunk
        if not trunk.exists():
            trunk_of(kind.trunk, trunk, WORDS)
        model = kind.make(trunk).eval()
        folders[kind.name] = save(model, home / kind.name)
        prompt = "" if kind.pairs else default_prompt(model)
        reference = {"name": kind.name, "group": kind.group, "pairs": kind.pairs, "batch": kind.batch, "prompt": prompt}
        if kind.pairs:
            reference |= {"inputs": PAIRS, "rows": as_scores(model)(PAIRS).tolist()}
        else:
            reference |= {"inputs": TEXTS, "rows": rows_of(model, kind.batch)}
        (home / f"{kind.name}.json").write_text(json.dumps(reference), encoding="utf-8")
    return folders


EXPORTED = (
    "mean",
    "cls",
    "max",
    "weightedmean",
    "lasttoken",
    "first-last",
    "dense",
    "whitened",
    "prompt",
    "prompt-left-out",
    "static",
    "xlm-roberta",
    "llama",
)
"""Kinds that are also exported."""

OPENVINO = ("mean", "cls", "whitened", "prompt", "xlm-roberta")
"""Those that also get a graph of eight bits for OpenVINO."""


def write_exports(saved: Path, home: Path) -> None:
    """Export some of the kinds below ``saved``, with graphs of both sizes, to below ``home``."""
    for name in EXPORTED:
        export(str(saved / name), home / name, int8=True, openvino_int8=name in OPENVINO)

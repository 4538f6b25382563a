"""Tiny models for export, and the check that a graph gives the same as torch."""

import shutil

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.maps.whitening import Whitening, append_whitening
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.export import export
from samesense.inference.onnx.format import GRAPHS


def whitened(trunk, texts):
    """Mean pooling, unit length, whitening to 12 dimensions, unit length again."""
    model = build(str(trunk), device="cpu")
    model = SentenceTransformer(modules=[*model, Normalize()], device="cpu")
    return append_whitening(model, Whitening.fit(encode(model, texts, precision="float32"), 12))


def headed(trunk):
    """First-last pooling of the embeddings, a dense head with tanh, and a prompt."""
    model = build(str(trunk), device="cpu", pooling="first-last", first="embeddings")
    torch.manual_seed(1)
    return SentenceTransformer(
        modules=[*model, Dense(32, 8, activation_function=torch.nn.Tanh())],
        device="cpu",
        prompts={"mine": "the dog "},
        default_prompt_name="mine",
    )


def static(trunk):
    """A vector a token, averaged, of the same tokenizer."""
    tokenizer = build(str(trunk), device="cpu").tokenizer.backend_tokenizer
    rows = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 6)).astype(np.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=rows)], device="cpu")


def copy_graph(exported, model, path):
    """Take the graph of a model from a folder of its export, since recording it takes seconds."""
    path.parent.mkdir(parents=True)
    shutil.copyfile(exported / GRAPHS["onnx"], path)


def plain_rows(model, texts):
    """Vectors of each text alone by the library's own encode: the twin of what is exported."""
    return np.stack([model.encode(text, batch_size=1, show_progress_bar=False) for text in texts])


def check_same(model, folder, texts):
    """Export, then compare every text among neighbours of other lengths, and alone."""
    export(model, folder, weights=False)
    assert not list(folder.rglob("*.safetensors"))
    encoder = OnnxEncoder(folder)
    expected = plain_rows(model, texts)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=2e-6)
    for batch in (1, 17, 10**6):
        np.testing.assert_allclose(encoder.encode(texts, batch_tokens=batch), expected, atol=2e-6)
    return encoder

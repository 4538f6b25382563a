"""How true an exported graph is: its vectors against torch's, and what that does to Spearman on labelled pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sentence_transformers import SentenceTransformer

from samesense.data.pairs.data import PairData
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import encode
from samesense.errors import ModelError
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.format import Drift, Parity
from samesense.metrics import spearman
from samesense.types import Embeddings, Encode

LEAST_COSINE = 0.9999
"""A float32 graph whose vector of some sentence has a smaller cosine with torch's is refused."""

CHECKED = 300
"""Sentences of the check, besides the awkward ones."""

AWKWARD = (
    "a",
    "  Spaces before, a tab\tbetween, and a line\nbreak.  ",
    "UPPER CASE and Zürich, naïve, 100 %",
    "两个人在公园里散步。",
    "\N{GRINNING FACE} \N{THUMBS UP SIGN}",
    "one sentence that is far longer than any model reads at once, said again and again; " * 60,
)
"""Texts in which tokenizers and limits show where they differ."""


def check_tokens(model: SentenceTransformer, exported: OnnxEncoder, texts: list[str]) -> None:
    """Make sure that the folder's tokenizer alone gives the ids that the model is given by sentence-transformers."""
    prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    for text in texts:
        wanted = model.preprocess([text], prompt=prompt)["input_ids"].flatten().tolist()
        found = exported.token_ids(text)
        if found != wanted:
            raise ModelError(
                "An exported model reads text by its tokenizer.json alone; for "
                f"{text[:60]!r} that gives {len(found)} ids where the model is given {len(wanted)} others. A chat "
                "template, or changes that sentence-transformers makes to texts, cannot be exported: save the model "
                "without them."
            )


def reference_rows(model: SentenceTransformer, texts: list[str]) -> Embeddings:
    """Return the vectors of torch in float32, ``(texts, dim)``; ModelError if one is not finite."""
    rows = encode(model, texts, precision="float32")
    if not np.isfinite(rows).all():
        raise ModelError("The model gives vectors that are not finite; there is nothing to compare a graph with.")
    return rows


def parity(exported: OnnxEncoder, reference: Embeddings, texts: list[str]) -> Parity:
    """Compare the vectors of a graph with ``reference``, computed among neighbours and alone."""
    together = exported.encode(texts)
    alone = np.concatenate([exported.encode([text]) for text in texts])
    least = 1.0
    for rows in (together, alone):
        if not np.isfinite(rows).all():
            raise ModelError(f"The graph {exported.name} gives vectors that are not finite.")
        least = min(least, float(_cosines(rows, reference).min()))
    if exported.name == "onnx" and least < LEAST_COSINE:
        raise ModelError(
            f"The graph must give the model's own vectors; a cosine with them is {least:.6f}, and {LEAST_COSINE} is "
            "the least. Its modules cannot be recorded faithfully; keep to torch for this model."
        )
    lengths = np.maximum(np.linalg.norm(reference, axis=1), 1e-12)
    apart = float((np.abs(together - alone).max(axis=1) / lengths).max())
    return Parity(texts=len(texts), least_cosine=round(least, 8), alone=float(f"{apart:.3g}"))


def _cosines(rows: Embeddings, reference: Embeddings) -> Embeddings:
    """Return the cosine of each row with its reference ``(n,)``: 1 where both are zeros, 0 where one of them is."""
    one, other = np.linalg.norm(rows, axis=1), np.linalg.norm(reference, axis=1)
    product = np.einsum("ij,ij->i", rows.astype(np.float64), reference.astype(np.float64))
    cosines: Embeddings = np.where(
        (one == 0) & (other == 0), 1.0, product / np.maximum(one.astype(np.float64) * other, 1e-30)
    )
    return cosines


def drift(pairs: PairData, reference: Encode, others: Mapping[str, Encode]) -> Drift:
    """Return what each backend's Spearman on ``pairs`` loses or gains against that of ``reference``, times 100."""
    examples = list(zip(pairs.sentences1, pairs.sentences2, strict=True))

    def judged(one: Encode) -> float:
        return 100 * spearman(cosine_score(one)(examples), pairs.labels)

    base = judged(reference)
    points = {name: round(judged(one) - base, 4) for name, one in others.items()}
    return Drift(data=pairs.name, pairs=len(examples), reference=round(base, 4), points=points)

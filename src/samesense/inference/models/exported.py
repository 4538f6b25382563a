"""An exported folder as something that can be judged."""

from __future__ import annotations

from pathlib import Path

from samesense.encoder.cosine import cosine_score
from samesense.encoder.embedding_cache import cache_embeddings
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.types import Candidate


def open_exported(name: str, *, cache: Path | None = None, seed: int | None = None) -> Candidate:
    """Open the float32 graph of an exported folder, which needs no torch.

    Args:
        name: the folder.
        cache: folder in which embeddings are kept between runs.
        seed: seed of the training run behind it, where known.

    Raises:
        ModelError: if the folder cannot be read.
    """
    encoder = OnnxEncoder(name)
    encode = cache_embeddings(encoder.encode, folder=cache, identity=encoder.identity)
    return Candidate(name=name, score=cosine_score(encode), encode=encode, protocol=encoder.protocol, seed=seed)

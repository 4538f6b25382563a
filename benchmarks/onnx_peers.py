"""The same ONNX graph as others run it: onnxruntime as in its tutorials, and fastembed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

Encode = Callable[[list[str]], np.ndarray]


def plain_onnxruntime(folder: Path, graph: str, max_tokens: int, batch_size: int = 32) -> Encode:
    """Return an encode function of a default session: batches in the order of the texts, padded to the longest."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(max_tokens)
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession(folder / graph)
    inputs = [entry.name for entry in session.get_inputs()]

    def encode(texts: list[str]) -> np.ndarray:
        rows = []
        for start in range(0, len(texts), batch_size):
            encodings = tokenizer.encode_batch(texts[start : start + batch_size])
            arrays = {
                "input_ids": [entry.ids for entry in encodings],
                "attention_mask": [entry.attention_mask for entry in encodings],
                "token_type_ids": [entry.type_ids for entry in encodings],
            }
            rows.append(session.run(None, {name: np.array(arrays[name], dtype=np.int64) for name in inputs})[0])
        return np.concatenate(rows)

    return encode


def fastembed(folder: Path, graph: str, dim: int) -> Encode | None:
    """Return an encode function of fastembed with its defaults, or ``None`` if it is not installed.

    The graph does the pooling.
    """
    if find_spec("fastembed") is None:
        return None
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"local/{folder.name}-{graph}"
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf=name),
        dim=dim,
        model_file=graph,
    )
    model = TextEmbedding(name, specific_model_path=str(folder))
    return lambda texts: np.array(list(model.embed(texts)))

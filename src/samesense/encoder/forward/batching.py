"""Many texts through a model with little padding and bounded memory.

Rows are sorted by length, cut into chunks, and put back in order. With a token budget, a batch beyond it goes through
:mod:`samesense.encoder.forward.grad_cache`, so that the peak is one chunk's and not the batch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from samesense.encoder.each_once import within_budget
from samesense.encoder.forward.grad_cache import Features, forward, replayed
from samesense.encoder.forward.packing import first_position, pack, packs
from samesense.encoder.forward.routes import prompt_of
from samesense.errors import ModelError
from samesense.types import TaskName

CHUNK_COST = 64
"""Cost of one more forward, in tokens: below that much saved padding a cut does not pay (measured on CPU)."""

GROUP_COST = 300
"""The same for packed texts: their padding costs attention alone, a further group some thirty operations a layer."""


def tokenised(
    model: SentenceTransformer | CrossEncoder,
    texts: Sequence[Any],
    max_length: int | None = None,
    *,
    task: TaskName | None = None,
) -> Features:
    """Return texts, or pairs, as a model reads them: behind its prompt, and cut to ``max_length`` tokens.

    ``None`` cuts to the model's own length, and so does a greater one. The texts are queries or documents by ``task``,
    or neither.
    """
    shorter = max_length is not None and max_length < (model.max_seq_length or max_length)
    cut = {"max_length": max_length} if shorter else {}
    try:
        features: Features = model.preprocess(list(texts), prompt=prompt_of(model, task) or None, **cut, **_as(task))
    except Exception as error:
        if type(error) is not Exception:  # the tokenizers library raises nothing narrower
            raise
        raise ModelError(f"The model's tokenizer cannot read a text: {error}. Is its folder damaged?") from error
    return features


def _as(task: TaskName | None) -> dict[str, Any]:
    return {} if task is None else {"task": task}


def embed_columns(
    model: nn.Module,
    columns: Sequence[Features],
    *,
    chunk_cost: int | None = None,
    mini_batch_num_tokens: int | None = None,
) -> list[Tensor]:
    """Embed columns of tokenised text in shared, length-sorted forwards: one ``(batch, dim)`` tensor a column.

    A column is the tokeniser's output, tensors ``(batch, tokens)``; the model answers with ``sentence_embedding``. A
    further forward must save ``chunk_cost`` tokens of padding; ``None`` takes CHUNK_COST on CPU, GROUP_COST where texts
    are packed, and never cuts on an accelerator, where one large forward is the faster. At most
    ``mini_batch_num_tokens``, padding included but for packed texts (of which bfloat16 may add a sixteenth), have their
    activations held at once; ``None`` holds all. That costs a second forward of every chunk; a batch within the budget
    is not cut and costs nothing. Neither vectors nor gradients depend on how the rows were cut.
    """
    merged = _merge(columns)
    if merged is None:
        return [forward(model, c) if mini_batch_num_tokens is None else replayed(model, [c]) for c in columns]
    mask, packed = merged["attention_mask"], packs(model)
    if chunk_cost is None:
        on_cpu = GROUP_COST if packed else CHUNK_COST
        chunk_cost = on_cpu if mask.device.type == "cpu" else mask.numel()
    lengths = mask.sum(dim=1)
    order = lengths.argsort(descending=True)
    sorted_lengths = lengths[order].tolist()
    chunks = plan_chunks(sorted_lengths, chunk_cost)
    held = sum(sorted_lengths) if packed else sum((end - start) * sorted_lengths[start] for start, end in chunks)
    replay = mini_batch_num_tokens is not None and held > mini_batch_num_tokens
    if mini_batch_num_tokens is not None:
        chunks = [
            (first + start, first + end)
            for first, last in chunks
            for start, end in within_budget(sorted_lengths[first:last], mini_batch_num_tokens)
        ]
    if packed:
        parts = _packed(model, merged, order, chunks, replay)
    else:
        parts = [_trimmed(merged, order[start:end], sorted_lengths[start]) for start, end in chunks]
    embedded = replayed(model, parts) if replay else torch.cat([forward(model, part) for part in parts])
    embeddings = embedded[order.argsort()]
    sizes = [column["attention_mask"].shape[0] for column in columns]
    return list(embeddings.split(sizes))  # type: ignore[no-untyped-call]


def _packed(
    model: nn.Module, features: Features, order: Tensor, chunks: Sequence[tuple[int, int]], replay: bool
) -> list[Features]:
    """Return all chunks packed together, each a group of texts that attend together; one by one for a replay."""
    offset = first_position(model)
    if replay:
        return [pack(features, order[start:end], [(0, end - start)], offset) for start, end in chunks]
    return [pack(features, order, chunks, offset)]


def plan_chunks(lengths: Sequence[int], chunk_cost: int) -> list[tuple[int, int]]:
    """Cut rows sorted by falling length into the contiguous chunks of least total cost."""
    n = len(lengths)
    edges = [0, *(i for i in range(1, n) if lengths[i] != lengths[i - 1]), n]  # only a change of length is worth a cut
    best = {0: (0, 0)}
    for at, end in enumerate(edges[1:], 1):
        best[end] = min((best[i][0] + (end - i) * lengths[i] + chunk_cost, i) for i in edges[:at])
    chunks = []
    while n:
        start = best[n][1]
        chunks.append((start, n))
        n = start
    return chunks[::-1]


def _merge(columns: Sequence[Features]) -> Features | None:
    """Return one feature dict of all columns' rows, or None where columns hold more than padded text."""
    first = columns[0]
    if "attention_mask" not in first or any(set(column) != set(first) for column in columns):
        return None
    width = max(column["attention_mask"].shape[-1] for column in columns)
    left = any(bool((column["attention_mask"][:, 0] == 0).any()) for column in columns)
    merged: Features = {}
    for key, value in first.items():
        if not isinstance(value, Tensor):
            if any(column[key] != value for column in columns):
                return None
            merged[key] = value
            continue
        if value.shape != first["attention_mask"].shape:
            return None
        gaps = [width - column[key].shape[1] for column in columns]
        merged[key] = torch.cat([F.pad(c[key], (g, 0) if left else (0, g)) for c, g in zip(columns, gaps, strict=True)])
    return merged


def _trimmed(features: Features, rows: Tensor, length: int) -> Features:
    """Return the given rows without the padding that none of them needs."""
    mask = features["attention_mask"][rows]
    keep = slice(None)
    if int(mask[:, :length].sum()) == int(mask.sum()):
        keep = slice(0, length)
    elif int(mask[:, -length:].sum()) == int(mask.sum()):
        keep = slice(mask.shape[1] - length, None)
    return {k: v[rows][:, keep].contiguous() if isinstance(v, Tensor) else v for k, v in features.items()}

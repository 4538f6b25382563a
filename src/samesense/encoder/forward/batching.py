"""Run many texts through a model with little padding and bounded memory.

Rows are sorted by length, cut into chunks, and put back in order. A batch beyond the token budget goes through
:mod:`samesense.encoder.forward.grad_cache`, so that peak memory is that of one chunk and not of the batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from samesense.encoder.distinct import within_budget
from samesense.encoder.forward.grad_cache import Features, embed_with_cached_gradients, forward
from samesense.encoder.forward.packing import first_position, pack, takes_packed_texts
from samesense.encoder.forward.routes import input_of, longest_of, prompt_of
from samesense.errors import ModelError
from samesense.types import TaskName

CHUNK_COST = 64
"""Cost of one more forward, in tokens: a cut must save more padding than this (measured on a CPU)."""

GROUP_COST = 300
"""The same for packed texts: padding only costs attention there; one more group costs 30 operations per layer."""


HEAD_LETTERS = 64
"""Characters a token of the maximum length that are tokenized at first: more than nearly every text needs."""

_SPLITTERS = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")
"""Pre-tokenizers that always split at spaces."""


def tokenize_texts(
    model: SentenceTransformer | CrossEncoder,
    texts: Sequence[Any],
    max_length: int | None = None,
    *,
    task: TaskName | None = None,
) -> Features:
    """Return the features of texts, or pairs, with the model's prompt in front and cut to ``max_length`` tokens.

    ``None``, or a length beyond the model's own, cuts to the model's own. ``task`` tells whether the texts are queries
    or documents.
    """
    shorter = max_length is not None and max_length < (model.max_seq_length or max_length)
    options: dict[str, Any] = {"max_length": max_length} if shorter else {}
    if task is not None:
        options["task"] = task
    options["prompt"] = prompt_of(model, task) or None
    try:
        longest = max_length if shorter else longest_of(model, task)
        heads = _heads(model, texts, longest, task)
        features: Features = model.preprocess(heads, **options)
        if not _are_full(features, heads, texts, longest):
            features = model.preprocess(list(texts), **options)
    except Exception as error:
        if type(error) is not Exception:  # the tokenizers library raises nothing narrower
            raise
        raise ModelError(f"The model's tokenizer cannot read a text: {error}. Is its folder damaged?") from error
    return features


def _heads(
    model: SentenceTransformer | CrossEncoder, texts: Sequence[Any], longest: int | None, task: TaskName | None
) -> list[Any]:
    """Return the texts, those much longer than the model reads cut at a space: a tokenizer reads all before it cuts.

    The tokens of a head are the first tokens of its text, as the tokenizer splits at spaces. Of a pair, how much is
    read of one text depends on the length of the other, so that pairs stay whole.
    """
    if longest is None:
        return list(texts)
    most = HEAD_LETTERS * longest
    if not any(isinstance(text, str) and len(text) > most for text in texts):
        return list(texts)
    if not _splits_at_spaces(getattr(input_of(model, task), "tokenizer", None)):
        return list(texts)
    return [_head(text, most) if isinstance(text, str) else text for text in texts]


def _head(text: str, most: int) -> str:
    """Return a text up to the first space from ``most`` characters on."""
    end = text.find(" ", most)
    if end == -1:
        return text
    return text[:end].rstrip()


def _splits_at_spaces(tokenizer: Any) -> bool:
    """Return whether a tokenizer is sure to cut off the end, and to read the words before a space alone."""
    if not getattr(tokenizer, "is_fast", False) or tokenizer.truncation_side != "right":
        return False
    splitter = tokenizer.backend_tokenizer.pre_tokenizer
    if splitter is None:
        return False
    description = json.loads(splitter.__getstate__())
    return any(
        step["type"] in _SPLITTERS
        or (step["type"] == "ByteLevel" and step.get("use_regex", True))
        or (step["type"] == "Metaspace" and step.get("split", True))
        for step in description.get("pretokenizers", [description])
    )


def _are_full(features: Features, heads: Sequence[Any], texts: Sequence[Any], longest: int | None) -> bool:
    """Return whether the heads of texts have as many tokens as the model reads, so that it reads no more of the texts.

    Others have, say, thousands of characters that the tokenizer drops.
    """
    rows = [row for row, (head, text) in enumerate(zip(heads, texts, strict=True)) if len(head) < len(text)]
    if not rows:
        return True
    mask = features.get("attention_mask")
    if mask is None or mask.shape != (len(texts), longest):
        return False
    return bool(mask[rows].all())


def embed_columns(
    model: nn.Module,
    columns: Sequence[Features],
    *,
    chunk_cost: int | None = None,
    mini_batch_num_tokens: int | None = None,
) -> list[Tensor]:
    """Embed columns of tokenised text in shared, length-sorted forwards: one ``(batch, dim)`` tensor per column.

    A column is the tokeniser's output, tensors ``(batch, tokens)``; the model returns ``sentence_embedding``. One more
    forward must save ``chunk_cost`` tokens of padding; ``None`` means CHUNK_COST on a CPU, GROUP_COST for packed texts,
    and no cut on an accelerator, where one large forward is faster. ``mini_batch_num_tokens`` limits the tokens whose
    activations are held at once, padding included (packed texts have none, but bfloat16 may add a sixteenth); ``None``
    holds all. Beyond this budget every chunk needs a second forward; a batch within it is not cut. Neither vectors nor
    gradients depend on how the rows were cut.
    """
    merged = _merge(columns)
    if merged is None:
        if mini_batch_num_tokens is None:
            return [forward(model, column) for column in columns]
        return [embed_with_cached_gradients(model, [column]) for column in columns]
    mask = merged["attention_mask"]
    packed = takes_packed_texts(model)
    if chunk_cost is None:
        chunk_cost = _chunk_cost(mask, packed=packed)
    lengths = mask.sum(dim=1)
    order = lengths.argsort(descending=True)
    sorted_lengths = lengths[order].tolist()
    chunks = plan_chunks(sorted_lengths, chunk_cost)
    replay = False
    if mini_batch_num_tokens is not None:
        replay = _count_tokens_held(sorted_lengths, chunks, packed=packed) > mini_batch_num_tokens
        chunks = _fit_to_budget(sorted_lengths, chunks, mini_batch_num_tokens)
    if packed:
        batches = _pack_chunks(model, merged, order, chunks, replay=replay)
    else:
        batches = [_trim(merged, order[start:end], sorted_lengths[start]) for start, end in chunks]
    embedded = _embed_batches(model, batches, replay=replay)
    embeddings = embedded[order.argsort()]  # back to the order of the rows
    sizes = [column["attention_mask"].shape[0] for column in columns]
    return list(embeddings.split(sizes))  # type: ignore[no-untyped-call]


def _count_tokens_held(lengths: Sequence[int], chunks: Sequence[tuple[int, int]], *, packed: bool) -> int:
    """Return the tokens of all chunks, padding included, of which packed texts have none."""
    if packed:
        return sum(lengths)
    return sum((end - start) * lengths[start] for start, end in chunks)


def _fit_to_budget(lengths: Sequence[int], chunks: Sequence[tuple[int, int]], budget: int) -> list[tuple[int, int]]:
    """Return the chunks, those beyond a budget of tokens cut into several."""
    return [
        (first + start, first + end)
        for first, last in chunks
        for start, end in within_budget(lengths[first:last], budget)
    ]


def _chunk_cost(mask: Tensor, *, packed: bool) -> int:
    """Return how many tokens of padding one more forward must save."""
    if mask.device.type != "cpu":
        return mask.numel()  # never worth a cut
    if packed:
        return GROUP_COST
    return CHUNK_COST


def _embed_batches(model: nn.Module, batches: list[Features], *, replay: bool) -> Tensor:
    """Return the embeddings of all batches, one after the other; a replay holds the activations of one at a time."""
    if replay:
        return embed_with_cached_gradients(model, batches)
    return torch.cat([forward(model, batch) for batch in batches])


def _pack_chunks(
    model: nn.Module, features: Features, order: Tensor, chunks: Sequence[tuple[int, int]], *, replay: bool
) -> list[Features]:
    """Return all chunks in one packed batch, each as a group; for a replay, every chunk as its own batch."""
    offset = first_position(model)
    if replay:
        return [pack(features, order[start:end], [(0, end - start)], offset) for start, end in chunks]
    return [pack(features, order, chunks, offset)]


def plan_chunks(lengths: Sequence[int], chunk_cost: int) -> list[tuple[int, int]]:
    """Return the contiguous chunks of least total cost, for rows sorted by descending length."""
    n = len(lengths)
    # a cut between equal lengths saves nothing
    boundaries = [0, *(i for i in range(1, n) if lengths[i] != lengths[i - 1]), n]
    # dynamic programming: for each end, the least cost so far and the start of the last chunk
    best = {0: (0, 0)}
    for count, end in enumerate(boundaries[1:], 1):
        best[end] = min((best[i][0] + (end - i) * lengths[i] + chunk_cost, i) for i in boundaries[:count])
    chunks = []
    while n:  # from the last chunk back to the first
        start = best[n][1]
        chunks.append((start, n))
        n = start
    return chunks[::-1]


def _merge(columns: Sequence[Features]) -> Features | None:
    """Return the rows of all columns as one feature dict, or None if the columns hold more than padded text."""
    first = columns[0]
    if "attention_mask" not in first or any(set(column) != set(first) for column in columns):
        return None
    width = max(column["attention_mask"].shape[-1] for column in columns)
    left_padded = any(bool((column["attention_mask"][:, 0] == 0).any()) for column in columns)
    merged: Features = {}
    for key, value in first.items():
        if not isinstance(value, Tensor):
            if any(column[key] != value for column in columns):
                return None
            merged[key] = value
            continue
        if value.shape != first["attention_mask"].shape:
            return None
        # the padding value does not matter, as the attention mask is 0 there
        gaps = [width - column[key].shape[1] for column in columns]
        merged[key] = torch.cat(
            [F.pad(c[key], (g, 0) if left_padded else (0, g)) for c, g in zip(columns, gaps, strict=True)]
        )
    return merged


def _trim(features: Features, rows: Tensor, length: int) -> Features:
    """Return the given rows without columns that are padding in all of them."""
    mask = features["attention_mask"][rows]
    # tokenizers pad on the right or on the left
    keep = slice(None)
    if int(mask[:, :length].sum()) == int(mask.sum()):
        keep = slice(0, length)
    elif int(mask[:, -length:].sum()) == int(mask.sum()):
        keep = slice(mask.shape[1] - length, None)
    return {
        name: values[rows][:, keep].contiguous() if isinstance(values, Tensor) else values
        for name, values in features.items()
    }

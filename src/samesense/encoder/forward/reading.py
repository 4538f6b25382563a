"""How a sentence-transformers model tokenizes texts, and what it does not read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.grad_cache import Features
from samesense.encoder.forward.routes import input_of, longest_of, prompt_of
from samesense.encoder.pieces import Cutter, Pieces
from samesense.encoder.tokens import reading_by, unknown_id
from samesense.encoder.windows import Reading, Span
from samesense.errors import ModelError
from samesense.execution.unread import Unread
from samesense.types import Pair, TaskName

PAIR_ADDS = 3
"""Special tokens that a cross-encoder adds to a pair; some models add one more."""


def reading_of(model: SentenceTransformer | CrossEncoder, task: TaskName | None = None) -> Reading:
    """Return how a model reads texts of a task; its spans raise ModelError if the tokenizer gives no offsets."""
    tokenizer = getattr(input_of(model, task), "tokenizer", None)
    prompt = prompt_of(model, task)
    if isinstance(tokenizer, Tokenizer):  # of a static model, which truncates if its file says so
        longest = (tokenizer.truncation or {}).get("max_length")
        return reading_by(tokenizer, prompt=prompt, special=False, longest=longest)
    longest = longest_of(model, task)
    if not callable(tokenizer) or not hasattr(tokenizer, "unk_token_id"):
        return Reading(None, lambda texts: [0] * len(texts), _no_spans)
    if getattr(tokenizer, "is_fast", False):
        return _fast(tokenizer, longest, prompt)
    return _slow(tokenizer, longest, prompt)


def _no_spans(text: str) -> list[Span]:
    raise ModelError("The model's tokenizer does not say where a token stands, so no text can be cut by it.")


def _fast(tokenizer: Any, longest: int | None, prompt: str) -> Reading:
    """Return the reading of a fast tokenizer of transformers."""
    cutter = Cutter(
        unknown=tokenizer.unk_token_id,
        longest=longest,
        prompt=prompt,
        fold=tokenizer.backend_tokenizer.normalizer,
        from_end=tokenizer.truncation_side == "left",
    )

    def encodings(texts: list[str]) -> Any:
        if texts:
            return tokenizer([prompt + text for text in texts], verbose=False).encodings
        return []

    def spans(text: str) -> list[Span]:
        read = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets: list[Span] = read["offset_mapping"]
        return offsets

    return Reading(
        longest,
        lambda texts: [len(encoding.ids) for encoding in encodings(texts)],
        spans,
        lambda texts: [cutter.pieces(text, encoding) for text, encoding in zip(texts, encodings(texts), strict=True)],
    )


def _slow(tokenizer: Any, longest: int | None, prompt: str) -> Reading:
    """Return the reading of a slow tokenizer, which gives no offsets."""
    unknown = tokenizer.unk_token_id
    added = set(tokenizer.all_special_ids) - {unknown}

    def encoded(texts: list[str]) -> list[list[int]]:
        if texts:
            ids: list[list[int]] = tokenizer([prompt + text for text in texts], verbose=False)["input_ids"]
        else:
            ids = []
        return ids

    def pieces(text: str, ids: list[int]) -> Pieces:
        cut_tokens = 0 if longest is None else max(0, len(ids) - longest)
        # special tokens are read by every text alike
        text_ids = tuple(token_id for token_id in ids if token_id not in added)
        any_known = any(token_id != unknown for token_id in text_ids)
        # Without offsets the unknown part has no position, so the whole text stands for it.
        if unknown in text_ids:
            return Pieces((text,), int(not cut_tokens), any_known)
        return Pieces(text_ids, len(text_ids) - cut_tokens, any_known)

    return Reading(
        longest,
        lambda texts: [len(ids) for ids in encoded(texts)],
        _no_spans,
        lambda texts: [pieces(text, ids) for text, ids in zip(texts, encoded(texts), strict=True)],
    )


class UnreadWatch:
    """Counts the texts that a model does not read in full, from the features that are computed for it anyway.

    Only texts whose features suggest something unread are tokenised a second time.
    """

    def __init__(self, model: SentenceTransformer, task: TaskName | None = None) -> None:
        self.unread = Unread()
        self._model = model
        self._task = task
        self._reading = reading_of(model, task)
        self._added = self._reading.lengths([""])[0]  # number of special tokens
        tokenizer = getattr(input_of(model, task), "tokenizer", None)
        bare = isinstance(tokenizer, Tokenizer)
        if bare:
            self._unknown = unknown_id(tokenizer)
        else:
            self._unknown = getattr(tokenizer, "unk_token_id", None)
        self.unread.longest = self._reading.longest or 0

    def read(self, texts: Sequence[str]) -> None:
        """Tokenise texts and look at them."""
        self.look(texts, tokenize_texts(self._model, texts, task=self._task))

    def look(self, texts: Sequence[str], features: Features) -> None:
        """Look at texts whose features are given."""
        self.unread.see(texts)
        counts = _counts(features, self._unknown)
        if counts is None:
            return
        lengths, unknown_counts = counts
        longest = self._reading.longest
        if longest is not None:
            # Features are cut already, so a text of the full length may have been longer.
            is_full = lengths >= longest
        else:
            is_full = torch.zeros_like(lengths, dtype=torch.bool)
        known_tokens = lengths - unknown_counts - self._added
        # a known token may be a single space, so up to two of them prove nothing
        maybe_unknown = (known_tokens <= 0) | ((unknown_counts > 0) & (known_tokens <= 2))
        if is_full.any():
            full_texts = [texts[row] for row in is_full.nonzero().flatten().tolist()]
            for text, is_cut in zip(full_texts, self._reading.longer(full_texts), strict=True):
                if is_cut:
                    self.unread.cut.add(text)
        if maybe_unknown.any():
            blank_texts = [texts[row] for row in maybe_unknown.nonzero().flatten().tolist()]
            for text, pieces in zip(blank_texts, self._reading.pieces_of(blank_texts), strict=True):
                if not pieces.has_known:
                    self.unread.unknown.add(text)


def _counts(features: Features, unknown: int | None) -> tuple[Tensor, Tensor] | None:
    """Return the number of tokens and of unknown tokens of each text; ``None`` for features without token ids."""
    ids = features.get("input_ids")
    mask = features.get("attention_mask")
    if ids is None:
        return None
    if unknown is not None:
        is_unknown = ids == unknown
    else:
        is_unknown = torch.zeros_like(ids, dtype=torch.bool)
    if mask is not None and mask.shape == ids.shape:  # padded rows
        return mask.sum(dim=1), (is_unknown & mask.bool()).sum(dim=1)
    if "offsets" not in features:
        return None
    # the bag of tokens of a static model: all ids in one row, with the offset of each text
    bounds = F.pad(features["offsets"], (0, 1), value=len(ids))
    unknown_before = F.pad(is_unknown.cumsum(0), (1, 0))
    return bounds.diff(), unknown_before[bounds].diff()


class UnreadPairWatch:
    """The same for the pairs of a cross-encoder; of a pair that is cut the longer text counts as cut."""

    def __init__(self, model: CrossEncoder) -> None:
        self._reading = reading_of(model)
        self._unknown = getattr(model.tokenizer, "unk_token_id", None)
        self._full = False
        self._strange = False

    def look(self, features: Features) -> None:
        """Look at the features of some pairs."""
        counts = _counts(features, self._unknown)
        if counts is not None:
            longest = self._reading.longest
            self._full = self._full or (longest is not None and bool((counts[0] >= longest).any()))
            self._strange = self._strange or bool((counts[1] > 0).any() or (counts[0] <= PAIR_ADDS + 1).any())

    def unread(self, pairs: Sequence[Pair]) -> Unread:
        """Return what was not read of the pairs whose features were looked at since the last call."""
        result = Unread()
        longest = self._reading.longest
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        result.see(texts)
        result.longest = longest or 0
        # only now are the texts tokenised by themselves, which most calls do not need
        if self._full and longest is not None:
            size_of = dict(zip(texts, self._reading.lengths(texts), strict=True))
            special_tokens = self._reading.lengths([""])[0]
            for pair in pairs:
                first, second = (size_of[text] - special_tokens for text in pair)
                if first + second + PAIR_ADDS > longest:
                    result.cut.add(pair[0] if first > second else pair[1])
        if self._strange:
            for text, pieces in zip(texts, self._reading.pieces_of(texts), strict=True):
                if not pieces.has_known:
                    result.unknown.add(text)
        self._full = False
        self._strange = False
        return result

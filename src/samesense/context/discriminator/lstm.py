"""The network that tells whether a sentence fits between its neighbours: Eq. 1, as printed and with an interaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from samesense.context.corpus.words import words_and_marks
from samesense.errors import ConfigError, ModelError

Interaction = Literal["none", "product", "bilinear"]
"""How a sentence and a side of its context meet."""

PADDING = 0
UNKNOWN = 1


class Coherence(nn.Module):
    """Whether a sentence fits into a context, as a logit.

    A sentence vector h is the two last states of a bidirectional LSTM of one layer; a side of a context is the mean of
    its sentence vectors, l and r. The logit is w_l l + w_s s + w_r r, to which an interaction adds s A l + s B r with
    matrices A and B (``bilinear``), diagonal ones (``product``), or nothing (``none``). A and B start as identities: a
    sentence fits where it resembles its neighbours. From zero, learning starts later.

    Source: Sun et al. 2022, section 3.2.1, Eq. 1.
    Differs: Eq. 1 (``none``) is a sum of one term of the sentence and one of the context. It puts contexts in the same
        order for every sentence, so that the selection of section 3.3 that ranks by it could not depend on the
        sentence. Nor can it learn: replacements are drawn as often as true centres, the loss is convex in the logit,
        and its slope at a logit of 0 is 0 along every such sum, so that it is smallest there. The interaction mends
        both, and still leaves one product of a query by cached sentence vectors to score any number of contexts.
        Sides of several sentences are averaged; the paper does not say.

    Raises:
        ConfigError: if a setting is out of range.
    """

    def __init__(
        self, words: int, dim: int = 300, hidden: int = 300, interaction: Interaction = "bilinear", dropout: float = 0.0
    ) -> None:
        super().__init__()
        if min(words, dim, hidden) < 1 or interaction not in get_args(Interaction) or not 0 <= dropout < 1:
            raise ConfigError(
                f"Sizes are 1 or larger, the interaction is one of {', '.join(get_args(Interaction))}, and dropout is "
                f"below 1; received words {words}, dim {dim}, hidden {hidden}, {interaction!r} and {dropout}."
            )
        self.settings = {
            "words": words,
            "dim": dim,
            "hidden": hidden,
            "interaction": interaction,
            "dropout": dropout,
        }
        width = 2 * hidden
        self.embedding = nn.Embedding(words, dim, padding_idx=PADDING)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(3 * width, 1, bias=False)
        # Either begins as the plain dot product of sentence and side.
        starts = {"product": torch.ones(2, width), "bilinear": torch.eye(width).repeat(2, 1, 1)}
        self.meeting = nn.Parameter(starts[interaction]) if interaction in starts else None
        nn.init.normal_(self.embedding.weight, std=0.1)
        # The draw has overwritten the zeros that padding_idx had set.
        with torch.no_grad():
            self.embedding.weight[PADDING] = 0.0

    def encode(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return vectors ``(sentences, 2 hidden)`` of words ``(sentences, longest)``, padded beyond ``lengths``."""
        embedded = self.dropout(self.embedding(tokens))
        # torch takes these lengths on the CPU only.
        packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
        last: Tensor = self.lstm(packed)[1][0]
        vectors: Tensor = self.dropout(last.transpose(0, 1).flatten(1).float())
        return vectors

    def queries(self, sentences: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q_l, q_r, each of the shape of ``sentences``, and w_s s, without the last axis.

        The logit is q_l l + q_r r + w_s s.
        """
        left, centre, right = self.last.weight.view(3, -1)
        term = sentences @ centre
        if self.meeting is None:
            return left.expand_as(sentences), right.expand_as(sentences), term
        first, second = self.meeting
        if self.meeting.dim() == 2:
            return left + sentences * first, right + sentences * second, term
        return left + sentences @ first, right + sentences @ second, term

    def forward(
        self, tokens: Tensor, lengths: Tensor, sides: Tensor, centres: Tensor, labels: Tensor
    ) -> dict[str, Any]:
        """Return the mean binary cross-entropy as ``loss``, and ``logits`` of the shape of ``centres``.

        Args:
            tokens: the distinct sentences of the batch; see :meth:`encode`.
            lengths: likewise.
            sides: rows of the sentences on the left and right, -1 where there is none, ``(windows, 2, most)``.
            centres: rows of the sentences put into each window ``(windows, k)``.
            labels: 1 where it is the one that stood there, else 0 ``(windows, k)``.
        """
        vectors = self.encode(tokens, lengths)
        left, right = side_means(vectors, sides).unbind(dim=1)
        for_left, for_right, centre_term = self.queries(vectors[centres])
        logits = (for_left * left[:, None]).sum(-1) + (for_right * right[:, None]).sum(-1) + centre_term
        return {"loss": nn.functional.binary_cross_entropy_with_logits(logits, labels), "logits": logits}


def side_means(vectors: Tensor, sides: Tensor) -> Tensor:
    """Return the mean of the vectors ``(sentences, dim)`` of each side ``(..., dim)``; an empty side is zero.

    ``sides`` ``(..., most)`` are rows of them, -1 where there is none.
    """
    present = (sides >= 0).to(vectors.dtype)
    # An absent sentence takes row 0, which its weight of 0 cancels.
    total = (vectors[sides.clamp(min=0)] * present[..., None]).sum(-2)
    return total / present.sum(-1, keepdim=True).clamp(min=1)


def padded(numbers: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return token numbers filled up on the right ``(sentences, longest)``, and lengths ``(sentences,)``."""
    lengths = torch.tensor([len(row) for row in numbers])
    tokens = torch.full((len(numbers), int(lengths.max())), PADDING)
    for row, numbers_of_text in zip(tokens, numbers, strict=True):
        row[: len(numbers_of_text)] = torch.tensor(numbers_of_text)
    return tokens, lengths


class Vocabulary:
    """Words and marks with their numbers: 0 fills up, 1 is any unknown word, then the words in order.

    Raises:
        ModelError: if there is none, or one comes twice.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._number = {word: number for number, word in enumerate(self.words, UNKNOWN + 1)}
        if not self.words or len(self._number) != len(self.words):
            raise ModelError(f"A vocabulary has one word at least and none twice; received {len(self.words)} words.")

    @classmethod
    def count(cls, sentences: Iterable[str], *, least: int = 2, most: int = 100_000) -> Vocabulary:
        """Return the words that come at least ``least`` times, at most ``most`` of them; ties in the order of words."""
        counts = Counter(word for sentence in sentences for word in words_and_marks(sentence))
        retained = sorted((-count, word) for word, count in counts.items() if count >= least)[:most]
        if not retained:
            raise ConfigError(f"No word of the corpus comes {least} times. Lower the least count, or give more text.")
        return cls([word for _, word in retained])

    def __len__(self) -> int:
        return len(self.words) + UNKNOWN + 1

    def numbers(self, sentence: str, most: int) -> list[int]:
        """Return the numbers of the first ``most`` words of a sentence; one without a word is one unknown word."""
        return [self._number.get(word, UNKNOWN) for word in words_and_marks(sentence)[:most]] or [UNKNOWN]

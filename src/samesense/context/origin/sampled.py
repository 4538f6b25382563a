"""Contexts without a corpus: what a language model itself goes on with after each of two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.reader import Reader
from samesense.execution.progress import progress_bar
from samesense.results import Shown
from samesense.types import Indices, Pair, Scores


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """A text that the model went on with after one of two sentences, and how probable it is after both.

    Attributes:
        text: the continuation.
        after: the sentence that it was drawn after.
        first: its log probability a token after the first sentence, in nats.
        second: the same after the second.
    """

    text: str
    after: Literal["first", "second"]
    first: float
    second: float

    @property
    def gap(self) -> float:
        """How far the two are apart, in nats a token."""
        return abs(self.first - self.second)


@dataclass(frozen=True, kw_only=True, repr=False)
class Continuations(Shown):
    """What may follow two sentences.

    Attributes:
        sentences: the pair.
        score: minus the mean gap over all continuations, in nats a token: 0 for sentences that are followed alike.
        alike: those whose probability differs least, the nearest first.
        apart: those whose probability differs most, the farthest first.
    """

    sentences: tuple[str, str]
    score: float
    alike: Sequence[Continuation]
    apart: Sequence[Continuation]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        parts = {name: [asdict(entry) for entry in getattr(self, name)] for name in ("alike", "apart")}
        return {"sentences": list(self.sentences), "score": self.score, **parts}

    def table(self) -> str:
        """Lay it out as plain text: log probability a token after each sentence, and the continuation."""
        lines = [f"{self.score:z.4f}  minus the mean gap, nats a token"]
        for title, entries in (("go on alike", self.alike), ("go on otherwise", self.apart)):
            lines += ["", f"{title:<15}   first  second  continuation"]
            lines += [f"{one.after:>15}  {one.first:+6.2f}  {one.second:+6.2f}  {one.text!r}" for one in entries]
        return "\n".join(lines)

    __str__ = table


class ContinuationScore:
    """A :data:`~samesense.types.Score` without documents: minus the mean gap over what follows either text of a pair.

    Each text is gone on with several times by a causal language model, and what is drawn after either is read after
    both. A pair costs a hundred times what an encoder takes.

    Source: Liu et al. 2024 (ICLR), "Meaning representations from trajectories in autoregressive models".

    Args:
        reader: the language model.
        count: continuations of each text.
        tokens: of each continuation.
        seed: they are drawn with.
    """

    def __init__(self, reader: Reader, *, count: int = 16, tokens: int = 10, seed: int = 42) -> None:
        self._reader, self._count, self._tokens, self._seed = reader, count, tokens, seed
        self._tails: dict[str, Indices] = {}  # by text, as one stands in many pairs

    @classmethod
    def open(
        cls, name: str, *, precision: Literal["float32", "bfloat16"] = "float32", device: str = "cpu"
    ) -> ContinuationScore:
        """Open a language model by folder or hub name; ModelError if it is not causal."""
        return cls(Reader(open_language_model(name, precision=precision, device=device)))

    @property
    def protocol(self) -> str:
        """Everything that changes a score, in words."""
        return (
            f"minus the mean gap of log p over {self._count} continuations of {self._tokens} tokens of each text, seed "
            f"{self._seed}; causal language model, {self._reader.precision}, at most {self._reader.longest} tokens of "
            "a text"
        )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Return a score a pair, ``(pairs,)``, in nats a token, 0 or less."""
        self._reader.note_unread([text for pair in pairs for text in pair])
        scores = np.empty(len(pairs))
        with progress_bar("score", "pair", len(pairs), leave=False, inner=True) as bar:
            for at, pair in enumerate(pairs):
                scores[at] = _score(self._read(*pair)[1])
                bar.update(1)
        return scores

    def explain(self, first: str, second: str, *, top: int = 5) -> Continuations:
        """Return what is about as probable after both texts, and what is not."""
        self._reader.note_unread([first, second])
        tails, logs = self._read(first, second)
        found = [
            Continuation(
                text=self._reader.text(tail), after="first" if at < self._count else "second",
                first=float(logs[0, at]), second=float(logs[1, at]),
            )
            for at, tail in enumerate(tails)
        ]  # fmt: skip
        ranked = sorted(found, key=lambda one: one.gap)
        told = {"alike": ranked[:top], "apart": ranked[top:][::-1][:top]}
        return Continuations(sentences=(first, second), score=_score(logs), **told)

    def _read(self, first: str, second: str) -> tuple[Indices, Scores]:
        """Return the continuations of both, and the log probability a token of each after either, ``(2, all)``."""
        for text in (first, second):
            if text not in self._tails:
                self._tails[text] = self._reader.sample(text, self._count, self._tokens, self._seed)
        tails = np.concatenate([self._tails[first], self._tails[second]])
        return tails, self._reader.read([first, second], tails).logs.astype(np.float64).mean(axis=2)


def _score(logs: Scores) -> float:
    return 0.0 - float(np.abs(logs[0] - logs[1]).mean())  # 0, and not -0, for equal texts

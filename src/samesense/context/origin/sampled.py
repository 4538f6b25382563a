"""Contexts without a corpus: what a language model itself goes on with after each of two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from samesense.context.origin.reader import Reader


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


@dataclass(frozen=True, kw_only=True)
class Continuations:
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
        lines = [f"{self.score:.4f}  minus the mean gap, nats a token"]
        for title, entries in (("go on alike", self.alike), ("go on otherwise", self.apart)):
            lines += ["", f"{title:<15}   first  second  continuation"]
            lines += [f"{one.after:>15}  {one.first:+6.2f}  {one.second:+6.2f}  {one.text!r}" for one in entries]
        return "\n".join(lines)


def sampled(
    reader: Reader, first: str, second: str, *, count: int = 16, tokens: int = 10, seed: int = 42, top: int = 5
) -> Continuations:
    """Draw ``count`` continuations of ``tokens`` tokens after each sentence, and compare what is said of all of them.

    Source: Liu et al. 2024 (ICLR), "Meaning representations from trajectories in autoregressive models".
    """
    tails = np.concatenate([reader.sample(text, count, tokens, seed) for text in (first, second)])
    logs = reader.read([first, second], tails).logs.astype(np.float64).mean(axis=2)
    found = [
        Continuation(
            text=reader.text(tail), after="first" if at < count else "second",
            first=float(logs[0, at]), second=float(logs[1, at]),
        )
        for at, tail in enumerate(tails)
    ]  # fmt: skip
    ranked = sorted(found, key=lambda one: one.gap)
    score = -float(np.abs(logs[0] - logs[1]).mean())
    return Continuations(sentences=(first, second), score=score, alike=ranked[:top], apart=ranked[::-1][:top])

"""Why two sentences are alike or not: the contexts that made them so, in their own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from samesense.context.corpus.corpus import Window
from samesense.context.corpus.words import joiner
from samesense.results.shown import Shown

Whose = Literal["first", "second", "both"]


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one context adds to the similarity of two sentences.

    Attributes:
        window: number of the window in the corpus.
        left: the sentences before.
        centre: what stood there in the corpus; it plays no part in the score.
        right: the sentences after.
        whose: in whose context set it is.
        first: how well the first sentence fits, as it enters the cosine.
        second: the same of the second.
        share: what it adds to the cosine; the shares of all contexts sum to it. A context that is in both sets, and
            counts twice, has the share of both.
    """

    window: int
    left: tuple[str, ...]
    centre: str
    right: tuple[str, ...]
    whose: Whose
    first: float
    second: float
    share: float

    @classmethod
    def of(cls, window: Window, whose: Whose, first: float, second: float, share: float) -> Contribution:
        """Make one from a window of the corpus."""
        return cls(
            window=window.id,
            left=window.left,
            centre=window.centre,
            right=window.right,
            whose=whose,
            first=first,
            second=second,
            share=share,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Shown):
    """A similarity with its contexts.

    Attributes:
        sentences: the pair.
        score: its similarity.
        contexts: how many contexts it was looked at in.
        alike: those that add most to the score, the largest share first; each share is above 0.
        apart: those that take most off it, the largest first; each share is below 0.
    """

    sentences: tuple[str, str]
    score: float
    contexts: int
    alike: Sequence[Contribution]
    apart: Sequence[Contribution]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        content = asdict(self)
        for direction in ("alike", "apart"):
            content[direction] = [
                {**entry, "left": list(entry["left"]), "right": list(entry["right"])} for entry in content[direction]
            ]
        return {**content, "sentences": list(self.sentences)}

    def table(self) -> str:
        """Lay it out as plain text: share, both fits, and the context with a gap for the sentence."""
        lines = [f"{self.score:.4f}  over {self.contexts} contexts"]
        for title, entries in (("made them alike", self.alike), ("kept them apart", self.apart)):
            if entries:
                lines += ["", f"{title:<16}  share   first  second  context"]
            for entry in entries:
                text = f"{_running(entry.left)} [...] {_running(entry.right)}"
                lines.append(
                    f"{entry.whose:>16}  {entry.share:+.4f}  {entry.first:+6.2f}  {entry.second:+6.2f}  {text}"
                )
        return "\n".join(lines)

    __str__ = table


def _running(sentences: Sequence[str]) -> str:
    return "".join([*sentences[:1], *(joiner(text) + text for text in sentences[1:])])

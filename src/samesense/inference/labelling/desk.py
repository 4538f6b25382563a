"""What a person labels: the pairs that wait, the one that is shown, and what was done last."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from samesense.inference.labelling.file import Labels
from samesense.inference.models.chat import SCALES, ScaleName
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.labels import kept
from samesense.types import Pair

KEYS = {"0-5": {value: str(value) for value in range(6)}, "yes-no": {1: "y", 0: "n"}}
"""Keys that give a label."""


class Desk:
    """Pairs in the order in which they are shown; those that have a label are passed over, skipped ones come last."""

    def __init__(self, pairs: Sequence[Pair], labels: Labels, scale: ScaleName) -> None:
        self._pairs, self._labels, self._scale = pairs, labels, scale
        self._waiting = deque(index for index, pair in enumerate(pairs) if pair not in labels)
        self._skipped: set[int] = set()
        self._given: list[int] = []

    def state(self) -> dict[str, Any]:
        """Return what the page shows, as plain JSON types; a pair has a number from 1, and so has what can be undone.

        ``pair`` is absent at the end, ``undo`` where nothing was labelled since the start.
        """
        meanings = SCALES[self._scale].meanings
        keys = KEYS[self._scale]
        content: dict[str, Any] = {
            "scale": [{"key": keys[value], "value": value, "meaning": meaning} for value, meaning in meanings.items()],
            "done": len(self._pairs) - len(self._waiting),
            "total": len(self._pairs),
            "skipped": len(self._skipped),
            "file": str(self._labels.path),
            "by": self._labels.by,
        }
        if self._waiting:
            content["pair"] = {"id": self._waiting[0] + 1, "texts": list(self._pairs[self._waiting[0]])}
        if self._given:
            content["undo"] = self._given[-1] + 1
        return content

    def label(self, pair: int, score: int) -> None:
        """Label the pair that is shown, on disk when it returns.

        RequestError if it is another pair, or the score is not on the scale.
        """
        index = self._shown(pair)
        if score not in SCALES[self._scale].meanings:
            raise invalid(f"A label is {SCALES[self._scale].name}; received {score}.", param="score")
        kept(lambda: self._labels.add([(self._pairs[index], float(score))]))
        self._waiting.popleft()
        self._skipped.discard(index)
        self._given.append(index)

    def skip(self, pair: int) -> None:
        """Put the pair that is shown to the end; RequestError if it is another one."""
        self._skipped.add(self._shown(pair))
        self._waiting.rotate(-1)

    def undo(self, pair: int) -> None:
        """Take the last label back and show its pair again; RequestError if another pair was labelled last."""
        if not self._given or self._given[-1] != pair - 1:
            raise _stale("Another pair was labelled last")
        kept(self._labels.undo)
        self._waiting.appendleft(self._given.pop())

    def _shown(self, pair: int) -> int:
        if not self._waiting or self._waiting[0] != pair - 1:
            raise _stale("Another pair is shown by now")
        return self._waiting[0]


def _stale(what: str) -> RequestError:
    """Return the error of a page that is behind, as where two are open."""
    return RequestError(409, f"{what}; is the page open twice?", code="stale", param="pair")

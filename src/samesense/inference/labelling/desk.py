"""The state of a labelling session: the pairs left to label, the pair shown, and the last labels, to undo them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from samesense.choices import ScaleName
from samesense.inference.labelling.file import Labels
from samesense.inference.models.chat import SCALES
from samesense.inference.serve.errors import RequestError, invalid
from samesense.inference.serve.http.labels import save_label
from samesense.types import Pair

KEYS = {"0-5": {value: str(value) for value in range(6)}, "yes-no": {1: "y", 0: "n"}}
"""Keyboard keys of the labels."""


class Desk:
    """Pairs in the order in which they are shown; those with a label are left out, skipped ones come last."""

    def __init__(self, pairs: Sequence[Pair], labels: Labels, scale: ScaleName) -> None:
        self._pairs = pairs
        self._labels = labels
        self._scale = scale
        self._waiting = deque(index for index, pair in enumerate(pairs) if pair not in labels)
        self._skipped: set[int] = set()
        self._labelled: list[int] = []

    def state(self) -> dict[str, Any]:
        """Return the content of the page, as JSON types; pairs are numbered from 1.

        ``pair`` is absent at the end, ``undo`` (the number of the last labelled pair) if none was labelled yet.
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
        if self._labelled:
            content["undo"] = self._labelled[-1] + 1
        return content

    def label(self, pair: int, score: int) -> None:
        """Label the pair that is shown; the label is on disk when this returns.

        RequestError if another pair is shown, or the score is not on the scale.
        """
        index = self._current(pair)
        if score not in SCALES[self._scale].meanings:
            raise invalid(f"A label is {SCALES[self._scale].name}; received {score}.", param="score")
        # On disk first: if that fails, the pair is still shown.
        save_label(lambda: self._labels.add([(self._pairs[index], float(score))]))
        self._waiting.popleft()
        self._skipped.discard(index)
        self._labelled.append(index)

    def skip(self, pair: int) -> None:
        """Move the pair that is shown to the end; RequestError if another pair is shown."""
        self._skipped.add(self._current(pair))
        self._waiting.rotate(-1)

    def undo(self, pair: int) -> None:
        """Remove the last label and show its pair again; RequestError if another pair was labelled last."""
        if not self._labelled or self._labelled[-1] != pair - 1:
            raise _stale("Another pair was labelled last")
        save_label(self._labels.undo)
        self._waiting.appendleft(self._labelled.pop())

    def _current(self, pair: int) -> int:
        """Return the index of the pair that is shown; RequestError if it is not ``pair``."""
        if not self._waiting or self._waiting[0] != pair - 1:
            raise _stale("Another pair is shown by now")
        return self._waiting[0]


def _stale(what: str) -> RequestError:
    """Return the error for an outdated page, as when two are open."""
    return RequestError(409, f"{what}; is the page open twice?", code="stale", param="pair")
